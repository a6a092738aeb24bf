"""The isolation level that a session sets holds for its single statements as at PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from support.eventually import HANG_S, wait_until
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer

LEVELS = ["read committed", "repeatable read", "serializable"]
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{}'"


@pytest.fixture(scope="module")
def counters(postgres: PostgresShop) -> Iterator[PostgresShop]:
    postgres.ask("DROP TABLE IF EXISTS counter; CREATE TABLE counter (id int PRIMARY KEY, n int)")
    yield postgres
    postgres.ask("DROP TABLE counter")


def raced(counters: PostgresShop, info: str, level: str, *, way: str, prepare: bool) -> Any:
    """What an UPDATE by itself answers whose row another transaction changes meanwhile."""
    counters.ask("TRUNCATE counter; INSERT INTO counter VALUES (1, 0)")
    options = f"-c default_transaction_isolation={level.replace(' ', chr(92) + ' ')}"
    more = {"options": options} if way == "options" else {}
    with (
        psycopg.connect(counters.server.conninfo(counters.database)) as other,
        psycopg.connect(info, autocommit=True, **more) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        if way != "options":
            connection.execute(way.format(level).encode())
        shown = connection.execute("SHOW transaction_isolation").fetchone()
        other.execute("UPDATE counter SET n = n + 1")
        text = "UPDATE counter SET n = n + 10 WHERE id = 1 RETURNING n"
        running = pool.submit(connection.execute, text, prepare=prepare, binary=prepare)
        waiting = WAITS.format(counters.database)
        wait_until(lambda: counters.ask(waiting) == [(1,)], "a change that waits for the other")
        other.commit()
        try:
            told = running.result(HANG_S).fetchall()
        except psycopg.Error as error:
            told = error.sqlstate
        status = connection.info.transaction_status
        return shown, told, status, counters.ask("SELECT * FROM counter")


WAYS = [
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {}",
    "SET default_transaction_isolation = '{}'",
    "options",
]


@pytest.mark.parametrize("prepare", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_single_change_meets_another_as_at_postgresql(
    server: WireServer, counters: PostgresShop, level: str, way: str, prepare: bool
):
    direct = counters.server.conninfo(counters.database)
    assert raced(counters, server.conninfo("pg"), level, way=way, prepare=prepare) == raced(
        counters, direct, level, way=way, prepare=prepare
    )


TEXTS = [
    "SELECT current_setting('transaction_isolation') || ''",
    "COPY (SELECT current_setting('transaction_isolation') || '') TO STDOUT",
    "INSERT INTO counter VALUES (7, 1) RETURNING current_setting('transaction_isolation') || ''",
    "SELECT 1/0",
    "SELECT current_setting('transaction_isolation') || ''; SELECT 2",
    "DELETE FROM counter WHERE id = 7",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SHOW transaction_isolation",
    "CREATE TABLE IF NOT EXISTS counter (id int)",
]


@pytest.mark.parametrize("level", LEVELS[1:])
def test_each_kind_of_statement_runs_at_the_level_of_its_session(
    server: WireServer, counters: PostgresShop, level: str
):
    found: list[Any] = []
    for info in (counters.server.conninfo(counters.database), server.conninfo("pg")):
        counters.ask("TRUNCATE counter")
        with psycopg.connect(info, autocommit=True) as connection:
            connection.execute(f"SET default_transaction_isolation = '{level}'".encode())
            for text in TEXTS:
                found.append(answer(connection, text))
                found.append(connection.info.transaction_status)
            found.append(counters.ask("SELECT count(*) FROM counter"))
    half = len(found) // 2
    assert found[half:] == found[:half]
    assert found[0] == [(level,)]


def answer(connection: psycopg.Connection[Any], text: str) -> Any:
    try:
        if text.startswith("COPY"):
            with connection.cursor().copy(text) as copy:  # type: ignore[arg-type]
                return [bytes(part) for part in copy]
        cursor = connection.execute(text.encode())
    except psycopg.Error as error:
        return error.sqlstate
    return cursor.fetchall() if cursor.description else cursor.statusmessage
