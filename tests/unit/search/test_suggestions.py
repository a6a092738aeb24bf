"""Hints after mistakes are lines of the server, whatever the database's names hold."""

from __future__ import annotations

from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.search.suggestions import hint_on

COLUMNS = (ColumnInfo("id", "INT"), ColumnInfo("Closed By", "INT"), ColumnInfo("st\nate", "TEXT"))
CATALOG = Catalog(
    "shop", "main", ("main",), (Table("main", "t", "table", COLUMNS),), "1", dialect="sqlite"
)


def test_the_nearest_name_is_written_as_a_statement_takes_it() -> None:
    said = hint_on("no such column: closed", "SELECT closed FROM t", CATALOG)
    assert said == 'Nearest: t."Closed By" int.'


def test_a_name_with_a_line_break_stays_on_its_line() -> None:
    assert hint_on("no such column: zzz", "SELECT zzz FROM t", CATALOG) == (
        't has id, "Closed By", "st·ate".'
    )
