"""Decides how the rows of a libpq result become rows of Python values. Asks nobody.

Numbers, truth values, bytes and plain text are read by psycopg's compiled loaders, row by row. The
few types whose text is not yet what `results/types.py` writes are then mended column by column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from msgspec import Raw
from psycopg import pq
from psycopg.abc import AdaptContext
from psycopg.adapt import AdaptersMap, Transformer
from psycopg.pq.abc import PGresult
from psycopg.types.bool import BoolLoader
from psycopg.types.numeric import FloatLoader, IntLoader
from psycopg.types.string import ByteaLoader, TextLoader

from tidegate.engines.faults import lost
from tidegate.engines.postgres.types import BUILT_IN, Kind, Type

Rows = list[tuple[Any, ...]]
Mend = Callable[[str], Any]

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

    __slots__ = ("_mends", "_ready", "_transformer")

    def __init__(self, types: Sequence[Type]) -> None:
        self._transformer = Transformer(_context)
        self._ready = False
        self._mends = [
            (place, mend)
            for place, kind in enumerate(types)
            if (mend := _mend_of(kind)) is not None
        ]

    @classmethod
    def of(cls, result: PGresult) -> Reader:
        """A reader for a result of built-in types."""
        oids = [result.ftype(at) for at in range(result.nfields)]
        return cls([BUILT_IN.get(oid, _OTHER) for oid in oids])

    def read(self, result: PGresult) -> Rows:
        """The rows of one chunk, not yet mended. Raises: GateError SOURCE_UNREACHABLE."""
        transformer = self._transformer
        transformer.set_pgresult(result, set_loaders=not self._ready, format=pq.Format.TEXT)
        self._ready = True
        try:
            return transformer.load_rows(0, result.ntuples, tuple)
        except UnicodeDecodeError as error:  # the server checks what it sends: the line spoilt it
            raise lost() from error

    def mended(self, rows: Rows) -> Rows:
        """The rows with every value as it is to be. Many at once are cheaper."""
        if not self._mends or not rows:
            return rows
        columns = list(zip(*rows, strict=True))
        for place, mend in self._mends:
            columns[place] = mend(columns[place])
        return list(zip(*columns, strict=True))

    def rows(self, result: PGresult) -> Rows:
        """The rows of a whole result, mended. Raises: GateError SOURCE_UNREACHABLE."""
        return self.mended(self.read(result))


def _mend_of(kind: Type) -> Callable[[Sequence[Any]], tuple[Any, ...]] | None:
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
    mend = _MENDS.get(kind.kind)
    if mend is None:
        return None
    return lambda column: tuple([None if text is None else mend(text) for text in column])


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
    """Six digits or none behind the second; Z, or hours and minutes, for the zone."""
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

    If every part is negative the sign stands in front; if only some are, at each of them.
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

_NEWLINES = str.maketrans("\r\n", "  ")


def json_raw(text: str) -> Raw:
    """JSON as the database holds it, on one line; line breaks stand only between its tokens."""
    return Raw(text.translate(_NEWLINES) if "\n" in text or "\r" in text else text)


_MENDS: dict[Kind, Mend] = {
    Kind.JSON: json_raw,
    Kind.TIME: time_text,
    Kind.TIME_ZONE: time_text,
    Kind.INTERVAL: interval_text,
}

_ELEMENTS: dict[Kind, Mend] = {
    **_MENDS,
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.FLOAT: float,
    Kind.BOOLEAN: lambda text: text == "t",
    Kind.BYTES: lambda text: bytes.fromhex(text[2:]),
    Kind.TIMESTAMP: timestamp_text,
    Kind.TIMESTAMP_ZONE: timestamp_text,
}


def parse_array(text: str, element: Mend, delimiter: str = ",") -> list[Any]:
    """PostgreSQL's array text, `{1,NULL,"a b"}`, as a list, of lists if it has more dimensions."""
    if text.startswith("["):  # bounds other than 1
        text = text.partition("=")[2]
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


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def _token(delimiter: str) -> re.Pattern[str]:
    return re.compile(rf'"((?:[^"\\]|\\.)*)"|([^{{}}"{re.escape(delimiter)}]+)|([{{}}])', re.DOTALL)


_TOKENS: dict[str, re.Pattern[str]] = {}
