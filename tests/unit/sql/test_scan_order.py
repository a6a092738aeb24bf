"""Which indexes of a table could tell masked values by the order of its rows."""

from __future__ import annotations

import pytest

from tidegate.model.schema import ColumnInfo, Index, Table
from tidegate.sql.masking.scan_order import telling_indexes

MASKS = ("salary", "home town")
COLUMNS = ("id", "salary", "home town", "SALARY", "my home town")


def tells(index: Index) -> bool:
    columns = tuple(ColumnInfo(name, "text", True) for name in COLUMNS)
    table = Table("", "people", "table", columns, indexes=(index,))
    return telling_indexes(table, MASKS, ()) == [index]


@pytest.mark.parametrize("column", [*MASKS, "lower(salary)", 'lower("home town")', "abs(SALARY)"])
def test_an_index_that_holds_a_masked_column_or_computes_with_it_tells(column: str) -> None:
    assert tells(Index("i", (column,)))
    assert tells(Index("i", ("id", column)))
    assert tells(Index("i", ("id",), included=(column,)))


@pytest.mark.parametrize("column", ["", "<expression>"])
def test_an_index_of_what_is_not_known_and_one_of_some_rows_tell(column: str) -> None:
    assert tells(Index("i", (column,)))
    assert tells(Index("i", ("id",), usable=False))


@pytest.mark.parametrize("column", ["id", "SALARY", "my home town", "abs(id)"])
def test_an_index_of_other_columns_tells_nothing_however_alike_their_names_are(column: str) -> None:
    assert not tells(Index("i", (column,)))
