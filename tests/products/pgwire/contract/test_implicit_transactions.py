"""Several statements of one text, or before one Sync, are one transaction, as PostgreSQL says."""

from __future__ import annotations

import os
import random
import socket
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import asyncpg
import psycopg
import pytest
from psycopg import errors, pq

from support.eventually import PATIENCE_S, wait_until
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer

LEDGERS = """
DROP TABLE IF EXISTS ledger_here, ledger_there;
CREATE TABLE ledger_here (id int PRIMARY KEY, note text, CONSTRAINT late_here UNIQUE (note)
  DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE ledger_there (id int PRIMARY KEY, note text, CONSTRAINT late_there UNIQUE (note)
  DEFERRABLE INITIALLY DEFERRED);
"""
LEVEL = "ISOLATION LEVEL"
"""What PostgreSQL takes only before anything that reads: also before CLOSE ALL, where it has no
effect that could be seen. Here it is the first of its text."""
STATEMENTS = (
    "INSERT INTO ledger VALUES (1, 'a')",
    "INSERT INTO ledger VALUES (2, 'b')",
    "INSERT INTO ledger VALUES (3, 'a') RETURNING id",
    "UPDATE ledger SET note = note || 'x' WHERE id = 1",
    "DELETE FROM ledger WHERE id = 2",
    "SELECT id, note FROM ledger ORDER BY id",
    "SELECT count(*) FROM ledger",
    "SELECT 1/0",
    "SET timezone = 'Asia/Tokyo'",
    "SET LOCAL timezone = 'America/Lima'",
    "SELECT set_config('timezone', 'Africa/Cairo', true)",
    "RESET timezone",
    "SHOW timezone",
    "SHOW transaction_isolation",
    "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SELECT now() = now()",
    "BEGIN",
    "START TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "COMMIT",
    "ROLLBACK",
    "COMMIT AND CHAIN",
    "SAVEPOINT a",
    "ROLLBACK TO SAVEPOINT a",
    "RELEASE SAVEPOINT a",
    "DECLARE c CURSOR FOR SELECT id FROM ledger ORDER BY id",
    "DECLARE h CURSOR WITH HOLD FOR SELECT id FROM ledger ORDER BY id",
    "FETCH 1 FROM c",
    "FETCH ALL FROM h",
    "CLOSE ALL",
    "COPY (SELECT id FROM ledger ORDER BY id) TO STDOUT",
    "DISCARD ALL",
)


class Reply(NamedTuple):
    """What one result says: its kind, tag, rows and SQLSTATE."""

    kind: str
    tag: str
    rows: list[list[bytes | None]]
    sqlstate: str


class Speaker:
    """A libpq connection that tells all that it is told."""

    def __init__(self, conninfo: str, table: str) -> None:
        self._connection = psycopg.connect(conninfo, autocommit=True)
        self._pq = self._connection.pgconn
        self._table = table
        self._notices: list[str] = []
        self._pq.notice_handler = self._note

    def _note(self, result: Any) -> None:
        self._notices.append((result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())

    def _text(self, statement: str) -> bytes:
        return statement.replace("ledger", self._table).encode()

    def close(self) -> None:
        self._connection.close()

    def simple(self, statements: Sequence[str]) -> tuple[list[Reply], list[str], str]:
        """What a text of them is answered with, the warnings, and the transaction's status."""
        self._notices.clear()
        self._pq.send_query(self._text("; ".join(statements)))
        return self._replies(), list(self._notices), self._status()

    def flushed(self, statement: str) -> list[Reply]:
        """What a statement is answered with behind which a Flush comes."""
        self._pq.enter_pipeline_mode()
        self._pq.send_query_params(self._text(statement), None)
        self._pq.send_flush_request()
        self._pq.flush()
        return self._replies()

    def pipeline(self, statements: Sequence[str]) -> tuple[list[Reply], list[str], str]:
        """The same of a Sync behind all of them."""
        self._notices.clear()
        self._pq.enter_pipeline_mode()
        for each in statements:
            self._pq.send_query_params(self._text(each), None)
        self._pq.pipeline_sync()
        replies: list[Reply] = []
        while True:
            found = self._replies()
            replies += found
            if any(each.kind == "PIPELINE_SYNC" for each in found):
                break
        self._pq.exit_pipeline_mode()
        return replies, list(self._notices), self._status()

    def _status(self) -> str:
        return pq.TransactionStatus(self._pq.transaction_status).name

    def _replies(self) -> list[Reply]:
        replies: list[Reply] = []
        while (result := self._pq.get_result()) is not None:
            kind = pq.ExecStatus(result.status).name
            if kind == "COPY_OUT":
                lines: list[list[bytes | None]] = []
                while (taken := self._pq.get_copy_data(0))[0] > 0:
                    lines.append([bytes(taken[1])])
                replies.append(Reply(kind, "", lines, ""))
                continue
            rows = [
                [result.get_value(row, column) for column in range(result.nfields)]
                for row in range(result.ntuples)
            ]
            tag = (result.command_status or b"").decode()
            state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
            replies.append(Reply(kind, tag, rows, state.decode()))
            if kind == "PIPELINE_SYNC":
                break
        return replies


class Pair(NamedTuple):
    """The wire, and PostgreSQL itself."""

    here: Speaker
    there: Speaker
    conninfo: str

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.conninfo, autocommit=True) as direct:
            return direct.execute(f"SELECT id, note FROM {table} ORDER BY id").fetchall()  # pyright: ignore


@pytest.fixture
def pair(server: WireServer, postgres: PostgresShop) -> Iterator[Pair]:
    conninfo = postgres.server.conninfo(postgres.database)
    with psycopg.connect(conninfo, autocommit=True) as direct:
        direct.execute(LEDGERS)  # pyright: ignore
    found = Pair(
        Speaker(server.conninfo("pg"), "ledger_here"), Speaker(conninfo, "ledger_there"), conninfo
    )
    yield found
    found.here.close()
    found.there.close()
    with psycopg.connect(conninfo, autocommit=True) as direct:
        direct.execute("DROP TABLE ledger_here, ledger_there")


def compare(pair: Pair, statements: Sequence[str], how: str) -> None:
    """Send the same to both, and hold what they said and what they kept beside each other."""
    here, there = (getattr(each, how)(statements) for each in (pair.here, pair.there))
    assert here == there, statements
    for each in ("ROLLBACK", "SHOW timezone", "CLOSE ALL", "RESET ALL"):
        here, there = pair.here.simple([each]), pair.there.simple([each])
        assert here == there, (statements, each)
    assert pair.rows("ledger_here") == pair.rows("ledger_there"), statements


@pytest.mark.parametrize("how", ["simple", "pipeline"])
@pytest.mark.parametrize(
    "statements",
    [
        ("INSERT INTO ledger VALUES (1, 'a')", "SELECT 1/0"),
        ("INSERT INTO ledger VALUES (1, 'a')", "INSERT INTO ledger VALUES (2, 'a')"),
        ("SET timezone = 'Asia/Tokyo'", "SELECT 1/0"),
        ("SET timezone = 'Asia/Tokyo'", "SHOW timezone"),
        ("SELECT 1", "SET LOCAL timezone = 'America/Lima'", "SHOW timezone"),
        ("INSERT INTO ledger VALUES (1, 'a')", "COMMIT", "SELECT 1/0"),
        ("INSERT INTO ledger VALUES (1, 'a')", "ROLLBACK", "INSERT INTO ledger VALUES (2, 'b')"),
        ("INSERT INTO ledger VALUES (1, 'a')", "BEGIN", "SELECT 1/0"),
        ("INSERT INTO ledger VALUES (1, 'a')", "BEGIN", "SELECT 1"),
        ("BEGIN", "INSERT INTO ledger VALUES (1, 'a')", "COMMIT", "SELECT 1/0"),
    ],
)
def test_what_is_sent_together_is_one_transaction(
    pair: Pair, statements: Sequence[str], how: str
) -> None:
    compare(pair, statements, how)


@pytest.mark.parametrize("how", ["simple", "pipeline"])
def test_any_series_of_statements_is_answered_as_by_postgres(pair: Pair, how: str) -> None:
    chosen = random.Random(11)
    for _ in range(150):
        first = chosen.choice(STATEMENTS)
        others = chosen.choices([each for each in STATEMENTS if LEVEL not in each], k=3)
        compare(pair, [first, *others[: chosen.randint(1, 3)]], how)


def test_a_table_is_made_last_in_a_text_and_not_before_others(pair: Pair, server: WireServer):
    with psycopg.connect(server.conninfo("pg"), autocommit=True) as gate:
        with pytest.raises(errors.FeatureNotSupported, match="nothing of the others is kept"):
            gate.execute("CREATE TABLE made_here (id int); SELECT 1/0")
        with pytest.raises(errors.FeatureNotSupported, match="one transaction"):
            gate.execute("INSERT INTO ledger_here VALUES (9, 'i'); CREATE TABLE made_here (id int)")
        assert pair.rows("ledger_here") == []
        gate.execute("SET timezone = 'Asia/Tokyo'; SELECT 1; CREATE TABLE made_here (id int)")
        assert gate.execute("SHOW timezone").fetchone() == ("Asia/Tokyo",)
        with pytest.raises(errors.DuplicateTable):
            gate.execute("SET timezone = 'Africa/Cairo'; CREATE TABLE made_here (id int)")
        assert gate.execute("SHOW timezone").fetchone() == ("Asia/Tokyo",)
    with psycopg.connect(pair.conninfo, autocommit=True) as direct:
        direct.execute("DROP TABLE made_here")


async def test_rows_of_executemany_are_kept_all_or_none(pair: Pair, server: WireServer):
    gate = await asyncpg.connect(
        host="127.0.0.1", port=server.port, user="writer", database="pg",
        password=server.secrets["writer"],
    )  # fmt: skip
    try:
        rows = [(1, "a"), (2, "b"), (1, "c")]
        with pytest.raises(asyncpg.UniqueViolationError):
            await gate.executemany("INSERT INTO ledger_here VALUES ($1, $2)", rows)
        assert pair.rows("ledger_here") == []
        await gate.executemany("INSERT INTO ledger_here VALUES ($1, $2)", rows[:2])
    finally:
        await gate.close()
    assert pair.rows("ledger_here") == rows[:2]


@pytest.mark.parametrize("source", ["shop", "maria"])
def test_other_databases_with_transactions_keep_all_or_nothing(
    server: WireServer, request: pytest.FixtureRequest, source: str
):
    if source == "maria":
        request.getfixturevalue("needs_mariadb")
    insert = "INSERT INTO item (id, name, price) VALUES (%d, 'x', 1)"
    with psycopg.connect(server.conninfo(source), autocommit=True) as gate:
        with pytest.raises(psycopg.Error):
            gate.execute(f"{insert % 71}; {insert % 72}; {insert % 71}")  # pyright: ignore
        with pytest.raises(psycopg.Error), gate.pipeline():
            for id in (71, 72, 71):
                gate.execute(insert % id)  # pyright: ignore
        assert gate.execute("SELECT count(*) FROM item WHERE id > 70").fetchone() == (0,)
        gate.execute(f"{insert % 71}; {insert % 72}")  # pyright: ignore
        assert gate.execute("SELECT count(*) FROM item WHERE id > 70").fetchone() == (2,)
        gate.execute("DELETE FROM item WHERE id > 70")


@pytest.mark.needs("duckdb")
def test_a_source_without_transactions_says_which_changes_are_kept(server: WireServer):
    insert = "INSERT INTO item (id, name, price) VALUES (%s, 'x', 1)"
    with psycopg.connect(server.conninfo("duck"), autocommit=True) as gate:
        with pytest.raises(errors.FeatureNotSupported, match="None of them was run"):
            gate.execute(f"{insert % 71}; {insert % 72}")  # pyright: ignore
        kept = "The 2 changes sent with it before are kept: this source has no transactions"
        with pytest.raises(psycopg.Error, match=kept), gate.pipeline():
            for id in (71, 72):
                gate.execute(insert % id)  # pyright: ignore
            gate.execute("SELECT nothing FROM item")
        assert gate.execute("SELECT count(*) FROM item WHERE id > 70").fetchone() == (2,)
        with pytest.raises(psycopg.Error, match="The change sent with it before is kept"):
            gate.execute(f"{insert % 73}; SELECT nothing FROM item")  # pyright: ignore
        gate.execute("DELETE FROM item WHERE id > 70")


def test_what_a_client_flushes_is_answered_before_its_sync(pair: Pair):
    said: list[list[Reply]] = []
    for each in (pair.here, pair.there):
        first = each.flushed("INSERT INTO ledger VALUES (1, 'a')")
        said.append(first + each.pipeline(["SELECT 1/0"])[0])
    assert said[0] == said[1]
    assert pair.rows("ledger_here") == pair.rows("ledger_there") == []


def test_no_more_than_a_bound_is_kept_behind_an_execute_that_waits(server: WireServer):
    with psycopg.connect(server.conninfo("pg"), autocommit=True) as gate:
        line = socket.socket(fileno=os.dup(gate.fileno()))
        line.setblocking(True)
        line.settimeout(PATIENCE_S)
        line.sendall(extended("SELECT 'seen'") + 20_000 * message(b"C", b"Snone\0"))
        said = b""
        while b"seen" not in said:
            said += line.recv(65_536)
        line.close()


def test_what_a_client_sent_that_has_gone_is_not_kept(pair: Pair, server: WireServer):
    with psycopg.connect(server.conninfo("pg"), autocommit=True) as gate:
        line = socket.socket(fileno=os.dup(gate.fileno()))
        line.setblocking(True)
        line.settimeout(PATIENCE_S)
        line.sendall(extended("INSERT INTO ledger_here VALUES (1, 'a')") + message(b"H", b""))
        assert b"INSERT 0 1" in line.recv(65_536)
        line.sendall(message(b"X", b""))
        while line.recv(65_536):
            pass
        line.close()
    wait_until(lambda: not idle_transactions(pair.conninfo), "no transaction to be left")
    assert pair.rows("ledger_here") == []


def test_a_series_whose_transaction_the_database_ends_says_so(pair: Pair, server: WireServer):
    with psycopg.connect(server.conninfo("pg"), autocommit=True) as gate:
        line = socket.socket(fileno=os.dup(gate.fileno()))
        line.setblocking(True)
        line.settimeout(PATIENCE_S)
        line.sendall(extended("INSERT INTO ledger_here VALUES (1, 'a')") + message(b"H", b""))
        assert b"INSERT 0 1" in line.recv(65_536)
        with psycopg.connect(pair.conninfo, autocommit=True) as direct:
            for pid in idle_transactions(pair.conninfo):
                direct.execute("SELECT pg_terminate_backend(%s)", (pid,))
        line.sendall(extended("INSERT INTO ledger_here VALUES (2, 'b')") + message(b"S", b""))
        said = b""
        while message(b"Z", b"I") not in said:
            more = line.recv(65_536)
            assert more, said
            said += more
        assert b"SERROR" in said
        line.close()
        assert gate.pgconn is not None
    assert pair.rows("ledger_here") == []


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def extended(text: str) -> bytes:
    """A statement as a driver sends it, without a Sync."""
    return (
        message(b"P", b"\0" + text.encode() + b"\0\0\0")
        + message(b"B", b"\0\0\0\0\0\0\0\0")
        + message(b"E", b"\0\0\0\0\0")
    )


def idle_transactions(conninfo: str) -> list[int]:
    """The server processes of this database in whose transaction nothing runs."""
    asked = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%'"
    )
    with psycopg.connect(conninfo, autocommit=True) as direct:
        return [pid for (pid,) in direct.execute(asked)]
