"""What a connection over TLS needs of the event loop's protocol and of a certificate."""

from __future__ import annotations

import asyncio
from typing import cast


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
