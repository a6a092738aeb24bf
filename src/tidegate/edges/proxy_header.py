"""The header of the PROXY protocol, version 2: a balancer names the client of a connection.

Source: "The PROXY protocol", section 2.2, of HAProxy's documents.

A header says how long it is, so it is read to its end and no further: what follows belongs to TLS
or to the protocol of the listener. Version 1 is a line of text without a length, and is not read.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from struct import Struct

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
FIXED_BYTES = 16
"""The signature, version and command, the kind of addresses, the length of the rest."""
MOST_BYTES = 4_096
"""Of the rest: two addresses, and what some balancers add of TLS."""

_LOCAL, _PROXY = 0x20, 0x21
_TCP4, _TCP6 = 0x11, 0x21
_ADDRESS_BYTES = {_TCP4: 4, _TCP6: 16}
_PORTS_BYTES = 4
_FIELD = Struct("!BH")
"""The type and the length of a field after the addresses (TLV)."""
_CHECKSUM = 0x03

Address = IPv4Address | IPv6Address


class BadHeader(Exception):
    """What is wrong with a header."""


def read_length(fixed: bytes) -> int:
    """How many bytes follow the fixed ones. Raises: BadHeader."""
    if not fixed.startswith(SIGNATURE):
        raise BadHeader("what it sent is no header of version 2 of the PROXY protocol")
    if fixed[12] not in (_LOCAL, _PROXY):
        raise BadHeader(f"version and command are {fixed[12]:#04x}")
    length = int.from_bytes(fixed[14:FIXED_BYTES], "big")
    if length > MOST_BYTES:
        raise BadHeader(f"the header has {length} more bytes, and the limit is {MOST_BYTES}")
    return length


def read_client(fixed: bytes, rest: bytes) -> Address | None:
    """The client that the header names; None for a connection of the balancer's own, such as a
    check. Both parts are as long as `read_length` says. Raises: BadHeader."""
    command, kind = fixed[12], fixed[13]
    if command == _LOCAL:
        return None
    size = _ADDRESS_BYTES.get(kind)
    if size is None:
        raise BadHeader(f"the header is of a connection of the kind {kind:#04x}, not of TCP")
    end = 2 * size + _PORTS_BYTES
    if len(rest) < end:
        raise BadHeader("the header ends within its addresses")
    _check_fields(fixed, rest, end)
    if kind == _TCP4:
        return IPv4Address(rest[:size])
    address = IPv6Address(rest[:size])
    return address.ipv4_mapped or address


def _check_fields(fixed: bytes, rest: bytes, at: int) -> None:
    """Raises: BadHeader for a field that does not end within the header, and for a checksum that is
    not that of the header."""
    while at < len(rest):
        begin = at + _FIELD.size
        if begin > len(rest):
            raise BadHeader("the header ends within a field")
        kind, length = _FIELD.unpack_from(rest, at)
        at = begin + length
        if at > len(rest):
            raise BadHeader("the header ends within a field")
        if kind == _CHECKSUM:
            whole = fixed + rest[:begin] + bytes(length) + rest[at:]
            if rest[begin:at] != checksum(whole).to_bytes(4, "big"):
                raise BadHeader("the header has another checksum than it says")


def checksum(data: bytes) -> int:
    """CRC-32C (RFC 9260, appendix A), bit by bit: few balancers send one, once per connection."""
    value = 0xFFFF_FFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F6_3B78 if value & 1 else 0)
    return value ^ 0xFFFF_FFFF
