"""Decides what a type of PostgreSQL is called and which Python values its texts become.

Every value comes as text. Where that text is already what `results/types.py` would write, it stays
text: that is exact, also beyond what Python's own types hold (numeric, years before 1 and after
9999, infinity), and the cheapest. `Kind` names what is done with a column.
"""

from __future__ import annotations

from enum import Enum

import msgspec

HEADER = 4
"""A type modifier counts these bytes with the length."""


class Kind(Enum):
    """How the texts of a type become values."""

    TEXT = "text"
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    BYTES = "bytes"
    JSON = "json"
    TIMESTAMP = "timestamp"
    TIMESTAMP_ZONE = "timestamp with time zone"
    TIME = "time"
    TIME_ZONE = "time with time zone"
    INTERVAL = "interval"


class Type(msgspec.Struct, frozen=True):
    """A type: `name` as `format_type` gives it. An array has `array` and its element's kind."""

    name: str
    kind: Kind = Kind.TEXT
    array: bool = False
    delimiter: str = ","


_BASE: dict[int, tuple[str, Kind, int]] = {
    16: ("boolean", Kind.BOOLEAN, 1000),
    17: ("bytea", Kind.BYTES, 1001),
    18: ('"char"', Kind.TEXT, 1002),
    19: ("name", Kind.TEXT, 1003),
    20: ("bigint", Kind.INTEGER, 1016),
    21: ("smallint", Kind.INTEGER, 1005),
    23: ("integer", Kind.INTEGER, 1007),
    24: ("regproc", Kind.TEXT, 1008),
    25: ("text", Kind.TEXT, 1009),
    26: ("oid", Kind.INTEGER, 1028),
    27: ("tid", Kind.TEXT, 1010),
    28: ("xid", Kind.INTEGER, 1011),
    29: ("cid", Kind.INTEGER, 1012),
    114: ("json", Kind.JSON, 199),
    142: ("xml", Kind.TEXT, 143),
    194: ("pg_node_tree", Kind.TEXT, 0),
    600: ("point", Kind.TEXT, 1017),
    601: ("lseg", Kind.TEXT, 1018),
    602: ("path", Kind.TEXT, 1019),
    603: ("box", Kind.TEXT, 0),
    604: ("polygon", Kind.TEXT, 1027),
    628: ("line", Kind.TEXT, 629),
    650: ("cidr", Kind.TEXT, 651),
    700: ("real", Kind.FLOAT, 1021),
    701: ("double precision", Kind.FLOAT, 1022),
    705: ("unknown", Kind.TEXT, 0),
    718: ("circle", Kind.TEXT, 719),
    790: ("money", Kind.TEXT, 791),
    829: ("macaddr", Kind.TEXT, 1040),
    869: ("inet", Kind.TEXT, 1041),
    1033: ("aclitem", Kind.TEXT, 1034),
    1042: ("character", Kind.TEXT, 1014),
    1043: ("character varying", Kind.TEXT, 1015),
    1082: ("date", Kind.TEXT, 1182),
    1083: ("time without time zone", Kind.TIME, 1183),
    1114: ("timestamp without time zone", Kind.TIMESTAMP, 1115),
    1184: ("timestamp with time zone", Kind.TIMESTAMP_ZONE, 1185),
    1186: ("interval", Kind.INTERVAL, 1187),
    1266: ("time with time zone", Kind.TIME_ZONE, 1270),
    1560: ("bit", Kind.TEXT, 1561),
    1562: ("bit varying", Kind.TEXT, 1563),
    1700: ("numeric", Kind.TEXT, 1231),
    2205: ("regclass", Kind.TEXT, 2210),
    2206: ("regtype", Kind.TEXT, 2211),
    2249: ("record", Kind.TEXT, 2287),
    2278: ("void", Kind.TEXT, 0),
    2950: ("uuid", Kind.TEXT, 2951),
    3220: ("pg_lsn", Kind.TEXT, 3221),
    3614: ("tsvector", Kind.TEXT, 3643),
    3615: ("tsquery", Kind.TEXT, 3645),
    3802: ("jsonb", Kind.JSON, 3807),
    4072: ("jsonpath", Kind.TEXT, 4073),
    5069: ("xid8", Kind.INTEGER, 271),
}
"""Types that come with every server: name, kind, and the oid of the array (0: seldom seen)."""

BUILT_IN: dict[int, Type] = {oid: Type(name, kind) for oid, (name, kind, _) in _BASE.items()} | {
    array: Type(name, kind, array=True) for name, kind, array in _BASE.values() if array
}

_LENGTHS = frozenset({1042, 1014, 1043, 1015})
_BITS = frozenset({1560, 1561, 1562, 1563})
_PRECISIONS = frozenset({1083, 1183, 1114, 1115, 1184, 1185, 1266, 1270})
_NUMERICS = frozenset({1700, 1231})
_INTERVALS = frozenset({1186, 1187})


def name_of(oid: int, modifier: int) -> str | None:
    """What `format_type` would call a built-in type; None if only the server can tell."""
    known = BUILT_IN.get(oid)
    if known is None or (modifier >= 0 and oid in _INTERVALS):
        return None
    name = known.name
    if modifier >= 0:
        if oid in _LENGTHS:
            name = f"{name}({modifier - HEADER})"
        elif oid in _BITS:
            name = f"{name}({modifier})"
        elif oid in _PRECISIONS:
            first, _, rest = name.partition(" ")
            name = f"{first}({modifier}) {rest}"
        elif oid in _NUMERICS:
            scale = ((modifier - HEADER) & 0x7FF ^ 1024) - 1024
            name = f"{name}({(modifier - HEADER) >> 16 & 0xFFFF},{scale})"
    return f"{name}[]" if known.array else name
