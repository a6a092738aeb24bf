"""What the engine asks of its worker process, and what it is answered."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tidegate.model.changes import ChangeImage, Comparison
from tidegate.model.requests import Browse
from tidegate.model.results import Cells, Limits, Page
from tidegate.model.row_changes import EditConflict, FoundRow, TableShape
from tidegate.model.schema import Catalog, Counts, Ddl, Status
from tidegate.model.statements import Judgement, TouchedTable

Rows = list[Any]


class Definition(msgspec.Struct, frozen=True, array_like=True):
    """How a file is read: the query of its view, or the reason why there is none. `mark` is the
    state of the file that this was found out from. `left_out`: lines before the table that hold
    something."""

    mark: str
    query: str | None
    fault: str | None = None
    left_out: int = 0


class Folder(msgspec.Struct, frozen=True, array_like=True):
    """A folder whose files are the tables. `known` has what another worker found out of them."""

    path: str
    most_files: int
    known: dict[str, Definition] = {}


class Setup(msgspec.Struct, frozen=True, array_like=True):
    """Which database a worker serves: a file, a folder, or one in memory if both are None. Memory
    in bytes, time in seconds. `plans_as_written`: its plans do not follow from statistics."""

    path: str | None
    memory_bytes: int
    threads: int
    lock_wait_s: float
    folder: Folder | None = None
    plans_as_written: bool = False


class Run(msgspec.Struct, frozen=True, array_like=True):
    """Begin a statement. `version` is the state of the file: what is open of another is stale.

    With a `schema`, names without one are looked up there first. A change of more than
    `max_rows_changed` rows is rolled back, and with `whole_changes` (`Permit`) one of every row of
    a table that it `touches`. `own` are functions of users that it calls and that are trusted.
    `alike` is the text's fingerprint; empty where it is not known.
    """

    version: str
    text: str
    params: list[Any] | None
    effect: int
    explain: bool
    max_rows: int
    schema: str | None = None
    max_rows_changed: int | None = None
    touches: list[TouchedTable] = []
    whole_changes: Literal["", "confirm", "deny"] = ""
    own: list[str] = []
    alike: str = ""


class Change(msgspec.Struct, frozen=True, array_like=True):
    """Run a change and keep its transaction open, with an image of its rows."""

    run: Run
    max_bytes: int


class Changed(msgspec.Struct, frozen=True, array_like=True):
    """A change that has run: what it shows, and the image of its rows or why there is none. Without
    columns, rows, a count or an image it has not run."""

    columns: list[tuple[str, str]] = []
    rows: Rows = []
    affected: int = -1
    image: ChangeImage | None = None
    reason: str = ""


class CompareOrRestore(msgspec.Struct, frozen=True, array_like=True):
    """Compare the rows of an image, or put them back and keep the transaction open."""

    version: str
    image: ChangeImage


class ReadByKeys(msgspec.Struct, frozen=True, array_like=True):
    """Read rows of a table by keys as they are shown, without `hidden` columns."""

    version: str
    schema: str
    table: str
    keys: list[list[Any]]
    key_names: list[str]
    hidden: list[str]
    adds: bool = False


class Edit(msgspec.Struct, frozen=True, array_like=True):
    """An edit of a row (`RowEdit`): the columns at the places of `defaults` get DEFAULT."""

    before: list[Any] | None
    values: list[tuple[int, Any]] | None
    defaults: list[int]


class EditRows(msgspec.Struct, frozen=True, array_like=True):
    """Make edits, and keep the transaction open. With `keeps` an image is made of the rows, unless
    they take more than `max_bytes`."""

    version: str
    shape: TableShape
    edits: list[Edit]
    tries: bool = False
    max_rows_changed: int | None = None
    keeps: bool = False
    max_bytes: int = 0


class FeedTable(msgspec.Struct, frozen=True, array_like=True):
    """Begin to add rows to the columns at these places, some at a time, in a transaction that stays
    open. With `keeps` an image is made of them, as for `EditRows`."""

    version: str
    shape: TableShape
    places: list[int]
    tries: bool = False
    keeps: bool = False
    max_bytes: int = 0


class EditedRows(msgspec.Struct, frozen=True, array_like=True):
    """Edits that were made and not yet committed, with the image of their rows or why there is
    none; or some of the conflicts that prevent them."""

    rows: list[FoundRow | None] = []
    image: ChangeImage | None = None
    reason: str = ""
    conflicts: list[EditConflict] = []
    count: int = 0


class PutBack(msgspec.Struct, frozen=True, array_like=True):
    """What prevents putting rows back; or what that has changed, not yet committed."""

    found: Comparison
    image: ChangeImage | None = None


class Portion(msgspec.Struct, frozen=True, array_like=True):
    """Rows; `ended` shows that there are no more, and then `affected` is final."""

    rows: Rows
    ended: bool
    affected: int = 0


class Started(msgspec.Struct, frozen=True, array_like=True):
    """A result that has begun. Rows are in `portion` only if they are all there is."""

    columns: list[tuple[str, str]]
    portion: Portion


class Prepared(msgspec.Struct, frozen=True, array_like=True):
    """The columns of a query that has not run, and how many parameters it takes."""

    columns: list[tuple[str, str]]
    parameters: int


class Fill(msgspec.Struct, frozen=True, array_like=True):
    """Build a page of what was not fetched yet."""

    limits: Limits
    cells: Cells


class Filled(msgspec.Struct, frozen=True, array_like=True):
    """The page, and in `rest` the rows that were read and found no place in it."""

    page: Page
    rest: Portion


class Look(msgspec.Struct, frozen=True, array_like=True):
    """Read metadata."""

    version: str
    browse: Browse


class Metadata(msgspec.Struct, frozen=True, array_like=True):
    """The answer to `Look`: exactly one of these."""

    catalog: Catalog | None = None
    ddl: Ddl | None = None
    counts: list[tuple[str, str, int]] | None = None

    @property
    def description(self) -> Catalog | Ddl | Counts:
        if self.counts is not None:
            return Counts({(schema, table): rows for schema, table, rows in self.counts})
        return self.catalog or self.ddl or Ddl("")


class Question(msgspec.Struct, frozen=True, array_like=True):
    """What does DuckDB make of a text, which calls these trusted functions of users?"""

    version: str
    text: str
    own: list[str] = []


UNPLANNED = "duckdb.unplanned"
"""The rule of an opinion on a query that DuckDB could not plan: running it fails or tells."""


class Opinion(msgspec.Struct, frozen=True, array_like=True):
    """What DuckDB makes of a text."""

    judgement: Judgement | None


class Version(msgspec.Struct, frozen=True, array_like=True):
    """The state of the file that must be read."""

    version: str


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """What an open database says of itself."""

    status: Status
