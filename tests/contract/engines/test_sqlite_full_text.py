"""Full-text tables of SQLite: read like plain SQLite does, changed only as changes, and no way
around what is hidden."""

from __future__ import annotations

import sqlite3

import apsw
import pytest

from support.engine_cases import CASES
from tidegate.errors import TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge
from tidegate.sql.masking.rewrite import rewrite

SCRIPT = """
CREATE TABLE docs (id INTEGER PRIMARY KEY, title TEXT, body TEXT, secret TEXT);
INSERT INTO docs VALUES (1, 'fish soup', 'a fish in the soup', 'hush alpha'),
  (2, 'bread', 'bread and fish', 'hush beta'), (3, 'wine', 'red wine', 'gamma');
CREATE VIRTUAL TABLE found USING fts5(title, body, secret, content='docs', content_rowid='id');
INSERT INTO found(found) VALUES ('rebuild');
CREATE VIRTUAL TABLE "two words" USING fts5(a, b);
INSERT INTO "two words" VALUES ('x y', 'fish'), ('z', 'wine');
CREATE VIRTUAL TABLE terms USING fts5vocab('found', 'row');
CREATE VIRTUAL TABLE by_column USING fts5vocab('found', 'col');
CREATE VIRTUAL TABLE places USING fts5vocab('two words', 'instance');
CREATE VIEW soups AS SELECT rowid AS id, title FROM found('soup');
"""
READS = (
    "SELECT rowid, title FROM found('fish') ORDER BY rank",
    "SELECT title, bm25(found, 10.0, 5.0), rank FROM found('fish') ORDER BY 2",
    "SELECT highlight(found, 0, '<', '>') FROM found('fish') AS f ORDER BY f.rowid",
    "SELECT snippet(found, -1, '[', ']', '...', 3) FROM found WHERE found MATCH 'fish'",
    "SELECT d.title FROM found('title : fish') JOIN docs AS d ON d.id = found.rowid",
    "SELECT title FROM main.found('soup')",
    "SELECT title FROM \"found\"('so*') WHERE rowid > 0 LIMIT 5",
    "SELECT count(*) FROM [two words]('a : x OR wine')",
    "SELECT a.title FROM docs AS a, found(a.title) AS b WHERE b.rowid = a.id",
    "SELECT id FROM docs WHERE id IN (SELECT rowid FROM found('hush'))",
    "WITH f AS (SELECT rowid AS id FROM found('hush NOT beta')) SELECT * FROM f",
    "SELECT title FROM found('fish', 'bm25(10.0, 1.0)') ORDER BY rank",
    "SELECT * FROM terms",
    "SELECT term, doc FROM terms WHERE term >= 'f' AND term < 'h'",
    "SELECT * FROM by_column WHERE col = 'title'",
    "SELECT * FROM places ORDER BY 1, 2, 3",
    "SELECT * FROM soups",
)
COMMANDS = ("rebuild", "optimize", "merge", "integrity-check", "delete-all", "automerge")


@pytest.fixture
def case(tmp_path):
    made = CASES["sqlite"].prepare(tmp_path)
    connection = apsw.Connection(made.url.removeprefix("sqlite:///"))
    connection.execute(SCRIPT)
    connection.close()
    return made


async def test_a_full_text_table_gives_what_plain_sqlite_gives(case):
    with sqlite3.connect(case.url.removeprefix("sqlite:///")) as plain:
        async with case.opened() as engine:
            for text in READS:
                judgement = judge(text, "sqlite")
                assert judgement.effect is Effect.READ, (text, judgement)
                opinion = await engine.inspect(Statement(text), judgement)
                assert opinion is None or opinion.effect is Effect.READ, text
                assert await case.ask(engine, text) == plain.execute(text).fetchall(), text
    plain.close()


def test_a_table_that_is_read_with_arguments_is_named_as_a_table():
    assert judge("SELECT * FROM found('fish')", "sqlite").tables == ("found",)
    assert set(judge("SELECT 1 FROM a JOIN main.found('x')", "sqlite").tables) == {
        "a",
        "main.found",
    }
    for text in (
        "SELECT found('x')",
        "SELECT found('x') FROM found('x')",
        "SELECT 1 FROM docs WHERE found('x')",
        "SELECT * FROM docs WHERE id IN found('x') AND found('x')",
        "SELECT * FROM found(load_extension('x'))",
        "SELECT * FROM sqlite_dbpage('main')",
        "SELECT * FROM pragma_journal_mode('delete')",
        "SELECT * FROM fsdir('/etc')",
        "SELECT * FROM zipfile('/etc/x')",
        "SELECT * FROM bytecode('DELETE FROM docs')",
    ):
        assert judge(text, "sqlite").effect > Effect.READ, text
    for dialect in ("postgres", "mysql", "duckdb", "cloud"):
        assert judge("SELECT * FROM found('x')", dialect).effect is Effect.UNKNOWN, dialect


async def test_a_command_to_an_index_is_a_change(case):
    async with case.opened() as engine:
        before = await case.digest(engine)
        for command in COMMANDS:
            text = f"INSERT INTO found(found) VALUES ('{command}')"
            assert judge(text, "sqlite").effect >= Effect.WRITE, text
            with pytest.raises(TidegateError):
                await case.ask(engine, text)
            with pytest.raises(TidegateError):
                await case.ask(engine, text.replace("found(found)", "found(found, rank)"))
        assert await case.digest(engine) == before


HIDING = (
    DataRules(masks=(("docs.secret", "nothing"),)),
    DataRules(masks=(("found.secret", "nothing"), ("docs.secret", "hash"))),
    DataRules(filters=(("docs", "id < 3"),)),
    DataRules(only=("customers", "two words")),
    DataRules(only=("found",), masks=(("docs.secret", "nothing"),)),
)
ROADS = (
    "SELECT * FROM {0}('hush')",
    "SELECT count(*) FROM main.{0}('hush') AS x",
    "SELECT 1 FROM (SELECT rowid FROM {0}('secret : hush'))",
    "SELECT id FROM items WHERE id IN (SELECT rowid FROM {0}('hush'))",
    "WITH w AS (SELECT * FROM {0}('hush')) SELECT * FROM w",
    "SELECT 1 FROM items JOIN {0}(items.name)",
    "DELETE FROM items WHERE id IN (SELECT rowid FROM {0}('hush'))",
    "UPDATE items SET name = 'x' FROM {0}('hush')",
    "INSERT INTO items SELECT rowid, title FROM {0}('hush')",
)


async def test_no_index_shows_what_is_hidden(case):
    async with case.opened() as engine:
        catalog = await case.browse(engine, "catalog")
    shadows = [f"SELECT * FROM found_{part}" for part in ("data", "idx", "docsize", "config")]
    vocabulary = ["SELECT * FROM terms", "SELECT * FROM by_column", "SELECT * FROM soups"]
    for rules in HIDING:
        for text in [
            *(road.format(name) for road in ROADS for name in ("found", '"found"', "FOUND")),
            *shadows,
            *vocabulary,
        ]:
            with pytest.raises(TidegateError) as caught:
                rewrite(Statement(text), "sqlite", rules, catalog, "k" * 16)
            assert caught.value.code.value in ("policy.masked", "policy.table"), text
            assert "secret" not in caught.value.message, text


async def test_an_index_of_nothing_hidden_is_still_read_by_a_condition(case):
    async with case.opened() as engine:
        catalog = await case.browse(engine, "catalog")
        with pytest.raises(TidegateError) as caught:
            rewrite(
                Statement("SELECT a FROM [two words]('fish')"),
                *("sqlite", HIDING[0], catalog, "k" * 16),
            )
        assert "MATCH" in (caught.value.hint or "")
        text = "SELECT a FROM [two words] WHERE [two words] MATCH 'fish'"
        written = rewrite(Statement(text), "sqlite", HIDING[0], catalog, "k" * 16)
        assert await case.ask(engine, written.text) == [("x y",)]
