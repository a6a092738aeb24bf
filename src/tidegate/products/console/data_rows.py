"""Rows of a table for the Data page: pages by key, counts, and whole cells.

The statements are written here from names of the catalog and values that are data, and go through
the gate like any other. What is masked can neither be filtered nor sorted by: the answer would
tell the values.
"""

from __future__ import annotations

import datetime
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import ReadRows
from tidegate.model.results import Column, Page
from tidegate.model.schema import ColumnInfo, Table
from tidegate.model.statements import Statement
from tidegate.products.console.cells import cell_of, column_fields, text_of
from tidegate.products.console.data_calls import Caller, DataCalls, Place, check_sql
from tidegate.products.console.row_pages import (
    PageOrder,
    exact_literal,
    order_of,
    page_statement,
    pages_by_values,
    visible_column,
)
from tidegate.results.column_kinds import read_type
from tidegate.results.notes import page_note
from tidegate.sql.conditions import Operator, condition
from tidegate.sql.dialects import find
from tidegate.sql.quoting import identifier, qualified
from tidegate.typed_values import decode_json

MOST_ROWS = 1_000
MOST_FILTERS = 50
MOST_VALUES = 500
"""Values of one filter by a list."""
BIG = 100_000
"""Rows of a table from which a sort without an index is warned of."""
MOST_CELL = 5_000_000
"""Characters of a whole cell."""
_CURSOR_BYTES = 16_384
_OPERATORS: dict[str, Operator] = {
    "=": "equals",
    "!=": "not_equals",
    "<": "less_than",
    "<=": "less_or_equal",
    ">": "greater_than",
    ">=": "greater_or_equal",
    "between": "between",
    "contains": "contains",
    "starts with": "starts_with",
    "is null": "is_null",
    "is not null": "is_not_null",
}


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition on one column. `in` takes a list, or a text of values with commas between."""

    column: str
    operator: Literal[
        "=", "!=", "<", "<=", ">", ">=", "contains", "starts with", "in", "between", "is null",
        "is not null",
    ]  # fmt: skip
    value: str | list[str] | None = None
    second: str | None = None


class Sort(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    column: str
    direction: Literal["asc", "desc"] = "asc"


class Narrowed(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table and the filters on its rows."""

    table: str
    filters: Annotated[tuple[Filter, ...], Meta(max_length=MOST_FILTERS)] = ()
    logic: Literal["and", "or"] = "and"


class Rows(Narrowed, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `rows`."""

    sort: Annotated[tuple[Sort, ...], Meta(max_length=16)] = ()
    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 200


class CellOf(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `cell`: a column of the row with that key."""

    table: str
    key: dict[str, str]
    column: str


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where a page begins: after so many `rows`, the last of which has these `values` of what it
    is sorted by (None: they cannot be written). `order` is a digest of that order."""

    order: str
    rows: int
    values: list[tuple[str, str]] | None


class DataRows:
    """Rows of tables, within the operator's rights."""

    def __init__(self, calls: DataCalls) -> None:
        self._calls = calls

    async def page(self, body: Rows, caller: Caller) -> dict[str, Any]:
        """A page of rows. Raises: TidegateError ARGUMENT_INVALID, POLICY_MASKED, TABLE_UNKNOWN;
        as the gate."""
        source = self._calls.source(caller, body.source)
        check_sql(source, "its tables cannot be paged through")
        table, _ = await self._calls.table(caller, body, body.table)
        dialect = source.dialect
        order = order_of(
            table, [(each.column, each.direction == "desc") for each in body.sort], dialect
        )
        conditions = conditions_of(body, table, dialect)
        cursor = _read_cursor(body.after, order)
        after = None if cursor is None or cursor.values is None else values_of(cursor.values)
        text = page_statement(
            table,
            order,
            conditions,
            dialect,
            limit=body.limit + 1,
            after=after,
            offset=cursor.rows if cursor is not None and after is None else 0,
        )
        sink = _PageSink(order, body.limit)
        request = ReadRows(
            Statement(text),
            limits=self._calls.row_limits(body.limit + 1),
            database=body.database,
            sink=sink,
        )
        page, call_id = await self._calls.ask(caller, request, body.source, Page)
        begun = 0 if cursor is None else cursor.rows
        more = _next_cursor(sink, order, begun) if sink.more else None
        masked = {each.name for each in table.columns if each.masked}
        return {
            "columns": [column_fields(each, masked=each.name in masked) for each in page.columns],
            "rows": sink.rows,
            "keys": sink.keys,
            "next": more,
            "paging": "keyset" if order.by_key and (after is not None or begun == 0) else "offset",
            "warnings": _warnings(body, table, order, page),
            "elapsed_ms": round(page.elapsed_ms, 1),
            "call_id": call_id,
        }

    async def count(self, body: Narrowed, caller: Caller) -> dict[str, Any]:
        """How many rows there are; the database's estimate of a whole table that takes longer to
        count than a statement may."""
        source = self._calls.source(caller, body.source)
        check_sql(source, "its tables cannot be paged through")
        table, _ = await self._calls.table(caller, body, body.table)
        conditions = conditions_of(body, table, source.dialect)
        text = f"SELECT count(*) FROM {qualified(table.schema, table.name, source.dialect)}"
        if conditions:
            text += f" WHERE {' AND '.join([f'({each})' for each in conditions])}"
        request = ReadRows(
            Statement(text), limits=self._calls.row_limits(1), database=body.database, cells="text"
        )
        try:
            # The page asks for the size of a table by itself; a condition is asked by a person.
            tool = "" if body.filters else "count"
            page, _ = await self._calls.ask(caller, request, body.source, Page, tool=tool)
        except TidegateError as error:
            estimate = table.approximate_rows
            if error.code is not Code.LIMIT_TIME or body.filters or estimate is None:
                raise
            return {"count": estimate, "approximate": True}
        ((count,),) = msgspec.json.decode(page.rows, type=list[list[str]])
        return {"count": int(count), "approximate": False}

    async def cell(self, body: CellOf, caller: Caller) -> dict[str, Any]:
        """A whole cell, as far as 5 MB go. Raises: TidegateError ARGUMENT_INVALID if there is no
        such row."""
        source = self._calls.source(caller, body.source)
        check_sql(source, "its tables cannot be paged through")
        table, _ = await self._calls.table(caller, body, body.table)
        dialect = source.dialect
        if not body.key:
            raise TidegateError(Code.ARGUMENT_INVALID, "The request names no row")
        if body.column not in [each.name for each in table.columns]:
            raise TidegateError(Code.ARGUMENT_INVALID, f"No column {body.column[:80]!r}")
        conditions = [
            f"{identifier(name, dialect)} = {_key_literal(found, value, dialect)}"
            for name, value in body.key.items()
            if (found := visible_column(table, name, "found by"))
        ]
        text = (
            f"SELECT {identifier(body.column, dialect)}"
            f" FROM {qualified(table.schema, table.name, dialect)}"
            f" WHERE {' AND '.join(conditions)}"
        )
        sink = ValueSink()
        request = ReadRows(
            Statement(find(dialect).limited(text, 1)),
            limits=self._calls.row_limits(1),
            database=body.database,
            sink=sink,
        )
        await self._calls.ask(caller, request, body.source, Page)
        if not sink.values:
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no such row any more")
        return whole_cell(sink.values[0])


def conditions_of(body: Narrowed, table: Table, dialect: str) -> list[str]:
    """The filters as SQL conditions that all hold. Raises: TidegateError ARGUMENT_INVALID,
    POLICY_MASKED."""
    written = [_condition(each, table, dialect) for each in body.filters]
    if body.logic == "or" and len(written) > 1:
        return [" OR ".join([f"({each})" for each in written])]
    return written


def whole_cell(value: Any) -> dict[str, Any]:
    """A value whole, cut only at 5 MB."""
    if value is None:
        return {"text": None, "bytes": 0, "binary": False}
    binary = isinstance(value, (bytes, bytearray, memoryview))
    shown = text_of(value)
    size = len(shown) // 2 if binary else len(shown.encode())
    return {"text": shown[:MOST_CELL], "bytes": size, "binary": binary}


class ValueSink:
    """Takes the first value of each row (`model.results.RowSink`)."""

    writer = None

    def __init__(self) -> None:
        self.values: list[Any] = []

    def begin(self, columns: tuple[Column, ...]) -> None:
        """Nothing is made of the columns."""

    async def write(self, rows: Sequence[Sequence[Any]]) -> None:
        self.values += [row[0] for row in rows]


class _PageSink:
    """Makes cells of rows as they come (`model.results.RowSink`): what is not shown of a value is
    not kept. It waits for rows, so that few large ones are in memory at a time."""

    writer = None

    def __init__(self, order: PageOrder, limit: int) -> None:
        self._order = order
        self._limit = limit
        self._key: list[int] = []
        self._terms: list[int] = []
        self.rows: list[list[Any]] = []
        self.keys: list[list[str]] = []
        self.last: list[Any] = []
        self.more = False

    def begin(self, columns: tuple[Column, ...]) -> None:
        places = {column.name: place for place, column in enumerate(columns)}
        self._key = [places[name] for name in self._order.key]
        self._terms = [places[term.column.name] for term in self._order.terms]

    async def write(self, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            if len(self.rows) == self._limit:
                self.more = True
                return
            self.rows.append([cell_of(value) for value in row])
            key = [row[place] for place in self._key]
            # SQLite takes NULL in a key, which then names no row.
            is_named = all(value is not None for value in key)
            self.keys.append([text_of(value) for value in key] if is_named else [])
            self.last = [row[place] for place in self._terms]


def _condition(filter: Filter, table: Table, dialect: str) -> str:
    column = visible_column(table, filter.column, "filtered by")
    name, value = identifier(column.name, dialect), filter.value
    if filter.operator in ("is null", "is not null"):
        return condition(name, _OPERATORS[filter.operator], None, dialect)
    if filter.operator == "in":
        values = value.split(",") if isinstance(value, str) else value or []
        values = [each.strip() for each in values] if isinstance(value, str) else values
        if not 1 <= len(values) <= MOST_VALUES:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The filter on {column.name} takes 1 to {MOST_VALUES} values",
            )
        listed = ", ".join([literal_of(each, column, dialect) for each in values])
        return f"{name} IN ({listed})"
    if not isinstance(value, str):
        raise TidegateError(Code.ARGUMENT_INVALID, f"The filter on {column.name} needs a value")
    operator = _OPERATORS[filter.operator]
    if operator in ("contains", "starts_with"):
        return condition(name, operator, value, dialect, folded=True)
    if operator == "between":
        if filter.second is None:
            raise TidegateError(
                Code.ARGUMENT_INVALID, f"The filter on {column.name} needs a second value"
            )
        first, second = (literal_of(each, column, dialect) for each in (value, filter.second))
        return f"{name} BETWEEN {first} AND {second}"
    sign = {"!=": "<>"}.get(filter.operator, filter.operator)
    return f"{name} {sign} {literal_of(value, column, dialect)}"


def literal_of(value: str, column: ColumnInfo, dialect: str) -> str:
    """A text as a literal of the column's type. Raises: TidegateError ARGUMENT_INVALID."""
    kind = read_type(column.type)[0]
    rules = find(dialect)
    if "\0" in value:
        raise TidegateError(Code.ARGUMENT_INVALID, f"A value for {column.name} holds NUL")
    if kind == "bytes":
        try:
            return rules.bytes_literal(bytes.fromhex(value.removeprefix("\\x")))
        except ValueError:
            raise _no_value(value, column, "bytes in hexadecimal, such as 00ff") from None
    if kind == "boolean":
        word = value.strip().lower()
        if word not in _BOOLEANS:
            raise _no_value(value, column, "true or false")
        return rules.literal(_BOOLEANS[word])
    if kind in ("integer", "decimal", "float"):
        return _number(value, column, dialect, exact=kind != "float")
    return rules.text_literal(value)


_BOOLEANS = {
    **dict.fromkeys(("true", "t", "1", "yes"), True),
    **dict.fromkeys(("false", "f", "0", "no"), False),
}


def _number(value: str, column: ColumnInfo, dialect: str, *, exact: bool) -> str:
    rules = find(dialect)
    if rules.untyped_columns and not _is_number(value):
        return rules.text_literal(value)  # its columns hold anything
    try:
        number = Decimal(value.strip())
    except InvalidOperation:
        raise _no_value(value, column, "a number") from None
    if abs(number.adjusted()) > 400:
        raise _no_value(value, column, "a number of that size")
    if exact and number.is_finite():
        return rules.literal(number)
    return exact_literal(float(number), dialect)


def _is_number(value: str) -> bool:
    try:
        return Decimal(value.strip()).is_finite()
    except InvalidOperation:
        return False


def _no_value(value: str, column: ColumnInfo, wanted: str) -> TidegateError:
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"{value[:80]!r} is no value of {column.name} ({column.type}): it takes {wanted}",
    )


def _key_literal(column: ColumnInfo, value: str, dialect: str) -> str:
    if find(dialect).untyped_columns and not column.type and _is_number(value):
        # The column says nothing of its values: the key's text is the number, if it is one.
        return find(dialect).literal(Decimal(value))
    return literal_of(value, column, dialect)


def _warnings(body: Rows, table: Table, order: PageOrder, page: Page) -> list[str]:
    warnings: list[str] = []
    rows = table.approximate_rows
    is_table = "view" not in table.kind
    if body.sort and not order.indexed and (rows is None or rows >= BIG) and is_table:
        names = ", ".join([each.column for each in body.sort])
        size = "" if rows is None else f" of about {rows:,} rows"
        warnings.append(f"The table{size} has no index by {names}: each page sorts all of it.")
    if not order.by_key and not order.stable:
        key = [each for each in table.columns if each.key]
        lack = "table has no key"
        if key:
            is_masked = any(each.masked for each in key)
            lack = f"key of the table {'is masked' if is_masked else 'may be NULL'}"
        warnings.append(f"The {lack}: its pages may show a row twice, or not at all.")
    note = page_note(page)
    return [*warnings, note] if note else warnings


def _order_digest(order: PageOrder) -> str:
    text = msgspec.json.encode([(term.column.name, term.descending) for term in order.terms])
    return sha256(text).hexdigest()[:12]


def _next_cursor(sink: _PageSink, order: PageOrder, begun: int) -> str:
    values = None
    if order.by_key and pages_by_values(sink.last):
        values = [_tagged(value) for value in sink.last]
    cursor = Cursor(_order_digest(order), begun + len(sink.rows), values)
    return urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def _read_cursor(text: str | None, order: PageOrder) -> Cursor | None:
    """Raises: TidegateError ARGUMENT_INVALID for one that is not of this order."""
    if text is None:
        return None
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4)) if len(text) < _CURSOR_BYTES else b""
        cursor = decode_json(raw, Cursor)
    except (ValueError, RecursionError):
        raise TidegateError(Code.ARGUMENT_INVALID, "`after` is no place in these rows") from None
    fits = cursor.values is None or len(cursor.values) == len(order.terms)
    if cursor.order != _order_digest(order) or not fits or cursor.rows < 0:
        raise TidegateError(Code.ARGUMENT_INVALID, "`after` is a place in rows of another order")
    return cursor


def _tagged(value: Any) -> tuple[str, str]:
    """A value with its type, so that it comes back as it was."""
    if value is None:
        return "n", ""
    if isinstance(value, bool):
        return "o", str(int(value))
    if isinstance(value, int):
        return "i", str(int(value))
    if isinstance(value, float):
        return "f", repr(value)
    if isinstance(value, Decimal):
        return "d", str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "b", bytes(cast("bytes", value)).hex()
    if isinstance(value, datetime.timedelta):
        return "p", str(value // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.datetime):
        return "s", value.isoformat(" ")
    return "s", str(value)


def values_of(tagged: Sequence[tuple[str, str]]) -> list[Any]:
    """The values that `_tagged` wrote. Raises: TidegateError ARGUMENT_INVALID."""
    try:
        return [_READERS[tag](text) for tag, text in tagged]
    except (KeyError, ValueError, ArithmeticError, OverflowError):
        raise TidegateError(Code.ARGUMENT_INVALID, "`after` is no place in these rows") from None


def _none(text: str) -> None:
    return None


def _truth(text: str) -> bool:
    return bool(int(text))


def _span(text: str) -> datetime.timedelta:
    return datetime.timedelta(microseconds=int(text))


_READERS: Mapping[str, Any] = {
    "n": _none,
    "o": _truth,
    "i": int,
    "f": float,
    "d": Decimal,
    "b": bytes.fromhex,
    "p": _span,
    "s": str,
}
