"""Macros of DuckDB that a source's setting allows: by their names and in reads."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from support.own_functions import asking
from support.surface_client import WRITER
from tidegate.model.source_settings import Mask

SCRIPT = """
CREATE TABLE notes (id int PRIMARY KEY, title text);
INSERT INTO notes VALUES (1, 'Hello World'), (2, 'Second Note');
CREATE SCHEMA app;
CREATE SEQUENCE numbers;
CREATE MACRO app.slugify(t) AS replace(lower(t), ' ', '-');
CREATE MACRO main.doubled(n) AS n * 2;
CREATE MACRO main.series(n) AS TABLE SELECT unnest(range(n)) AS n;
CREATE MACRO main.advance() AS nextval('numbers');
CREATE MACRO main.outside() AS (SELECT content FROM read_text('{secret}'));
CREATE MACRO main.other(n) AS n;
CREATE MACRO app.twin(n) AS 'app';
CREATE MACRO main.twin(n) AS 'main';
CREATE MACRO app.length(n) AS -1;
"""
ALLOWED = (
    *("app.slugify", "main.doubled", "main.series", "main.advance", "main.outside", "app.twin"),
    *("app.length", "main.read_text", "main.missing"),
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of another file")
    path = tmp_path / "notes.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCRIPT.format(secret=secret))
    return f"duckdb:///{path}"


async def test_an_allowed_macro_answers_as_the_database_does(url: str, tmp_path: Path) -> None:
    cases = (
        ("SELECT app.slugify(title) FROM notes ORDER BY id", "hello-world"),
        ("SELECT App.SLUGIFY(title) FROM notes ORDER BY id", "hello-world"),
        ("SELECT doubled(21)", 42),
        ('SELECT main."doubled"(21)', 42),
        ("SELECT max(n) FROM main.series(5)", 4),
        ("SELECT length('abc')", 3),
    )
    async with asking(tmp_path / "allowed", url, "duckdb", functions=ALLOWED) as caller:
        for sql, first in cases:
            assert (await caller.rows(sql))[0] == [first], sql
    async with asking(tmp_path / "strict", url, "duckdb") as stranger:
        for sql, _ in cases[:-1]:
            text = await stranger.text(sql)
            assert "sql.function_refused" in text and "`functions`" in text, text


async def test_what_is_not_meant_or_not_certain_stays_refused(url: str, tmp_path: Path) -> None:
    async with asking(tmp_path / "allowed", url, "duckdb", functions=ALLOWED) as caller:
        for sql in (
            "SELECT other(1)",
            "SELECT main.other(1)",
            "SELECT app.twin(1)",
            "SELECT twin(1)",
            "SELECT content FROM read_text('/etc/hostname')",
            "SELECT * FROM main.read_text('/etc/hostname')",
            "SELECT app.slugify(getenv('HOME'))",
        ):
            text = await caller.text(sql)
            assert "sql.function_refused" in text or "policy." in text, (sql, text)


async def test_a_macro_neither_writes_nor_leaves_the_file(url: str, tmp_path: Path) -> None:
    async with asking(
        *(tmp_path / "allowed", url, "duckdb"), functions=ALLOWED, access="write", actor=WRITER
    ) as caller:
        assert "the secret" not in await caller.text("SELECT main.outside()")
        assert '"rows"' not in await caller.text("SELECT main.advance()")
        changed = await caller.text("UPDATE notes SET title = app.slugify(title) WHERE id = 1")
        assert "sql.function_refused" in changed and "only read" in changed
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        assert connection.execute("SELECT nextval('numbers')").fetchall() == [(1,)]
        assert connection.execute("SELECT title FROM notes WHERE id = 1").fetchall() == [
            ("Hello World",)
        ]


async def test_whom_something_is_hidden_from_calls_none(url: str, tmp_path: Path) -> None:
    masks = (Mask("notes.title"),)
    async with asking(tmp_path / "masked", url, "duckdb", functions=ALLOWED, masks=masks) as caller:
        text = await caller.text("SELECT doubled(1)")
        assert "something of the source is hidden" in text


async def test_a_macro_that_another_joins_is_refused_at_once(url: str, tmp_path: Path) -> None:
    async with asking(tmp_path / "allowed", url, "duckdb", functions=ALLOWED) as caller:
        assert await caller.rows("SELECT doubled(21)") == [[42]]
    with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
        connection.execute("CREATE MACRO app.doubled(n) AS 'planted'")
    async with asking(tmp_path / "again", url, "duckdb", functions=ALLOWED) as caller:
        assert "another function of this name" in await caller.text("SELECT doubled(21)")
