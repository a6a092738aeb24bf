"""Functions of users on PostgreSQL that a source's setting allows: by their names and in reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.own_functions import asking
from support.postgres_surface import PostgresShop
from support.surface_client import WRITER
from tidegate.model.actors import Actor, Scope
from tidegate.model.source_settings import Mask, RowFilter

SCRIPT = """
CREATE TABLE notes (id int PRIMARY KEY, title text);
INSERT INTO notes VALUES (1, 'Hello World'), (2, 'Second Note');
CREATE SCHEMA app;
CREATE FUNCTION app.slugify(text) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$SELECT replace(lower($1), ' ', '-')$$;
CREATE FUNCTION app.slugify(text, text) RETURNS text LANGUAGE sql IMMUTABLE
  AS $$SELECT replace(lower($1), ' ', $2)$$;
CREATE FUNCTION app.series(int) RETURNS TABLE (n int) LANGUAGE sql
  AS 'SELECT generate_series(1, $1)';
CREATE FUNCTION app."Odd Case"(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2';
CREATE FUNCTION app."Shout"(text) RETURNS text LANGUAGE sql AS 'SELECT upper($1)';
CREATE FUNCTION app.shout(text) RETURNS text LANGUAGE sql AS $$SELECT 'another'$$;
CREATE FUNCTION app.erase() RETURNS int LANGUAGE plpgsql AS $$
  BEGIN DELETE FROM notes; RETURN 1; END$$;
CREATE FUNCTION app.unlocked() RETURNS int LANGUAGE plpgsql AS $$
  BEGIN PERFORM set_config('transaction_read_only', 'off', false);
  DELETE FROM notes; RETURN 1; END$$;
CREATE FUNCTION app.leave() RETURNS int LANGUAGE plpgsql AS $$
  BEGIN PERFORM set_config('app.left', 'behind', false), pg_advisory_lock(4711);
  CREATE TEMP TABLE notes AS SELECT 9 AS id, 'planted'::text AS title; RETURN 1; END$$;
CREATE FUNCTION app.length(text) RETURNS int LANGUAGE sql AS 'SELECT -1';
CREATE FUNCTION app.pg_read_file(text) RETURNS text LANGUAGE sql AS $$SELECT 'mine'$$;
CREATE FUNCTION app.twin(int) RETURNS text LANGUAGE sql AS $$SELECT 'app'$$;
CREATE FUNCTION public.twin(int) RETURNS text LANGUAGE sql AS $$SELECT 'public'$$;
CREATE FUNCTION public.other(int) RETURNS int LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION public.solo(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 100';
CREATE VIEW public.slugs AS SELECT id, app.slugify(title) AS slug FROM notes;
CREATE VIEW public.others AS SELECT public.other(id) AS id FROM notes;
CREATE TABLE guarded (id int, slug text DEFAULT app.slugify('A B'));
INSERT INTO guarded VALUES (1, 'a'), (2, 'b');
"""
ALLOWED = (
    "app.slugify", "app.series", "app.Shout", "app.erase", "app.unlocked", "app.leave",
    "app.length", "app.pg_read_file", "app.twin", "public.solo", "app.missing",
)  # fmt: skip


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting(SCRIPT)
    yield shop
    shop.drop()


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        ("SELECT app.slugify(title) FROM notes ORDER BY id", "hello-world"),
        ("SELECT APP.Slugify(title, '_') FROM notes ORDER BY id", "hello_world"),
        ('SELECT app."slugify"(title) FROM notes ORDER BY id', "hello-world"),
        ("SELECT n FROM app.series(3) AS s ORDER BY n DESC", 3),
        ("SELECT app.\"Shout\"('a')", "A"),
        ("SELECT public.solo(1)", 101),
        ("SELECT solo(1)", 101),
        ("SELECT app.length('abc')", -1),
        ("SELECT length('abc')", 3),
        ("SELECT app.pg_read_file('x')", "mine"),
        ("SELECT app.twin(1)", "app"),
        ("SELECT slug FROM slugs ORDER BY id", "hello-world"),
        (
            "WITH s AS (SELECT app.slugify(title) AS t FROM notes) SELECT max(t) FROM s",
            "second-note",
        ),
        ("SELECT count(*) FILTER (WHERE app.slugify(title) LIKE 's%') FROM notes", 1),
    ],
)
async def test_an_allowed_function_answers_as_the_database_does(
    shop: PostgresShop, tmp_path: Path, sql: str, first: object
) -> None:
    async with asking(tmp_path, shop.url, "postgres", functions=ALLOWED) as caller:
        assert (await caller.rows(sql))[0] == [first] == list(shop.ask(sql)[0])
    async with asking(tmp_path, shop.url, "postgres") as stranger:
        if "length('abc')" not in sql or "app" in sql:
            assert "sql.function_refused" in await stranger.text(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT public.other(1)",
        "SELECT other(1)",
        "SELECT * FROM others",
        "SELECT app.shout('a')",
        "SELECT app.Shout('a')",
        "SELECT public.twin(1)",
        "SELECT twin(1)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_catalog.pg_read_file('/etc/passwd')",
        "SELECT public.slugify('a')",
        "SELECT \"app.slugify\"('a')",
        "SELECT \"APP\".slugify('a')",
        "SELECT app.slugify('a'), public.other(1)",
        "SELECT app.slugify(pg_read_file('/etc/passwd'))",
        "SELECT id FROM notes WHERE notes.other IS NULL",
    ],
)
async def test_what_is_not_named_exactly_stays_refused(
    shop: PostgresShop, tmp_path: Path, sql: str
) -> None:
    async with asking(tmp_path, shop.url, "postgres", functions=ALLOWED) as caller:
        text = await caller.text(sql)
        assert '"rows"' not in text
        assert "sql.function_refused" in text or "sql.failed" in text, text


async def test_a_function_that_writes_fails_in_the_database(
    shop: PostgresShop, tmp_path: Path
) -> None:
    before = shop.ask("SELECT * FROM notes ORDER BY id")
    async with asking(tmp_path, shop.url, "postgres", functions=ALLOWED, access="write") as caller:
        for sql in (
            "SELECT app.erase()",
            "SELECT app.unlocked()",
            "EXPLAIN ANALYZE SELECT app.erase()",
        ):
            text = await caller.text(sql)
            assert "policy.read_only" in text or "sql.failed" in text, text
            assert '"rows"' not in text
    assert shop.ask("SELECT * FROM notes ORDER BY id") == before


async def test_a_change_may_not_call_one(shop: PostgresShop, tmp_path: Path) -> None:
    async with asking(
        tmp_path, shop.url, "postgres", functions=ALLOWED, access="write", actor=WRITER
    ) as caller:
        for sql in (
            "UPDATE notes SET title = app.slugify(title) WHERE id = 1",
            "INSERT INTO guarded SELECT id, slug FROM slugs",
            "DELETE FROM notes WHERE app.erase() = 1",
        ):
            text = await caller.text(sql)
            assert "sql.function_refused" in text, text
        assert "only read" in await caller.text("UPDATE notes SET title = app.slugify(title)")
    assert shop.ask("SELECT count(*) FROM notes") == [(2,)]
    assert shop.ask("SELECT count(*) FROM guarded") == [(2,)]


@pytest.mark.parametrize(
    "rules",
    [
        {"masks": (Mask("guarded.slug"),)},
        {"filters": (RowFilter("guarded", "id = 1"),)},
    ],
)
async def test_whom_something_is_hidden_from_calls_none(
    shop: PostgresShop, tmp_path: Path, rules: dict[str, object]
) -> None:
    async with asking(tmp_path, shop.url, "postgres", functions=ALLOWED, **rules) as caller:
        text = await caller.text("SELECT app.slugify('a b')")
        assert "sql.function_refused" in text
        assert "something of the source is hidden" in text
        assert '"rows"' not in await caller.text("SELECT slug FROM slugs")
    listed = Actor("tok_l", "listed", Scope.READ_ONLY, tables=frozenset({"notes"}))
    async with asking(tmp_path, shop.url, "postgres", functions=ALLOWED, actor=listed) as caller:
        assert "sql.function_refused" in await caller.text("SELECT app.slugify('a b')")


async def test_what_a_function_leaves_on_its_session_reaches_no_other_call(
    shop: PostgresShop, tmp_path: Path
) -> None:
    url = shop.url + ("&" if "?" in shop.url else "?") + "pool=1"
    async with asking(tmp_path, url, "postgres", functions=ALLOWED) as caller:
        await caller.text("SELECT app.leave()")
        assert (await caller.rows("SELECT title FROM notes WHERE id = 9")) == []
        assert (await caller.rows("SELECT current_setting('app.left', true)")) in ([[None]], [[""]])
        assert shop.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


async def test_a_function_that_is_replaced_or_joined_by_another_is_judged_anew(
    tmp_path: Path,
) -> None:
    shop = PostgresShop.lasting(SCRIPT)
    try:
        async with asking(tmp_path, shop.url, "postgres", functions=ALLOWED) as caller:
            assert await caller.rows("SELECT solo(1)") == [[101]]
            shop.ask(
                "CREATE OR REPLACE FUNCTION public.solo(int) RETURNS int LANGUAGE plpgsql AS"
                " $$BEGIN DELETE FROM notes; RETURN 1; END$$"
            )
            assert '"rows"' not in await caller.text("SELECT solo(1)")
            shop.ask(
                "CREATE SCHEMA evil; CREATE FUNCTION evil.solo(int) RETURNS int LANGUAGE sql"
                " AS 'SELECT 666'"
            )
            assert "sql.function_refused" in await caller.text("SELECT solo(1)")
            shop.ask("DROP FUNCTION public.solo(int)")
            assert "sql.failed" in await caller.text("SELECT public.solo(1)")
        assert shop.ask("SELECT count(*) FROM notes") == [(2,)]
    finally:
        shop.drop()


async def test_a_refusal_names_the_setting(shop: PostgresShop, tmp_path: Path) -> None:
    async with asking(tmp_path, shop.url, "postgres") as caller:
        text = await caller.text("SELECT app.slugify('a')")
        assert "the operator can allow it for reads: `functions`" in text
        assert "`functions`" in await caller.text("SELECT * FROM slugs")
