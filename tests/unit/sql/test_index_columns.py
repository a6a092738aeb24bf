"""The columns that the text of an index names: words, quoted names, strings, and nothing else."""

from __future__ import annotations

import pytest

from tidegate.sql.dialects import find
from tidegate.sql.index_columns import index_columns

COLUMNS = ("a", "B", "the c", "1", "columns")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("CREATE UNIQUE INDEX b ON t (A)", ("a",)),
        ('CREATE UNIQUE INDEX i ON t (a, "the c") WHERE b > 1', ("a", "B", "the c")),
        ("CREATE UNIQUE INDEX i ON t (lower(a) || '1')", ("a", "1")),
        ("CREATE UNIQUE INDEX i ON t (a /* b */)", ("a",)),
        ("CREATE UNIQUE INDEX i ON t (columns)", ("columns",)),
        ("CREATE UNIQUE INDEX i ON t (a) WHERE rowid > 5", None),
        ("CREATE UNIQUE INDEX i ON t (a) WHERE t IS NOT NULL", None),
        ("CREATE UNIQUE INDEX i ON t", None),
        ("CREATE UNIQUE INDEX i ON t ('a)", None),
    ],
)
def test_an_index_names_its_columns_or_it_is_not_known_which(
    text: str, named: tuple[str, ...] | None
) -> None:
    assert index_columns(text, "t", COLUMNS, find("sqlite")) == named
