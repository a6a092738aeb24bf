"""Sends one message over HTTPS, once.

The host's addresses are looked up and checked, and the connection is made to one of these very
addresses, so that a name cannot lead elsewhere between the two. No redirect is followed, no proxy
is used, and of the reply no more is read than its head. No text here holds the URL.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, NamedTuple

import httptools

from tidegate.config.addresses import is_public_address
from tidegate.config.webhook import WebhookSettings
from tidegate.errors import TidegateError
from tidegate.provider_http import retry_after
from tidegate.webhook.signature import read_secret, sign

TIMEOUT_S = 10.0
"""For one attempt: looking up the name, connecting, and the head of the reply."""
MOST_HEAD = 16_384
_CHUNK = 4_096
GONE = 410

# One look-up at a time, on a thread of its own: a name server that hangs delays nothing else.
_RESOLVER = ThreadPoolExecutor(1, "webhook-names")


class Attempt(NamedTuple):
    """What came of sending a message. `status` is that of the reply, None if none came; `reason`
    says in words why the message counts as not sent, empty if it was."""

    status: int | None
    reason: str = ""
    retry_after_s: float | None = None
    address: str = ""
    elapsed_ms: float = 0.0

    @property
    def is_sent(self) -> bool:
        return not self.reason

    @property
    def is_gone(self) -> bool:
        """Whether the receiver wants no message any more."""
        return self.status == GONE


class _Failed(Exception):
    """No reply came; the text says why."""


async def deliver(
    settings: WebhookSettings, id: str, body: bytes, *, timeout_s: float = TIMEOUT_S
) -> Attempt:
    """Send a message. Raises nothing but that it is cancelled."""
    began, address = time.perf_counter(), ""
    try:
        key = read_secret(settings.secret)
        async with asyncio.timeout(timeout_s):
            addresses = await _look_up(settings)
            reader, writer = await _connect(settings, addresses)
            try:
                address = str(writer.get_extra_info("peername")[0])
                writer.write(_request(settings, key, id, body))
                await writer.drain()
                status, headers = await _read_head(reader)
            finally:
                writer.transport.abort()  # what else the reply has is not waited for
    except TidegateError as error:
        return Attempt(None, error.message)
    except TimeoutError:
        return Attempt(None, f"no reply came within {timeout_s:g} s", None, address)
    except _Failed as failure:
        return Attempt(None, str(failure), None, address)
    except ssl.SSLCertVerificationError as error:
        return Attempt(None, f"its certificate cannot be verified: {error.verify_message}")
    except OSError as error:
        return Attempt(None, error.strerror or type(error).__name__, None, address)
    elapsed_ms = (time.perf_counter() - began) * 1000
    after = retry_after(headers.get("retry-after"))
    return Attempt(status, _reason(status), after, address, elapsed_ms)


def _reason(status: int) -> str:
    if 200 <= status < 300:
        return ""
    if status == GONE:
        return "it answered 410: it wants no more messages"
    if 300 <= status < 400:
        return f"it answered with a redirect ({status}), which is not followed"
    return f"it answered with HTTP status {status}"


async def _look_up(settings: WebhookSettings) -> list[str]:
    """The addresses of the host, all of which may be connected to. Raises: _Failed."""
    parts = settings.parts
    try:
        found = await asyncio.get_running_loop().run_in_executor(
            _RESOLVER,
            lambda: socket.getaddrinfo(parts.host, parts.tcp_port, type=socket.SOCK_STREAM),
        )
    except OSError:
        raise _Failed("its name leads to no address") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    check_addresses(settings, addresses)
    return addresses


def check_addresses(settings: WebhookSettings, addresses: Sequence[str]) -> None:
    """Refuse this machine and private networks, unless the settings list them. Raises: _Failed."""
    listed = [ip_network(each) for each in settings.addresses]
    for each in addresses:
        if is_public_address(each):
            continue
        address = ip_address(each.partition("%")[0])
        if not any(address in network for network in listed):
            raise _Failed(
                "its name leads to this machine or a private network, and the address is not one"
                " of `approvals.webhook.addresses`"
            )


async def _connect(
    settings: WebhookSettings, addresses: Sequence[str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context, failure = _tls(settings.ca_file), OSError("its name leads to no address")
    for each in addresses:
        try:
            return await asyncio.open_connection(
                each,
                settings.parts.tcp_port,
                ssl=context,
                server_hostname=settings.parts.host,
                limit=_CHUNK,
            )
        except OSError as error:
            failure = error
    raise failure


def _tls(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(Path(ca_file))
        except (OSError, ssl.SSLError):
            raise _Failed(
                "`approvals.webhook.ca_file` holds no certificates that can be read"
            ) from None
    return context


def _request(settings: WebhookSettings, key: bytes, id: str, body: bytes) -> bytes:
    parts, now = settings.parts, int(time.time())
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {
        "Host": parts.origin.partition("://")[2],
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Accept-Encoding": "identity",
        "User-Agent": "tidegate",
        "Connection": "close",
        "webhook-id": id,
        "webhook-timestamp": str(now),
        "webhook-signature": sign(key, id, now, body),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


class _Head:
    """Collects the head of one reply from `httptools`."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.is_whole = True


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """The status and the headers of the reply. Raises: _Failed."""
    head = _Head()
    parser: Any = httptools.HttpResponseParser(head)  # pyright: ignore[reportUnknownMemberType] - it has no types
    seen = 0
    while True:
        data = await reader.read(_CHUNK)
        if not data:
            raise _Failed("it closed the connection without a reply")
        seen += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserError:
            if not head.is_whole:
                raise _Failed("it does not speak HTTP") from None
        status = int(parser.get_status_code())
        if head.is_whole and status >= 200:
            return status, head.headers
        if head.is_whole:  # such as 100 Continue, behind which the reply comes
            head.is_whole, head.headers = False, {}
        if seen > MOST_HEAD:
            raise _Failed(f"the head of its reply is longer than {MOST_HEAD:,} bytes")
