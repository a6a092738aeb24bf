"""Rows from all over a table are asked for in words that the database of the table has."""

from __future__ import annotations

import pytest

from tidegate.model.schema import ColumnInfo, Table
from tidegate.sql.dialects import DIALECTS
from tidegate.sql.samples import rows_all_over

OF_DATABASES = {
    "postgres": "TABLESAMPLE SYSTEM",
    "postgresql": "TABLESAMPLE SYSTEM",
    "duckdb": "USING SAMPLE",
}
LOG = Table("", "log", "table", (ColumnInfo("at", "timestamp", True),), approximate_rows=1_000_000)


@pytest.mark.parametrize("dialect", sorted({*DIALECTS, "of another product"}))
def test_a_sample_is_asked_for_in_words_of_the_database(dialect: str) -> None:
    text = rows_all_over(LOG, ["at"], 100, dialect) or ""
    used = [words for words in ("TABLESAMPLE SYSTEM", "USING SAMPLE") if words in text]
    assert used == [words for name, words in OF_DATABASES.items() if name == dialect]
