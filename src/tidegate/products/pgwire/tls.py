"""TLS at the server's address, and what a connection over it needs of the event loop's protocol and
of a certificate."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple, cast


def _unbound(connection: ssl.SSLObject) -> bytes:
    return b""


class ServerTls(NamedTuple):
    """TLS at an address. With `context` a client may ask for it, and must where `is_required`.
    `end_point` gives what the login of a connection can be bound to (RFC 5929,
    `tls-server-end-point`), empty where it cannot."""

    context: ssl.SSLContext | None = None
    end_point: Callable[[ssl.SSLObject], bytes] = _unbound
    is_required: bool = False


NO_TLS = ServerTls()


def feed(protocol: asyncio.BaseProtocol, data: bytes) -> None:
    """Hand bytes to the protocol of TLS as if they had just been read."""
    reader = cast("asyncio.BufferedProtocol", protocol)
    while data:
        room = memoryview(reader.get_buffer(len(data))).cast("B")
        count = min(len(room), len(data))
        room[:count] = data[:count]
        reader.buffer_updated(count)
        data = data[count:]


def common_name(certificate: object) -> str | None:
    """The common name of a verified client certificate."""
    if not isinstance(certificate, dict):
        return None
    for part in certificate.get("subject", ()):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        for name, value in part:  # pyright: ignore[reportUnknownVariableType]
            if name == "commonName":
                return str(value)  # pyright: ignore[reportUnknownArgumentType]
    return None
