"""A client that sends much at once is answered in turns with what else the server has to do."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path

import pytest

from support.eventually import HANG_S, PATIENCE_S
from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.config.model import Config
from tidegate.edges.listening import Listening
from tidegate.errors import Code, TidegateError
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, Query
from tidegate.products.pgwire import connection
from tidegate.products.pgwire.server import WireServer
from tidegate.products.pgwire.settings import PgWireSettings

READY = b"Z\0\0\0\5I"
START = struct.pack("!I", 196_608) + b"user\0x\0database\0shop\0\0"
MANY = 1_000


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        ((message(b"D", b"Snone\0") + message(b"S")) * MANY, 2 * MANY),
        (message(b"H") * MANY + message(b"S"), MANY),
        (message(b"Q", b"SHOW server_version;" * 45 + b"\0") * 20, 900),
    ],
    ids=["answered messages", "messages without an answer", "commands of one text"],
)
async def test_the_event_loop_goes_on_while_one_client_is_answered(
    tmp_path: Path, asked: bytes, steps: int, monkeypatch: pytest.MonkeyPatch
):
    """With turns of no length, each message and each command has one of its own."""
    monkeypatch.setattr(connection, "TURN_S", 0)
    (tmp_path / "shop.db").touch()
    gate = SqliteGate(tmp_path, sqlite_source(tmp_path / "shop.db"))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    async with gate.opened(), asyncio.timeout(PATIENCE_S):
        server = WireServer(
            gate,  # pyright: ignore[reportArgumentType]
            Listening(listener),
            None,
            PgWireSettings(),
            Config(body_limit_bytes=1_000_000),
        )
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(struct.pack("!I", len(START) + 4) + START)
        await reader.readuntil(READY)
        writer.write(asked + message(b"X"))
        answer = asyncio.ensure_future(reader.read())
        turns = 0
        while not answer.done():
            await asyncio.sleep(0)
            turns += 1
        assert await answer
        writer.close()
        await server.stop(0)
    assert turns >= steps


async def test_a_statement_that_comes_as_its_session_is_ended_does_not_run(tmp_path: Path):
    """It has arrived, but its session has not taken it up: the client is told that it was ended."""
    (tmp_path / "shop.db").touch()
    gate = SqliteGate(tmp_path, sqlite_source(tmp_path / "shop.db"))
    listener = socket.create_server(("127.0.0.1", 0))
    async with gate.opened(), asyncio.timeout(PATIENCE_S):
        server = WireServer(
            gate,  # pyright: ignore[reportArgumentType]
            Listening(listener),
            None,
            PgWireSettings(),
            Config(body_limit_bytes=1_000_000),
        )
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
        writer.write(struct.pack("!I", len(START) + 4) + START)
        await reader.readuntil(READY)
        writer.write(message(b"Q", b"SELECT 1\0"))  # it is known, and would run at once
        await reader.readuntil(READY)
        (served,) = server._connections  # pyright: ignore[reportPrivateUsage]
        before = len(gate.calls)
        served.data_received(message(b"Q", b"SELECT 1\0"))
        served.end(TidegateError(Code.CALL_CANCELLED, "The session was ended."))
        said = await reader.read()
        await served.wait_ended()
        writer.close()
        await server.stop(0)
    assert b"SFATAL" in said
    assert len(gate.calls) == before


async def test_a_client_that_sends_as_its_session_is_ended_is_told_and_not_reset(tmp_path: Path):
    """Its message is in the system's hands: closing then would reset the connection."""
    (tmp_path / "shop.db").touch()
    gate = SqliteGate(tmp_path, sqlite_source(tmp_path / "shop.db"))
    listener = socket.create_server(("127.0.0.1", 0))
    async with gate.opened(), asyncio.timeout(PATIENCE_S):
        server = WireServer(
            gate,  # pyright: ignore[reportArgumentType]
            Listening(listener),
            None,
            PgWireSettings(),
            Config(body_limit_bytes=1_000_000),
        )
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
        writer.write(struct.pack("!I", len(START) + 4) + START)
        await reader.readuntil(READY)
        before = len(gate.calls)
        writer.write(message(b"Q", b"SELECT 1\0"))
        stopping = asyncio.ensure_future(server.stop(0))
        said = await reader.read()  # ConnectionResetError, if the connection was reset
        writer.write(message(b"Q", b"SELECT 1\0"))
        await writer.drain()
        writer.close()
        await stopping
    assert b"SFATAL" in said and b"57P01" in said
    assert len(gate.calls) == before


@pytest.mark.parametrize("asks", [True, False])
async def test_a_client_that_is_answered_last_learns_of_the_end_by_its_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asks: bool
):
    """libpq would take an error that came with the answer for a notice. One that asks nothing more
    is told when the time of the server is over."""
    monkeypatch.setattr(connection, "HEAR_S", HANG_S)
    (tmp_path / "shop.db").touch()
    stopping: list[asyncio.Future[None]] = []
    hurry = asyncio.Event()

    class Stopping(SqliteGate):
        """Its server stops while it runs a statement."""

        async def handle(self, call: Call) -> Reply:
            if isinstance(call.request, Query):
                stopping.append(asyncio.ensure_future(server.stop(HANG_S, hurry)))
                await asyncio.sleep(0)
            return await super().handle(call)

    gate = Stopping(tmp_path, sqlite_source(tmp_path / "shop.db"))
    listener = socket.create_server(("127.0.0.1", 0))
    async with gate.opened(), asyncio.timeout(PATIENCE_S):
        server = WireServer(
            gate,  # pyright: ignore[reportArgumentType]
            Listening(listener),
            None,
            PgWireSettings(),
            Config(body_limit_bytes=1_000_000),
        )
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
        writer.write(struct.pack("!I", len(START) + 4) + START)
        await reader.readuntil(READY)
        writer.write(message(b"Q", b"SELECT 1 AS one\0"))
        answered = await reader.read(10_000)
        if asks:
            writer.write(message(b"Q", b"SELECT 1 AS one\0"))
        else:
            hurry.set()
        said = await reader.read()
        writer.close()
        await stopping[0]
    assert answered.endswith(READY) and len(stopping) == 1
    assert b"SFATAL" in said and b"57P01" in said


async def test_a_client_that_was_just_answered_learns_of_the_end_by_its_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It may not have read the answer yet."""
    monkeypatch.setattr(connection, "HEAR_S", HANG_S)
    (tmp_path / "shop.db").touch()
    gate = SqliteGate(tmp_path, sqlite_source(tmp_path / "shop.db"))
    listener = socket.create_server(("127.0.0.1", 0))
    async with gate.opened(), asyncio.timeout(PATIENCE_S):
        server = WireServer(
            gate,  # pyright: ignore[reportArgumentType]
            Listening(listener),
            None,
            PgWireSettings(),
            Config(body_limit_bytes=1_000_000),
        )
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.getsockname()[1])
        writer.write(struct.pack("!I", len(START) + 4) + START)
        await reader.readuntil(READY)
        writer.write(message(b"Q", b"SELECT 1 AS one\0"))
        await reader.readuntil(READY)
        before = len(gate.calls)
        stopping = asyncio.ensure_future(server.stop(HANG_S))
        await asyncio.sleep(0)
        (only,) = server._connections
        assert only._ending is None
        writer.write(message(b"Q", b"SELECT 2 AS two\0"))
        said = await reader.read()
        writer.close()
        await stopping
    assert b"SFATAL" in said and b"57P01" in said
    assert len(gate.calls) == before
