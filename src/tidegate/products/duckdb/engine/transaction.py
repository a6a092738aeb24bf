"""A statement on a worker's session: its transaction, and how its rows are read."""

from __future__ import annotations

from bisect import bisect_left
from contextlib import suppress
from typing import Any, cast

import duckdb
import msgspec

from tidegate.engines.common.errors import no_values
from tidegate.engines.common.row_images import too_many_rows
from tidegate.engines.common.whole_changes import WholeChange
from tidegate.engines.worker.frames import portable
from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect
from tidegate.products.duckdb.engine.connection import DuckdbSession, ParameterKind
from tidegate.products.duckdb.engine.inspect import ParsedStatement, body, check_own, read
from tidegate.products.duckdb.engine.messages import Fill, Filled, Portion, Prepared, Run, Started
from tidegate.products.duckdb.engine.types import Column, ExactQuery, check_exact, coerced, is_json
from tidegate.results.column_kinds import column_of
from tidegate.results.page import PageBuilder
from tidegate.sql.quoting import identifier, literal

BATCH_BYTES = 1_000_000
"""About how much is read before rows are passed on."""

FIRST_ROWS = 512
SMALL_BYTES = 131_072
"""Results of up to so many rows and bytes come back at once. Larger ones are made a page here."""

MAX_KEPT_QUERIES = 256
MAX_KEPT_TEXT = 8_192

_INTEGER_BITS = (31, 63, 64, 127)
"""Of the values of INTEGER, BIGINT, UBIGINT and HUGEINT, without a sign."""

Row = tuple[Any, ...]


class Execution:
    """A statement that has begun. A change is committed when its last row was read."""

    def __init__(self, session: DuckdbSession, run: Run) -> None:
        """Begin it. Raises: TidegateError POLICY_* if it does more than `run.effect`;
        duckdb.Error."""
        reading = read(run.text)
        check_effect(reading, run)
        params = parameters_of(reading, run)
        self._session = session
        self._writes = not run.explain and run.effect > Effect.READ
        self._ready: list[Row] = []
        self._batch = 4
        self._coerced_columns: list[Column] = []
        self.columns: list[tuple[str, str]] = []
        self.affected = 0
        self.ended = False
        self._schema = run.schema
        self._run = run
        self._whole: WholeChange | None = None
        self._cursor = session.cursor(run.version, writes=self._writes)
        try:
            if run.schema is not None:
                self._cursor.execute(f"SET search_path = {search_path(run.schema)}")
            check_own(self._cursor, run.own)
            self._begin(reading, params, run.explain)
        except BaseException:
            self.close()
            raise

    def started(self, max_rows: int) -> Started:
        """The first answer: with all rows, if they are few and small."""
        if not self.ended and not self._writes:
            self._ready = self._read(min(max_rows, FIRST_ROWS))
        rows: list[Row] = []
        if self.ended and sum(map(_weight, self._ready)) <= SMALL_BYTES:
            rows, self._ready = self._ready, []
        return Started(self.columns, self._portion(rows))

    def fetch(self, max_rows: int) -> Portion:
        """Up to `max_rows` further rows; fewer if they are large, or at the end."""
        return self._portion(self._next(max_rows))

    def fill(self, fill: Fill) -> Filled:
        """Build a page of the further rows."""
        columns = tuple([column_of(name, kind) for name, kind in self.columns])
        builder = PageBuilder(columns, fill.limits, fill.cells)
        while wanted := builder.remaining:
            builder.write(self._next(wanted))
        return Filled(builder.page(), self._portion(list(builder.rest)))

    def close(self) -> None:
        """End it; a change whose rows were not all read is undone. Safe to call twice."""
        self._ready = []
        if not self.ended:
            self.ended = True
            with suppress(duckdb.Error):
                if self._writes:
                    self._cursor.execute("ROLLBACK")
            self._session.drop(self._cursor)

    def _portion(self, rows: list[Any]) -> Portion:
        """Rows on their way to the gate."""
        if any("JSON" in kind for _, kind in self.columns):
            rows = portable(rows)
        return Portion(rows, self.ended and not self._ready, self.affected)

    def _begin(self, reading: ParsedStatement, params: list[Any] | None, explain: bool) -> None:
        cursor = self._cursor
        text = reading.text
        if explain and reading.judgement.effect > Effect.READ:
            raise TidegateError(
                Code.UNSUPPORTED,
                "DuckDB explains a change only on a connection that may write.",
                hint="Explain the SELECT that finds the rows to be changed.",
            )
        shows_columns = reading.kind == "MULTI" and not self._writes
        if explain:
            text = f"EXPLAIN {text}"
        elif reading.kind == "SELECT" and not self._writes:
            query = self._exact_query(text, params)
            shows_columns = query is None
            text = text if query is None else self._adopt(query)
        self._whole = begin_whole(self._run, cursor) if self._writes else None
        cursor.execute(text, params)
        if shows_columns:
            self._ask_again(text, params)
        if not self.columns and cursor.description:
            self.columns = [(entry[0], str(entry[1])) for entry in cursor.description]
        if self._writes and reading.returns:
            kinds = [entry[1] for entry in cursor.description]
            check_exact(kinds)
            if any(map(is_json, kinds)):
                self._coerced_columns = [Column(place, kind) for place, kind in enumerate(kinds)]
        elif self._writes:
            self._finish_change()

    def _adopt(self, query: ExactQuery) -> str:
        self.columns, self._coerced_columns = query.columns, query.coerced_columns
        return query.text

    def _ask_again(self, text: str, params: list[Any] | None) -> None:
        """A query that has run shows its columns; run it again if its values do not come exact."""
        described = self._cursor.description
        query = ExactQuery(
            body(text), [entry[0] for entry in described], [entry[1] for entry in described]
        )
        if not query.is_plain:
            self._cursor.execute(query.text, params)
        self._adopt(query)

    def _exact_query(self, text: str, params: list[Any] | None) -> ExactQuery | None:
        """What the columns of a query are: DuckDB binds it for that, but does not run it. None if
        one like it was read as it is: then it shows its columns when it has run.

        Only where nothing may be written: a query that writes would be run.
        """
        session = self._session
        kept, plain = session.exact_queries, session.plain_queries
        kinds = tuple([_kind_of(value) for value in params or ()])
        key = text, self._schema, kinds
        query = kept.get(key)
        if query is not None:
            return query
        alike = self._run.alike, self._schema, kinds
        if alike in plain:
            return None
        relation = self._cursor.sql(text, params=params)
        query = ExactQuery(body(text), relation.columns, relation.types)
        if not session.in_memory and len(text) <= MAX_KEPT_TEXT:
            if len(kept) >= MAX_KEPT_QUERIES:
                kept.clear()
                plain.clear()
            kept[key] = query
            if self._run.alike and query.is_plain:
                plain.add(alike)
        return query

    def _finish_change(self) -> None:
        """A change without RETURNING has run, and its result is a count, if it is anything."""
        counted = self._cursor.fetchall() if self.columns else []
        if self.columns and self.columns[0][0] == "Count" and counted:
            self.affected = int(counted[0][0])
        self.columns = []
        self._end()

    def _next(self, max_rows: int) -> list[Row]:
        if self._ready:
            rows, self._ready = self._ready[:max_rows], self._ready[max_rows:]
            return rows
        return [] if self.ended else self._read(max_rows)

    def _read(self, max_rows: int) -> list[Row]:
        rows: list[Row] = []
        size = 0
        while len(rows) < max_rows and size < BATCH_BYTES:
            wanted = min(self._batch, max_rows - len(rows))
            batch: list[Row] = self._cursor.fetchmany(wanted)
            rows += batch
            if len(batch) < wanted:
                if self._writes:
                    self.affected += len(rows)
                self._end()
                return coerced(rows, self._coerced_columns)
            row_bytes = max(_weight(batch[0]), _weight(batch[-1]))
            size += row_bytes * len(batch)
            self._batch = max(1, min(self._batch * 8, 4096, BATCH_BYTES // row_bytes))
        if self._writes:
            self.affected += len(rows)
        return coerced(rows, self._coerced_columns)

    def _end(self) -> None:
        """The statement has run. Raises: TidegateError LIMIT_CHANGES if it is about too many rows:
        then it is rolled back."""
        if self._writes:
            count_changes(self._run, self.affected)
            check_whole(self._whole, self._cursor, self.affected)
            self._cursor.execute("COMMIT")
        self.ended = True
        self._session.drop(self._cursor)


def _kind_of(value: Any) -> ParameterKind:
    """What the type of a parameter follows from: an integer's from its size as well."""
    kind = cast("type[object]", type(value))
    if kind is not int:
        return kind, 0
    if value < 0:
        return kind, -1 - bisect_left(_INTEGER_BITS, (~value).bit_length())
    return kind, bisect_left(_INTEGER_BITS, value.bit_length())


def search_path(schema: str) -> str:
    """The schema, and the one that is looked up without it, as the setting is written."""
    return literal(f"{identifier(schema, 'duckdb')},main", "duckdb")


def prepared(session: DuckdbSession, run: Run) -> Prepared:
    """The columns of a query: DuckDB binds it, and does not run it. Raises: TidegateError POLICY_*,
    UNSUPPORTED; duckdb.Error."""
    reading = read(run.text)
    check_effect(reading, run)
    if reading.kind != "SELECT":
        raise TidegateError(Code.UNSUPPORTED, "DuckDB knows its columns only when it has run.")
    count = len(reading.parameters)
    cursor = session.cursor(run.version, writes=False)
    try:
        if run.schema is not None:
            cursor.execute(f"SET search_path = {search_path(run.schema)}")
        check_own(cursor, run.own)
        relation = cursor.sql(reading.text, params=[None] * count or None)
        columns = list(zip(relation.columns, map(str, relation.types), strict=True))
    finally:
        session.drop(cursor)
    return Prepared(columns, count)


def count_changes(run: Run, rows: int) -> None:
    """Raises: TidegateError LIMIT_CHANGES if a change is about too many rows."""
    if run.max_rows_changed is not None and rows > run.max_rows_changed:
        raise too_many_rows(run.max_rows_changed, rows, False)


def begin_whole(run: Run, cursor: duckdb.DuckDBPyConnection) -> WholeChange | None:
    """Ready to find out whether a change is about every row; None if it may be."""
    if not run.whole_changes or not run.touches:
        return None
    whole = WholeChange(run.touches, run.whole_changes)
    whole.begin([_number(cursor, query) for query in whole.counts_before])
    return whole


def check_whole(whole: WholeChange | None, cursor: duckdb.DuckDBPyConnection, own: int) -> None:
    """Raises: TidegateError POLICY_CONFIRM, POLICY_DENIED if a change was about every row."""
    if whole is not None:
        whole.end(own, [_number(cursor, query) for query in whole.counts_after(own)])


def _number(cursor: duckdb.DuckDBPyConnection, query: str) -> int:
    ((count,),) = cursor.execute(query).fetchall()
    return int(count)


def check_effect(reading: ParsedStatement, run: Run) -> None:
    """Fail closed if DuckDB sees more than the permit allows. Raises: TidegateError POLICY_*."""
    judgement = reading.judgement
    if judgement.code is None and (run.explain or judgement.effect <= run.effect):
        return
    code = Code.POLICY_READ_ONLY if run.effect == Effect.READ else Code.POLICY_DENIED
    raise TidegateError(
        code,
        judgement.reason,
        hint=judgement.hint,
        details={"effect": judgement.effect.label},
    )


def parameters_of(reading: ParsedStatement, run: Run) -> list[Any] | None:
    """The values in the order of $1, $2, ... Raises: TidegateError ARGUMENT_INVALID."""
    names = reading.parameters
    given = 0 if run.params is None else len(run.params)
    if names != frozenset(str(place) for place in range(1, len(names) + 1)):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "Placeholders must be numbered without gaps.",
            hint="Write $1, $2, and so on.",
        )
    if run.explain and names and not given:
        raise no_values()
    if given != len(names):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The statement has {len(names)} placeholders, and {given} parameters were given.",
        )
    return run.params or None


def _weight(row: Row) -> int:
    """About how many bytes a row takes."""
    return sum([_weight_of(value) for value in row]) + 8


def _weight_of(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, msgspec.Raw):
        return memoryview(value).nbytes
    if isinstance(value, (list, tuple)):
        return sum([_weight_of(inner) for inner in cast("list[Any]", value)]) + 8
    return 64 if isinstance(value, dict) else 8
