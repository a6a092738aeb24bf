"""Headers of the PROXY protocol, version 2, as a balancer writes them."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from struct import pack

from tidegate.edges.proxy_header import SIGNATURE, checksum

LOCAL, PROXY = 0x20, 0x21


def field(kind: int, value: bytes) -> bytes:
    return pack("!BH", kind, len(value)) + value


def header(
    client: str, fields: Iterable[bytes] = (), *, command: int = PROXY, summed: bool = False
) -> bytes:
    """That of a connection from `client`, with a checksum if it is `summed`."""
    source = ip_address(client)
    here = ip_address("192.0.2.1" if source.version == 4 else "2001:db8::1")
    rest = source.packed + here.packed + pack("!HH", 40_000, 443) + b"".join(fields)
    rest += field(3, bytes(4)) if summed else b""
    fixed = SIGNATURE + pack("!BBH", command, 0x11 if source.version == 4 else 0x21, len(rest))
    whole = fixed + rest
    return whole[:-4] + pack("!I", checksum(whole)) if summed else whole
