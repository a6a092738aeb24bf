"""Builds the statements of a search: quoted names, numbered parameters, conditions. Pure.

Values never become text of a statement, and names of columns come from the catalog alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.schema import Table
from tidegate.model.statements import Statement
from tidegate.search.model import Condition
from tidegate.search.target import Target
from tidegate.sql import quoting
from tidegate.sql.dialects import find

Key = tuple[Any, ...]
TIMEOUT_S = 30.0
MOST_TEXT = 50_000
"""Characters of one text that are read to be cut into chunks."""

_decode = msgspec.json.Decoder(list[list[Any]]).decode


class Sql:
    """One statement in the making."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.dialect = target.dialect
        self.params: list[Any] = []
        self._rules = find(target.dialect)
        self._sign = "?" if self._rules.reused_parameters else "$"

    def name(self, name: str) -> str:
        return quoting.identifier(name, self.dialect)

    @property
    def table(self) -> str:
        return table_name(self.target.table, self.dialect)

    def value(self, value: Any) -> str:
        """A parameter with this value, as it is written in the text."""
        self.params.append(value)
        return f"{self._sign}{len(self.params)}"

    def key_columns(self) -> list[str]:
        """The terms that name a row."""
        if self.target.key:
            return [self.name(name) for name in self.target.key]
        row_id = self._rules.row_id
        if not row_id:
            raise TidegateError(
                Code.UNSUPPORTED, f"The rows of `{self.target.table.name}` have no key"
            )
        return [f"{row_id}::text"] if row_id == "ctid" else [row_id]

    def keys(self) -> str:
        """The key's terms under the names k1, k2, ..."""
        columns = self.key_columns()
        return ", ".join(f"{column} AS k{at}" for at, column in enumerate(columns, 1))

    def key_names(self, prefix: str = "") -> str:
        return ", ".join(f"{prefix}k{at}" for at in range(1, len(self.key_columns()) + 1))

    def conditions(self, filter: Sequence[Condition], *others: str) -> str:
        """`WHERE ...` with all of them, or nothing. Raises: TidegateError ARGUMENT_INVALID,
        POLICY_MASKED."""
        found = [*others, *[self._condition(condition) for condition in filter]]
        return f" WHERE {' AND '.join(found)}" if found else ""

    def _condition(self, condition: Condition) -> str:
        column = self.name(_column(self.target.table, condition.column))
        op, value = condition.op, condition.value
        if op in ("is_null", "is_not_null"):
            if value is not None:
                raise _wrong(condition, "takes no value")
            return f"{column} IS {'NOT ' if op == 'is_not_null' else ''}NULL"
        if op in ("in", "not_in"):
            if not isinstance(value, tuple) or not value:
                raise _wrong(condition, "takes a list of values")
            return f"{column} {'NOT ' if op == 'not_in' else ''}IN ({self._list(value)})"
        if value is None or isinstance(value, tuple):
            raise _wrong(condition, "takes one value")
        return f"{column} {'<>' if op == '!=' else op} {self.value(value)}"

    def _list(self, values: Sequence[Any]) -> str:
        return ", ".join([self.value(value) for value in values])

    def one_of(self, keys: Sequence[Key]) -> str:
        """The condition that a row has one of these keys."""
        columns = self.key_columns()
        if len(columns) > 1:
            pairs = [
                " AND ".join(
                    f"{column} = {self.value(part)}"
                    for column, part in zip(columns, key, strict=True)
                )
                for key in keys
            ]
            return f"({' OR '.join(f'({pair})' for pair in pairs)})"
        values = [key[0] for key in keys]
        if self._rules.vectors == "typed":
            # By the row id itself: a text of it is found by no index.
            column = columns[0] if self.target.key else "ctid"
            return f"{column} = ANY({self.value(values)}{'' if self.target.key else '::tid[]'})"
        return f"{columns[0]} IN ({self._list(values)})"

    def prefix(self, column: str, most: int = MOST_TEXT) -> str:
        """The text of a column, shortened to what is read of it."""
        return self._rules.beginning(self.name(column), most)

    def query(
        self,
        text: str,
        rows: int,
        tuning: tuple[tuple[str, str], ...] = (),
        schema: str | None = None,
    ) -> Query:
        """The statement as a request for at most `rows` rows."""
        limits = Limits(max_rows=max(rows, 1), max_bytes=16_777_216, timeout_s=TIMEOUT_S)
        params = tuple(self.params) or None
        return Query(Statement(text, params), limits=limits, tuning=tuning, schema=schema)


def table_name(table: Table, dialect: str) -> str:
    """The table with its schema, quoted."""
    return quoting.qualified(table.schema, table.name, dialect)


def rows_of(page: Page) -> list[list[Any]]:
    """The rows of a page as plain values."""
    return _decode(page.rows)


def ranked(page: Page) -> list[tuple[Key, float]]:
    """The rows of a page as keys with the distance that is their last value. A vector of zeros, or
    of what is no number, is at no distance: such rows are left out."""
    return [
        (tuple(row[:-1]), float(row[-1]))
        for row in rows_of(page)
        if isinstance(row[-1], (int, float))
    ]


def _column(table: Table, name: str) -> str:
    found = [column for column in table.columns if column.name == name]
    found += [column for column in table.columns if column.name.lower() == name.lower()]
    if found:
        if found[0].masked is not None:
            raise masking_refused(
                f"The column `{found[0].name}` is masked for this caller and cannot be a condition",
                "source.masking",
                hint="Leave the condition out.",
            )
        return found[0].name
    raise TidegateError(
        Code.ARGUMENT_INVALID,
        f"The table `{table.name}` has no column `{name[:120]}` for the condition of `filter`",
        hint=f"Its columns: {', '.join(column.name for column in table.columns[:30])}.",
    )


def _wrong(condition: Condition, problem: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"The condition on `{condition.column[:120]}`: `{condition.op}` {problem}",
    )
