"""What is no client of PostgreSQL, or not one that means well: before and after its login."""

from __future__ import annotations

import os
import random
import socket
import struct
from contextlib import suppress

import psycopg
import pytest

from support.eventually import PATIENCE_S
from support.wire_server import WireServer
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

START = struct.pack("!I", 196_608) + b"user\0writer\0database\0shop\0\0"


def framed(body: bytes) -> bytes:
    return struct.pack("!I", len(body) + 4) + body


def answer(server: WireServer, *parts: bytes, ends: bool = True) -> bytes:
    """All that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as line:
        for part in parts:
            try:
                line.sendall(part)
            except OSError:
                break
        if ends:
            with suppress(OSError):  # the server has closed it
                line.shutdown(socket.SHUT_WR)
        said = b""
        while True:
            try:
                more = line.recv(65_536)
            except OSError:
                return said
            if not more:
                return said
            said += more


def still_answers(server: WireServer) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        struct.pack("!II", 0x7FFF_FFFF, 196_608),
        struct.pack("!II", 4, 0),
        framed(struct.pack("!I", 131_072) + b"user\0x\0\0"),
        framed(START[:-1]),
        framed(struct.pack("!I", 196_608) + b"\0"),
        framed(struct.pack("!I", 196_608) + b"user\0writer"),
        framed(struct.pack("!I", 196_608) + b"user\0\xff\xfe\0\0"),
        framed(struct.pack("!I", 80_877_102) + b"\0\0\0\1\0\0\0\2"),
        framed(START) + b"Q" + framed(b"SELECT 1\0"),
        framed(START) + b"p" + struct.pack("!I", 0x4000_0000),
        framed(START) + b"p" + framed(b"SCRAM-SHA-256\0" + struct.pack("!i", 3) + b"n,,"),
        framed(START) + b"p" + framed(b"SCRAM-SHA-256-PLUS\0" + struct.pack("!i", 0)),
        framed(START) + b"p" + framed(b"md5abcdef\0"),
    ],
)
def test_what_comes_before_a_login_gets_no_session(server: WireServer, sent: bytes):
    said = answer(server, sent)
    assert b"Z" + struct.pack("!I", 5) not in said  # ReadyForQuery
    still_answers(server)


def test_a_login_that_is_under_way_ends_when_its_token_is_revoked(server: WireServer):
    store = SqliteState(server.folder / "state" / "state.db")
    tokens = Tokens(store.tokens)
    try:
        tokens.create("leaked", TokenRights(Scope.READ_WRITE))
        with (
            psycopg.connect(server.conninfo(), autocommit=True) as gate,
            socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as line,
        ):
            first = b"n,,n=,r=abcdef"
            line.sendall(framed(START.replace(b"writer", b"leaked")))
            assert b"SCRAM-SHA-256" in line.recv(65_536)
            length = struct.pack("!i", len(first))
            line.sendall(b"p" + framed(b"SCRAM-SHA-256\0" + length + first))
            assert b"r=abcdef" in line.recv(65_536)
            tokens.revoke("leaked")
            with suppress(ConnectionResetError):
                assert line.recv(65_536) == b""
            assert gate.execute("SELECT count(*) FROM item").fetchone() == (3,)
    finally:
        tokens.close()
        store.close()


def test_random_bytes_end_no_other_session(server: WireServer):
    chance = random.Random(7)
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        for _ in range(60):
            answer(server, os.urandom(chance.randint(1, 600)))
        for _ in range(60):
            noise = chance.randbytes(chance.randint(1, 60))
            answer(server, framed(START), b"p" + framed(noise), chance.randbytes(20))
        assert gate.execute("SELECT 1").fetchone() == (1,)


def test_bytes_in_plain_text_before_the_handshake_of_tls_are_never_read(server: WireServer):
    said = answer(server, framed(struct.pack("!I", 80_877_103)) + framed(START))
    assert said[:1] == b"N"


@pytest.mark.parametrize(
    "sent",
    [
        b"?" + framed(b""),
        b"Q" + struct.pack("!I", 0x7FFF_FFF0),
        b"Q" + struct.pack("!I", 2),
        b"Q" + framed(b"SELECT 1"),
        b"Q" + framed(b"SELECT '\xff'\0"),
        b"P" + framed(b"\0SELECT 1\0\xff\xff"),
        b"B" + framed(b"\0\0\0\1\0\7\0\0\0\0"),
        b"D" + framed(b"X\0"),
        b"E" + framed(b"\0"),
        b"B" + framed(b"\0\0\0\0\0\1\xff\xff\xff\xf0\0\0"),
    ],
)
def test_a_broken_message_ends_its_own_session_and_says_why(server: WireServer, sent: bytes):
    gate = psycopg.connect(server.conninfo(), autocommit=True)
    line = socket.socket(fileno=os.dup(gate.fileno()))
    line.setblocking(True)
    line.settimeout(PATIENCE_S)
    line.sendall(sent)
    said = b""
    while more := line.recv(65_536):
        said += more
    line.close()
    gate.close()
    assert b"C08P01" in said
    still_answers(server)


def test_a_guessed_cancel_key_cancels_nothing(server: WireServer):
    with psycopg.connect(server.conninfo(), autocommit=True) as gate:
        number = gate.info.backend_pid
        for guess in (b"\0\0\0\0", b"\xff" * 4, os.urandom(4), b"", b"\0" * 200):
            answer(server, framed(struct.pack("!II", 80_877_102, number) + guess))
        assert gate.execute("SELECT 1").fetchone() == (1,)


def test_random_messages_after_a_login_harm_no_other_session(server: WireServer):
    chance = random.Random(11)
    with psycopg.connect(server.conninfo(), autocommit=True) as other:
        for _ in range(40):
            gate = psycopg.connect(server.conninfo(), autocommit=True)
            with socket.socket(fileno=os.dup(gate.fileno())) as line:
                line.setblocking(True)
                line.settimeout(PATIENCE_S)
                noise = b"".join(
                    bytes([chance.choice(b"BCDEFHPQScdfp")])
                    + framed(chance.randbytes(chance.randint(0, 30)) + b"\0" * chance.randint(0, 8))
                    for _ in range(chance.randint(1, 6))
                )
                with suppress(OSError):
                    line.sendall(noise + b"S" + framed(b""))
                    line.shutdown(socket.SHUT_WR)
                    while line.recv(65_536):
                        pass
            gate.close()
        assert other.execute("SELECT count(*) FROM item").fetchone() == (3,)


@pytest.mark.parametrize(
    "whole",
    [
        framed(START),
        framed(START)
        + b"p"
        + framed(b"SCRAM-SHA-256\0" + struct.pack("!i", 14) + b"n,,n=,r=abcdef"),
    ],
    ids=["startup", "first message of SCRAM"],
)
def test_a_login_that_breaks_off_anywhere_leaves_nothing(server: WireServer, whole: bytes):
    for end in range(0, len(whole), 5):
        assert b"Z" + struct.pack("!I", 5) not in answer(server, whole[:end])
    still_answers(server)


def test_a_message_that_breaks_off_anywhere_runs_nothing(server: WireServer):
    text = b"INSERT INTO item VALUES (77, 'half', 1, NULL)\0"
    parsed = b"P" + framed(b"\0" + text + b"\0\0") + b"B" + framed(b"\0\0\0\0\0\0\0\0")
    for whole in (b"Q" + framed(text), parsed + b"E" + framed(b"\0\0\0\0\0")):
        for end in range(0, len(whole), 9):
            gate = psycopg.connect(server.conninfo(), autocommit=True)
            with socket.socket(fileno=os.dup(gate.fileno())) as line:
                line.setblocking(True)
                line.settimeout(PATIENCE_S)
                line.sendall(whole[:end])
                line.shutdown(socket.SHUT_WR)
                with suppress(OSError):
                    while line.recv(65_536):
                        pass
            gate.close()
    assert server.rows("SELECT count(*) FROM item WHERE id = 77") == [(0,)]
    still_answers(server)
