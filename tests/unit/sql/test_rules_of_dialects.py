"""Where dialects read the same text in different ways, each reads it as its database does."""

from __future__ import annotations

import pytest

from tidegate.sql.dialects import find
from tidegate.sql.judge import judge


@pytest.mark.parametrize(
    ("dialect", "tables"),
    [("postgres", ("b",)), ("mysql", ("b",)), ("duckdb", ("b",)), ("default", ("b",)),
     ("sqlite", ())],
)  # fmt: skip
def test_a_common_table_that_comes_later_is_no_table_in_sqlite_alone(
    dialect: str, tables: tuple[str, ...]
) -> None:
    text = "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a"
    assert judge(text, dialect).tables == tables


@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
def test_a_backslash_in_an_escape_string_hides_no_second_statement(dialect: str) -> None:
    assert judge(r"SELECT E'\''; DROP TABLE t --'", dialect).rule == "text.statements"
    assert judge(r"SELECT E'\'; DROP TABLE t --'", dialect).effect.label == "read"


@pytest.mark.needs("duckdb", "mysql")
def test_a_function_as_a_method_is_known_in_duckdb_alone() -> None:
    for text in ("SELECT name.upper() FROM t", "SELECT t.name.upper() FROM t"):
        assert judge(text, "duckdb").functions == ("upper",)
        for dialect in ("postgres", "sqlite", "mysql", "default"):
            assert judge(text, dialect).rule == "function.upper"


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "mysql", "spark"])
@pytest.mark.parametrize("text", ["TABLE t", "VALUES (1)", "(SELECT 1)"])
def test_each_form_of_a_query_reads(dialect: str, text: str) -> None:
    assert judge(text, dialect).effect.label == "read"


@pytest.mark.parametrize(
    ("dialect", "operator"),
    [(name, key) for name in ("postgres", "duckdb") for key in sorted(find(name).stand_ins)],
)
def test_an_operator_that_the_parser_does_not_know_is_read_before_and_between_operands(
    dialect: str, operator: str
) -> None:
    for text in (
        f"SELECT {operator} a FROM t",
        f"SELECT 1 FROM t WHERE {operator} a",
        f"SELECT 1 FROM t WHERE b AND {operator} a",
        f"SELECT 1 FROM t WHERE b {operator} a",
        f"SELECT CASE WHEN {operator} a THEN {operator} b ELSE {operator} c END FROM t",
        f"SELECT ({operator} a), (a) {operator} b FROM t",
    ):
        judgement = judge(text, dialect)
        assert (judgement.effect.label, judgement.tables) == ("read", ("t",)), text
        refused = judge(text.replace(f"{operator} a", f"{operator} unlisted(a)"), dialect)
        assert refused.rule == "function.unlisted", text
