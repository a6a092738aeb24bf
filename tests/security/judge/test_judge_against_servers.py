"""The judge against what the databases themselves say of a statement before, or instead of,
running it: PostgreSQL's plan, SQLite's read-only flag of a prepared statement, MariaDB's read-only
transaction. Each is asked about every case, whatever its dialect, and about spliced texts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import apsw
import apsw.ext
import psycopg
import pytest

import support.mysql_server as mysql_server
import support.pg_grammar as pg_grammar
import support.postgres_server as postgres_server
from support.judge_cases import load
from support.judge_splices import splice
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge_uncached

SPLICED = 3_000
SHOP = """
    CREATE TABLE t (a int, b text, c text, d timestamp, id int, x int, y int, name text);
    CREATE TABLE u (id int, a int, b int, c int);
    CREATE TABLE a (id int, x int, a int); CREATE TABLE b (id int, x int);
    CREATE TABLE users (id int, name text); CREATE TABLE customers (id int, name text);
    CREATE TABLE categories (id int, parent_id int);
    CREATE TABLE orders (id int, customer_id int, total numeric, status text, created_at timestamp)
"""
LEAST = 250
"""Reads that a server must at least have understood, or the test saw nothing."""


def reads(dialect: str) -> Iterator[str]:
    """The cases and spliced texts that the judge calls reads of a dialect."""
    rng = random.Random(20_261_122)
    texts = [*(case.sql for case in load()), *(splice(rng) for _ in range(SPLICED))]
    for text in dict.fromkeys(texts):
        if judge_uncached(text, dialect).effect is Effect.READ:
            yield text


def nodes(plan: Any) -> Iterator[str]:
    """The types of all nodes of PostgreSQL's plan."""
    if isinstance(plan, list):
        for part in plan:
            yield from nodes(part)
    elif isinstance(plan, dict):
        if "Node Type" in plan:
            yield plan["Node Type"]
        for part in plan.values():
            yield from nodes(part)


class Planner:
    """Asks PostgreSQL for plans, in read-only transactions that are rolled back."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._line = connection.pgconn

    def plan(self, text: str) -> set[str] | None:
        """The types of the nodes of its plan; None if the server refuses to plan it."""
        said = self._line.exec_(f"EXPLAIN (FORMAT JSON, GENERIC_PLAN) {text}\n".encode())
        if said.error_message:
            return None
        value = said.get_value(0, 0)
        assert value is not None
        return set(nodes(json.loads(value)))

    def refusal(self, text: str) -> str:
        """The SQLSTATE with which the server refuses to run a text, empty if it does not."""
        self._line.exec_(b"BEGIN READ ONLY")
        said = self._line.exec_params(text.encode(), None)
        self._line.exec_(b"ROLLBACK")
        state = said.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b""
        return state.decode()


@pytest.fixture(scope="module")
def planner() -> Iterator[Planner]:
    server = postgres_server.shared("wheel")
    name = server.new_database()
    server.ask(SHOP, name)
    with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
        connection.execute("SET statement_timeout = '2s'")
        yield Planner(connection)
    server.drop_database(name)


def test_a_plan_tells_a_change_and_a_lock(planner: Planner) -> None:
    change = planner.plan("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x")
    assert change is not None and "ModifyTable" in change
    lock = planner.plan("SELECT * FROM t FOR UPDATE")
    assert lock is not None and "LockRows" in lock
    assert planner.refusal("SELECT * EXCLUDE (a) FROM t") == "42601"
    assert planner.refusal("SELECT 1") == ""


def test_postgres_plans_no_change_and_no_lock_in_what_is_judged_a_read(planner: Planner) -> None:
    planned = 0
    for text in reads("postgres"):
        grammar = pg_grammar.opinion(text)
        if grammar is None or text.lstrip(" (").upper().startswith(("EXPLAIN", "SHOW")):
            continue
        found = planner.plan(text)
        planned += found is not None
        assert not {"ModifyTable", "LockRows"} & (found or set()), text
    assert planned > LEAST


def test_postgres_refuses_the_syntax_of_a_read_that_its_grammar_does_not_know(
    planner: Planner,
) -> None:
    strange = [text for text in reads("postgres") if pg_grammar.opinion(text) is None]
    assert strange
    for text in strange:
        assert planner.refusal(text).startswith(("42", "0A", "22")), text


ACTING = ("PRAGMA JOURNAL_MODE", "PRAGMA MAIN.JOURNAL_MODE")
"""SQLite has no flag of reading for these; without a value they tell the mode and set nothing."""


def test_sqlite_prepares_what_is_judged_a_read_as_read_only() -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(SHOP)
    prepared = 0
    for text in reads("sqlite"):
        try:
            info = apsw.ext.query_info(connection, text)
        except (apsw.Error, ValueError):
            continue
        prepared += 1
        bare = " ".join(text.upper().replace('"', " ").split())
        assert info.is_readonly or info.is_explain or bare.startswith(ACTING), text
        rest = info.query_remaining
        assert not rest or not apsw.ext.query_info(connection, rest).has_vdbe, text
    assert prepared > LEAST
    assert not apsw.ext.query_info(connection, "DELETE FROM t").is_readonly


READ_ONLY_TRANSACTION = 1792


@pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")
def test_mariadb_lets_what_is_judged_a_read_run_in_a_read_only_transaction() -> None:
    server = mysql_server.shared()
    name = server.new_database()
    server.script(SHOP, name)
    # It will not even plan a change there.
    texts = [text for text in reads("mysql") if not text.lstrip().upper().startswith("EXPLAIN")]
    reported = server.connected(_in_read_only_transactions(texts), name)
    for text, code, still_open in reported:
        assert code != READ_ONLY_TRANSACTION and still_open, (text, code)
    assert sum(code == 0 for _, code, _ in reported) > LEAST
    changes = ["DELETE FROM t", "CREATE TABLE z (a int)"]
    reported = server.connected(_in_read_only_transactions(changes), name)
    assert all(code == READ_ONLY_TRANSACTION or not still_open for _, code, still_open in reported)
    server.drop_database(name)


def _in_read_only_transactions(texts: list[str]) -> Any:
    """Work that runs each text in such a transaction: its error's number, 0 for none, and whether
    the transaction outlived it (no statement that commits by itself)."""

    async def work(connection: Any) -> list[tuple[str, int, bool]]:
        cursor = connection.cursor()
        reported: list[tuple[str, int, bool]] = []
        await cursor.execute("SET SESSION max_statement_time = 0.3, sql_select_limit = 100")
        for text in texts:
            await cursor.execute("START TRANSACTION READ ONLY")
            code = 0
            try:
                await cursor.execute(text)
                await cursor.fetchall()
            except Exception as error:  # noqa: BLE001 - the driver's own classes
                code = int(error.args[0]) if isinstance(error.args[0], int) else -1
            await cursor.execute("SELECT @@in_transaction")
            reported.append((text, code, (await cursor.fetchall())[0][0] == 1))
            await cursor.execute("ROLLBACK")
        return reported

    return work
