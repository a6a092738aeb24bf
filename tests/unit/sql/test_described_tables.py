"""Statements that describe tables, under rules that hide data: left as they are, rewritten, or
refused for what they would tell."""

from __future__ import annotations

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.model.statements import Statement
from tidegate.sql.masking.rewrite import rewrite

KEY = "0123456789abcdef0123456789abcdef"


def table(name: str, *columns: str) -> Table:
    return Table("public", name, "table", tuple(ColumnInfo(each, "text") for each in columns))


CATALOG = Catalog(
    "db", "public", ("public",), (table("people", "id", "email"), table("places", "id")), "1"
)
RULES = (
    DataRules(masks=(("people.email", "nothing"),)),
    DataRules(filters=(("people", "id = 'a'"),)),
    DataRules(only=("places",)),
)
"""A mask, a filter, and a list of tables."""
_WORDS = {Code.POLICY_MASKED: "masked", Code.POLICY_TABLE: "table"}


def outcome(text: str, dialect: str, rules: DataRules) -> str:
    try:
        written = rewrite(Statement(text), dialect, rules, CATALOG, KEY).text
    except TidegateError as refusal:
        return _WORDS[refusal.code]
    return "same" if written == text else "hidden"


@pytest.mark.parametrize(
    ("dialect", "text", "outcomes"),
    [
        ("sqlite", "PRAGMA table_info(people)", "same same table"),
        ("sqlite", "PRAGMA main.table_info(people)", "same same table"),
        ("sqlite", "PRAGMA table_info('people')", "same same table"),
        ("sqlite", "PRAGMA integrity_check", "masked masked table"),
        ("sqlite", "PRAGMA main.integrity_check", "masked masked table"),
        ("sqlite", "PRAGMA", "masked masked masked"),
        ("sqlite", "SELECT id FROM places WHERE id IN people", "masked masked masked"),
        ("sqlite", "SELECT id FROM places WHERE id IN (1)", "same same same"),
        ("mysql", "SHOW TABLES", "same same table"),
        ("mysql", "SHOW FULL TABLES", "same same table"),
        ("mysql", "SHOW FULL COLUMNS FROM people", "same same table"),
        ("mysql", "SHOW FULL PROCESSLIST", "masked masked masked"),
        ("mysql", "SHOW CREATE TABLE people", "same masked table"),
        ("mysql", "SHOW CREATE TABLE places", "same same table"),
        ("mysql", "SHOW COLUMNS FROM people", "same same table"),
        ("mysql", "SHOW INDEX FROM people", "masked masked table"),
        ("mysql", "SHOW INDEX FROM places", "same same table"),
        ("mysql", "SHOW TABLE STATUS", "masked masked table"),
        ("mysql", "SHOW VARIABLES", "same same same"),
        ("mysql", "DESCRIBE people", "same same table"),
        ("mysql", "DESCRIBE public.people", "same same table"),
        ("mysql", "DESCRIBE people email", "same same table"),
        ("mysql", "DESC places", "same same same"),
        ("mysql", "EXPLAIN people", "same same table"),
        ("mysql", "EXPLAIN SELECT id FROM people", "masked masked table"),
        ("mysql", "EXPLAIN SELECT id FROM places", "same same same"),
        ("duckdb", "DESCRIBE", "same same table"),
        ("duckdb", "DESCRIBE people", "hidden hidden table"),
        ("duckdb", "DESCRIBE TABLE people", "hidden hidden table"),
        ("duckdb", "DESCRIBE SELECT id FROM people", "hidden hidden table"),
        ("duckdb", "DESCRIBE places", "same same same"),
        ("duckdb", "SUMMARIZE people", "hidden hidden table"),
        ("duckdb", "SUMMARIZE SELECT * FROM people", "hidden hidden table"),
        ("duckdb", "SHOW TABLES", "same same table"),
        ("duckdb", "PRAGMA table_info('people')", "same same table"),
        ("duckdb", "PRAGMA database_size", "masked masked table"),
        ("duckdb", "FROM people", "hidden hidden table"),
        ("duckdb", "TABLE people", "hidden hidden table"),
        ("postgres", "SHOW server_version", "same same same"),
        ("postgres", "TABLE people", "hidden hidden table"),
        ("postgres", "VALUES (1)", "same same same"),
        ("postgres", "VALUES ((SELECT email FROM people))", "hidden hidden table"),
        ("postgres", "EXPLAIN SELECT id FROM people", "masked masked table"),
        ("postgres", "EXPLAIN UPDATE people SET id = '1'", "masked masked masked"),
    ],
)
def test_a_statement_tells_of_tables_only_what_each_kind_of_rule_lets_it(
    dialect: str, text: str, outcomes: str
) -> None:
    assert " ".join(outcome(text, dialect, rules) for rules in RULES) == outcomes


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("WITH people AS (SELECT id FROM people) SELECT * FROM people", "hidden hidden table"),
        ("WITH p AS (SELECT id FROM people) SELECT * FROM p", "hidden hidden table"),
        ("WITH p AS (SELECT '1' AS id) SELECT * FROM p", "same same same"),
        (
            "WITH RECURSIVE r AS (SELECT id FROM people UNION ALL SELECT id FROM r)"
            " SELECT * FROM r",
            "hidden hidden table",
        ),
        (
            "WITH RECURSIVE r AS (SELECT '1' AS id UNION ALL SELECT id FROM people)"
            " SELECT * FROM r",
            "hidden hidden table",
        ),
        (
            "WITH RECURSIVE r AS (SELECT '1' AS id UNION ALL SELECT id FROM r) SELECT * FROM r",
            "same same same",
        ),
        (
            "WITH RECURSIVE people AS (SELECT '1' AS id UNION ALL SELECT id FROM people)"
            " SELECT * FROM people",
            "masked masked same",
        ),
        (
            "WITH RECURSIVE people AS (SELECT id FROM people UNION ALL SELECT '1')"
            " SELECT * FROM people",
            "masked masked table",
        ),
        (
            "WITH RECURSIVE people AS (SELECT '1' AS id UNION ALL SELECT id FROM"
            " (SELECT id FROM people) p) SELECT * FROM people",
            "masked masked same",
        ),
        (
            "WITH RECURSIVE people AS (SELECT (SELECT id FROM people) AS id) SELECT * FROM people",
            "masked masked table",
        ),
        (
            "WITH RECURSIVE r AS (SELECT '1' AS id UNION ALL SELECT id FROM people)"
            ", people AS (SELECT '1' AS id) SELECT * FROM r",
            "masked masked table",
        ),
    ],
)
def test_a_common_table_is_no_table_of_its_name(text: str, outcomes: str) -> None:
    assert " ".join(outcome(text, "postgres", rules) for rules in RULES) == outcomes


@pytest.mark.parametrize(
    ("dialect", "after"),
    [
        ("postgres", "TABLESAMPLE system(1)"),
        ("postgres", "p TABLESAMPLE system(1)"),
        ("postgres", "*"),
        ("sqlite", "NOT INDEXED"),
        ("sqlite", "AS p NOT INDEXED"),
        ("sqlite", "INDEXED BY i"),
        ("mysql", "USE INDEX (i)"),
        ("mysql", "FORCE INDEX (i)"),
        ("mysql", "IGNORE INDEX (i)"),
        ("mysql", "PARTITION (p)"),
        ("mysql", "FOR SYSTEM_TIME AS OF now()"),
        ("duckdb", "AT (VERSION => 1)"),
    ],
)
def test_what_can_follow_a_table_but_no_query_is_refused_behind_a_masked_one(
    dialect: str, after: str
) -> None:
    assert outcome(f"SELECT id FROM people {after}", dialect, RULES[0]) == "masked"
    if after not in _NOT_READ:
        assert outcome(f"SELECT id FROM places {after}", dialect, RULES[0]) == "same"


_NOT_READ = ("INDEXED BY i", "AT (VERSION => 1)")
"""The parser reads these behind no table."""


def test_only_before_a_masked_table_is_refused() -> None:
    assert outcome("SELECT id FROM ONLY people", "postgres", RULES[0]) == "masked"
    assert outcome("SELECT id FROM ONLY places", "postgres", RULES[0]) == "same"
    for alias in ("p", "AS p", "AS p (a, b)"):
        assert outcome(f"SELECT 1 FROM people {alias}", "postgres", RULES[0]) == "hidden"
