"""PostgreSQL's types and values: columns, and rows that are read.

Every value arrives as text. Where that text is already what `results/json_values.py` would write,
it stays text: that is exact, also beyond what Python's types can hold.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import msgspec
from psycopg import pq
from psycopg.abc import AdaptContext
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.pq.abc import PGresult
from psycopg.types.bool import BoolLoader
from psycopg.types.numeric import FloatLoader, IntLoader
from psycopg.types.string import ByteaLoader, TextLoader

from tidegate.engines.common.errors import lost
from tidegate.model.results import BoundedArray, Column
from tidegate.results.column_kinds import column_of
from tidegate.results.json_values import json_raw

if TYPE_CHECKING:
    from tidegate.engines.postgres.connection import PostgresSession

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


Rows = list[tuple[Any, ...]]
Coercion = Callable[[str], Any]

_LOADERS = {
    Kind.INTEGER: IntLoader,
    Kind.FLOAT: FloatLoader,
    Kind.BOOLEAN: BoolLoader,
    Kind.BYTES: ByteaLoader,
}


class _Context:
    """What psycopg's transformer asks for: our choice of loaders, and no connection."""

    connection = None

    def __init__(self) -> None:
        self.adapters = AdaptersMap()
        self.adapters.register_loader(0, TextLoader)
        for oid, known in BUILT_IN.items():
            if not known.array and known.kind in _LOADERS:
                self.adapters.register_loader(oid, _LOADERS[known.kind])


_OTHER = Type("")

_context = cast("AdaptContext", _Context())


class Reader:
    """Reads the chunks of results whose columns have the given types. Keeps nothing of them, so
    that one reader serves many cursors."""

    __slots__ = ("_coercions", "_ready", "_transformer")

    def __init__(self, types: Sequence[Type]) -> None:
        self._transformer = Transformer(_context)
        self._ready = False
        self._coercions = [
            (place, coercion)
            for place, kind in enumerate(types)
            if (coercion := _coercion_of(kind)) is not None
        ]

    @classmethod
    def of(cls, result: PGresult) -> Reader:
        """A reader for a result of built-in types."""
        oids = [result.ftype(at) for at in range(result.nfields)]
        return cls([BUILT_IN.get(oid, _OTHER) for oid in oids])

    def read(self, result: PGresult) -> Rows:
        """The rows of one chunk, not yet coerced. Raises: TidegateError SOURCE_UNREACHABLE."""
        transformer = self._transformer
        transformer.set_pgresult(result, set_loaders=not self._ready, format=pq.Format.TEXT)
        self._ready = True
        try:
            return transformer.load_rows(0, result.ntuples, tuple)
        except UnicodeDecodeError as error:  # the server checks what it sends: the line spoilt it
            raise lost() from error

    def coerced(self, rows: Rows) -> Rows:
        """The rows with every value as it must be. Many at once are cheaper."""
        if not self._coercions or not rows:
            return rows
        columns = list(zip(*rows, strict=True))
        for place, coercion in self._coercions:
            columns[place] = coercion(columns[place])
        return list(zip(*columns, strict=True))

    def rows(self, result: PGresult) -> Rows:
        """The rows of a whole result, coerced. Raises: TidegateError SOURCE_UNREACHABLE."""
        return self.coerced(self.read(result))


def _coercion_of(kind: Type) -> Callable[[Sequence[Any]], tuple[Any, ...]] | None:
    if kind.array:
        element = _ELEMENTS[kind.kind]
        delimiter = kind.delimiter

        def arrays(column: Sequence[str | None]) -> tuple[Any, ...]:
            return tuple(
                [None if text is None else parse_array(text, element, delimiter) for text in column]
            )

        return arrays
    if kind.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_ZONE):
        return _timestamps
    coercion = _COERCIONS.get(kind.kind)
    if coercion is None:
        return None
    return lambda column: tuple([None if text is None else coercion(text) for text in column])


# Time.

_SHORT_FRACTION = re.compile(r"\.(\d{1,5})(?!\d)")
_SHORT_OFFSET = re.compile(r"([+-]\d\d)(?=\n|$)")
_TIMESTAMP = re.compile(r"(\d{4,6}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)([+-][\d:]+)?")


def _timestamps(column: Sequence[str | None]) -> tuple[str | None, ...]:
    """`2026-01-02 03:04:05.6+00` as `2026-01-02T03:04:05.600000Z`; what ISO 8601 cannot say (BC,
    infinity) stays as it is."""
    try:
        joined = "\n".join(cast("Sequence[str]", column))
    except TypeError:  # there are nulls
        return tuple([None if text is None else timestamp_text(text) for text in column])
    if "BC" in joined or "inf" in joined:
        return tuple([timestamp_text(cast("str", text)) for text in column])
    return tuple(_with_t(joined).split("\n"))


def timestamp_text(text: str) -> str:
    """One timestamp, as above."""
    return _with_t(text) if _TIMESTAMP.fullmatch(text) else text


def _with_t(joined: str) -> str:
    return _precise(joined.replace(" ", "T"))


def _precise(joined: str) -> str:
    """Six digits or none after the second; Z, or hours and minutes, for the zone."""
    if "." in joined:
        joined = _SHORT_FRACTION.sub(_padded, joined)
    if joined.endswith("+00"):
        joined = joined[:-3] + "Z"
    joined = joined.replace("+00\n", "Z\n")
    return _SHORT_OFFSET.sub(r"\1:00", joined) if "+" in joined or joined[-3:-2] == "-" else joined


def _padded(found: re.Match[str]) -> str:
    return f".{found[1]:0<6}"


def time_text(text: str) -> str:
    """`03:04:05.6+00` as `03:04:05.600000Z`."""
    return _precise(text)


_INTERVAL = re.compile(
    r"(?:(-?\d+) years? ?)?(?:([+-]?\d+) mons? ?)?(?:([+-]?\d+) days? ?)?"
    r"(?:([+-]?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?)?"
)


def interval_text(text: str) -> str:
    """`1 year 2 mons 3 days 04:05:06.5` as an ISO 8601 duration, the time of day in seconds.

    If every part is negative the sign comes first; if only some are, at each of them.
    """
    found = _INTERVAL.fullmatch(text)
    if found is None:
        return text  # infinity
    years, months, days = (int(part or 0) for part in found.group(1, 2, 3))
    seconds, fraction = 0, ""
    if found[5] is not None:
        seconds = int(found[5]) * 3600 + int(found[6]) * 60 + int(found[7])
        fraction = (found[8] or "").rstrip("0")
    late = -1 if found[4] == "-" else 1
    has_time = seconds or fraction
    signs = {part < 0 for part in (years, months, days) if part}
    if has_time:
        signs.add(late < 0)
    turn = -1 if signs == {True} else 1
    day_part = "".join(
        f"{part * turn}{unit}" for part, unit in ((years, "Y"), (months, "M"), (days, "D")) if part
    )
    time_part = ""
    if has_time:
        sign = "-" if late * turn < 0 else ""
        time_part = f"T{sign}{seconds}{'.' + fraction if fraction else ''}S"
    if not day_part and not time_part:
        return "P0D"
    return f"{'-' if turn < 0 else ''}P{day_part}{time_part}"


# JSON.

_COERCIONS: dict[Kind, Coercion] = {
    Kind.JSON: json_raw,
    Kind.TIME: time_text,
    Kind.TIME_ZONE: time_text,
    Kind.INTERVAL: interval_text,
}

_ELEMENTS: dict[Kind, Coercion] = {
    **_COERCIONS,
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.FLOAT: float,
    Kind.BOOLEAN: lambda text: text == "t",
    Kind.BYTES: lambda text: bytes.fromhex(text[2:]),
    Kind.TIMESTAMP: timestamp_text,
    Kind.TIMESTAMP_ZONE: timestamp_text,
}


def parse_array(text: str, element: Coercion, delimiter: str = ",") -> list[Any]:
    """PostgreSQL's array text, `{1,NULL,"a b"}`, as a list, of lists if it has more dimensions."""
    plain = text[1:-1]
    if text[:1] == "{" and _STRUCTURE.isdisjoint(plain) and "NULL" not in plain:
        return [element(item) for item in plain.split(delimiter)] if plain else []
    if text.startswith("["):  # bounds other than 1
        bounds, _, text = text.partition("=")
        bounded = BoundedArray(parse_array(text, element, delimiter))
        bounded.bounds = bounds
        return bounded
    token = _TOKENS.get(delimiter) or _TOKENS.setdefault(delimiter, _token(delimiter))
    stack: list[list[Any]] = [[]]
    for found in token.finditer(text):
        quoted, bare, brace = found.groups()
        if quoted is not None:
            stack[-1].append(element(_ESCAPE.sub(r"\1", quoted)))
        elif bare is not None:
            stack[-1].append(None if bare == "NULL" else element(bare))
        elif brace == "{":
            inner: list[Any] = []
            stack[-1].append(inner)
            stack.append(inner)
        else:
            stack.pop()
    return stack[0][0]


_STRUCTURE = frozenset('{}"\\')
"""Without these there are only plain items between the outermost braces."""

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def _token(delimiter: str) -> re.Pattern[str]:
    return re.compile(rf'"((?:[^"\\]|\\.)*)"|([^{{}}"{re.escape(delimiter)}]+)|([{{}}])', re.DOTALL)


_TOKENS: dict[str, re.Pattern[str]] = {}


_UNKNOWN = Type("")

_LOOKUP = b"""
SELECT x.oid, x.modifier, pg_catalog.format_type(x.oid, x.modifier), t.typcategory,
  e.oid, e.typdelim
FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.oid[]),
  pg_catalog.unnest($2::pg_catalog.int4[])) AS x(oid, modifier)
JOIN pg_catalog.pg_type AS t ON t.oid = x.oid
LEFT JOIN pg_catalog.pg_type AS e ON e.typarray = x.oid"""

LOOKUP_MS = 5_000
MAX_SHAPES = 512

Shape = tuple[tuple[bytes | None, int, int], ...]
"""Name, type and modifier of each column of a result."""


def shape_of(result: PGresult) -> Shape:
    """The shape of a result."""
    name, kind, modifier = result.fname, result.ftype, result.fmod
    return tuple([(name(at), kind(at), modifier(at)) for at in range(result.nfields)])


class TypeCache:
    """The types of one source, by oid and modifier."""

    def __init__(self, open_session: Callable[[], Awaitable[PostgresSession]]) -> None:
        self._open = open_session
        self._known: dict[tuple[int, int], Type] = {}
        self._shapes: dict[Shape, tuple[tuple[Column, ...], Reader]] = {}

    def known(self, shape: Shape) -> tuple[tuple[Column, ...], Reader] | None:
        """As `columns`, if results of this shape came before."""
        return self._shapes.get(shape)

    async def columns(self, shape: Shape) -> tuple[tuple[Column, ...], Reader]:
        """The columns of a result and the reader of its rows. Raises: TidegateError."""
        if len(self._shapes) >= MAX_SHAPES:
            self._shapes.clear()
        self._shapes[shape] = found = await self._found(shape)
        return found

    def forget(self) -> None:
        """Types may have changed."""
        self._known.clear()
        self._shapes.clear()

    async def _found(self, shape: Shape) -> tuple[tuple[Column, ...], Reader]:
        known = self._known
        keys = [(oid, modifier) for _, oid, modifier in shape]
        missing = {key for key in keys if key not in known and not self._is_built_in(key)}
        if missing:
            await self._learn(missing)
        types = [known.get(key, _UNKNOWN) for key in keys]
        names = [(name or b"").decode(errors="replace") for name, _, _ in shape]
        columns = [column_of(name, type_.name) for name, type_ in zip(names, types, strict=True)]
        return tuple(columns), Reader(types)

    def _is_built_in(self, key: tuple[int, int]) -> bool:
        name = name_of(*key)
        if name is None:
            return False
        known = BUILT_IN[key[0]]
        self._known[key] = Type(name, known.kind, known.array)
        return True

    async def _learn(self, missing: set[tuple[int, int]]) -> None:
        """Ask, on a connection of its own: the caller's is in the middle of its rows."""
        oids, modifiers = zip(*missing, strict=True)
        session = await self._open()
        try:
            params = [_int_array(oids), _int_array(modifiers)]
            (rows,) = await session.ask((_LOOKUP, params), timeout_ms=LOOKUP_MS)
        finally:
            session.line.close()
        for oid, modifier, name, category, element, delimiter in rows:
            key = oid, modifier
            base = BUILT_IN.get(element or oid, _UNKNOWN)
            is_array = category == "A" and element is not None
            kind = base.kind if is_array or oid in BUILT_IN else Kind.TEXT
            self._known[key] = Type(name, kind, is_array, delimiter or ",")


def _int_array(numbers: tuple[int, ...]) -> bytes:
    return ("{" + ",".join(map(str, numbers)) + "}").encode()
