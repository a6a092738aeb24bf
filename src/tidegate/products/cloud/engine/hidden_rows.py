"""Hides rows and values of a resource before SQLite sees them.

A resource is a virtual table, so what it never gives is in no result, however the statement is
written: conditions, joins, aggregates, views and subqueries see what the caller may see.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import Any, Final, cast

import apsw

from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.model.data_rules import EngineRules, Show
from tidegate.products.cloud.documents.document_catalog import DocumentCatalog, Found
from tidegate.products.cloud.documents.model import Method
from tidegate.products.cloud.documents.names import folded, snake_case
from tidegate.products.cloud.engine.functions import FUNCTIONS
from tidegate.products.cloud.http.responses import SqlValue
from tidegate.products.cloud.language.data_rules import (
    HiddenData,
    ResourceRules,
    change_refused,
    column_refused,
)
from tidegate.products.cloud.language.descriptions import columns_of

_READS: Final = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION})
_LONGEST_S: Final = 10.0
"""How long the conditions may take for one page: nothing else can end them."""
_STEPS: Final = 20_000


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
) -> int:
    return apsw.SQLITE_OK if action in _READS else apsw.SQLITE_DENY


class HiddenRows:
    """What is hidden of one source from one caller: rules of resources that exist."""

    def __init__(self, given: EngineRules | None, documents: DocumentCatalog) -> None:
        """Reads documents. Raises: TidegateError POLICY_MASKED if a rule fits no resource."""
        self._resources: dict[str, ResourceRules] = {}
        if given is None or not (given.rules.masks or given.rules.filters):
            return
        for rules in HiddenData(given.rules, given.key).resources.values():
            try:
                found = documents.resource(rules.path.split("."))
            except TidegateError as error:
                raise masking_refused(
                    f"The rule for `{rules.path}` names a resource that is not there:"
                    f" {error.message}",
                    f"masking.{rules.path}",
                    "Ask the operator to correct the rule, or to pull the provider: until then"
                    " nothing of this source is read.",
                ) from None
            renames = found.provider.renames_columns and not found.resource.views
            self._resources[found.path] = rules.in_snake_case() if renames else rules

    def of(self, found: Found) -> ResourceRules | None:
        """What is hidden of a resource; None if nothing is."""
        return self._resources.get(found.path)


class RowFilter:
    """Keeps the rows for which all conditions hold. Called by several threads."""

    def __init__(self, columns: Sequence[tuple[str, str]], rules: ResourceRules) -> None:
        """`columns` are names, in quotes, and declared types."""
        self._columns = columns
        self._rules = rules
        self._lock = Lock()
        self._connection: Any = None
        self._until = 0.0

    def kept(self, rows: Sequence[tuple[SqlValue, ...]]) -> list[tuple[SqlValue, ...]]:
        """Those of the rows, in their order. Raises: TidegateError POLICY_MASKED if a condition
        cannot be computed: then none is shown."""
        if not rows:
            return []
        with self._lock:
            try:
                connection = self._opened()
                self._until = time.monotonic() + _LONGEST_S
                marks = ", ".join("?" * len(self._columns))
                connection.executemany(f"INSERT INTO r VALUES({marks})", rows)
                connection.authorizer = _authorize
                where = " AND ".join(f"({each}\n)" for each in self._rules.conditions)
                found = connection.execute(f"SELECT rowid FROM r WHERE {where} ORDER BY rowid")
                numbers = cast("list[tuple[int]]", list(found))
                kept = [rows[number - 1] for (number,) in numbers]
                connection.authorizer = None
                connection.execute("DELETE FROM r")
            except (apsw.Error, TidegateError, ValueError, TypeError) as error:
                self._close()
                raise self._unfit(error) from None
        return kept

    def _opened(self) -> Any:
        if self._connection is None:
            connection: Any = apsw.Connection(":memory:")
            self._connection = connection
            # Else a column that is not there, in double quotes, would be a text.
            connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
            for name, function, count in FUNCTIONS:
                connection.create_scalar_function(name, function, count, deterministic=True)
            columns = ", ".join(f"{name} {declared}" for name, declared in self._columns)
            connection.execute(f"CREATE TABLE r({columns})")
            connection.set_progress_handler(lambda: time.monotonic() > self._until, _STEPS)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close(True)
            self._connection = None

    def _unfit(self, error: Exception) -> TidegateError:
        # What SQLite says can hold a value of a row.
        known = isinstance(error, apsw.SQLError) and "no such column" in str(error)
        reason = str(error).partition(":")[2].strip() if known else "it fails on a row"
        return masking_refused(
            f"The row filter on `{self._rules.path}` cannot be used: {reason[:120]}",
            f"filter.{self._rules.path}",
            "Ask the operator to correct the rule: until then the resource is not read.",
        )


def masked_row(
    row: tuple[SqlValue, ...], shown: dict[int, Show], rules: ResourceRules
) -> tuple[SqlValue, ...]:
    """The row with what takes the place of its masked values, by the numbers of columns."""
    cells = list(row)
    for place, show in shown.items():
        cells[place] = rules.shown(show, cells[place])
    return tuple(cells)


def check_change(
    found: Found, rules: ResourceRules | None, names: Collection[str], *, is_exec: bool
) -> None:
    """Refuse a change of a resource of which rows are hidden, and one that gives a value for a
    masked column. What EXEC replies cannot be distinguished by columns. Raises: TidegateError
    POLICY_MASKED."""
    if rules is None:
        return
    if rules.conditions or is_exec:
        raise change_refused(found.path)
    for name in names:
        written = name[6:] if name.lower().startswith("data__") else name
        if rules.masks.keys() & {folded(written), folded(snake_case(written))}:
            raise column_refused(f"{found.path}.{name}")


def hidden_reply(
    rows: Sequence[Mapping[str, SqlValue]], found: Found, method: Method, rules: ResourceRules
) -> list[dict[str, SqlValue]]:
    """The rows of a reply to a change, with what takes the place of masked values. A reply can
    have another shape than the rows that SELECT gives: what these do not have is left out."""
    known = {folded(each.name) for each in method.parameters}
    for name in found.resource.verbs.get("select", ()):
        known |= {folded(each) for each in columns_of(found, found.resource.methods[name])}

    def cell(name: str, value: SqlValue) -> SqlValue:
        show = rules.show_of(name) if folded(name) in known else "nothing"
        return value if show is None else rules.shown(show, value)

    return [{name: cell(name, value) for name, value in row.items()} for row in rows]


def without_reply(error: TidegateError, rules: ResourceRules | None) -> TidegateError:
    """The error of a change on a resource with masks, without what the provider answered: that can
    quote what is masked."""
    status = error.details.get("http_status")
    if rules is None or status is None or error.code is Code.SQL_OUTCOME:
        return error
    message, _, rest = error.message.partition(f"HTTP status {status}")
    counts = rest[at:] if (at := rest.rfind(" Of ")) >= 0 and "not_sent" in error.details else ""
    return TidegateError(
        error.code,
        f"{message}HTTP status {status}. What the provider said is left out, because it could"
        f" quote masked columns.{counts}",
        hint=error.hint,
        retry_after_s=error.retry_after_s,
        details=error.details,
    )
