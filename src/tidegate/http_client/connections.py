"""Opens connections for the HTTP client: to an address that was checked, or through a proxy."""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import select
import socket
import ssl
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any, Final, NamedTuple, SupportsIndex, cast
from urllib.parse import unquote

from tidegate.config.addresses import (
    is_loopback_address,
    is_public_address,
    parse_http_url,
)
from tidegate.errors import Code, TidegateError
from tidegate.http_client.rules import Server
from tidegate.paths import expand

CHUNK: Final = 262_144
"""Bytes that are read at once."""
_RESOLVER: Final = ThreadPoolExecutor(4, "http-names")
"""Looks names up, apart from other work: a name server that hangs delays nothing else."""


class Reader(asyncio.StreamReader):
    """Counts what has come and was not read: after a reply that is no reply to a later request."""

    idle_since = 0.0
    unread = 0

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        self.unread += len(cast("bytes", data))
        super().feed_data(data)

    async def read(self, n: int = -1) -> bytes:
        data = await super().read(n)
        self.unread -= len(data)
        return data


class Connection(NamedTuple):
    reader: Reader
    writer: asyncio.StreamWriter
    peer: str
    """The address; empty behind a proxy."""

    @property
    def is_quiet(self) -> bool:
        """Whether it is open and nothing has come that was not read, also none that the event loop
        has not seen yet."""
        if self.reader.unread or self.reader.at_eof() or self.writer.is_closing():
            return False
        poll = select.poll()
        poll.register(self.writer.get_extra_info("socket"), select.POLLIN)
        return not poll.poll(0)


class _Proxy(NamedTuple):
    host: str
    port: int
    headers: str


async def connect(server: Server, networks: Sequence[str] | None) -> Connection:
    """A connection to one of the addresses that were checked.

    Raises: RequestFailed HOST_REFUSED, PROVIDER_TIMEOUT, PROVIDER_UNREACHABLE; TidegateError
    CONFIG_INVALID for the CA file.
    """
    rules, origin = server.rules, server.origin
    proxy = _find_proxy(server)
    host, port = (origin.host, origin.port) if proxy is None else proxy[:2]
    connect_s, hint = min(rules.connect_s, rules.total_s), None
    try:
        async with asyncio.timeout(connect_s):
            addresses = await _look_up(host, port)
            if proxy is None:
                _check(server, addresses, networks)
            elif _is_address(origin.host):  # else the proxy looks the name up
                _check(server, [origin.host], networks)
            is_secure = origin.scheme == "https"
            tls = tls_context(rules.ca_file, rules.ca_setting) if is_secure else None
            failure = OSError("its name leads to no address")
            for address in addresses:
                try:
                    async with asyncio.timeout(connect_s / len(addresses)):
                        if proxy is not None:
                            return await _tunnel(server, address, proxy, tls)
                        return await _open(address, port, tls, host if tls else None)
                except OSError as error:
                    failure = error
            raise failure
    except TimeoutError:
        what = f"did not accept a connection within {connect_s:g} s"
        raise server.fail(Code.PROVIDER_TIMEOUT, what) from None
    except ssl.SSLCertVerificationError as error:
        what = f"has a certificate that is not trusted: {error.verify_message.rstrip('.')}"
        if rules.ca_setting:
            hint = f"Set `{rules.ca_setting}` to a file with the certificate of its authority."
    except OSError as error:
        by = "" if proxy is None else f" through its proxy at {proxy.host}:{proxy.port}"
        what = f"cannot be reached{by}: {reason_of(error)}"
    raise server.fail(Code.PROVIDER_UNREACHABLE, what, hint=hint)


def reason_of(error: OSError) -> str:
    """Why a connection failed, in the system's words."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or type(error).__name__).replace("_", " ").lower()
    if error.errno is not None and error.errno in errno.errorcode:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def find_refused(addresses: Sequence[str], networks: Sequence[str] | None) -> str | None:
    """The first address that is neither public nor in one of the networks; None if there is none,
    or if any address may be reached."""
    if networks is None:
        return None
    listed = [ip_network(each) for each in networks]
    for each in addresses:
        if is_public_address(each):
            continue
        bare = each.partition("%")[0]
        if not _is_address(bare) or not any(ip_address(bare) in network for network in listed):
            return each
    return None


def tls_context(ca_file: str | None, setting: str) -> ssl.SSLContext:
    """A context that verifies servers. Raises: TidegateError CONFIG_INVALID for a CA file."""
    variables = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    if ca_file is None:
        return _load_context(None, 0, variables)
    path = expand(ca_file)
    try:
        return _load_context(str(path), path.stat().st_mtime_ns, variables)
    except (OSError, ssl.SSLError):
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"`{setting}` is {ca_file}, which holds no certificates that can be read.",
            hint="Name a file of certificates in PEM form.",
            details={"path": ca_file},
        ) from None


@lru_cache(8)
def _load_context(
    ca_file: str | None, changed_ns: int, variables: tuple[str | None, ...]
) -> ssl.SSLContext:
    """Kept until a file or a variable changes: to load the system's authorities takes long."""
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context


async def _look_up(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises: OSError."""
    if _is_address(host):
        return [host]
    try:
        found = await asyncio.get_running_loop().run_in_executor(
            _RESOLVER, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
    except (OSError, UnicodeError):
        raise OSError("its name leads to no address") from None
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def _open(
    address: str, port: int, tls: ssl.SSLContext | None, name: str | None
) -> Connection:
    reader = Reader(limit=2 * CHUNK)
    protocol = asyncio.StreamReaderProtocol(reader)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(
        lambda: protocol, address, port, ssl=tls, server_hostname=name
    )
    return Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop), address)


def _check(server: Server, addresses: Sequence[str], networks: Sequence[str] | None) -> None:
    refused = find_refused(addresses, networks)
    if refused is None and _is_this_machine(server.origin.host):
        refused = next((each for each in addresses if not is_loopback_address(each)), None)
    if refused is not None:
        setting = server.rules.networks_setting
        hint = f"An operator may list it in `{setting}`." if setting else None
        where = f"{refused}, an address of this machine or a private network"
        raise server.fail(Code.HOST_REFUSED, f"is not asked: it leads to {where}", hint=hint)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_this_machine(host: str) -> bool:
    """Whether a host means this machine by its form (RFC 6761, section 6.3, for names)."""
    name = host.rstrip(".")
    return name == "localhost" or name.endswith(".localhost") or is_loopback_address(host)


def _find_proxy(server: Server) -> _Proxy | None:
    rules, origin = server.rules, server.origin
    if rules.proxies == {} or _is_this_machine(origin.host):
        return None
    from urllib.request import getproxies, proxy_bypass

    url = (getproxies() if rules.proxies is None else rules.proxies).get(origin.scheme)
    if not url or any(map(proxy_bypass, (origin.host, origin.place))):
        return None
    try:
        found = parse_http_url(url if "://" in url else f"http://{url}")
    except ValueError:
        found = None
    if found is None or found.scheme != "http":
        what = "cannot be reached: its proxy is not written like http://HOST:PORT"
        raise server.fail(Code.PROVIDER_UNREACHABLE, what, hint="Correct HTTPS_PROXY.")
    if found.login is None:
        return _Proxy(found.host, found.tcp_port, "")
    login = base64.b64encode(unquote(found.login).encode()).decode()
    return _Proxy(found.host, found.tcp_port, f"Proxy-Authorization: Basic {login}\r\n")


async def _tunnel(
    server: Server, address: str, proxy: _Proxy, tls: ssl.SSLContext | None
) -> Connection:
    """A connection through a proxy that tunnels (RFC 9110, section 9.3.6). Raises: OSError,
    RequestFailed."""
    from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

    origin = server.origin
    plain = asyncio.StreamReader(limit=server.rules.max_head_bytes)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(
        lambda: asyncio.StreamReaderProtocol(plain), address, proxy.port
    )
    try:
        head = f"CONNECT {origin.place} HTTP/1.1\r\nHost: {origin.place}\r\n{proxy.headers}\r\n"
        transport.write(head.encode("latin-1"))
        try:
            reply = await plain.readuntil(b"\r\n\r\n")
            parser: Any = HttpResponseParser(object())
            parser.feed_data(reply)
        except (EOFError, asyncio.LimitOverrunError, HttpParserError, HttpParserUpgrade):
            raise OSError("it does not speak HTTP") from None
        status = int(parser.get_status_code())
        if not 200 <= status < 300:
            what = f"cannot be reached: its proxy refused with HTTP status {status}"
            hint = "Give the proxy's account in HTTPS_PROXY." if status == 407 else None
            code = Code.PROVIDER_UNREACHABLE
            raise server.fail(code, what, hint=hint, proxy_status=status)
        # What the proxy has sent after its head stays in `plain`: it is no part of the reply.
        reader = Reader(limit=2 * CHUNK)
        protocol = asyncio.StreamReaderProtocol(reader)
        inner: asyncio.Transport | None = transport
        if tls is None:
            transport.set_protocol(protocol)
        else:
            inner = await loop.start_tls(transport, protocol, tls, server_hostname=origin.host)
        if inner is None:
            raise OSError("it closed the connection")
        protocol.connection_made(inner)
    except BaseException:
        transport.abort()
        raise
    return Connection(reader, asyncio.StreamWriter(inner, protocol, reader, loop), "")
