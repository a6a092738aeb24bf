"""PostgreSQL's own types that only a PostgreSQL source has: how they are described, and the binary
format of those that are written from their text. Pure.

The binary format of a whole result comes from the source itself, for every type. What is here is
for a result that does not: the rows of a cursor, of a portal that is read in parts, of a change.

Source: PostgreSQL's catalog pg_type, and the functions `*_send` of its types.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Callable

from tidegate.products.pgwire.packers import INT32, INT64, UINT32

Pack = Callable[[str], bytes]


def pack_none(text: str) -> bytes:
    """Of a type that is not written in binary here. Raises: ValueError."""
    raise ValueError("a type that is not written in binary")


def _pack_text(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _pack_address(is_network: bool) -> Pack:
    def pack(text: str) -> bytes:
        found = ipaddress.ip_interface(text)
        family = 2 if found.version == 4 else 3
        packed = found.ip.packed
        return bytes([family, found.network.prefixlen, is_network, len(packed)]) + packed

    return pack


def _pack_hardware(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _pack_bits(text: str) -> bytes:
    if not text:
        return INT32.pack(0)
    width = -(-len(text) // 8)
    return INT32.pack(len(text)) + int(text.ljust(width * 8, "0"), 2).to_bytes(width, "big")


def _pack_count(text: str) -> bytes:
    return UINT32.pack(int(text))


def _pack_long_count(text: str) -> bytes:
    return INT64.pack(int(text))


def _pack_place_in_log(text: str) -> bytes:
    high, _, low = text.partition("/")
    return INT64.pack(int(high, 16) << 32 | int(low, 16))


def _pack_path(text: str) -> bytes:
    return b"\1" + text.encode()


_NUMBERS = re.compile(r"[^(),\[\]{}<>\s]+")


def _pack_numbers(text: str) -> bytes:
    numbers = [float(each) for each in _NUMBERS.findall(text)]
    return struct.pack(f"!{len(numbers)}d", *numbers)


OTHER_TYPES: dict[str, tuple[int, int, Pack, int]] = {
    "int2vector": (22, -1, pack_none, 1006),
    "regproc": (24, 4, pack_none, 1008),
    "tid": (27, 6, pack_none, 1010),
    "xid": (28, 4, _pack_count, 1011),
    "cid": (29, 4, _pack_count, 1012),
    "oidvector": (30, -1, pack_none, 1013),
    "xml": (142, -1, _pack_text, 143),
    "pg_node_tree": (194, -1, _pack_text, 0),
    "point": (600, 16, _pack_numbers, 1017),
    "lseg": (601, 32, _pack_numbers, 1018),
    "path": (602, -1, pack_none, 1019),
    "box": (603, 32, _pack_numbers, 1020),
    "polygon": (604, -1, pack_none, 1027),
    "line": (628, 24, _pack_numbers, 629),
    "cidr": (650, -1, _pack_address(True), 651),
    "circle": (718, 24, _pack_numbers, 719),
    "macaddr8": (774, 8, _pack_hardware, 775),
    "money": (790, 8, pack_none, 791),
    "macaddr": (829, 6, _pack_hardware, 1040),
    "inet": (869, -1, _pack_address(False), 1041),
    "bit": (1560, -1, _pack_bits, 1561),
    "bit varying": (1562, -1, _pack_bits, 1563),
    "refcursor": (1790, -1, _pack_text, 2201),
    "regprocedure": (2202, 4, pack_none, 2207),
    "regoper": (2203, 4, pack_none, 2208),
    "regoperator": (2204, 4, pack_none, 2209),
    "regclass": (2205, 4, pack_none, 2210),
    "regtype": (2206, 4, pack_none, 2211),
    "record": (2249, -1, pack_none, 2287),
    "cstring": (2275, -2, _pack_text, 1263),
    "void": (2278, 4, _pack_text, 0),
    "txid_snapshot": (2970, -1, pack_none, 2949),
    "pg_lsn": (3220, 8, _pack_place_in_log, 3221),
    "pg_ndistinct": (3361, -1, pack_none, 0),
    "pg_dependencies": (3402, -1, pack_none, 0),
    "tsvector": (3614, -1, pack_none, 3643),
    "tsquery": (3615, -1, pack_none, 3645),
    "gtsvector": (3642, -1, pack_none, 3644),
    "regconfig": (3734, 4, pack_none, 3735),
    "regdictionary": (3769, 4, pack_none, 3770),
    "int4range": (3904, -1, pack_none, 3905),
    "numrange": (3906, -1, pack_none, 3907),
    "tsrange": (3908, -1, pack_none, 3909),
    "tstzrange": (3910, -1, pack_none, 3911),
    "daterange": (3912, -1, pack_none, 3913),
    "int8range": (3926, -1, pack_none, 3927),
    "jsonpath": (4072, -1, _pack_path, 4073),
    "regnamespace": (4089, 4, pack_none, 4090),
    "regrole": (4096, 4, pack_none, 4097),
    "regcollation": (4191, 4, pack_none, 4192),
    "int4multirange": (4451, -1, pack_none, 6150),
    "nummultirange": (4532, -1, pack_none, 6151),
    "tsmultirange": (4533, -1, pack_none, 6152),
    "tstzmultirange": (4534, -1, pack_none, 6153),
    "datemultirange": (4535, -1, pack_none, 6155),
    "int8multirange": (4536, -1, pack_none, 6157),
    "pg_brin_bloom_summary": (4600, -1, pack_none, 0),
    "pg_brin_minmax_multi_summary": (4601, -1, pack_none, 0),
    "pg_mcv_list": (5017, -1, pack_none, 0),
    "pg_snapshot": (5038, -1, pack_none, 5039),
    "xid8": (5069, 8, _pack_long_count, 271),
}
"""By the name that `format_type` gives: oid, length, binary format, and the oid of the array.

`aclitem` is not here, and so a text: PostgreSQL has no binary format of it, and tools that ask for
every column in binary read it in its catalogs."""

_FIELDS = {"year": 4, "month": 2, "day": 8, "hour": 0x400, "minute": 0x800, "second": 0x1000}
_ORDER = ("year", "month", "day", "hour", "minute", "second")
BOX_OID = 603
_NUMERIC = re.compile(r"\((\d+),(-?\d+)\)")
_DIGITS = re.compile(r"\((\d+)\)")
_FULL = 0x7FFF
_NUMERICS = 1231
_TIMES = frozenset({1083, 1114, 1184, 1266, 1183, 1115, 1185, 1270})
_INTERVALS = frozenset({1186, 1187})
_BITS = frozenset({1560, 1561, 1562, 1563})
_LENGTHS = frozenset({1014, 1015})


def modifier_of(name: str, oid: int) -> int:
    """The type modifier of a type by its whole name, `timestamp(3) without time zone`; -1 for
    none."""
    digits, number = _DIGITS.search(name), _NUMERIC.search(name)
    if oid == _NUMERICS and number is not None:
        return (int(number[1]) << 16 | int(number[2]) & 0x7FF) + 4
    if oid in _INTERVALS:
        words = [word for word in _DIGITS.sub("", name).removesuffix("[]").split() if word != "to"]
        if len(words) == 1 and digits is None:
            return -1
        mask = _FULL
        if len(words) > 1:
            first, last = _ORDER.index(words[1]), _ORDER.index(words[-1])
            mask = sum([_FIELDS[each] for each in _ORDER[first : last + 1]])
        return mask << 16 | (int(digits[1]) if digits else 0xFFFF)
    if digits is None:
        return -1
    if oid in _TIMES or oid in _BITS:
        return int(digits[1])
    return int(digits[1]) + 4 if oid in _LENGTHS else -1
