"""What the gate asks of an engine. The docstrings are the contract; `tests/contract` holds it.

An engine module offers one class with the members of `Engine`. It is imported when a source of
its kind is first opened (`registry.py`). It runs nothing without a `Permit`, never imports
policy, and enforces the permit's read-only effect and time limit in the database itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from tidegate.cancellation import Cancellation
from tidegate.metadata import Description, Status
from tidegate.pages import Column
from tidegate.permits import Permit
from tidegate.sources import Source
from tidegate.statements import Judgement, Rehearsal, Statement

Row = Sequence[Any]


class Capabilities(msgspec.Struct, frozen=True):
    """What an engine can do. The contract suite verifies each lack as well as each ability.

    `identities`: it runs a permit with an `identity` as that. Who lacks it is not opened for a
    source that maps callers (`registry.check_run_as`).
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
    foreign_keys: bool = True
    row_counts: bool = True
    rehearses: bool = False
    identities: bool = False


class Sink(Protocol):
    """Takes rows as they come; `results.page.PageBuilder` is one."""

    @property
    def wanted(self) -> int:
        """How many rows to add next; 0: enough."""
        ...

    def add(self, rows: Sequence[Row]) -> None:
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

        Raises: GateError SQL_FAILED, LIMIT_TIME, CALL_CANCELLED, SOURCE_UNREACHABLE.
        """
        ...

    async def pour(self, sink: Sink) -> None:
        """Fetch for `sink` until it wants no more. The engine may call it in another thread, near
        the rows, so that a large result costs no hop per chunk.

        Raises: as `fetch`.
        """
        ...

    async def close(self) -> None:
        """End the statement and give the connection back. Safe to call twice, and after errors.
        A read ends with ROLLBACK, a write is committed only if every row was fetched."""
        ...


class Engine(Protocol):
    """One open source. Instances are shared by all callers and run statements concurrently."""

    capabilities: ClassVar[Capabilities]

    @classmethod
    async def open(cls, source: Source) -> Engine:
        """Connect. Raises: GateError SOURCE_URL, SOURCE_UNREACHABLE, ENGINE_MISSING."""
        ...

    @property
    def status(self) -> Status:
        """Database, schema and server version, known since `open`."""
        ...

    async def inspect(self, statement: Statement) -> Judgement | None:
        """The database's own opinion, without running anything; None if it has none."""
        ...

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        """Run the permit's Query or Explain; the first rows may already be fetched.

        Raises: GateError SQL_FAILED (with the database's own code in details), LIMIT_TIME,
        CALL_CANCELLED, POLICY_READ_ONLY (the database refused a write), SOURCE_BUSY.
        """
        ...

    async def rehearse(self, permit: Permit, cancellation: Cancellation) -> Rehearsal:
        """Try the permit's INSERT, UPDATE or DELETE and roll it back, within the permit's limits.

        Tries nothing, and says why, unless the catalogue shows that nothing outside the
        transaction could notice: no trigger, no sequence, no function that may do more. Waits for
        no lock for long. Nothing is ever committed.
        Raises: as `run`, UNSUPPORTED if the engine does not rehearse.
        """
        ...

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        """Answer the permit's Browse: `catalog` Catalog, `ddl` Ddl, `counts` Counts,
        `status` Status, `databases` Databases.

        Raises: GateError TABLE_UNKNOWN, LIMIT_TIME, CALL_CANCELLED, UNSUPPORTED.
        """
        ...

    async def stamp(self) -> str:
        """A cheap text that changes when the catalog may have changed."""
        ...

    async def close(self) -> None:
        """End running statements and close every connection. Safe to call twice."""
        ...
