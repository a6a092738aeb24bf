"""A query of one table says which of its columns are the table's, or why that is unknown."""

import pytest

from tidegate.sql.plain_results import PlainResult, plain_result

COLUMNS = ["id", "name", "Total"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT * FROM t", ["id", "name", "Total"]),
        ("select t.*, id FROM t WHERE id > 1 ORDER BY name LIMIT 3", ["id", "name", "Total", "id"]),
        ("SELECT name AS n, upper(name), ID i FROM main.t AS x", ["name", None, "id"]),
        ("SELECT x.name, x.id + 1, 'id', 1 FROM t x", ["name", None, None, None]),
        ("SELECT (SELECT max(id) FROM t), id FROM t", [None, "id"]),
        ("SELECT total, other FROM t;", ["Total", None]),
    ],
)
def test_what_a_column_of_the_result_is(text: str, columns: list[str | None]) -> None:
    found = plain_result(text, "sqlite")
    assert isinstance(found, PlainResult) and found.table == "t"
    assert found.columns_of(COLUMNS) == columns


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT id FROM t",
        "SELECT id FROM t, u",
        "SELECT id FROM t JOIN u ON u.id = t.id",
        "SELECT id FROM t LEFT JOIN u USING (id)",
        "SELECT id FROM t GROUP BY id",
        "SELECT id FROM t UNION SELECT id FROM u",
        "SELECT id FROM (SELECT id FROM t) AS s",
        "WITH t AS (SELECT 1 AS id) SELECT id FROM t",
        "SELECT id FROM t TABLESAMPLE SYSTEM (1)",
        "SELECT id FROM f(1)",
        "SELECT 1",
        "UPDATE t SET id = 1",
        "SELECT 'open",
    ],
)
def test_what_is_not_of_one_table(text: str) -> None:
    assert isinstance(plain_result(text, "postgres"), str)


def test_names_are_compared_as_the_database_does() -> None:
    found = plain_result('SELECT "Total", TOTAL FROM S."T"', "postgres")
    assert isinstance(found, PlainResult)
    assert (found.schema, found.table) == ("s", "T")
    assert found.columns_of(COLUMNS) == ["Total", None]
