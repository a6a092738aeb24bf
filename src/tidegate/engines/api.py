"""The contract between the gate and an engine. `tests/contract/engines` checks the docstrings here.

An engine module offers one class with the members of `Engine`. It is imported when a source of
its kind is first opened (`registry.py`). It runs nothing without a `Permit`, never imports
policy, and enforces the permit's read-only effect and time limit in the database itself.

Methods beyond `Engine` are optional: `PreparingEngine` and `TransactionEngine` name them, and a
capability says whether an open engine has them. An engine that lacks one does not mention it; an
engine around another one (`ssh/tunnel.py`) passes them on and has the other's capabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard, runtime_checkable

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.changes import Comparison, Reversibility
from tidegate.model.decisions import Permit
from tidegate.model.joined_tables import OtherTables
from tidegate.model.results import Column, Document, Truncation, UpstreamUse
from tidegate.model.row_changes import ChangedRows, EditConflict, FoundRows
from tidegate.model.schema import Description, Status
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Judgement, NewState, Statement
from tidegate.model.transactions import TransactionModes

Row = Sequence[Any]


class Capabilities(msgspec.Struct, frozen=True):
    """What an open engine can do. The contract suite checks each lack as well as each ability.

    They belong to the instance: two connections through one JDBC driver may differ.

    `identities`: it runs a permit with an `identity` under that role. An engine without it is not
    opened for a source that maps callers (`registry.check_run_as`).
    `checks_schema`: a read under a permit with a `schema_version` gives no row, and no error of the
    database, if the schema has another version by then: `run` raises `SchemaChangedError`.
    `max_concurrency`: how many statements it runs at a time; the gate shares them among callers.
    `prepares`: it is a `PreparingEngine`. `multi_statement_transactions`: a `TransactionEngine`.
    `plans`: it is a `PlanningEngine`. `joins`: it is a `JoiningEngine`. `undoes`: it is an
    `UndoingEngine`. `edits`: it is an `EditingEngine`. `feeds`: it adds the rows of a
    `RowFeed`. `counts_changes`: it is a `CountingEngine`.
    `upstream`: its cursors may be `UpstreamCursor`s.
    `notices`: its database notes things while it runs a statement, and the engine hands them to
    `model.notices.note`.
    """

    transactions: bool = True
    writes: bool = True
    schemas: bool = True
    several_databases: bool = False
    inspects: bool = False
    explains: bool = True
    explains_changes: bool = True
    explains_as_json: bool = True
    cancels: bool = True
    primary_keys: bool = True
    foreign_keys: bool = True
    row_counts: bool = True
    dry_runs: bool = False
    identities: bool = False
    checks_schema: bool = False
    prepares: bool = False
    multi_statement_transactions: bool = False
    plans: bool = False
    joins: bool = False
    undoes: bool = False
    edits: bool = False
    feeds: bool = False
    counts_changes: bool = False
    notices: bool = False
    upstream: bool = False
    max_concurrency: int = 8


class SchemaChangedError(TidegateError):
    """The schema is another one than the permit's statement was rewritten by. Nothing of what the
    statement gave was shown; the gate rewrites it again."""

    def __init__(self) -> None:
        super().__init__(
            Code.SOURCE_BUSY,
            "The schema of the source changed while the statement was under way.",
            hint="Send the statement again.",
        )


class RowsConflictError(TidegateError):
    """Rows are not as the person saw them; nothing was changed. `conflicts` are some of `count`."""

    def __init__(self, table: str, conflicts: tuple[EditConflict, ...], count: int) -> None:
        rows = "1 row" if count == 1 else f"{count:,} rows"
        found = {each.problem for each in conflicts}
        said = [words for problem, words in _PROBLEMS.items() if problem in found]
        super().__init__(
            Code.ROWS_CONFLICT,
            f"{rows} of {table} {' or '.join(said)}. Nothing was changed.",
            details={
                "count": count,
                "rows": [{"edit": each.edit, "problem": each.problem} for each in conflicts],
            },
        )
        self.conflicts = conflicts
        self.count = count


_PROBLEMS: dict[str, str] = {
    "changed": "changed meanwhile",
    "gone": "went meanwhile",
    "exists": "came meanwhile under the same key",
}


class RowCollector(Protocol):
    """Takes rows as they come and never waits; `results.page.PageBuilder` is one.

    A sink that may wait (`model.results.RowSink`) is fed by the gate, chunk by chunk, with `fetch`.
    """

    @property
    def remaining(self) -> int:
        """How many rows to add next; 0: enough."""
        ...

    def write(self, rows: Sequence[Row]) -> None:
        """Take rows; none means that the result has ended."""
        ...


class Cursor(Protocol):
    """A running result. Rows are plain Python values: None, bool, int, float, str, bytes,
    Decimal, datetime, date, time, timedelta, UUID, list, dict."""

    columns: tuple[Column, ...]
    affected: int
    """Rows changed; final when `fetch` has returned an empty list."""

    async def fetch(self, max_rows: int) -> list[Row]:
        """Up to `max_rows` further rows; fewer (perhaps none) only at the end.

        Raises: TidegateError SQL_FAILED, LIMIT_TIME, CALL_CANCELLED, SOURCE_UNREACHABLE.
        """
        ...

    async def fetch_into(self, sink: RowCollector) -> None:
        """Fetch for `sink` until it wants no more. The engine may call it in another thread, near
        the rows, so that a large result costs no hop per chunk.

        Raises: as `fetch`.
        """
        ...

    async def close(self) -> None:
        """End the statement and give the connection back. Safe to call twice, and after errors.
        A read ends with ROLLBACK, a write is committed only if every row was fetched."""
        ...


class UpstreamCursor(Cursor, Protocol):
    """The cursor of a source that is made of APIs. Both are final when `fetch` has returned an
    empty list, or the cursor is closed."""

    truncations: tuple[Truncation, ...]
    """Lists of which not all pages were fetched."""
    upstream: UpstreamUse


def new_state_of(cursor: Cursor) -> NewState | None:
    """The state after an approved change, of an engine that reads it."""
    return getattr(cursor, "new_state", None)


def tag_of(cursor: Cursor) -> str:
    """What the database says of a statement that has ended without rows, as `CREATE TABLE`; empty
    where it says nothing."""
    return getattr(cursor, "tag", "")


def has_upstream(cursor: Cursor) -> TypeGuard[UpstreamCursor]:
    """Whether a cursor says what it sent to providers."""
    return hasattr(cursor, "upstream")


INSPECT_S = 10.0
"""How long a server may inspect a statement that has no limit."""


class Engine(Protocol):
    """One open source. Instances are shared by all callers and run statements concurrently."""

    @property
    def capabilities(self) -> Capabilities:
        """What this connection can do, known since `open`."""
        ...

    @classmethod
    async def open(cls, source: Source) -> Engine:
        """Connect. Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE, ENGINE_MISSING."""
        ...

    @property
    def status(self) -> Status:
        """Database, schema and server version, known since `open`."""
        ...

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        """The database's own opinion, without running anything; None if it has none. `judgement`
        is the gate's of the same text, which an opinion may be joined with. A server answers within
        `timeout_s`, or the statement is refused as one that took too long."""
        ...

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor | Document:
        """Run the permit's Query, Explain or Operation; the first rows may already be fetched.

        A `Document` is the answer of an operation, or of a query whose result is a tree. It is
        whole, and what it reports has been done.

        Raises: TidegateError SQL_FAILED (with the database's own code in details), LIMIT_TIME,
        CALL_CANCELLED, POLICY_READ_ONLY (the database refused a write), SOURCE_BUSY.
        """
        ...

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        """Try the permit's INSERT, UPDATE or DELETE and roll it back, within the permit's limits.

        Tries nothing, and says why, unless the catalog shows that nothing outside the
        transaction could notice: no trigger, no sequence, no function that may do more. Waits for
        no lock for long. Nothing is ever committed.
        Raises: as `run`, UNSUPPORTED if the engine has no dry runs.
        """
        ...

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        """Answer the permit's Browse: `catalog` Catalog, `ddl` Ddl, `counts` Counts,
        `databases` Databases.

        Raises: TidegateError TABLE_UNKNOWN, LIMIT_TIME, CALL_CANCELLED, UNSUPPORTED.
        """
        ...

    async def schema_version(self) -> str:
        """A cheap text that changes when the catalog may have changed."""
        ...

    async def close(self) -> None:
        """End running statements and close every connection. Safe to call twice."""
        ...


class StatementDescription(msgspec.Struct, frozen=True):
    """A statement before it runs: the columns of its result and the types of its parameters.

    `columns` is empty for a statement that returns no rows. `parameters` holds the database's own
    type names, one for each placeholder; empty where it gives none.
    """

    columns: tuple[Column, ...] = ()
    parameters: tuple[str, ...] = ()


class PreparingEngine(Engine, Protocol):
    """An engine that describes a statement without running it (`Capabilities.prepares`)."""

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        """Describe the permit's Prepare or Query. Runs nothing.

        Raises: as `Engine.run`.
        """
        ...


class PlanningEngine(Engine, Protocol):
    """An engine whose changes are made of requests that it knows beforehand
    (`Capabilities.plans`)."""

    async def plan(self, statement: Statement, source: Source) -> str:
        """A digest of all that the change would send, to which an approval is bound; empty if it
        cannot be known without sending something. Sends nothing.

        Raises: TidegateError for a change that cannot be sent.
        """
        ...


class JoiningEngine(Engine, Protocol):
    """An engine whose statements may name tables of other sources (`Capabilities.joins`). It reads
    no such table: the gate does, and `Permit.joined` has what they hold."""

    async def other_tables(
        self, statement: Statement, is_source: Callable[[str], bool]
    ) -> OtherTables | None:
        """The tables of other sources that the statement names; None if there are none.
        `is_source` says whether the caller has a source of this name. Sends nothing.

        Raises: TidegateError, for a name that is neither a table here nor one of such a source.
        """
        ...


class CountingEngine(Engine, Protocol):
    """An engine that rolls a change of more rows than the permit's `max_rows_changed` back, also in
    a transaction over several statements (`Capabilities.counts_changes`). Rows that triggers and
    foreign keys change count as well, except those that `uncounted` names."""

    async def uncounted(self, statement: Statement, judgement: Judgement, source: Source) -> str:
        """Which rows of a change are not counted before its COMMIT, as a clause, by the catalog
        alone; empty if all are. Runs nothing of the statement.

        Raises: TidegateError, as `inspect`.
        """
        ...


def counted_of(cursor: Cursor) -> int:
    """How many rows a change is about, those of triggers and foreign keys included where its
    engine counts them."""
    return max(cursor.affected, getattr(cursor, "counted", 0))


class UndoingEngine(Engine, Protocol):
    """An engine that puts the rows of a change back (`Capabilities.undoes`).

    `run` of a permit with a `keeper` gives it the rows of the change, or the reason why they cannot
    be kept, in the transaction of the change and before its COMMIT.
    """

    async def reversibility(
        self, statement: Statement, judgement: Judgement, source: Source
    ) -> Reversibility:
        """Whether the rows that a change would touch can be put back, by the catalog alone. Runs
        nothing of the statement.

        Raises: TidegateError, as `inspect`.
        """
        ...

    async def compare(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        """Compare the rows of the image of the permit's `ChangeRequest` with those there now.

        Raises: as `run`.
        """
        ...

    async def put_back(self, permit: Permit, cancellation: Cancellation) -> Comparison:
        """Put the rows of the permit's `UndoChange` back as they were before the change, and commit
        that; or change nothing, and return what prevents it. The rows are locked while they
        are compared. With a `keeper` the engine gives it what this changes, as for a change.

        Raises: as `run`, UNDO_UNAVAILABLE.
        """
        ...


class EditingEngine(Engine, Protocol):
    """An engine that changes single rows over exact images of them (`Capabilities.edits`)."""

    async def read_images(self, permit: Permit, cancellation: Cancellation) -> FoundRows:
        """Read the rows of the permit's `ReadImages` exactly, without its `hidden` columns.

        Raises: as `run`, TABLE_UNKNOWN; UNSUPPORTED, and why, for a table of which no row can be
        changed so. With `adds` a table without a key is described as well.
        """
        ...

    async def change_rows(self, permit: Permit, cancellation: Cancellation) -> ChangedRows:
        """Make the edits of the permit's `ChangeRows` in one transaction, and commit that; with
        `tries` it is rolled back instead. Each row is locked by its key and compared with its image
        to the last bit; one that differs, is gone, or whose new key is taken ends it before
        anything is written. Triggers and foreign keys act as for any statement. With a `keeper` the
        engine gives it what this changes, as for a change. The rows of a `feed` are read as they
        are written, and `note` says of each part that it is next.

        Raises: as `run`, ROWS_CONFLICT, LIMIT_CHANGES; UNSUPPORTED for one that cannot be tried
        without a trace.
        """
        ...


@runtime_checkable
class ProcessEngine(Protocol):
    """An engine whose driver runs in a process that other sources may share."""

    @property
    def process_id(self) -> str:
        """Of the process that it has now; a process that is started in its place has another."""
        ...

    @property
    def driver_class(self) -> str:
        """The name of the class of the driver that was loaded."""
        ...


class EngineTransaction(Protocol):
    """A transaction over several statements, on a connection of its own. It has one statement under
    way at a time; a statement that fails may leave it so that it can only be rolled back, whole or
    to a savepoint."""

    @property
    def idle_s(self) -> float:
        """For how long nothing has run in it, in seconds; 0 while something does."""
        ...

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor | Document:
        """Run a statement in it. Closing its cursor commits nothing. If only a part of its rows
        was read, the transaction goes on.

        Raises: as `Engine.run`, and POLICY_READ_ONLY for a change in a transaction that only reads.
        """
        ...

    async def mark(self, permit: Permit, cancellation: Cancellation) -> None:
        """Carry out the permit's `MarkTransaction`. Raises: TidegateError SQL_FAILED, ..."""
        ...

    async def commit(self, permit: Permit, cancellation: Cancellation) -> None:
        """Keep its changes and end it.

        Raises: TidegateError SQL_OUTCOME if it is not known whether they are kept; after any other
        error they are not.
        """
        ...

    async def rollback(self) -> None:
        """Undo its changes and end it. Safe to call twice, and after an end. Raises nothing."""
        ...


class TransactionEngine(Engine, Protocol):
    """An engine with transactions over several statements."""

    async def begin(
        self, permit: Permit, modes: TransactionModes, cancellation: Cancellation
    ) -> EngineTransaction:
        """Begin a transaction for the permit's request, which is its first. Unless `modes` says
        that it does not read only, the database itself refuses every change in it.

        Raises: TidegateError SOURCE_BUSY, SOURCE_UNREACHABLE, UNSUPPORTED for modes that the
        database lacks.
        """
        ...


def can_prepare(engine: Engine) -> TypeGuard[PreparingEngine]:
    """Whether `prepare` may be called."""
    return engine.capabilities.prepares


def can_plan(engine: Engine) -> TypeGuard[PlanningEngine]:
    """Whether `plan` may be called."""
    return engine.capabilities.plans


class PoolWaits(NamedTuple):
    """How often a connection had to be waited for, since the engine was opened, and for how long in
    all: none was free, and one was opened or given back by another caller."""

    times: int
    seconds: float


@runtime_checkable
class PooledEngine(Protocol):
    """An engine with a pool of connections to its database."""

    @property
    def open_connections(self) -> int:
        """Those that are open, idle or not."""
        ...

    @property
    def pool_waits(self) -> PoolWaits:
        """The waits for one of them."""
        ...


@runtime_checkable
class LimitedEngine(Protocol):
    """An engine whose server says how many connections it admits."""

    async def read_connection_limit(self) -> int:
        """How many, for all that log in with this account. Raises: TidegateError."""
        ...


class Lease(NamedTuple):
    """For how long an account is there, as Unix times: at `renewal_at` another is taken in its
    place, at `ends_at` it is removed."""

    renewal_at: float
    ends_at: float


@runtime_checkable
class LeasedEngine(Protocol):
    """An engine whose account may be on lease."""

    @property
    def lease(self) -> Lease | None:
        """None if it is not on lease."""
        ...


def can_join(engine: Engine) -> TypeGuard[JoiningEngine]:
    """Whether `other_tables` may be called."""
    return engine.capabilities.joins


def can_count(engine: Engine) -> TypeGuard[CountingEngine]:
    """Whether the engine counts the rows of changes, and rolls back what is about too many."""
    return engine.capabilities.counts_changes


def can_undo(engine: Engine) -> TypeGuard[UndoingEngine]:
    """Whether `put_back` may be called."""
    return engine.capabilities.undoes


def can_edit(engine: Engine) -> TypeGuard[EditingEngine]:
    """Whether `read_images` and `change_rows` may be called."""
    return engine.capabilities.edits


def has_blocks(engine: Engine) -> TypeGuard[TransactionEngine]:
    """Whether `begin` may be called."""
    return engine.capabilities.multi_statement_transactions
