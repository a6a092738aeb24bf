"""What is judged a read leaves MariaDB as it was: data, schema, accounts, settings and files.

First with nothing but the judge between the statements and the database: an account that may do
everything, a connection that takes several statements at once. Then with the engine's own fence and
no judgement before it, for every statement there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
from collections.abc import Iterator

import pytest

import mysql_server
from judge_cases import load
from judge_mutations import mutate
from tidegate.engines.registry import open_engine
from tidegate.errors import GateError
from tidegate.sql.judge import judge
from tidegate.sql.opinion import Refusal
from tidegate.types import (
    NEVER,
    Actor,
    Effect,
    Explain,
    Limits,
    Permit,
    Query,
    Scope,
    Source,
    Statement,
)

pytestmark = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")

SCHEMA = """
    CREATE TABLE t (a INT PRIMARY KEY, b TEXT, c DOUBLE, d DATETIME, name TEXT, x INT, y INT);
    CREATE TABLE u (id INT PRIMARY KEY, b INT, c INT);
    CREATE TABLE users (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT);
    CREATE TABLE loose (a INT) ENGINE = MyISAM;
    CREATE SEQUENCE s;
    CREATE VIEW v AS SELECT * FROM t;
    CREATE TRIGGER tr AFTER DELETE ON u FOR EACH ROW UPDATE users SET name = 'gone';
    CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1;
    CREATE PROCEDURE p() DELETE FROM u;
    CREATE VIEW sly AS SELECT f() AS a;
    INSERT INTO t VALUES (1, 'one', 1.5, '2026-01-02', 'n', 1, 2), (2, 'two', 2, NULL, 'm', 3, 4);
    INSERT INTO u VALUES (1, 2, 3);
    INSERT INTO users (name) VALUES ('ann'), ('bob');
    INSERT INTO loose VALUES (1)
"""
BATCH = 20
TIDY = "SET SESSION max_statement_time = 0.3, sql_select_limit = 200"


class Shop:
    """A database with something of everything, and a fingerprint of it and of its server."""

    def __init__(self) -> None:
        self.server = mysql_server.shared()
        self.name = self.server.new_database()
        self.server.script(SCHEMA, self.name)

    def fingerprint(self) -> str:
        ask = self.server.script
        found: list[object] = [sorted(self.server.files())]
        for name, kind in ask("SHOW FULL TABLES", self.name):
            found.append(ask(f"SHOW CREATE TABLE `{name}`", self.name))
            if kind != "VIEW":
                found.append(ask(f"SELECT * FROM `{name}`", self.name))
        found.append(ask("SELECT User, Host, Priv FROM mysql.global_priv"))
        found.append(ask("SHOW DATABASES"))
        found.append(ask("SELECT db, name, body FROM mysql.proc WHERE db <> 'sys'"))
        found.append(ask("SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid%'"))
        return hashlib.sha256(repr(found).encode()).hexdigest()

    def run(self, texts: list[str]) -> list[str]:
        """Run the texts on one connection; what is left of its state behind them."""
        return self.server.connected(self._work(texts), self.name)

    def _work(self, texts: list[str]):
        async def work(connection) -> list[str]:
            cursor = connection.cursor()
            await cursor.execute(TIDY)
            await cursor.fetchall()
            for text in texts:
                try:
                    await cursor.execute(text)
                    await cursor.fetchall()
                    while await cursor.nextset():
                        await cursor.fetchall()
                except Exception as error:
                    if not connection.connected:
                        raise AssertionError(text) from error
            await cursor.execute("SHOW SESSION VARIABLES")
            state = [row for row in await cursor.fetchall() if row[0] not in _MOVING]
            await cursor.execute("SELECT DATABASE(), IS_USED_LOCK('x'), IS_USED_LOCK('a'), @a, @x")
            return [repr(row) for row in (*state, *await cursor.fetchall())]

        return work


_MOVING = {
    *("timestamp", "pseudo_thread_id", "rand_seed1", "rand_seed2", "warning_count", "error_count"),
    *("last_gtid", "gtid_seq_no", "in_transaction"),
}


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    shop = Shop()
    yield shop
    shop.server.drop_database(shop.name)


def untouched(shop: Shop, texts: list[str]) -> None:
    """Run the texts, batch by batch; the first batch that changes anything is told."""
    before, state = shop.fingerprint(), shop.run([])
    for at in range(0, len(texts), BATCH):
        batch = texts[at : at + BATCH]
        assert shop.run(batch) == state, batch
        assert shop.fingerprint() == before, batch


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET b = 'x'",
        "CREATE TABLE z (a INT)",
        "SET GLOBAL max_connections = 98",
        "CREATE USER mallory",
        "SELECT 1 INTO OUTFILE 'seen'",
        "INSERT INTO loose VALUES (2)",
    ],
)
def test_the_fingerprint_sees_a_change(text: str) -> None:
    shop = Shop()
    before = shop.fingerprint()
    shop.run([text])
    assert shop.fingerprint() != before
    shop.server.script("DROP USER IF EXISTS mallory; SET GLOBAL max_connections = 100")


def test_cases_judged_reads_leave_the_server_unchanged(shop: Shop) -> None:
    reads = [case.sql for case in load() if judge(case.sql, "mysql").effect is Effect.READ]
    assert len(reads) > 100
    untouched(shop, reads)


def test_mutated_cases_judged_reads_leave_the_server_unchanged(shop: Shop) -> None:
    chance = random.Random(20_261_122)
    reads: list[str] = []
    for case in load("mysql"):
        for _ in range(4):
            try:
                text = mutate(case.sql, "mysql", chance)
            except Refusal:
                break
            if judge(text, "mysql").effect is Effect.READ:
                reads.append(text)
    untouched(shop, reads)


def test_nothing_that_the_engine_runs_as_a_read_changes_the_server(shop: Shop) -> None:
    source = Source("s", "shop", shop.server.url(shop.name), "mysql", "mysql")
    actor = Actor("a", "a", Scope.FULL_ACCESS)
    limits = Limits(max_rows=50, timeout_s=0.3)

    async def attempt(engine, request) -> None:
        permit = Permit("call", actor, source, request, Effect.READ, limits)
        try:
            cursor = await engine.run(permit, NEVER)
            await cursor.fetch(50)
            await cursor.close()
        except GateError:
            pass

    async def work() -> None:
        engine = await open_engine(source)
        try:
            for case in load():
                statement = Statement(case.sql)
                await attempt(engine, Query(statement, limits))
                await attempt(engine, Explain(statement, limits))
                with contextlib.suppress(GateError):
                    await engine.inspect(statement)
        finally:
            await engine.close()

    before = shop.fingerprint()
    asyncio.run(work())
    assert shop.fingerprint() == before
