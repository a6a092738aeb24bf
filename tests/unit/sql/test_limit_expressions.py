"""LIMIT and OFFSET take expressions, and SHOW tells nothing of other callers."""

from __future__ import annotations

import pytest

from tidegate.errors import Code
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

LIMITS = (
    "5 % 3",
    "5 %3 OFFSET 7 % 2",
    "(SELECT 3)",
    "2 % 3, 4 % 3",
    "-1",
    "~1 | 2",
    "length('abc')",
)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
@pytest.mark.parametrize("limit", ["5 % 3", "5 % 3 OFFSET 7 % 2", "length('abc') % 2"])
def test_limit_takes_the_remainder_of_a_division(dialect: str, limit: str) -> None:
    query = f"SELECT a FROM t ORDER BY a LIMIT {limit}"
    assert judge(query, dialect).effect is Effect.READ
    assert judge(f"DELETE FROM t WHERE a IN ({query})", dialect).effect is Effect.WRITE
    assert judge(f"SELECT * FROM ({query}) AS x WHERE a % 2 = 0", dialect).effect is Effect.READ


@pytest.mark.parametrize("limit", LIMITS)
def test_limit_of_sqlite_takes_any_expression(limit: str) -> None:
    query = f"SELECT a FROM t LIMIT {limit}"
    assert judge(query, "sqlite").effect is Effect.READ
    assert (
        judge(f"WITH x AS ({query}) SELECT * FROM x LIMIT {limit}", "sqlite").effect is Effect.READ
    )


@pytest.mark.needs("duckdb")
def test_a_share_of_rows_stays_one_where_limit_means_that() -> None:
    assert judge("SELECT a FROM t LIMIT 5 %", "duckdb").effect is Effect.READ
    assert judge("SELECT a FROM t LIMIT 5 % OFFSET 1", "duckdb").effect is Effect.READ


@pytest.mark.parametrize("shown", ["ENGINES", "STORAGE ENGINES", "PLUGINS", "PRIVILEGES"])
@pytest.mark.parametrize("dialect", ["mysql", "mariadb"])
def test_show_of_the_server_itself_only_reads(dialect: str, shown: str) -> None:
    assert judge(f"SHOW {shown}", dialect).effect is Effect.READ


@pytest.mark.parametrize(
    "shown", ["PROCESSLIST", "FULL PROCESSLIST", "GRANTS", "GRANTS FOR root", "CREATE USER root"]
)
@pytest.mark.parametrize("dialect", ["mysql", "mariadb"])
def test_show_of_other_callers_statements_and_of_accounts_is_refused(
    dialect: str, shown: str
) -> None:
    judgement = judge(f"SHOW {shown}", dialect)
    assert judgement.effect is Effect.UNKNOWN
    assert judgement.code == Code.POLICY_DENIED.value
