"""The rows of a result: how many may come, and the form in which they travel to an edge.

Frozen; imports nothing of ours. `results/page.py` fills a page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard

import msgspec

from tidegate.model.notices import DatabaseNotice


class Limits(msgspec.Struct, frozen=True):
    """Budgets that the gate puts on a run; the database enforces `timeout_s` itself."""

    max_rows: int = 500
    max_bytes: int = 4_194_304
    timeout_s: float = 30.0


Cells = Literal["json", "short", "text"]
"""How values are rendered: as JSON values; the same with decimals and whole floating-point numbers
as the shortest exact JSON numbers; as texts."""

ColumnKind = Literal[
    "boolean",
    "integer",
    "decimal",
    "float",
    "text",
    "bytes",
    "date",
    "time",
    "time_tz",
    "timestamp",
    "timestamp_tz",
    "interval",
    "uuid",
    "json",
    "array",
    "struct",
    "other",
]
"""What the values of a column are, in words that no database owns.

The set is closed: edges map each kind to the types of their protocols. `other` says that the engine
does not know: an expression of SQLite has no declared type, and these words have no geometry.
"""


class DriverType(msgspec.Struct, frozen=True):
    """What an engine's driver says of a column: the driver's code and name of its type, and the
    class of its values in the driver's language."""

    code: int
    name: str
    value_class: str


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """A result column; `type` is the database's own name for it, empty if it has none.

    `precision` and `scale` are the declared digits of a decimal, or the declared length of a text
    or of bytes as `precision`; None where the database declares none. `driver_type` is
    there where the engine's driver has types of its own.
    """

    name: str
    type: str
    kind: ColumnKind = "other"
    precision: int | None = None
    scale: int | None = None
    driver_type: DriverType | None = None


class BoundedArray(list[Any]):
    """The items of an array of PostgreSQL whose indexes do not begin at 1: `bounds` are its own, as
    it writes them, `[0:1][-2:-1]`."""

    bounds: str = ""


class Truncation(msgspec.Struct, frozen=True):
    """One way in which a result was cut. `kind` is `rows`, `bytes` or `value`, or `pages` where a
    provider's list has more pages than the `returned` that were fetched, or `budget` where the
    caller's budget has no more than the `limit` rows."""

    kind: Literal["rows", "bytes", "value", "pages", "budget"]
    limit: int
    returned: int


class SkippedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call whose rows a result lacks, because the provider denied it to this account, or in this
    region, and the statement asked for the rest. `error` is the code of the refusal."""

    resource: str
    error: str
    account: str = ""
    region: str = ""
    http_status: int = 0


class UpstreamUse(msgspec.Struct, frozen=True):
    """What a statement sent to the providers of a source: requests, tries again included, and
    the pages that they gave. `hits` are lists that were not asked for, because they were kept from
    an earlier statement; the oldest was `age_s` seconds old. `skipped` are calls that were denied,
    where the statement wants what came all the same."""

    calls: int
    pages: int
    retries: int = 0
    hits: int = 0
    age_s: float = 0.0
    skipped: tuple[SkippedCall, ...] = ()


class Page(msgspec.Struct, frozen=True):
    """Rows of a result, already encoded: `rows` is a JSON array of arrays, UTF-8.

    `affected` counts rows changed by a writing statement; `more` is the handle of the cached
    rest, if there is one. `masked` are the masked columns, as (table, column), that the
    statement touched: its rows, conditions and counts are of the masks and not of the values.
    `filtered` are the tables that it read and of which a row filter may hide rows.
    `size` is how many bytes went to a sink that counts them; None: those of `rows`. `upstream` is
    there where the source is made of APIs. `change` is the id of the change whose rows are kept,
    empty if none are. `reads_nothing`: the statement is a query whose rows have no column
    (`SELECT FROM t`), and no change. `tag` is what the database said of a statement without rows,
    if it says such a thing. `notices` are what the database noted meanwhile, for a caller
    from whom nothing is hidden. `has_plain_numbers`: every number of the rows is known to be
    written as a number, none as text because a double cannot hold it. `budget` says what is left of
    budgets that are nearly used up.
    """

    columns: tuple[Column, ...]
    rows: bytes
    row_count: int
    affected: int = 0
    truncations: tuple[Truncation, ...] = ()
    elapsed_ms: float = 0.0
    more: str | None = None
    status: str | None = None
    masked: tuple[tuple[str, str], ...] = ()
    filtered: tuple[str, ...] = ()
    size: int | None = None
    upstream: UpstreamUse | None = None
    change: str = ""
    reads_nothing: bool = False
    tag: str = ""
    notices: tuple[DatabaseNotice, ...] = ()
    has_plain_numbers: bool = False
    budget: str = ""


class Document(msgspec.Struct, frozen=True):
    """A result that is a tree and not rows. `json` is one JSON value, UTF-8, encoded as
    `results.json_values.encode` does. `affected` counts changes, as for a page. `items` is how many
    the whole result has where it is a collection, of which `json` may hold fewer. `corrected`: the
    database answered that there is nothing, and the gate found this in its facts. `budget` is as
    for a page."""

    json: bytes
    items: int | None = None
    affected: int = 0
    corrected: bool = False
    elapsed_ms: float = 0.0
    budget: str = ""


class RowWriter(Protocol):
    """Takes a result's rows as they come and never waits: what a `RowSink` is made of where writing
    is as quick as a file is."""

    def begin(self, columns: tuple[Column, ...]) -> None:
        """Called once, before any row."""
        ...

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take rows of plain Python values, in the order of the columns."""
        ...


class BoundedRowWriter(RowWriter, Protocol):
    """A writer with a bound of its own on what it takes."""

    @property
    def count(self) -> int:
        """The rows that it has taken."""
        ...

    @property
    def cut(self) -> Truncation | None:
        """At which bound it stopped taking rows; None while it takes them."""
        ...


def is_bounded(writer: RowWriter) -> TypeGuard[BoundedRowWriter]:
    """Whether a writer is a `BoundedRowWriter`."""
    return hasattr(writer, "cut")


class RowSink(Protocol):
    """Takes a result's rows as they come, where they are not to become a page (`Query.sink`).

    `write` returns when the sink has room for more rows. A slow reader thereby holds the database
    back, and at most a chunk or two of the result is in memory. The statement's time limit includes
    the time for which its reader waits.
    """

    @property
    def writer(self) -> RowWriter | None:
        """The sink as functions that never wait, or None. If there is one, an engine may call it
        in another thread, near the rows, and `write` is not called."""
        ...

    def begin(self, columns: tuple[Column, ...]) -> None:
        """Called once, before any row."""
        ...

    async def write(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take rows of plain Python values, in the order of the columns, and wait for room."""
        ...


class DataRows(NamedTuple):
    """Rows as DataRow messages of PostgreSQL's protocol, one after the other."""

    messages: bytearray
    row_count: int


class DataRowSink(RowSink, Protocol):
    """A sink that also takes rows as a PostgreSQL source has encoded them: nothing is decoded and
    encoded again on their way to a client of its protocol. `begin` is called as for other rows."""

    form: int | None
    """The format code in which the client wants all values: 0 text, 1 binary; None if it wants some
    in one and some in the other, which the database is not asked for."""

    def takes_binary(self, columns: tuple[Column, ...]) -> bool:
        """Whether the client gets the database's own binary format of all these columns."""
        ...

    async def write_data_rows(self, rows: DataRows) -> None:
        """Take rows in the format that `form` names, and wait for room."""
        ...


class RowCursor(Protocol):
    """The part of `engines.api.Cursor` that a stream reads from."""

    def fetch(self, max_rows: int) -> Awaitable[Sequence[Sequence[Any]]]: ...

    def fetch_into(self, sink: Any) -> Awaitable[None]: ...


class DataRowCursor(RowCursor, Protocol):
    """A cursor that an engine opened for a `DataRowSink`, in the sink's format."""

    async def fetch_data_rows(self, max_rows: int) -> DataRows:
        """As `fetch`; no rows mean that the result has ended."""
        ...


def takes_data_rows(sink: RowSink | None) -> TypeGuard[DataRowSink]:
    """Whether a sink is a `DataRowSink`."""
    return hasattr(sink, "write_data_rows")


def gives_data_rows(cursor: RowCursor) -> TypeGuard[DataRowCursor]:
    """Whether a cursor is a `DataRowCursor`."""
    return hasattr(cursor, "fetch_data_rows")
