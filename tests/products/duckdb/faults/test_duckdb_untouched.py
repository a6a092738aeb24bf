"""What is no read, DuckDB itself refuses where it may only read, with neither judge nor permit
before it. What is called a read, `tests/read_only_fuzz` runs."""

import duckdb
import pytest

from support.judge_cases import load
from tidegate.errors import TidegateError
from tidegate.model.results import Limits
from tidegate.model.statements import Effect, Statement
from tidegate.products.duckdb.engine.connection import DuckdbSession
from tidegate.products.duckdb.engine.messages import Setup
from tidegate.sql.judge import judge

SCHEMA = """
CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR, email VARCHAR, age INTEGER);
CREATE TABLE orders (id INTEGER, user_id INTEGER, amount DECIMAL(10, 2), total DOUBLE);
CREATE TABLE t (a INTEGER, b VARCHAR);
CREATE SEQUENCE s;
CREATE VIEW v AS SELECT * FROM users;
CREATE VIEW sly AS SELECT nextval('s') AS n;
CREATE MACRO m(x) AS x + 1;
INSERT INTO users SELECT i, 'user ' || i, i || '@example.org', 20 + i FROM range(10) AS n (i);
INSERT INTO orders SELECT i, i % 10, i, i FROM range(50) AS n (i);
"""
CASES = load("duckdb")
OTHERS = [case.sql for case in CASES if judge(case.sql, "duckdb").effect is not Effect.READ]

WRITES = (
    "INSERT INTO users VALUES (99, 'x', 'x', 1)",
    "WITH w AS (INSERT INTO t VALUES (1, 'x') RETURNING a) SELECT a FROM w",
    "SELECT nextval('s')",
    "CREATE TABLE more (a INTEGER)",
    "DROP VIEW v",
    "EXPLAIN ANALYZE DELETE FROM users",
)
EXPLAINED = (
    "EXPLAIN ANALYZE SELECT * FROM sly",
    "EXPLAIN (ANALYZE false, FORMAT json) SELECT * FROM sly",
    "; /* x */ explain analyze (SELECT n FROM sly)",
    "EXPLAIN ANALYZE FROM sly",
    ";; SELECT * FROM sly",
    "PIVOT sly ON n USING count(*)",
    "PIVOT t ON a USING sum(m(a))",
)
ESCAPES = (
    "SELECT * FROM read_text('{folder}/secret.txt')",
    "SELECT * FROM '{folder}/secret.csv'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY users TO '{folder}/out.csv'",
    "EXPORT DATABASE '{folder}/out'",
    "ATTACH '{folder}/other.duckdb' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET memory_limit = '1TB'",
    "SET lock_configuration = false",
    "SET temp_directory = '{folder}'",
    "SET log_query_path = '{folder}/log'",
    "CREATE SECRET x (TYPE s3)",
)


@pytest.fixture
def full_shop(shop, tmp_path, monkeypatch):
    """The shop with more in it, and files beside it that no statement may read."""
    with duckdb.connect(str(shop.path)) as connection:
        connection.execute(SCHEMA)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "secret.csv").write_text("a\nsecret\n")
    monkeypatch.chdir(tmp_path)
    return shop


async def test_duckdb_refuses_or_survives_everything_else_under_a_permit_to_read(full_shop):
    assert len(OTHERS) > 30
    async with full_shop.opened() as engine:
        before = await full_shop.digest(engine)
        for text in OTHERS:
            try:
                await full_shop.ask(engine, text, limits=Limits(max_rows=1000, timeout_s=0.2))
            except TidegateError as error:
                assert error.code.value != "internal.fault", text
            assert await full_shop.digest(engine) == before, text


async def test_the_planner_tells_of_a_write_in_a_query(full_shop):
    async with full_shop.opened() as engine:
        for text in (*WRITES[1:3], "EXPLAIN ANALYZE SELECT nextval('s')", *EXPLAINED):
            judgement = await engine.inspect(Statement(text), judge(text, "duckdb"))
            assert judgement.effect is Effect.WRITE
            assert judgement.rule == "duckdb.planner"


async def test_a_pivot_of_what_only_reads_is_a_read(full_shop):
    async with full_shop.opened() as engine:
        for text in ("PIVOT t ON a USING sum(a)", "PIVOT v ON age USING count(*)"):
            assert (
                await engine.inspect(Statement(text), judge(text, "duckdb"))
            ).effect is Effect.READ


@pytest.fixture
def session(full_shop):
    """The worker's handle without the worker: no judge, no permit, no types of statements."""
    session = DuckdbSession(Setup(str(full_shop.path), 256_000_000, 1, 0.1))
    yield session
    session.release()


@pytest.mark.parametrize("text", WRITES)
def test_the_handle_for_reading_writes_nothing(session, text):
    cursor = session.cursor("1")
    with pytest.raises(duckdb.Error, match="read-only mode"):
        cursor.execute(text)
    session.drop(cursor)


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("text", ESCAPES)
def test_no_handle_reaches_another_file_or_a_setting(session, full_shop, tmp_path, text, writes):
    before = {path.name for path in tmp_path.iterdir()}
    cursor = session.cursor("1", writes=writes)
    with pytest.raises(duckdb.Error) as caught:
        cursor.execute(text.format(folder=tmp_path)).fetchall()
    assert "secret" not in str(caught.value).replace("secret.", "").lower() or "CREATE" in text
    session.drop(cursor)
    session.release()
    assert {path.name for path in tmp_path.iterdir()} <= before


def test_nothing_of_a_statement_stays_for_the_next(session):
    cursor = session.cursor("1")
    cursor.execute("CREATE TEMP TABLE mine (a INTEGER)")
    cursor.execute("SET VARIABLE mine = 1")
    session.drop(cursor)
    cursor = session.cursor("1")
    assert cursor.execute("SELECT getvariable('mine')").fetchall() == [(None,)]
    with pytest.raises(duckdb.CatalogException):
        cursor.execute("SELECT * FROM mine")
    session.drop(cursor)
