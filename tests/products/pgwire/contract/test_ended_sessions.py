"""A session that is ended from outside, or whose client reads no more, in the middle of what it has
sent: the database, what the client is told, and the record agree."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from products.pgwire.support.wire_sources import TABLES, mariadb_source, sqlite_source
from support import mysql_server
from support.audit_records import records
from support.command_line import tidegate
from support.eventually import HANG_S, PATIENCE_S, wait_until
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

INSERT = "INSERT INTO item (id, name) VALUES (%d, 'x')"
LARGE = {
    "pg": "SELECT repeat('x', 900000) FROM generate_series(1, 60)",
    "lite": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)"
    " SELECT hex(zeroblob(450000)) FROM n",
    "maria": "SELECT repeat('x', 900000) FROM seq_1_to_60",
}
"""Far more than a client's socket takes in that is not read."""

SLOW_COMMIT = f"""
CREATE TABLE slow (id int);
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_sleep({HANG_S}); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON slow
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle();
"""


class Line:
    """A client's bare socket behind its login."""

    def __init__(self, server: WireServer, source: str) -> None:
        self._gate = psycopg.connect(server.conninfo(source), autocommit=True)
        self._line = socket.socket(fileno=os.dup(self._gate.fileno()))
        self._line.setblocking(True)
        self._line.settimeout(PATIENCE_S)

    def send(self, *messages: bytes) -> None:
        self._line.sendall(b"".join(messages))

    def read(self, word: bytes) -> bytes:
        """What is said up to the word."""
        said = b""
        while word not in said:
            more = self._line.recv(65_536)
            assert more, said[-500:]
            said += more
        return said

    def rest(self) -> bytes:
        """What is said up to the end."""
        said = bytearray()
        while more := self._line.recv(1_048_576):
            said += more
        return bytes(said)

    def close(self) -> None:
        self._line.close()
        self._gate.close()


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def text(*statements: str) -> bytes:
    return message(b"Q", "; ".join(statements).encode() + b"\0")


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    shop = PostgresShop.lasting(TABLES)
    sources = [{"name": "pg", "url": shop.url, "access": "write"}, sqlite_source(tmp_path)]
    if mysql_server.available():
        sources.append(mariadb_source())
    settings = getattr(request, "param", {})
    with wire_server(tmp_path, sources=sources, **settings) as served:
        yield Place(shop, served)
    shop.drop()


class Place:
    """A server with sources of its own, which are read past the gate."""

    def __init__(self, shop: PostgresShop, server: WireServer) -> None:
        self.server = server
        self._shop = shop

    def ids(self, source: str) -> list[int]:
        """The items above 50."""
        asked = "SELECT id FROM item WHERE id > 50 ORDER BY id"
        if source == "lite":
            with closing(sqlite3.connect(self.server.folder / "lite.db")) as direct:
                return [id for (id,) in direct.execute(asked)]
        assert source == "pg"
        return [int(id) for (id,) in self._shop.ask(asked)]

    def ask(self, script: str) -> None:
        """Run it at PostgreSQL."""
        self._shop.ask(script)

    def running(self, word: str) -> bool:
        """Whether PostgreSQL runs a statement with the word."""
        asked = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            f" AND pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%{word}%'"
        )
        return int(self._shop.ask(asked)[0][0]) > 0

    def outcomes(self, statement: str) -> list[tuple[str, str]]:
        """How the statement ended, by the record: of its transaction, and its error code."""
        return [
            (each.get("transaction_end", ""), each.get("code", ""))
            for each in events(self.server)
            if each["phase"] == "outcome" and each.get("statement") == statement
        ]


def events(server: WireServer) -> list[dict[str, Any]]:
    found = [each.get("event", each) for each in records(server.folder / "state")]
    return [each for each in found if "phase" in each]


@pytest.mark.parametrize("place", [{"pg": {"idle_in_transaction_s": 0.5}}], indirect=True)
@pytest.mark.parametrize("source", LARGE)
def test_a_client_that_reads_no_more_holds_no_lock_for_longer_than_it_may_be_idle(
    place: Place, request: pytest.FixtureRequest, source: str
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    with closing(Line(place.server, source)) as line:
        line.send(text("UPDATE item SET name = 'y' WHERE id = 1", LARGE[source], INSERT % 52))
        line.read(b"UPDATE 1")
        with psycopg.connect(place.server.conninfo(source), autocommit=True) as other:
            # It waits for the lock, and would be refused when its time limit is over.
            assert other.execute("UPDATE item SET name = 'z' WHERE id = 1").rowcount == 1
            assert other.execute("SELECT count(*) FROM item WHERE id = 52").fetchone() == (0,)
            name = other.execute("SELECT name FROM item WHERE id = 1").fetchone()
        assert name == ("z",)
        said = line.rest()
    assert said.count(b"SFATAL\0VFATAL\0C25P03\0") == 1
    assert b"has not read on for 0.5 s in a transaction" in said
    assert place.outcomes("UPDATE item SET name = 'y' WHERE id = 1") == [("rolled back", "")]
    assert place.outcomes(LARGE[source]) == [("", "call.cancelled")]


@pytest.mark.parametrize("place", [{"pg": {"transaction_s": 0.3}}], indirect=True)
def test_a_transaction_is_no_longer_open_than_it_may_be_though_its_statements_have_no_pause(
    place: Place,
):
    slow = "SELECT pg_sleep(0.5)"
    with closing(Line(place.server, "pg")) as line:
        line.send(text(INSERT % 51, slow, INSERT % 52))
        said = line.rest()
    assert said.count(b"SFATAL\0VFATAL\0C25P04\0") == 1
    assert b"the transaction was open for 0.3 s" in said
    wait_until(lambda: place.outcomes(INSERT % 51), "the end of the transaction")
    assert place.outcomes(INSERT % 51) == [("rolled back", "")]
    assert place.ids("pg") == []


def test_a_revoked_token_ends_a_transaction_whose_client_reads_no_more(place: Place):
    with closing(Line(place.server, "lite")) as line:
        line.send(text(INSERT % 51, LARGE["lite"], INSERT % 52))
        line.read(b"INSERT 0 1")
        assert (
            tidegate("token", "revoke", "writer", state=place.server.folder / "state").status == 0
        )
        wait_until(lambda: place.outcomes(INSERT % 51), "the end of the transaction")
        said = line.rest()
    assert said.count(b"SFATAL\0VFATAL\0C57P01\0") == 1
    assert b"The session was ended: the token was revoked." in said
    assert place.outcomes(INSERT % 51) == [("rolled back", "")]
    assert place.ids("lite") == []


@pytest.mark.parametrize("place", [{"stop_grace_s": HANG_S}], indirect=True)
def test_a_server_that_stops_answers_the_text_that_runs_and_nothing_behind_it(place: Place):
    with closing(Line(place.server, "pg")) as line:
        line.send(text(INSERT % 51, "SELECT pg_sleep(1.5)", INSERT % 52), text(INSERT % 53))
        wait_until(lambda: place.running("pg_sleep(1"), "the statement to run")
        place.server.process.process.send_signal(signal.SIGTERM)
        said = line.rest()
        place.server.process.process.wait(PATIENCE_S)
    assert said.count(b"INSERT 0 1\0") == 2
    assert said.count(b"The session was ended: the server stops.") == 1
    assert place.ids("pg") == [51, 52]
    for id in (51, 52):
        assert place.outcomes(INSERT % id) == [("committed", "")]
    assert place.outcomes(INSERT % 53) == []


@pytest.mark.parametrize("place", [{"stop_grace_s": 0}], indirect=True)
def test_a_server_that_stops_at_once_keeps_nothing_of_the_text_that_runs(place: Place):
    with closing(Line(place.server, "pg")) as line:
        line.send(text(INSERT % 51, f"SELECT pg_sleep({HANG_S})", INSERT % 52))
        wait_until(lambda: place.running("pg_sleep(3"), "the statement to run")
        place.server.process.process.send_signal(signal.SIGTERM)
        said = line.rest()
        place.server.process.process.wait(PATIENCE_S)
    assert b"SERROR\0VERROR\0C57" in said
    fatal = said[said.index(b"SFATAL") :]
    assert fatal.count(b"The session was ended: ") == 1
    assert b"The session was ended: the server stops.\0" in fatal
    assert place.ids("pg") == []
    assert place.outcomes(INSERT % 51) == [("rolled back", "")]


@pytest.mark.parametrize("source", ["pg", "lite"])
def test_a_source_that_changes_ends_the_transactions_that_are_open_at_once(
    place: Place, source: str
):
    """Also in the record, although its client says nothing."""
    path = place.server.folder / "settings.json"
    with closing(Line(place.server, source)) as line:
        line.send(text("BEGIN", INSERT % 51))
        line.read(message(b"Z", b"T"))
        settings = json.loads(path.read_text())
        next(each for each in settings["sources"] if each["name"] == source)["access"] = "read"
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(settings))
        fresh.replace(path)
        wait_until(lambda: place.outcomes(INSERT % 51), "the end of the transaction")
        line.send(text(INSERT % 52))
        said = line.read(message(b"Z", b"E"))
        line.send(text("ROLLBACK", "SELECT 7"))
        assert b"SELECT 1" in line.read(message(b"Z", b"I"))
    assert b"C25P01\0MThe transaction is over: it has ended, or its source was closed." in said
    assert place.outcomes(INSERT % 51) == [("rolled back", "")]
    assert place.ids(source) == []


@pytest.mark.parametrize("place", [{"stop_grace_s": 0}], indirect=True)
def test_a_commit_that_outlasts_a_stop_is_said_to_have_an_unknown_end(place: Place):
    place.ask(SLOW_COMMIT)
    with closing(Line(place.server, "pg")) as line:
        line.send(text("INSERT INTO slow VALUES (1)", "SELECT 1"))
        wait_until(lambda: place.running("COMMIT"), "the commit to run")
        place.server.process.process.send_signal(signal.SIGTERM)
        said = line.rest()
        place.server.process.process.wait(PATIENCE_S)
    assert b"C57P01\0" in said
    assert b"it is not known what of it is kept" in said
    assert place.outcomes("INSERT INTO slow VALUES (1)") == [("unknown", "sql.outcome_unknown")]
