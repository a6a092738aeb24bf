"""Runs the SQL of one statement over the virtual tables of its resources."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from math import inf
from threading import Lock
from typing import Any, Final, TypeVar, cast

import apsw

from tidegate.engines.api import Row
from tidegate.engines.common.errors import closed
from tidegate.engines.sqlite.cost_estimate import MAX_PATTERN_BYTES, CostEstimate
from tidegate.engines.sqlite.errors import translate
from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column, ColumnKind
from tidegate.products.cloud.documents.names import folded
from tidegate.products.cloud.engine.booleans import boolean_places, with_booleans
from tidegate.products.cloud.engine.fetches import Fetches
from tidegate.products.cloud.engine.functions import FUNCTIONS
from tidegate.products.cloud.engine.hidden_rows import HiddenRows
from tidegate.products.cloud.engine.joined_tables import load_table
from tidegate.products.cloud.engine.resource_table import ResourceTable, quoted
from tidegate.products.cloud.engine.statement_text import TableText, no_method
from tidegate.products.cloud.engine.table_roles import NEVER
from tidegate.products.cloud.engine.virtual_tables import (
    Misses,
    Paused,
    TableModule,
    TablePlan,
    VirtualTable,
)

MOST_CELL: Final = 16_777_216
"""Bytes of one value."""
_MOST_TAKEN: Final = 33_554_432
"""About what rows that are taken at once may have: less than as many as were asked for then."""
_MOST_KEPT: Final = 268_435_456
"""About what a result may have that is known whole before its first row is shown."""
_CHUNK: Final = 512
_FIRST_BATCH: Final = 64
"""Fetches that a statement with LIMIT begins before it checks whether it has enough rows."""
_CHOSEN: Final = re.compile(r"VIRTUAL TABLE INDEX (\d+):t(\d+)")
_SYNTAX_ERROR: Final = re.compile(r'near "(\w+)": syntax error')
_OR_PLAN: Final = "MULTI-INDEX OR"
_ROW_NUMBERS: Final = frozenset({"rowid", "_rowid_", "oid"})
_READS: Final = frozenset({
    apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE,
})  # fmt: skip
_KINDS: Final[dict[str, ColumnKind]] = {
    "INTEGER": "integer", "NUMERIC": "other", "BOOLEAN": "boolean", "TEXT": "text",
    "REAL": "float", "BLOB": "bytes",
}  # fmt: skip

Result = TypeVar("Result")


class StatementRun:
    """One SELECT, in the threads of `executor`, one at a time. Blocking methods are called there
    alone."""

    def __init__(
        self, text: TableText, fetches: Fetches, hidden: HiddenRows, *, has_limit: bool
    ) -> None:
        """Raises: TidegateError POLICY_MASKED if a rule does not fit."""
        self._fetches = fetches
        self._misses = Misses(_FIRST_BATCH if has_limit else inf)
        self._sql = text.sql
        self._plain_sql = text.plain_sql
        self.joined = text.joined
        self._tables = {
            name: VirtualTable(
                number,
                ResourceTable(found, text.wanted, hidden.of(found)),
                fetches,
                self._misses,
                text.roles[name],
            )
            for number, (name, found) in enumerate(text.tables.items())
        }
        self._names_row_number = any(folded(name) in _ROW_NUMBERS for name in text.wanted)
        self._masks = text.masks
        self._takes_quoted_texts = int(text.takes_quoted_texts)
        self._stopped: TidegateError | None = None
        self._one_at_a_time = Lock()
        """A thread may still work for a caller that has gone when another one closes the run."""
        self._connection: Any = None
        self._rows: Iterator[Row] = iter(())
        self.columns: tuple[Column, ...] = ()
        self._booleans: list[int] = []
        self.has_ended = False
        """Whether `take` has given the last row."""

    def begin(self) -> None:
        """Prepare the statement and get to its first row. Raises: TidegateError."""
        self._guarded(self._begin)

    def take(self, most: int) -> list[Row]:
        """Up to `most` further rows; fewer at the end, or where they are large. Raises:
        TidegateError."""

        def rows() -> list[Row]:
            taken: list[Row] = []
            size = 0
            for row in self._rows:
                taken.append(row)
                size += _weight(row)
                if len(taken) >= most or size > _MOST_TAKEN:
                    return taken
            self._fetches.check_partial()
            self.has_ended = True
            return taken

        return self._guarded(rows)

    def plans(self) -> list[tuple[VirtualTable, TablePlan]]:
        """How each resource would be read, in SQLite's order. Sends nothing. Raises:
        TidegateError."""

        def chosen() -> list[tuple[VirtualTable, TablePlan]]:
            self._open()
            return self._chosen()

        return self._guarded(chosen)

    def prepare(self) -> None:
        """Find out the columns. Sends nothing. Raises: TidegateError."""

        def look() -> None:
            self._open()
            cursor = self._connection.cursor()

            def note(running: Any, sql: str, bindings: object) -> bool:
                self._note_columns(running, sql, bindings)
                return False  # it is not run

            cursor.exec_trace = note
            with contextlib.suppress(apsw.ExecTraceAbort):
                cursor.execute(self._sql, can_cache=False)

        self._guarded(look)

    def stop(self, error: TidegateError) -> None:
        """End the statement; called from another thread."""
        self._stopped = self._stopped or error
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(apsw.ConnectionClosedError):
                connection.interrupt()

    def close(self) -> None:
        """Free what SQLite holds, once what is under way was stopped."""
        self.stop(closed())
        with self._one_at_a_time:
            self._rows = iter(())
            if self._connection is not None:
                self._connection.close(True)

    def _open(self) -> None:
        connection: Any = apsw.Connection(":memory:")
        self._connection = connection
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, MOST_CELL)
        connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, self._takes_quoted_texts)
        for name, function, count in FUNCTIONS:
            connection.create_scalar_function(name, function, count, deterministic=True)
        for mask, shown in self._masks.items():
            connection.create_scalar_function(mask, shown, 1, deterministic=True)
        connection.create_scalar_function(NEVER, _never, 0, deterministic=True)
        connection.create_module("tidegate", TableModule(self._tables), use_bestindex_object=True)
        for name in self._tables:
            connection.execute(f"CREATE VIRTUAL TABLE temp.{quoted(name)} USING tidegate")
        for name, joined in self.joined.items():
            load_table(connection, name, joined, self._check_stopped)
        connection.authorizer = self._authorize
        self._check_stopped()
        # No step of SQLite can be stopped midway, so none may take long: the more of them make or
        # search a value, the smaller it must be.
        program = CostEstimate(connection.execute(f"EXPLAIN {self._sql}").fetchall())
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, min(MOST_CELL, program.max_value_bytes))
        connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN_BYTES)

    def _check_stopped(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    def _authorize(
        self,
        action: int,
        first: str | None,
        second: str | None,
        database: str | None,
        trigger: str | None,
    ) -> int:
        if action == apsw.SQLITE_READ and first is not None and second is not None:
            table = self._tables.get(first)
            if (
                second == "ROWID"
                # SQLite itself reads it of tables in brackets, `a JOIN (b JOIN c)`, and shows it
                # to no one.
                and self._names_row_number
                and (first in self.joined or (table is not None and not table.has_column(second)))
            ):
                return apsw.SQLITE_DENY  # a number of ours, not of the table's source
            if table is not None:
                table.note_read(second)
        return authorize_reading(action, first, second, database, trigger)

    def _chosen(self) -> list[tuple[VirtualTable, TablePlan]]:
        """How each resource will be read. Raises: TidegateError ARGUMENT_INVALID if SQLite insists
        on reading one for each part of an OR."""
        plan = self._explained_plan()
        if any(_OR_PLAN in row for row in plan) and self._sql != self._plain_sql:
            self._sql = self._plain_sql
            plan = self._explained_plan()
        if any(_OR_PLAN in row for row in plan):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                "An OR of this statement would have a resource read once for each of its parts.",
                hint="Give each OR's parts a SELECT of their own, and join these by UNION.",
            )
        numbered = list(self._tables.values())
        found: list[tuple[VirtualTable, TablePlan]] = []
        for row in plan:
            match = _CHOSEN.search(row)
            if match is not None:
                table = numbered[int(match[2])]
                found.append((table, table.plans[int(match[1])]))
        return found

    def _explained_plan(self) -> list[str]:
        rows = self._connection.execute(f"EXPLAIN QUERY PLAN {self._sql}")
        return [str(row[3]) for row in rows]

    def _begin(self) -> None:
        self._open()
        chosen = self._chosen() if self._tables else []
        for table, plan in chosen:
            table.check_fit(plan)
        known = [(table, plan) for table, plan in chosen if plan.waits and plan.known is not None]
        if len(known) > 1:
            for table, plan in known:
                table.begin_fetch(plan)
        if all(plan.waits for _, plan in chosen):
            self._rows = self._run()
            first = next(self._rows, None)
            if first is not None:
                self._rows = _prepended(first, self._rows)
            return
        self._rows = iter(self._repeated())

    def _repeated(self) -> list[Row]:
        """The rows of the first run that missed nothing."""
        while True:
            self._misses.reset()
            try:
                rows = _kept(self._run())
            except Paused:
                self._misses.batch *= 4
            else:
                if not self._misses.found_any:
                    return rows
            for fetch in self._misses.fetches:
                fetch.wait()

    def _run(self) -> Iterator[Row]:
        cursor = self._connection.cursor()
        cursor.exec_trace = self._note_columns
        rows = cast("Iterator[Row]", cursor.execute(self._sql, can_cache=False))
        return with_booleans(rows, self._booleans) if self._booleans else rows

    def _note_columns(self, cursor: Any, sql: str, bindings: object) -> bool:
        described = cursor.get_description()
        self._booleans = boolean_places(described)
        self.columns = tuple(
            Column(name, declared or "", _KINDS.get(declared or "", "other"))
            for name, declared in described
        )
        return True

    def _guarded(self, work: Callable[[], Result]) -> Result:
        try:
            with self._one_at_a_time:
                return work()
        except TidegateError as error:
            raise (self._stopped or error) from None
        except apsw.InterruptError:
            raise self._stopped or TidegateError(
                Code.CALL_CANCELLED, "The statement was stopped."
            ) from None
        except apsw.Error as error:
            raise self._explained(error) from None

    def _explained(self, error: apsw.Error) -> TidegateError:
        message = str(error)
        if "no query solution" in message:
            for table in self._tables.values():
                if table.lacks is not None and not table.fits:
                    for place in table.lacks & table.table.barred:
                        return table.parameter_refused(place)
                    return _no_method(table)
            for table in self._tables.values():
                if table.lacks is not None:
                    return _no_method(table)
        text = re.sub(r"^\w+Error: ", "", message)
        if text.endswith(".ROWID is prohibited"):
            text = "no such column: rowid, which neither a resource nor a table read beside it has"
        known = translate(error)
        hint = known.hint if known.code is Code.SQL_FAILED else None
        return TidegateError(
            Code.SQL_FAILED,
            text[:1_000] or "The statement failed.",
            hint=self._quoting_hint(text) or hint,
            details=known.details,
        )

    def _quoting_hint(self, message: str) -> str | None:
        """How to name a column that a syntax error points at: its name is a word of SQL."""
        found = _SYNTAX_ERROR.match(message)
        if found is None or not any(table.has_column(found[1]) for table in self._tables.values()):
            return None
        name = quoted(found[1])
        return f"`{found[1]}` is a word of SQL: to name the column, write it in quotes, {name}."


def authorize_reading(
    action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
) -> int:
    """An authorizer of SQLite that lets a statement read and nothing else."""
    return apsw.SQLITE_OK if action in _READS else apsw.SQLITE_DENY


def _no_method(table: VirtualTable) -> TidegateError:
    error = no_method(table.table.found, "SELECT", table.bound_names)
    if not table.is_kept:
        return error
    return TidegateError(
        error.code,
        error.message,
        hint=f"{error.hint} A RIGHT or FULL JOIN gives all rows of its right side: bind these by"
        " literals in WHERE, or read that side in a subquery.",
        details=error.details,
    )


def _never() -> int:
    return 0


def _weight(row: Row) -> int:
    return sum([len(value) for value in row if isinstance(value, (str, bytes))])


def _kept(rows: Iterator[Row]) -> list[Row]:
    """All rows. Raises: TidegateError LIMIT_BYTES."""
    kept: list[Row] = []
    size = 0
    for row in rows:
        kept.append(row)
        size += 64 + _weight(row)
        if size > _MOST_KEPT:
            raise TidegateError(
                Code.LIMIT_BYTES,
                f"The result has more than {_MOST_KEPT:,} bytes.",
                hint="Name fewer columns, or narrow the statement with WHERE.",
            )
    return kept


def _prepended(first: Row, rest: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rest
