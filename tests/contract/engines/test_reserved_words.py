"""Names that are words of SQL are written so that each database takes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from support import mysql_server, postgres_server
from tidegate.model.statements import Effect
from tidegate.product import load
from tidegate.sql.dialects import find
from tidegate.sql.judge import judge
from tidegate.sql.quoting import shortest

DIALECTS = ("duckdb", "mysql", "postgres", "sqlite")
ORDINARY = ("name", "status", "date", "type", "key_id", "value", "level")


@cache
def words() -> list[str]:
    """The words of all the dialects that are here, and some that are none."""
    known = [find(name) for name in DIALECTS]
    found = [load(each.reserved_words) for each in known if each.reserved_words]
    return sorted({*ORDINARY}.union(*found))


def statements(word: str, dialect: str) -> list[str]:
    """What an agent writes with the name as search shows it."""
    name = shortest(word, dialect)
    quoted = f"`{word}`" if dialect == "mysql" else f'"{word}"'
    column, table = f"(SELECT 7 AS {quoted})", f"WITH {quoted} AS (SELECT 7 AS a)"
    if dialect == "sqlite" and word in ("true", "false"):
        return []  # SQLite reads a number, however the name is quoted
    return [
        f"SELECT {name}, t.{name} FROM {column} AS t WHERE {name} = 7 GROUP BY {name}",
        f"{table} SELECT a FROM {name} WHERE a = 7",
        f"{table} SELECT a FROM (SELECT 8 AS b) AS x JOIN {name} ON a < b",
    ]


def asks(dialect: str) -> Callable[[list[str]], list[Any]]:
    """Runs statements on the bare database and gives the first value of each."""
    if dialect == "sqlite":
        import apsw

        bare = apsw.Connection(":memory:")
        return lambda texts: [bare.execute(text).fetchall()[0][0] for text in texts]
    if dialect == "duckdb":
        import duckdb

        session = duckdb.connect()
        return lambda texts: [session.execute(text).fetchall()[0][0] for text in texts]
    if dialect == "postgres":
        server = postgres_server.shared()
        return lambda texts: [rows[0][0] for rows in server.ask_all(texts, "postgres")]

    async def ask(connection: Any, texts: list[str]) -> list[Any]:
        cursor, values = connection.cursor(), []
        for text in texts:
            await cursor.execute(text)
            values.append((await cursor.fetchall())[0][0])
        return values

    mariadb = mysql_server.shared()
    return lambda texts: mariadb.connected(lambda connection: ask(connection, texts))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_name_that_is_a_word_of_sql_can_be_copied_into_a_statement(dialect: str) -> None:
    texts = [text for word in words() for text in statements(word, dialect)]
    assert {int(value) for value in asks(dialect)(texts)} == {7}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_our_analysis_reads_statements_with_such_names(dialect: str) -> None:
    texts = [text for word in words() for text in statements(word, dialect)]
    assert [text for text in texts if judge(text, dialect).effect is not Effect.READ] == []


def test_ordinary_names_stay_without_quotes() -> None:
    assert [shortest(name, "postgres") for name in ORDINARY] == list(ORDINARY)
    assert shortest("order", "postgres") == '"order"'
    assert shortest("user", "another") == '"user"'


@pytest.mark.needs("mysql")
def test_ordinary_names_stay_without_quotes_in_any_case() -> None:
    assert shortest("User", "mysql") == "User"
    assert shortest("group", "mariadb") == "`group`"
