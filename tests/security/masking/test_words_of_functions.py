"""What a function of a user says of a change does not reach a caller from whom something is hidden,
wherever the table calls it, and whatever the table is called."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.own_functions import asking
from support.surface_client import WRITER
from tidegate.model.source_settings import Mask

HIDDEN = "ada@hidden.example"
MASKS = (Mask("people.email", "nothing"),)
WITHHELD = "The database refused the change"
PEOPLE = f"""
CREATE TABLE people (id int PRIMARY KEY, email varchar(40));
INSERT INTO people VALUES (1, '{HIDDEN}');
"""
SAYS = (
    "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', (SELECT email FROM people LIMIT 1); END $$;"
)
PLACES = {
    "a default": "CREATE TABLE told (id int, said int DEFAULT say());",
    "a constraint": "CREATE TABLE told (id int CHECK (tells(id)));",
    "an index": "CREATE TABLE told (id int); CREATE INDEX ON told (tells(id));",
    "the condition of an index": "CREATE TABLE told (id int);"
    " CREATE INDEX ON told (id) WHERE tells(id);",
    "a generated column": "CREATE TABLE told (id int,"
    " g bool GENERATED ALWAYS AS (tells(id)) STORED);",
    "a domain": "CREATE DOMAIN checked AS int CHECK (tells(VALUE));"
    " CREATE TABLE told (id checked);",
    "a domain of a domain": "CREATE DOMAIN checked AS int CHECK (tells(VALUE));"
    " CREATE DOMAIN outermost AS checked; CREATE TABLE told (id outermost);",
    "a cast in a default": "CREATE DOMAIN checked AS int CHECK (tells(VALUE));"
    " CREATE TABLE told (id int, said int DEFAULT (1::checked));",
    "a key of partitions": "CREATE TABLE told (id int) PARTITION BY LIST (tells(id));"
    " CREATE TABLE told_true PARTITION OF told FOR VALUES IN (true);",
    "an operator": "CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = agree);"
    " CREATE TABLE told (id int CHECK (id === id));",
    "a query given as text": "CREATE TABLE told (id int, said int DEFAULT"
    " (query_to_xml('SELECT email FROM people', false, false, '')::text)::int);",
}
"""A table that says what is hidden when a row is added, by the place that makes it do so."""


@pytest.fixture
def database() -> Iterator[str]:
    server = postgres_server.shared()
    name = server.new_database()
    yield name
    server.drop_database(name)


@pytest.mark.parametrize("place", PLACES)
async def test_what_a_function_says_in_a_place_of_a_table_is_left_out(
    place: str, database: str, tmp_path: Path
) -> None:
    server = postgres_server.shared()
    server.ask(
        PEOPLE
        + f"CREATE FUNCTION say() RETURNS int {SAYS}"
        + f"CREATE FUNCTION tells(i int) RETURNS bool IMMUTABLE {SAYS}"
        + f"CREATE FUNCTION agree(i int, j int) RETURNS bool IMMUTABLE {SAYS}",
        database,
    )
    server.ask(PLACES[place], database)
    async with asking(
        tmp_path, server.url(database), "postgres", actor=WRITER, access="write", masks=MASKS
    ) as caller:
        answer = await caller.text("INSERT INTO told (id) VALUES (1)")
    assert WITHHELD in answer
    assert HIDDEN not in answer
    assert server.ask("SELECT count(*) FROM told", database) == [(0,)]


async def test_what_a_policy_of_postgresql_says_is_left_out(database: str, tmp_path: Path) -> None:
    server = postgres_server.shared()
    server.ask(
        PEOPLE
        + "CREATE TABLE told (id int); ALTER TABLE told ENABLE ROW LEVEL SECURITY;"
        + "CREATE POLICY p ON told WITH CHECK ((SELECT email FROM people LIMIT 1)::int = id);"
        + f"CREATE ROLE {database}_writer LOGIN; GRANT ALL ON told, people TO {database}_writer;",
        database,
    )
    try:
        url = server.url(database, f"{database}_writer")
        async with asking(
            tmp_path, url, "postgres", actor=WRITER, access="write", masks=MASKS
        ) as caller:
            answer = await caller.text("INSERT INTO told VALUES (1)")
        assert WITHHELD in answer
        assert HIDDEN not in answer
        assert server.ask("SELECT count(*) FROM told", database) == [(0,)]
    finally:
        server.ask(f"DROP OWNED BY {database}_writer; DROP ROLE {database}_writer;", database)


async def test_a_table_that_calls_only_the_servers_functions_keeps_the_words(
    database: str, tmp_path: Path
) -> None:
    server = postgres_server.shared()
    server.ask(
        PEOPLE + "CREATE DOMAIN small AS int CHECK (VALUE < 100);"
        " CREATE TABLE plain (id small, at timestamptz DEFAULT now(),"
        " CONSTRAINT few CHECK (abs(id) < 10)); CREATE INDEX ON plain (abs(id));",
        database,
    )
    async with asking(
        tmp_path, server.url(database), "postgres", actor=WRITER, access="write", masks=MASKS
    ) as caller:
        assert 'violates check constraint "few"' in await caller.text(
            "INSERT INTO plain (id) VALUES (11)"
        )


async def test_a_name_with_a_dot_is_not_taken_for_another_table_of_postgresql(
    database: str, tmp_path: Path
) -> None:
    server = postgres_server.shared()
    server.ask(
        PEOPLE
        + f"CREATE FUNCTION tell() RETURNS trigger {SAYS}"
        + 'CREATE TABLE "x.seen" (id int); CREATE TABLE seen (id int CHECK (id > 9));'
        + 'CREATE TRIGGER t BEFORE INSERT ON "x.seen" FOR EACH ROW EXECUTE FUNCTION tell();',
        database,
    )
    async with asking(
        tmp_path, server.url(database), "postgres", actor=WRITER, access="write", masks=MASKS
    ) as caller:
        for name in ('"x.seen"', 'public."x.seen"'):
            answer = await caller.text(f"INSERT INTO {name} VALUES (1)")
            assert WITHHELD in answer, name
            assert HIDDEN not in answer, name
        assert "violates check constraint" in await caller.text("INSERT INTO seen VALUES (1)")


@pytest.mark.parametrize(
    ("quoted", "other"), [("x.seen", "seen"), ("[br]", "br"), ("`tick`", "tick")]
)
async def test_a_quoted_name_is_not_taken_for_another_table_of_sqlite(
    quoted: str, other: str, tmp_path: Path
) -> None:
    file = tmp_path / "shop.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        PEOPLE
        + f'CREATE TABLE "{quoted}" (id int); CREATE TABLE {other} (id int CHECK (id > 9));'
        + f'CREATE TRIGGER tells AFTER INSERT ON "{quoted}" BEGIN'
        + " SELECT json_extract('{}', (SELECT email FROM people)); END;"
    )
    async with asking(
        tmp_path / "gate", f"sqlite:///{file}", "sqlite", actor=WRITER, access="write", masks=MASKS
    ) as caller:
        answer = await caller.text(f'INSERT INTO "{quoted}" VALUES (1)')
        assert WITHHELD in answer
        assert HIDDEN not in answer
        assert "CHECK constraint failed" in await caller.text(f"INSERT INTO {other} VALUES (1)")
    assert connection.execute(f'SELECT count(*) FROM "{quoted}"').fetchall() == [(0,)]
    connection.close()


@pytest.mark.needs("mysql")
async def test_no_number_that_a_trigger_of_mariadb_chooses_shows_its_words(tmp_path: Path) -> None:
    server = mysql_server.shared()
    database = server.new_database()
    numbers = (1065, 1153, 1317, 1969, 3024)
    told = " ".join(
        f"IF NEW.id = {each} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = said,"
        f" MYSQL_ERRNO = {each}; END IF;"
        for each in numbers
    )
    server.script(
        PEOPLE
        + "CREATE TABLE `x.seen` (id int); CREATE TABLE seen (id int);\n"
        + "CREATE TRIGGER tells BEFORE INSERT ON `x.seen` FOR EACH ROW BEGIN"
        + " DECLARE said varchar(90); SET said = (SELECT email FROM people LIMIT 1);"
        + f" {told} END;",
        database,
    )
    try:
        async with asking(
            tmp_path, server.url(database), "mysql", actor=WRITER, access="write", masks=MASKS
        ) as caller:
            for each in numbers:
                answer = await caller.text(f"INSERT INTO `x.seen` VALUES ({each})")
                assert WITHHELD in answer, answer
                assert HIDDEN not in answer, each
        assert server.script("SELECT count(*) FROM `x.seen`", database) == [(0,)]
    finally:
        server.drop_database(database)


@pytest.mark.parametrize("masks", [(), MASKS])
async def test_an_error_that_a_trigger_gives_the_code_of_a_time_limit_is_no_time_limit(
    masks: tuple[Mask, ...], database: str, tmp_path: Path
) -> None:
    server = postgres_server.shared()
    server.ask(
        PEOPLE
        + "CREATE TABLE noted (id int); CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'not today' USING ERRCODE = '57014'; END $$;"
        "CREATE TRIGGER t BEFORE INSERT ON noted FOR EACH ROW EXECUTE FUNCTION tell();",
        database,
    )
    async with asking(
        tmp_path, server.url(database), "postgres", actor=WRITER, access="write", masks=masks
    ) as caller:
        answer = await caller.text("INSERT INTO noted VALUES (1)")
    assert "stopped" not in answer
    assert (WITHHELD if masks else "not today") in answer
