"""Statements for pages of a table: in every dialect reads that put each row in one place."""

from __future__ import annotations

import pytest

from tidegate.model.schema import ColumnInfo, Table
from tidegate.model.statements import Effect
from tidegate.products.console.row_pages import order_of, page_statement
from tidegate.sql.dialects import DIALECTS, find
from tidegate.sql.judge import judge

COLUMNS = (
    ColumnInfo("id", "integer", nullable=False, key=1),
    ColumnInfo("town", "varchar(20)"),
    ColumnInfo("at", "timestamp"),
    ColumnInfo("note", "clob"),
)
KEYED = Table("s", "t", "table", COLUMNS)
NAMED = Table("s", "t", "table", (ColumnInfo("code", "varchar(9)", key=1), *COLUMNS[1:]))
KEYLESS = Table("s", "t", "table", COLUMNS[1:])
SORTS = ([], [("town", False)], [("at", True)], [("town", True), ("at", False)])


def terms(table: Table, sort: list[tuple[str, bool]], dialect: str) -> list[str]:
    return [each.column.name for each in order_of(table, sort, dialect).terms]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_page_of_any_table_is_a_read_in_every_dialect(dialect: str) -> None:
    for table in (KEYED, NAMED, KEYLESS):
        for sort in SORTS:
            order = order_of(table, sort, dialect)
            for offset in (0, 7):
                text = page_statement(table, order, [], dialect, limit=8, offset=offset)
                found = judge(text, dialect)
                assert found.effect is Effect.READ, (text, found.reason)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_rows_that_tie_in_a_sort_are_told_apart_by_the_key_in_every_dialect(dialect: str) -> None:
    for sort in SORTS:
        assert "id" in terms(KEYED, sort, dialect), sort
    if not find(dialect).untyped_columns:  # where a key may be NULL, it tells no rows apart
        assert all("code" in terms(NAMED, sort, dialect) for sort in SORTS)
    assert order_of(KEYED, [], dialect).by_key


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_rows_without_a_key_are_told_apart_by_what_every_database_sorts(dialect: str) -> None:
    assert terms(KEYLESS, [("at", False)], dialect)[:2] == ["at", "town"]
    if find(dialect).ordered_kinds is None and not find(dialect).untyped_columns:
        assert "note" not in terms(KEYLESS, [("at", False)], dialect)


def test_where_the_order_of_null_is_not_known_no_page_begins_behind_one() -> None:
    nullable = Table("s", "t", "table", (COLUMNS[0], ColumnInfo("n", "integer")))
    assert not order_of(nullable, [("n", False)], "h2").by_key
    assert order_of(nullable, [("n", False)], "postgres").by_key


@pytest.mark.needs("jdbc")
def test_derby_takes_no_limit_and_is_sent_none() -> None:
    text = page_statement(KEYED, order_of(KEYED, [], "derby"), [], "derby", limit=8, offset=3)
    assert text.endswith("OFFSET 3 ROWS FETCH NEXT 8 ROWS ONLY") and "LIMIT" not in text


@pytest.mark.needs("cloud")
def test_the_schema_of_a_provider_is_a_path_of_names() -> None:
    table = Table("desk.tickets", "open", "table", (ColumnInfo("id", "TEXT"),))
    text = page_statement(table, order_of(table, [], "cloud"), [], "cloud", limit=2)
    assert text == 'SELECT "id" FROM "desk"."tickets"."open" LIMIT 2'
