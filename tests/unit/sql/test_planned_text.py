"""The part of a text that a database plans and runs."""

from __future__ import annotations

import pytest

from tidegate.sql.dialects import find
from tidegate.sql.planned_text import planned_text

Q = "SELECT a, (b) FROM t WHERE c = ';'"


@pytest.mark.parametrize(
    ("dialect", "text", "planned"),
    [
        ("postgres", Q, Q),
        ("postgres", f"  {Q} ;", Q),
        ("postgres", f"/* x */ {Q} -- EXPLAIN", f"{Q} -- EXPLAIN"),
        ("postgres", "WITH w AS (SELECT 1) SELECT * FROM w", ...),
        ("postgres", "INSERT INTO t SELECT 1", ...),
        ("postgres", "TABLE t", ...),
        ("postgres", f"EXPLAIN {Q}", None),
        ("postgres", f"EXPLAIN (FORMAT JSON) {Q}", None),
        ("postgres", f"EXPLAIN ANALYZE {Q}", Q),
        ("postgres", f"explain analyse verbose {Q}", Q),
        ("postgres", f'EXPLAIN (VERBOSE, "analyze" off, FORMAT JSON) {Q}', Q),
        ("postgres", f"COPY ({Q}) TO STDOUT (FORMAT csv)", Q),
        ("postgres", "COPY t TO STDOUT", None),
        ("postgres", f"CREATE TABLE n AS {Q}", Q),
        ("postgres", f"CREATE UNLOGGED TABLE IF NOT EXISTS n (a, b) AS {Q}", Q),
        ("postgres", f"CREATE MATERIALIZED VIEW n AS {Q}", Q),
        ("postgres", f"CREATE VIEW n AS {Q}", None),
        ("postgres", "CREATE TABLE n (a int DEFAULT (1), b text)", None),
        ("postgres", "VACUUM t", None),
        ("postgres", "SHOW work_mem", None),
        ("mariadb", f"ANALYZE {Q}", Q),
        ("mariadb", f"ANALYZE FORMAT=JSON {Q}", Q),
        ("mariadb", "ANALYZE TABLE t", None),
        ("mariadb", f"CREATE TABLE n {Q}", Q),
        ("mariadb", f"CREATE TABLE n ({Q})", f"({Q})"),
        ("mariadb", f"CREATE TABLE n (a int, b text) REPLACE {Q}", Q),
        ("mariadb", f"CREATE OR REPLACE TABLE n IGNORE (({Q}))", f"(({Q}))"),
        ("mariadb", f"CREATE TABLE n WITH w AS ({Q}) SELECT 1", f"WITH w AS ({Q}) SELECT 1"),
        ("mariadb", f"CREATE TABLE n VALUES (({Q}))", f"VALUES (({Q}))"),
        ("mariadb", "CREATE TABLE n (a int) WITH SYSTEM VERSIONING", None),
        ("mariadb", f"CREATE VIEW n AS {Q}", None),
        ("postgres", "CREATE TABLE n PARTITION OF t FOR VALUES IN (1)", None),
        ("postgres", f"CREATE TABLE n WITH (fillfactor = 10) AS {Q}", Q),
        ("postgres", "CREATE TABLE n AS EXECUTE q", None),
        ("mariadb", f"EXPLAIN FORMAT=JSON {Q}", None),
        ("duckdb", f"EXPLAIN ANALYZE {Q}", Q),
        ("duckdb", f"EXPLAIN (ANALYZE false) {Q}", Q),
        ("duckdb", "FROM t", "FROM t"),
        ("duckdb", "SUMMARIZE t", ...),
        ("duckdb", f"SUMMARIZE {Q}", ...),
        ("duckdb", f"DESCRIBE {Q}", None),
        ("duckdb", "CREATE TABLE n AS SUMMARIZE t", "SUMMARIZE t"),
        ("duckdb", f"CREATE OR REPLACE TABLE n AS {Q}", Q),
    ],
)
def test_what_runs_is_planned_and_nothing_else(
    dialect: str, text: str, planned: str | None
) -> None:
    assert planned_text(text, find(dialect)) == (text if planned is ... else planned)
