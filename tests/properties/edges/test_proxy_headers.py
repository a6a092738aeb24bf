"""Headers of the PROXY protocol: what one says is read, and nothing else is taken for one."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.proxy_headers import LOCAL, field, header
from tidegate.edges.proxy_header import (
    FIXED_BYTES,
    MOST_BYTES,
    SIGNATURE,
    Address,
    BadHeader,
    checksum,
    read_client,
    read_length,
)

CLIENTS = st.ip_addresses().map(str)
FIELDS = st.lists(st.builds(field, st.integers(4, 255), st.binary(max_size=60)), max_size=5)


def read(data: bytes) -> Address | None:
    fixed = data[:FIXED_BYTES]
    return read_client(fixed, data[FIXED_BYTES:][: read_length(fixed)])


def resized(data: bytes, length: int) -> bytes:
    """The header with so many bytes of its rest, which says so itself."""
    return data[:14] + length.to_bytes(2, "big") + data[FIXED_BYTES : FIXED_BYTES + length]


@given(CLIENTS, FIELDS, st.booleans())
def test_the_client_is_the_one_that_the_balancer_wrote(
    client: str, fields: list[bytes], summed: bool
) -> None:
    written = ip_address(client)
    mapped = written.ipv4_mapped if written.version == 6 else None
    assert read(header(client, fields, summed=summed)) == (mapped or written)


@given(CLIENTS, FIELDS)
def test_a_connection_of_the_balancers_own_names_no_client(
    client: str, fields: list[bytes]
) -> None:
    assert read(header(client, fields, command=LOCAL)) is None
    assert read(resized(header(client, fields, command=LOCAL), 0)) is None


@given(CLIENTS, FIELDS, st.data())
def test_a_header_that_ends_within_a_part_is_refused(
    client: str, fields: list[bytes], data: st.DataObject
) -> None:
    whole = header(client, fields)
    plain = len(header(client)) - FIXED_BYTES
    ends = {plain + sum(map(len, fields[:count])) for count in range(len(fields) + 1)}
    length = data.draw(st.integers(0, len(whole) - FIXED_BYTES))
    if length in ends:
        assert read(resized(whole, length)) is not None
        return
    with pytest.raises(BadHeader):
        read(resized(whole, length))


@given(CLIENTS, FIELDS, st.data())
def test_with_a_checksum_no_other_address_is_taken(
    client: str, fields: list[bytes], data: st.DataObject
) -> None:
    whole = bytearray(header(client, fields, summed=True))
    addresses = range(FIXED_BYTES, len(header(client)))
    at = data.draw(st.sampled_from([*addresses, *range(len(whole) - 4, len(whole))]))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BadHeader, match="checksum"):
        read(bytes(whole))


@given(st.binary(min_size=4, max_size=4), st.binary(max_size=MOST_BYTES))
def test_whatever_follows_the_signature_is_read_or_refused(fixed: bytes, rest: bytes) -> None:
    try:
        length = read_length(SIGNATURE + fixed)
        read_client(SIGNATURE + fixed, rest.ljust(length, b"\0")[:length])
    except BadHeader:
        pass
    else:
        assert fixed[0] in (0x20, 0x21)


@given(st.binary(min_size=FIXED_BYTES, max_size=FIXED_BYTES))
def test_what_has_another_signature_is_refused(data: bytes) -> None:
    with pytest.raises(BadHeader):
        read_length(data)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((12, 0x11), "0x11"),
        ((12, 0x22), "0x22"),
        ((13, 0x00), "not of TCP"),
        ((13, 0x12), "not of TCP"),
        ((13, 0x31), "not of TCP"),
        ((14, 0x7F), "the limit is 4096"),
    ],
)
def test_other_versions_commands_and_kinds_are_refused(
    change: tuple[int, int], reason: str
) -> None:
    data = bytearray(header("203.0.113.9"))
    data[change[0]] = change[1]
    with pytest.raises(BadHeader, match=reason):
        read(bytes(data))


def test_the_first_version_is_refused() -> None:
    with pytest.raises(BadHeader, match="version 2"):
        read_length(b"PROXY TCP4 203.0.113.9 192.0.2.1 40000 443\r\n"[:FIXED_BYTES])


def test_the_checksum_is_crc_32c() -> None:
    assert checksum(b"123456789") == 0xE306_9283  # the check value of the function's catalogues
