"""What a trigger of a table without masks says of a change does not reach a caller from whom
something is hidden: it can quote any row."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import support.mysql_server as mysql_server
from support.own_functions import asking
from support.surface_client import WRITER
from support.surface_gateway import SqliteGate
from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.approvals.render import describe_at_client
from tidegate.model.requests import Call, Query
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

HIDDEN = "ada@hidden.example"
MASKS = (Mask("people.email", "nothing"),)
PEOPLE = f"""
CREATE TABLE people (id int PRIMARY KEY, email varchar(40));
INSERT INTO people VALUES (1, '{HIDDEN}');
CREATE TABLE noted (id int);
CREATE TABLE converted (id int, word int);
"""
MARIADB = """
CREATE TRIGGER tells BEFORE INSERT ON noted FOR EACH ROW BEGIN
  DECLARE said varchar(90);
  SET said = (SELECT email FROM people LIMIT 1);
  IF NEW.id = 1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = said; END IF;
  IF NEW.id = 2 THEN
    SIGNAL SQLSTATE '25006' SET MESSAGE_TEXT = said, MYSQL_ERRNO = 1792; END IF;
  IF NEW.id = 3 THEN
    SIGNAL SQLSTATE 'HY000' SET MESSAGE_TEXT = said, MYSQL_ERRNO = 1205; END IF;
END;
CREATE TRIGGER converts BEFORE INSERT ON converted FOR EACH ROW
  SET NEW.word = (SELECT email FROM people LIMIT 1);
"""


@pytest.mark.needs("mysql")
async def test_what_a_trigger_of_mariadb_signals_is_left_out(tmp_path: Path) -> None:
    server = mysql_server.shared()
    database = server.new_database()
    server.script(PEOPLE + MARIADB, database)
    try:
        async with asking(
            tmp_path, server.url(database), "mysql", actor=WRITER, access="write", masks=MASKS
        ) as caller:
            for text in (
                *[f"INSERT INTO noted VALUES ({each})" for each in (1, 2, 3)],
                "INSERT INTO converted (id) VALUES (1)",
            ):
                answer = await caller.text(text)
                assert "The database refused the change" in answer, text
                assert HIDDEN not in answer, text
        assert server.script("SELECT count(*) FROM noted", database) == [(0,)]
    finally:
        server.drop_database(database)


def telling_shop(file: Path) -> sqlite3.Connection:
    """A database whose trigger quotes what is hidden."""
    connection = sqlite3.connect(file)
    connection.executescript(
        PEOPLE
        + "CREATE TRIGGER tells AFTER INSERT ON noted BEGIN"
        + " SELECT json_extract('{}', (SELECT email FROM people)); END;"
    )
    return connection


async def test_what_a_trigger_of_sqlite_raises_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    connection = telling_shop(file)
    async with asking(
        tmp_path / "gate", f"sqlite:///{file}", "sqlite", actor=WRITER, access="write", masks=MASKS
    ) as caller:
        answer = await caller.text("INSERT INTO noted VALUES (1)")
        assert "The database refused the change" in answer
        assert HIDDEN not in answer
    assert connection.execute("SELECT count(*) FROM noted").fetchall() == [(0,)]
    connection.close()


async def test_a_dry_run_that_a_trigger_refuses_quotes_nothing_hidden(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    connection = telling_shop(file)
    source = Source(
        *("s1", "shop", f"sqlite:///{file}", "sqlite", "sqlite"),
        access="write",
        masks=MASKS,
        approval_for="writes",
    )
    (tmp_path / "gate").mkdir()
    async with SqliteGate(tmp_path / "gate", source).opened() as gate:
        query = Query(Statement("INSERT INTO noted VALUES (1)"))
        with pytest.raises(ApprovalNeeded) as caught:
            await gate.handle(Call(WRITER, "core", "query", query, "shop", can_ask=True))
        question = caught.value.question
        assert "it failed" in f"{question.dry_run}"
        assert HIDDEN not in f"{question.dry_run} {describe_at_client(question)}"
    assert connection.execute("SELECT count(*) FROM noted").fetchall() == [(0,)]
    connection.close()
