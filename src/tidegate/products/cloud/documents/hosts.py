"""Which hosts a request may go to.

A statement's values may fill in a part of a host's name, and the request carries the operator's
credential. So the host must be one that the provider's document means, or that the operator lists;
it is reached with TLS, on its usual port; and a name that leads to this machine or into a private
network is refused unless the operator lists it. Checked before the request is authorized, and by
`http_client` for the addresses that its host's name gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urljoin, urlsplit

import msgspec

from tidegate.config.addresses import HttpUrl, is_public_address, parse_http_url
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.documents.model import Server
from tidegate.products.cloud.settings import CloudSettings

_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_LABELS: Final = r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)*"
_LOCAL_NAMES: Final = ("localhost", "local", "internal", "intranet", "home.arpa", "lan")
"""Ends of names that mean this machine or this network."""
_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|\d+)")


class Destination(msgspec.Struct, frozen=True):
    """Where to connect, and the `Host` header to send."""

    url: str
    host_header: str
    is_mapped: bool
    """Whether a setting leads it to this machine: then its addresses need no check."""


class HostRules:
    """The rules of one set of settings."""

    def __init__(self, settings: CloudSettings) -> None:
        self._settings = settings
        self._endpoints = sorted(settings.endpoints.items(), key=lambda each: -len(each[0]))

    def check(self, url: str, server: Server, provider: str) -> HttpUrl:
        """Refuse a request of `provider` whose URL was made from `server`, if it would go elsewhere
        than the document and the operator say. The URL, taken apart.

        Raises: TidegateError HOST_REFUSED.
        """
        parts = _parse(url)
        listed = self._settings.providers[provider].hosts if self._has(provider) else ()
        if not (_is_meant(parts, server) or any(_fits(each, parts) for each in listed)):
            raise _refused(
                parts,
                f"the document of {provider} leaves the host open",
                f"An operator may list it in `cloud.providers.{provider}.hosts`.",
            )
        self._check_private(parts, listed)
        return parts

    def check_token_url(self, url: str) -> HttpUrl:
        """Refuse to ask for a token at a private host. Raises: TidegateError HOST_REFUSED."""
        parts = _parse(url)
        self._check_private(parts, ())
        return parts

    def networks(self, url: HttpUrl, provider: str = "") -> Sequence[str] | None:
        """The private networks that a checked request of `provider` may reach: none, or any (None)
        where an operator lists this very host."""
        listed = self._settings.providers[provider].hosts if self._has(provider) else ()
        return None if self._is_listed_private(url, listed) else ()

    def destination(self, url: str) -> Destination:
        """Where a checked request goes: to itself, or as `cloud.endpoints` maps it."""
        parts = urlsplit(url)
        for prefix, target in self._endpoints:
            rest = _rest_of(url, prefix)
            if rest is not None:
                return Destination(f"{target.rstrip('/')}{rest}", parts.netloc, True)
        return Destination(url, parts.netloc, False)

    def restore(self, address: str, url: str) -> str:
        """The address that a reply to `url` names for another request, as the document has it. A
        server that `cloud.endpoints` leads to may call itself by its own address.

        Raises: ValueError: it is no address.
        """
        named = urljoin(url, address)
        for prefix, target in self._endpoints:
            rest = _rest_of(url, prefix)
            if rest is None:
                continue
            begins, here = url[: len(url) - len(rest)], target.rstrip("/")
            origin = urlsplit(here)
            if not origin.path and _rest_of(named, begins) is not None:
                return named
            inner = _rest_of(urljoin(f"{here}{rest}", address), here)
            if inner is not None:
                return f"{begins}{inner}"
            ours, there = urlsplit(url), urlsplit(named)
            if (there.scheme, there.netloc) == (origin.scheme, ours.netloc):
                return there._replace(scheme=ours.scheme).geturl()
            break
        return named

    def _has(self, provider: str) -> bool:
        return provider in self._settings.providers

    def _check_private(self, parts: HttpUrl, listed: Iterable[str]) -> None:
        if (
            self._is_listed_private(parts, listed)
            or self.destination(f"{parts.origin}{parts.path}").is_mapped
        ):
            return
        if parts.scheme != "https":
            raise _refused(
                parts,
                "it is reached without encryption",
                "An operator may list a private host in `cloud.private_hosts`.",
            )
        if _is_local_name(parts.host) or not _may_be_public(parts.host):
            raise _refused(
                parts,
                "it is on this machine or in a private network",
                "An operator may list it in `cloud.private_hosts`.",
            )

    def _is_listed_private(self, parts: HttpUrl, listed: Iterable[str]) -> bool:
        """Whether an operator means this very host although it is private."""
        exact = (each for each in listed if _is_literal(each))
        return any(_fits(each, parts) for each in (*self._settings.private_hosts, *exact))


def redirected(url: str, status: int, location: str | None) -> TidegateError:
    """The error for a reply with the status 3xx, which is never followed."""
    host = urlsplit(url).netloc
    where = urlsplit(location or "").netloc
    return TidegateError(
        Code.HOST_REFUSED,
        f"{host} redirects{f' to {where[:120]}' if where else ''} (HTTP status {status}), which is "
        "not followed: the request carries a credential.",
        hint="Check the parameters of the statement, such as the region.",
        details={"http_status": status, "retryable": False},
    )


def _parse(url: str) -> HttpUrl:
    try:
        return parse_http_url(url)
    except ValueError:
        raise TidegateError(
            Code.HOST_REFUSED, "The request's address is not one of HTTP, so it is not sent."
        ) from None


def _is_meant(parts: HttpUrl, server: Server) -> bool:
    """Whether the document's own pattern has this host.

    What follows its last variable must be a domain: with `{a}.com` or `{endpoint}` a value
    would choose whose host it is. The document's defaults are its own choice.
    """
    scheme, _, rest = server.url.partition("://")
    place = rest.partition("/")[0].lower()
    if parts.login is not None:
        return False
    own = f"{parts.host}:{parts.port}" if parts.port is not None else parts.host
    defaults = {name.lower(): value for name, value in server.variables.items()}
    if own == _filled(place, defaults) and parts.scheme == _filled(scheme, server.variables):
        return True
    names = _VARIABLE.findall(place)
    if names:
        suffix = place.rpartition("}")[2].partition(":")[0]
        if not suffix.startswith(".") or "." not in suffix[1:]:
            return False
    pattern = "".join(
        _LABELS if part in names and at % 2 else re.escape(part)
        for at, part in enumerate(_VARIABLE.split(place))
    )
    return re.fullmatch(pattern, own) is not None


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: values.get(match[1], ""), text).lower()


def _fits(pattern: str, parts: HttpUrl) -> bool:
    """Whether a host of the settings is this one: `*.` is anything below, and without a port only
    the usual one of the scheme counts."""
    if pattern.startswith("[") and pattern.endswith("]"):
        name, port = pattern[1:-1], ""
    else:
        name, _, port = pattern.partition(":")
    usual = 443 if parts.scheme == "https" else 80
    if parts.login is not None or parts.tcp_port != (int(port) if port else usual):
        return False
    if name.startswith("*."):
        return parts.host.endswith(name[1:])
    return parts.host == name


def _is_literal(pattern: str) -> bool:
    """Whether a setting names an address or this machine, and not a name that leads somewhere."""
    name = pattern.partition(":")[0]
    return pattern.startswith("[") or _is_address(name) or _is_local_name(name)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_local_name(host: str) -> bool:
    name = host.rstrip(".")
    if ":" in name or _is_address(name):
        return False
    return "." not in name or any(name == end or name.endswith(f".{end}") for end in _LOCAL_NAMES)


def _may_be_public(host: str) -> bool:
    """What is known of a host without asking for its addresses. `127.1` and `0x7f000001` are
    addresses for some resolvers."""
    if _is_address(host):
        return is_public_address(host)
    return not _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2])


def _rest_of(url: str, prefix: str) -> str | None:
    """What follows a prefix that ends where a part of the URL does; None if it does not fit.
    `https://*.example.com` fits every host below."""
    wanted, given = prefix.rstrip("/"), url
    scheme, _, behind = wanted.partition("://*.")
    if behind:
        place, slash, path = behind.partition("/")
        parts = urlsplit(url)
        if parts.scheme != scheme or not parts.netloc.lower().endswith(f".{place.lower()}"):
            return None
        wanted = f"{scheme}://{parts.netloc}{slash}{path}"
    if given[: len(wanted)].lower() != wanted.lower():
        return None
    rest = given[len(wanted) :]
    return rest if rest[:1] in ("", "/", "?") else None


def _refused(parts: HttpUrl, reason: str, hint: str) -> TidegateError:
    place = f"{parts.host}:{parts.port}" if parts.port is not None else parts.host
    return TidegateError(
        Code.HOST_REFUSED, f"Nothing is sent to {place[:200]}: {reason}.", hint=hint
    )
