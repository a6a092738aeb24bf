"""Addresses in settings: where this server listens, and whom it may trust."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from tidegate.config.errors import invalid

_USUAL_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Those that are found without a module that reads addresses."""

_BYTE = r"(?:25[0-5]|(?:2[0-4]|1[0-9]|[1-9])?[0-9])"
_PART = r"(?:[\w!$&'()*+,;=:@/~.-]|%[0-9a-fA-F]{2})"
_HTTP_URL = (
    r"(?ai)(?P<scheme>https?)://(?:(?P<login>(?:[\w!$&'()*+,;=:~.-]|%[0-9a-f]{2})*)@)?"
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_](?:[\w.-]*\w)?\.?)(?::(?P<port>[0-9]{1,5}))?"
    rf"(?P<path>(?:/{_PART}*)?)(?:\?(?P<query>(?:{_PART}|\?)*))?(?:#(?P<fragment>(?:{_PART}|\?)*))?"
)


def http_address(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` (`[::1]:8080` for IPv6; port 0 picks a free one).

    Raises: TidegateError CONFIG_INVALID.
    """
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise invalid(
            f"`{text}` is not an address to listen on.",
            hint="Write HOST:PORT, such as 127.0.0.1:7878.",
        )
    return host, int(port)


_EVERY_IPV4, _EVERY_ADDRESS = "0.0.0.0", "::"  # noqa: S104 - compared, not listened at
_NAMED = {"localhost": "127.0.0.1"}


def shares_addresses(host: str, other: str) -> bool:
    """Whether two that listen at these hosts and one port have an address in common. `::` takes
    IPv4 as well. Names but `localhost` are not looked up."""
    one, two = (_NAMED.get(each, each) for each in (host, other))
    if one == two or _EVERY_ADDRESS in (one, two):
        return True
    return _EVERY_IPV4 in (one, two) and ":" not in one + two


class HttpUrl(msgspec.Struct, frozen=True):
    """An HTTP URL, taken apart. `host` has neither brackets nor capitals; `port` is None if none is
    written. `origin` is scheme, host and port as they are written, without a login."""

    scheme: str
    host: str
    port: int | None
    origin: str
    path: str
    query: str
    fragment: str
    login: str | None

    @property
    def tcp_port(self) -> int:
        """The port to connect to."""
        return self.port or (443 if self.scheme == "https" else 80)

    @property
    def is_private(self) -> bool:
        """Whether what is sent there is encrypted or stays on this machine."""
        return self.scheme == "https" or is_this_machine(self.host)

    @property
    def is_plain(self) -> bool:
        """Whether it has no login, query and fragment."""
        return self.login is None and not self.query and not self.fragment


def parse_http_url(url: str) -> HttpUrl:
    """Take an http or https URL apart. Every HTTP URL that we are given is read here.

    Stricter than RFC 3986 where readers disagree: ASCII without spaces, quotes and backslashes, a
    host that is a name, an IPv4 address or an IPv6 address in brackets, a port from 1 to 65535. A
    host that ends in a number is an address of four decimal numbers: `127.1`, `0x7f000001` and
    `127.0.0.1.` are one for some readers and a name for others.
    Raises: ValueError.
    """
    found = re.fullmatch(_HTTP_URL, url)
    if found is None or (found["port"] and not 1 <= int(found["port"]) <= 65_535):
        raise ValueError("not an HTTP URL")
    host = found["host"].lower()
    if host.startswith("["):
        from ipaddress import IPv6Address

        host = IPv6Address(host[1:-1]).compressed
    else:
        _check_host(host)
    scheme, port = found["scheme"].lower(), found["port"]
    return HttpUrl(
        scheme=scheme,
        host=host,
        port=int(port) if port else None,
        origin=f"{scheme}://{found['host']}{f':{port}' if port else ''}",
        path=found["path"],
        query=found["query"] or "",
        fragment=found["fragment"] or "",
        login=found["login"],
    )


def _check_host(host: str) -> None:
    """Raises: ValueError for what is neither a name (RFC 1035, section 2.3.4) nor an IPv4 address,
    or may be either."""
    labels = host.removesuffix(".").split(".")
    is_number = re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]) is not None
    if not all(1 <= len(label) <= 63 for label in labels) or len(host) > 254:
        raise ValueError("not an HTTP URL")
    if is_number and not re.fullmatch(rf"{_BYTE}(?:\.{_BYTE}){{3}}", host):
        raise ValueError("not an HTTP URL")


def check_private_url(url: str, setting: str) -> None:
    """Raises: TidegateError CONFIG_INVALID unless it is https, or http on loopback, and has neither
    a login nor a query nor a fragment."""
    try:
        parts = parse_http_url(url)
    except ValueError:
        parts = None
    if parts is None or not parts.is_private or not parts.is_plain:
        raise invalid(
            f"`{setting}` is not an address that can be trusted: `{url[:80]}`.",
            hint="Use https, without a login and a query; http works for this machine alone.",
        )


_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_PAGE_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s*]+/?|null")


def check_allowed_host(text: str) -> None:
    """Raises: TidegateError CONFIG_INVALID for what no Host header could be."""
    if not _HOST_NAME.fullmatch(text):
        raise invalid(
            f"`allowed_hosts` has `{text[:80]}`, which is no name of a host.",
            hint="Write names without a scheme, a path or `*`, such as gate.example.com,"
            " gate.example.com:8443 or [fd00::7].",
        )


def check_allowed_origin(text: str) -> None:
    """Raises: TidegateError CONFIG_INVALID for what no Origin header could be."""
    if not _PAGE_ORIGIN.fullmatch(text):
        raise invalid(
            f"`allowed_origins` has `{text[:80]}`, which is no origin.",
            hint="Write scheme and host without a path or `*`, such as https://app.example.com.",
        )


def check_proxy(text: str) -> None:
    """Raises: TidegateError CONFIG_INVALID unless it is an address or a network of proxies."""
    from ipaddress import ip_network

    try:
        network = ip_network(text)
    except ValueError as error:
        raise invalid(
            f"`trusted_proxies` has `{text[:80]}`, which is neither an address nor a network.",
            hint="Write an address, such as 10.0.0.5, or a network, such as 10.0.0.0/24.",
        ) from error
    if not network.prefixlen:
        raise invalid(
            f"`trusted_proxies` has `{text}`, which trusts every client.",
            hint="Name the addresses of your proxies: else a client could give any address.",
        )


def check_proxies_named(setting: str, proxies: Collection[str]) -> None:
    """Raises: TidegateError CONFIG_INVALID for a setting that takes the word of proxies if none is
    named."""
    if not proxies:
        raise invalid(
            f"`{setting}` is set, and `trusted_proxies` names no one whose header would count.",
            hint="Name the addresses of the balancers in `trusted_proxies`.",
        )


_NOT_PUBLIC = ("192.0.0.0/24", "168.63.129.16/32")
"""Networks that Python's table calls global: protocols have some addresses of the first and clouds
others, and at the second a cloud's machines reach their host."""


def is_this_machine(host: str) -> bool:
    """Whether only this machine reaches who listens at a host, and what is sent there stays here:
    an address of loopback, or `localhost`. Other names are not looked up: they may lead elsewhere.
    """
    return host in _USUAL_LOOPBACK or is_loopback_address(host)


def is_loopback_address(text: str) -> bool:
    """Whether an IP address is one of loopback, also as IPv6 has one of IPv4; False for what is no
    address."""
    from ipaddress import IPv6Address, ip_address

    try:
        address = ip_address(text)
    except ValueError:
        return False
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (inner or address).is_loopback


def is_public_address(text: str) -> bool:
    """Whether an IP address is one of the public network, also where another one is packed in it;
    False for what is no address."""
    from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

    try:
        address: IPv4Address | IPv6Address | None = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        if address in ip_network("64:ff9b::/96"):  # NAT64
            return is_public_address(str(IPv4Address(int(address) & 0xFFFFFFFF)))
        inner = address.ipv4_mapped or address.sixtofour
        if address.teredo is not None or (inner is not None and not is_public_address(str(inner))):
            return False
        if address.ipv4_mapped is not None:
            return True
        if address not in ip_network("2000::/3"):  # all that is assigned to the public network
            return False
    elif any(address in ip_network(each) for each in _NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast


_NO_DATABASES = (
    *("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "100.100.100.200/32", *_NOT_PUBLIC),
    *("::/128", "fe80::/10", "ff00::/8", "fd00:ec2::/32", "fd20:ce::/64", "64:ff9b:1::/48"),
)
"""Networks of the link, of many receivers and of none, and where clouds tell their machines what
these may know. What NAT64 of a network of its own leads to is written in several ways."""
_EMBEDDING = ("::/96", "64:ff9b::/96", "::ffff:0:0:0/96")
"""Networks of IPv6 whose addresses end with one of IPv4."""


def may_hold_databases(text: str) -> bool:
    """Whether a database may be at an IP address that a person typed, or that a name which he typed
    leads to. This machine and private networks are where most are; False for what is no address."""
    from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and not address.is_loopback:
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address.teredo is not None:
            inner = address.teredo[1]
        if inner is None and any(address in ip_network(each) for each in _EMBEDDING):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return may_hold_databases(str(inner))
    return not any(address in ip_network(each) for each in _NO_DATABASES)
