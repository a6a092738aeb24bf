"""Many clients, and clients that do not read or do not go on: others are unharmed, and what the
server keeps stays bounded."""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest

from support.command_line import STARTED, environment
from support.eventually import HANG_S, PATIENCE_S
from support.postgres_surface import PostgresShop
from support.wire_server import WireServer, wire_server

LOGINS, SESSIONS = 20, 4


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


START = struct.pack("!I", 196_608) + b"user\0writer\0database\0shop\0\0"


@pytest.fixture(scope="module")
def small(postgres: PostgresShop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireServer]:
    """A server for few clients, started by itself: a fork has its memory in common with others."""
    sources = [{"name": "pg", "url": postgres.url, "access": "write"}]
    pg = {"max_logins": LOGINS, "max_connections": SESSIONS}
    folder = tmp_path_factory.mktemp("small")
    with wire_server(folder, program=STARTED, sources=sources, pg=pg) as served:
        yield served


def resident(server: WireServer) -> int:
    """Bytes of memory of the server's process."""
    status = Path(f"/proc/{server.process.process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line) * 1024


def test_clients_that_never_log_in_keep_no_other_out(small: WireServer):
    with ExitStack() as opened:
        before = opened.enter_context(psycopg.connect(small.conninfo(), autocommit=True))
        halves: list[socket.socket] = []
        for number in range(4 * LOGINS):
            half = socket.create_connection(("127.0.0.1", small.port), timeout=PATIENCE_S)
            halves.append(opened.enter_context(half))
            half.sendall((b"", START[:9], struct.pack("!I", len(START) + 4) + START)[number % 3])
        assert before.execute("SELECT count(*) FROM item").fetchone() == (3,)
        with psycopg.connect(small.conninfo(), autocommit=True) as other:
            assert other.execute("SELECT count(*) FROM item").fetchone() == (3,)
        ended, until = 0, time.monotonic() + PATIENCE_S
        while ended < 3 * LOGINS and time.monotonic() < until:
            readable, _, _ = select.select(halves, [], [], PATIENCE_S)
            for half in readable:
                try:
                    gone = not half.recv(65_536)
                except OSError:
                    gone = True
                if gone:
                    ended += 1
                    halves.remove(half)
        assert len(halves) <= LOGINS


def test_one_client_more_than_may_log_in_is_refused_until_another_leaves(small: WireServer):
    with ExitStack() as opened:
        held = [
            opened.enter_context(psycopg.connect(small.conninfo(user=user), autocommit=True))
            for user in ("writer", "writer", "writer", "reader")
        ]
        with pytest.raises(psycopg.OperationalError, match=r"pg\.max_connections"):
            psycopg.connect(small.conninfo())
        held[0].close()
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                opened.enter_context(psycopg.connect(small.conninfo()))
                break
            except psycopg.OperationalError:  # the server has not seen the end yet
                assert time.monotonic() < until
        assert held[1].execute("SELECT 1").fetchone() == (1,)


def test_one_caller_leaves_places_for_others(small: WireServer):
    with ExitStack() as opened:
        for _ in range(SESSIONS - 1):
            opened.enter_context(psycopg.connect(small.conninfo()))
        with pytest.raises(psycopg.OperationalError, match="most for one caller"):
            psycopg.connect(small.conninfo())
        with psycopg.connect(small.conninfo(user="reader"), autocommit=True) as other:
            assert other.execute("SELECT count(*) FROM item").fetchone() == (3,)


@pytest.mark.parametrize(
    "asked",
    [
        message(b"D", b"Snone\0") + message(b"S"),
        message(b"P", b"\0SELECT 1; SELECT 2\0\0\0") + message(b"S"),
        message(b"Q", b"SHOW nothing.of.that.name\0"),
    ],
    ids=["describe", "parse", "query"],
)
def test_answers_that_a_client_does_not_read_are_not_piled_up(small: WireServer, asked: bytes):
    """It sends questions whose answers are many times as long, and reads none of them until others
    were served: then it gets every answer."""
    count = 120_000
    with (
        psycopg.connect(small.conninfo(), autocommit=True) as other,
        psycopg.connect(small.conninfo(), autocommit=True) as greedy,
        socket.socket(fileno=os.dup(greedy.fileno())) as line,
        ThreadPoolExecutor(1) as threads,
    ):
        line.setblocking(True)
        line.settimeout(HANG_S)
        assert other.execute("SELECT 1").fetchone() == (1,)
        before = resident(small)
        sent = threads.submit(line.sendall, asked * count)
        for _ in range(200):
            assert other.execute("SELECT count(*) FROM item").fetchone() == (3,)
        assert resident(small) - before < 10_000_000
        ready, answered, tail = b"Z\0\0\0\5I", 0, b""
        while answered < count:
            said = tail + line.recv(1_048_576)
            assert len(said) > len(tail)
            answered += said.count(ready)
            tail = said[-len(ready) + 1 :]
        sent.result()


def test_a_client_that_does_not_read_holds_its_statement_back_and_harms_no_other(
    small: WireServer, postgres: PostgresShop
):
    """A result of 400 MB: what waits for the client is bounded, and the database waits, too."""
    mark = "a_slow_reader"
    asked = f"SELECT repeat('x', 4000) AS {mark} FROM generate_series(1, 100000)"
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'"
        f" AND query LIKE '%{mark}%'"
    )
    with (
        psycopg.connect(small.conninfo("pg"), autocommit=True) as other,
        psycopg.connect(small.conninfo("pg"), autocommit=True) as slow,
    ):
        assert other.execute("SELECT 1").fetchone() == (1,)
        before = resident(small)
        text = asked.encode() + b"\0"
        line = socket.socket(fileno=os.dup(slow.fileno()))
        with line:
            line.setblocking(True)
            line.sendall(b"Q" + struct.pack("!I", len(text) + 4) + text)
            until = time.monotonic() + PATIENCE_S
            while not int(postgres.server.ask(waiting, postgres.database)[0][0]):
                assert time.monotonic() < until
            assert other.execute("SELECT count(*) FROM kinds").fetchone() == (44,)
            assert resident(small) - before < 32_000_000
        slow.close()
        until = time.monotonic() + PATIENCE_S
        while int(postgres.server.ask(waiting, postgres.database)[0][0]):
            assert time.monotonic() < until
        assert other.execute("SELECT count(*) FROM kinds").fetchone() == (44,)


def test_a_message_that_comes_byte_by_byte_holds_no_other_up(small: WireServer):
    text = b"SELECT count(*) FROM item\0"
    sent = b"Q" + struct.pack("!I", len(text) + 4) + text
    with (
        psycopg.connect(small.conninfo(), autocommit=True) as slow,
        psycopg.connect(small.conninfo(), autocommit=True) as other,
        socket.socket(fileno=os.dup(slow.fileno())) as line,
    ):
        line.setblocking(True)
        line.settimeout(PATIENCE_S)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(sent) - 1):
            line.sendall(sent[at : at + 1])
            if at % 10 == 0:
                assert other.execute("SELECT 1").fetchone() == (1,)
        line.sendall(sent[-1:])
        said = b""
        while b"Z\0\0\0\5I" not in said:
            said += line.recv(65_536)
        assert b"SELECT 1" in said


def test_requests_to_cancel_with_guessed_keys_end_nothing_and_are_not_kept(small: WireServer):
    with psycopg.connect(small.conninfo(), autocommit=True) as gate:
        number = gate.info.backend_pid
        for _ in range(5 * LOGINS):
            with socket.create_connection(("127.0.0.1", small.port), PATIENCE_S) as line:
                line.sendall(struct.pack("!III", 16, 80_877_102, number) + os.urandom(4))
                with suppress(OSError):
                    assert line.recv(1) == b""
        assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of open files are POSIX's")
def test_a_limit_of_open_files_that_is_too_low_is_named_at_the_start(tmp_path: Path):
    command = ("-m", "tidegate", "serve", "--pg", "127.0.0.1:0")
    ended = subprocess.run(
        ["bash", "-c", 'ulimit -n 400; exec "$@"', "bash", sys.executable, *command],
        env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert ended.returncode != 0
    for words in ("400", "ulimit -n", "pg.max_connections", "pg.max_logins"):
        assert words in ended.stderr


_ROWS = {
    "pg": "SELECT repeat('x', 100000) AS a FROM generate_series(1, 300)",
    "shop": "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
    " SELECT hex(zeroblob(50000)) AS a FROM n",
}
"""Thirty million characters."""


@pytest.mark.parametrize("source", _ROWS)
def test_cursors_that_outlive_their_block_keep_so_much_together_and_no_more(
    small: WireServer, source: str
):
    with psycopg.connect(small.conninfo(source), autocommit=True) as gate:
        gate.execute("BEGIN")
        for number in range(5):
            gate.execute(f"DECLARE held{number} CURSOR WITH HOLD FOR {_ROWS[source]}")
        before = resident(small)
        with pytest.raises(psycopg.errors.OutOfMemory, match="hold 67,108,864 bytes at most"):
            gate.execute("COMMIT")
        assert resident(small) - before < 120_000_000
        with pytest.raises(psycopg.errors.InvalidCursorName):
            gate.execute("FETCH FROM held0")
        gate.execute("BEGIN")
        gate.execute(f"DECLARE held CURSOR WITH HOLD FOR {_ROWS[source]}")
        gate.execute("COMMIT")  # what the others held was given back
        assert len(gate.execute("FETCH ALL FROM held").fetchall()) == 300


def test_cursors_after_a_change_of_their_block_keep_so_much_together_and_no_more(
    small: WireServer,
):
    with psycopg.connect(small.conninfo(), autocommit=True) as gate:
        gate.execute("BEGIN")
        gate.execute("UPDATE item SET price = 4 WHERE id = 3")
        gate.execute(f"DECLARE one CURSOR FOR {_ROWS['shop']}")
        gate.execute("CLOSE one")
        gate.execute(f"DECLARE two CURSOR FOR {_ROWS['shop']}")
        gate.execute(f"DECLARE three CURSOR FOR {_ROWS['shop']}")
        with pytest.raises(psycopg.errors.Error, match="67,108,864 bytes at most, all together"):
            gate.execute(f"DECLARE four CURSOR FOR {_ROWS['shop']}")
        gate.execute("ROLLBACK")
    assert small.rows("SELECT price FROM item WHERE id = 3") == [(3.0,)]


def test_statements_parameters_and_long_messages_of_one_caller_are_bounded_together(
    small: WireServer,
):
    """Two sessions of three hold all that one may; long messages find no room in the third."""
    text = b"\0SELECT '" + b"x" * 90_000 + b"'\0\0\0"
    with ExitStack() as opened:
        refused = 0
        for _ in range(SESSIONS - 1):
            gate = opened.enter_context(psycopg.connect(small.conninfo(), autocommit=True))
            with socket.socket(fileno=os.dup(gate.fileno())) as line:
                line.setblocking(True)
                line.settimeout(PATIENCE_S)
                said = b""
                for number in range(900):
                    line.sendall(message(b"P", b"s%d" % number + text) + message(b"S"))
                    while not said.endswith(b"Z\0\0\0\5I"):
                        said += line.recv(65_536)
                    refused += b"C53200" in said
                    said = b""
        assert refused
        with psycopg.connect(small.conninfo(user="reader"), autocommit=True) as other:
            assert other.execute("SELECT %s", ("x" * 90_000,)).fetchone() == ("x" * 90_000,)


SLOW = "SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d, pg_type e"
"""It is ended after ten seconds, if no one ends it before."""


def test_queries_on_catalogs_of_one_caller_hold_no_other_up_and_can_be_cancelled(
    server: WireServer,
):
    with ExitStack() as opened, ThreadPoolExecutor(8) as threads:
        slow = [
            opened.enter_context(psycopg.connect(server.conninfo(user="reader"), autocommit=True))
            for _ in range(8)
        ]
        other = opened.enter_context(psycopg.connect(server.conninfo(), autocommit=True))
        running = [threads.submit(each.execute, SLOW) for each in slow]
        found = other.execute("SELECT relname FROM pg_class WHERE relname = 'item'").fetchall()
        assert found == [("item",)]
        assert sum(each.done() for each in running) < 4
        ended: list[str] = []
        for each, result in zip(slow, running, strict=True):
            while not result.done():  # the first request may come before the query
                each.cancel_safe()
                wait([result], timeout=0.2)
            error = result.exception()
            assert isinstance(error, psycopg.Error)
            ended.append(str(error.sqlstate))
        assert set(ended) == {"57014"}
        assert slow[0].execute("SELECT count(*) > 0 FROM pg_class").fetchone() == (True,)
