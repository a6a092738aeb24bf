"""Stored functions on MariaDB: those that a source's setting allows, and those that are called like
the server's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import support.mysql_server as mysql_server
from support.own_functions import asking
from support.surface_client import WRITER
from tidegate.model.source_settings import Mask, RowFilter

SCRIPT = """
CREATE TABLE notes (id int PRIMARY KEY, title varchar(40));
INSERT INTO notes VALUES (1, 'Hello World'), (2, 'Second Note');
CREATE TABLE kept (id int) ENGINE = Aria;
INSERT INTO kept VALUES (1);
CREATE TABLE people (id int PRIMARY KEY, ssn varchar(20));
INSERT INTO people VALUES (1, '123-45-678'), (2, '987-65-432');
CREATE FUNCTION slugify(t text) RETURNS text RETURN replace(lower(t), ' ', '-');
CREATE FUNCTION other(n int) RETURNS int RETURN n;
CREATE FUNCTION erase() RETURNS int MODIFIES SQL DATA BEGIN DELETE FROM notes; RETURN 1; END;
CREATE FUNCTION erase_kept() RETURNS int MODIFIES SQL DATA BEGIN DELETE FROM kept; RETURN 1; END;
CREATE FUNCTION unlocked() RETURNS int MODIFIES SQL DATA BEGIN
  SET SESSION tx_read_only = 0; DELETE FROM notes; RETURN 1; END;
CREATE FUNCTION unlocked_kept() RETURNS int MODIFIES SQL DATA BEGIN
  SET SESSION tx_read_only = 0; DELETE FROM kept; RETURN 1; END;
CREATE FUNCTION leave_behind() RETURNS int BEGIN
  SET @left_behind = 'behind'; SET SESSION sql_mode = 'ANSI';
  RETURN get_lock('left_behind', 0); END;
CREATE FUNCTION `length`(t text) RETURNS int RETURN -1;
CREATE FUNCTION `sleep`(n int) RETURNS int RETURN n;
CREATE VIEW slugs AS SELECT id, slugify(title) AS slug FROM notes;
CREATE VIEW others AS SELECT other(id) AS id FROM notes;
CREATE VIEW erasing AS SELECT erase_kept() AS gone, unlocked() AS open;
"""
NAMES = (
    *("slugify", "erase", "erase_kept", "unlocked", "unlocked_kept", "leave_behind", "length"),
    *("sleep", "missing"),
)


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[str, mysql_server.Server]]:
    server = mysql_server.shared()
    database = server.new_database()
    server.script(SCRIPT, database)
    yield database, server
    server.drop_database(database)


def allowed(database: str) -> tuple[str, ...]:
    return tuple([f"{database}.{name}" for name in NAMES])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM notes", "WITH n AS (SELECT id FROM notes) SELECT * FROM n", "VALUES (1)",
        "DESC notes", "DESCRIBE notes", "EXPLAIN SELECT 1",
    ],
)  # fmt: skip
async def test_whatever_reads_is_answered_as_the_database_does(
    place: tuple[str, mysql_server.Server], tmp_path: Path, text: str
) -> None:
    database, server = place
    async with asking(tmp_path, server.url(database), "mysql") as caller:
        assert await caller.rows(text) == [list(row) for row in server.script(text, database)]


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        ("SELECT {db}.slugify(title) FROM notes ORDER BY id", "hello-world"),
        ("SELECT `{db}`.`SLUGIFY`(title) FROM notes ORDER BY id", "hello-world"),
        ("SELECT {db} . slugify (title) FROM notes ORDER BY id", "hello-world"),
        ("SELECT {db}.length('abc')", -1),
        ("SELECT slug FROM slugs ORDER BY id", "hello-world"),
    ],
)
async def test_an_allowed_function_answers_as_the_database_does(
    place: tuple[str, mysql_server.Server], tmp_path: Path, sql: str, first: object
) -> None:
    database, server = place
    text = sql.format(db=database)
    async with asking(
        tmp_path, server.url(database), "mysql", functions=allowed(database)
    ) as caller:
        assert (await caller.rows(text))[0] == [first] == list(server.script(text, database)[0])
    async with asking(tmp_path, server.url(database), "mysql") as stranger:
        assert "sql.function_refused" in await stranger.text(text)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT slugify(title) FROM notes",
        "SELECT {db}.other(1)",
        "SELECT * FROM others",
        "SELECT sleep(3)",
        "SELECT `sleep`(3)",
        "SELECT mysql.slugify('a')",
        "SELECT {db}.slugify(load_file('/etc/passwd'))",
        "SELECT {db}.slugify('a'), {db}.other(1)",
    ],
)
async def test_what_is_not_named_in_full_stays_refused(
    place: tuple[str, mysql_server.Server], tmp_path: Path, sql: str
) -> None:
    database, server = place
    async with asking(
        tmp_path, server.url(database), "mysql", functions=allowed(database)
    ) as caller:
        text = await caller.text(sql.format(db=database))
        assert "sql.function_refused" in text, text
        if sql.startswith("SELECT slugify"):
            assert f"Write `{database}.slugify`" in text


async def test_only_a_refused_function_is_told_of_the_setting(
    place: tuple[str, mysql_server.Server], tmp_path: Path
) -> None:
    database, server = place
    async with asking(
        tmp_path, server.url(database), "mysql", functions=allowed(database)
    ) as caller:
        assert "`functions`" in await caller.text("SELECT unnamed(1)")
        told = await caller.text("SHOW WARNINGS")
        assert "sql.function_refused" in told
        assert "`functions`" not in told, told


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {db}.erase()",
        "SELECT {db}.erase_kept()",
        "SELECT {db}.unlocked()",
        "SELECT {db}.unlocked_kept()",
        "SELECT * FROM erasing",
    ],
)
async def test_a_function_that_writes_fails_in_the_database(
    place: tuple[str, mysql_server.Server], tmp_path: Path, sql: str
) -> None:
    database, server = place
    async with asking(
        *(tmp_path, server.url(database), "mysql"),
        functions=allowed(database),
        access="write",
        actor=WRITER,
    ) as caller:
        text = await caller.text(sql.format(db=database))
        assert "policy.read_only" in text or "sql.function_refused" in text, text
    assert server.script("SELECT count(*) FROM notes", database) == [(2,)]
    assert server.script("SELECT count(*) FROM kept", database) == [(1,)]


async def test_a_change_may_not_call_one(
    place: tuple[str, mysql_server.Server], tmp_path: Path
) -> None:
    database, server = place
    async with asking(
        *(tmp_path, server.url(database), "mysql"),
        functions=allowed(database),
        access="write",
        actor=WRITER,
    ) as caller:
        for sql in (
            "UPDATE notes SET title = {db}.slugify(title) WHERE id = 1",
            "DELETE FROM notes WHERE {db}.erase() = 1",
        ):
            text = await caller.text(sql.format(db=database))
            assert "sql.function_refused" in text, text
            assert "only read" in text
    assert server.script("SELECT title FROM notes WHERE id = 1", database) == [("Hello World",)]


@pytest.mark.parametrize(
    "rules",
    [{"masks": (Mask("people.ssn"),)}, {"filters": (RowFilter("people", "id = 1"),)}],
)
async def test_whom_something_is_hidden_from_calls_none(
    place: tuple[str, mysql_server.Server], tmp_path: Path, rules: dict[str, object]
) -> None:
    database, server = place
    async with asking(
        tmp_path, server.url(database), "mysql", functions=allowed(database), **rules
    ) as caller:
        text = await caller.text(f"SELECT {database}.slugify('a b')")
        assert "something of the source is hidden" in text
        assert '"rows"' not in await caller.text("SELECT slug FROM slugs")


async def test_what_a_function_leaves_on_its_session_reaches_no_other_call(
    place: tuple[str, mysql_server.Server], tmp_path: Path
) -> None:
    database, server = place
    async with asking(
        *(tmp_path, server.url(database, options="&pool=1"), "mysql"),
        functions=allowed(database),
    ) as caller:
        assert await caller.rows(f"SELECT {database}.leave_behind()") == [[1]]
        assert await caller.rows("SELECT @left_behind") == [[None]]
        assert await caller.rows("SELECT count(*) FROM notes WHERE title LIKE 'H%'") == [[1]]
        assert server.script("SELECT is_free_lock('left_behind')") == [(1,)]


@pytest.mark.parametrize("show", ["partial", "hash", "nothing"])
async def test_functions_called_like_the_servers_own_change_no_mask(
    tmp_path: Path, show: str
) -> None:
    server = mysql_server.shared()
    database = server.new_database()
    names = (
        "char_length", "length", "substr", "concat", "left", "right", "instr", "sha2", "lpad",
        "repeat", "hex", "convert", "cast", "locate", "ifnull", "if", "lower",
    )  # fmt: skip
    made = []
    server.script(
        "CREATE TABLE people (id int PRIMARY KEY, ssn varchar(20));"
        "INSERT INTO people VALUES (1, '123-45-678'), (2, '987-65-432')",
        database,
    )
    plain = tmp_path / "plain"
    async with asking(
        plain, server.url(database), "mysql", masks=(Mask("people.ssn", show=show),)
    ) as caller:
        expected = await caller.rows("SELECT id, ssn FROM people ORDER BY id")
    for name in names:
        server.script(
            f"CREATE FUNCTION `{name}`(a varchar(20), b varchar(90)) RETURNS varchar(20)"
            " RETURN (SELECT max(ssn) FROM people)",
            database,
        )
        made.append(name)
    async with asking(
        tmp_path / "shadowed", server.url(database), "mysql", masks=(Mask("people.ssn", show=show),)
    ) as caller:
        shown = await caller.text("SELECT id, ssn FROM people ORDER BY id")
        assert "123-45-678" not in shown and "987-65-432" not in shown
        assert (await caller.rows("SELECT id, ssn FROM people ORDER BY id"))[0][0] == 1
        if show != "hash":
            assert await caller.rows("SELECT id, ssn FROM people ORDER BY id") == expected
        for call in (
            "substr (ssn, 'x')",
            "`substr`(ssn, 'x')",
            "`length`(ssn, 'x')",
            f"{database}.length(ssn, 'x')",
        ):
            text = await caller.text(f"SELECT {call} FROM people")
            assert "123-45-678" not in text and "987-65-432" not in text, text
            assert '"rows"' not in text
    assert made == list(names)
    server.drop_database(database)
