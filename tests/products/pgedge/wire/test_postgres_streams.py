"""Large results at `/mcp/v1` are written as they are fetched, as one JSON document in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from support.eventually import until
from support.postgres_surface import PostgresShop, SurfaceUnderTest, served
from tidegate.edges.http.edge import HttpEdge
from tidegate.edges.http.reply_body import STALL_S
from tidegate.edges.listening import bind

ResultT = TypeVar("ResultT")
WIDE = "SELECT i, repeat('x', 200) AS pad FROM generate_series(1, {rows}) AS i"


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting()
    yield shop
    shop.drop()


class Client:
    """One connection, read as slowly as the test likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = b""

    async def call(self, accept: str = "*/*", meta: Any = None, **arguments: Any) -> None:
        """Send a call of `query_database`, and read the head of the answer."""
        params: dict[str, Any] = {"name": "query_database", "arguments": arguments}
        if meta is not None:
            params["_meta"] = meta
        message = {"jsonrpc": "2.0", "id": 'q"1', "method": "tools/call", "params": params}
        body = msgspec.json.encode(message)
        head = (
            f"POST /mcp/v1 HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: {accept}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        self.head = (await self.reader.readuntil(b"\r\n\r\n")).lower()

    async def chunk(self) -> bytes:
        """The next chunk; empty at the end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        part = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return part

    async def chunks(self) -> list[bytes]:
        found: list[bytes] = []
        while part := await self.chunk():
            found.append(part)
        return found

    async def body(self) -> bytes:
        """The whole body, however it is sent."""
        if b"chunked" in self.head:
            return b"".join(await self.chunks())
        size = int(self.head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return await self.reader.readexactly(size)


@asynccontextmanager
async def connected(surface: SurfaceUnderTest) -> AsyncIterator[Client]:
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    edge = HttpEdge(surface.http, listener)
    await edge.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        await edge.stop(0)


def play(
    directory: Path,
    shop: PostgresShop,
    scene: Callable[[Client], Awaitable[ResultT]],
    **settings: Any,
) -> ResultT:
    async def run() -> ResultT:
        async with served(directory, shop, **settings) as surface, connected(surface) as client:
            return await scene(client)

    return asyncio.run(run())


def rows_of(text: str) -> list[dict[str, Any]]:
    rows = text.partition("Results:\n")[2].rpartition("\n]")[0] + "\n]"
    return msgspec.json.decode(rows)


def test_a_large_result_comes_in_chunks_that_are_one_json_document(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(client: Client) -> list[bytes]:
        await client.call(query=WIDE.format(rows=20_000), limit=15_000)
        assert b"transfer-encoding: chunked" in client.head
        return await client.chunks()

    chunks = play(tmp_path, shop, scene)
    assert len(chunks) > 10
    assert max(map(len, chunks)) < 1_000_000
    reply = msgspec.json.decode(b"".join(chunks))
    assert reply["id"] == 'q"1'
    assert set(reply["result"]) == {"content"}
    text = reply["result"]["content"][0]["text"]
    assert text.startswith("SQL Query:\nSELECT i")
    assert [row["i"] for row in rows_of(text)] == list(range(1, 15_001))
    assert "\n15000 rows\nMore rows are available: use offset=15000" in text


def test_a_small_result_is_sent_whole(tmp_path: Path, shop: PostgresShop) -> None:
    async def scene(client: Client) -> bytes:
        await client.call(query="SELECT id FROM users ORDER BY id")
        assert b"content-length" in client.head
        return await client.body()

    text = msgspec.json.decode(play(tmp_path, shop, scene))["result"]["content"][0]["text"]
    assert text.endswith("20 rows")


def test_an_error_in_mid_stream_ends_the_document_as_an_error(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(client: Client) -> bytes:
        sql = "SELECT i, repeat('x', 200), 1 / (15000 - i) AS n FROM generate_series(1, 20000) AS i"
        await client.call(query=sql, limit=20_000)
        assert b"chunked" in client.head
        return await client.body()

    result = msgspec.json.decode(play(tmp_path, shop, scene))["result"]
    assert result["isError"] is True
    assert "division by zero" in result["content"][0]["text"]


def test_a_database_that_goes_away_in_mid_stream_ends_the_document_as_an_error(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(client: Client) -> bytes:
        await client.call(query=WIDE.format(rows=100_000), limit=100_000)
        first = await client.chunk()
        shop.server.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE datname = '{shop.database}' AND query LIKE 'SELECT i, repeat%'"
        )
        return first + await client.body()

    result = msgspec.json.decode(play(tmp_path, shop, scene))["result"]
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert len(text) > 10_000
    assert "source.unreachable: " in text[-500:]


def test_a_slow_reader_holds_the_database_back_and_one_that_leaves_ends_the_query(
    tmp_path: Path, shop: PostgresShop
) -> None:
    running = (
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{shop.database}'"
        " AND query LIKE 'SELECT i, repeat%' AND state <> 'idle'"
    )

    async def scene(client: Client) -> None:
        await client.call(query=WIDE.format(rows=100_000), limit=100_000)
        await client.chunk()
        await until(lambda: shop.server.ask(running) == [(1,)], "the query runs")
        client.writer.transport.abort()
        await until(lambda: shop.server.ask(running) == [(0,)], "the query ended")

    play(tmp_path, shop, scene)


@pytest.mark.parametrize("ends", ["revoked", "stopped"])
def test_a_call_that_is_ended_does_not_wait_for_a_client_that_reads_nothing(
    tmp_path: Path, shop: PostgresShop, ends: str
) -> None:
    running = (
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{shop.database}'"
        " AND query LIKE 'SELECT i, repeat%' AND state <> 'idle'"
    )

    async def run() -> str:
        async with served(tmp_path, shop) as surface, connected(surface) as client:
            await client.call(query=WIDE.format(rows=100_000), limit=100_000)
            await client.chunk()
            await until(lambda: shop.server.ask(running) == [(1,)], "the query runs")
            if ends == "revoked":
                surface.http.end_actors({each.id for each in surface.http.actors()}, "revoked")
            else:
                surface.http.close()
            await until(lambda: shop.server.ask(running) == [(0,)], "the query ended")
        return "".join(path.read_text() for path in (tmp_path / "state/audit").glob("*.jsonl"))

    (outcome,) = [line for line in asyncio.run(run()).splitlines() if '"call.cancelled"' in line]
    assert msgspec.json.decode(outcome)["elapsed_ms"] < STALL_S * 1_000


def test_the_intent_is_on_record_before_the_first_byte_and_the_outcome_before_the_last(
    tmp_path: Path, shop: PostgresShop
) -> None:
    def phases() -> list[str]:
        text = "".join(path.read_text() for path in (tmp_path / "state/audit").glob("*.jsonl"))
        lines = [line for line in text.splitlines() if "generate_series" in line]
        return ["intent" if '"intent"' in line else "outcome" for line in lines]

    async def scene(client: Client) -> tuple[list[str], list[str]]:
        await client.call(query=WIDE.format(rows=50_000), limit=50_000)
        await client.chunk()
        first = phases()
        while (part := await client.chunk()) and not part.endswith(b'"}]}}'):
            pass
        return first, phases()

    first, last = play(tmp_path, shop, scene)
    assert first == ["intent"]
    assert last == ["intent", "outcome"]


def test_a_client_that_asks_for_events_and_progress_gets_them_and_one_whole_message(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(client: Client) -> bytes:
        await client.call(
            "application/json, text/event-stream",
            {"progressToken": "p"},
            query=WIDE.format(rows=3_000),
            limit=3_000,
        )
        assert b"content-type: text/event-stream" in client.head
        return await client.body()

    events = play(tmp_path, shop, scene).split(b"\n\n")
    messages = [
        msgspec.json.decode(event.partition(b"data: ")[2])
        for event in events
        if b"data: {" in event
    ]
    assert messages[0]["method"] == "notifications/progress"
    assert len(rows_of(messages[-1]["result"]["content"][0]["text"])) == 3_000


def test_more_than_the_budget_of_a_stream_is_refused_before_it_begins(
    tmp_path: Path, shop: PostgresShop
) -> None:
    async def scene(client: Client) -> bytes:
        await client.call(query="SELECT 1", limit=100_001)
        return await client.body()

    error = msgspec.json.decode(play(tmp_path, shop, scene))["error"]
    assert (error["code"], error["message"]) == (
        -32602,
        "Invalid params: Parameter limit must be from 1 to 100000",
    )
