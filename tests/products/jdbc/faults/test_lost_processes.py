"""A driver that ends the process of its caller: the answer names the connections that are lost."""

from __future__ import annotations

import asyncio
import json

import pytest

from support import jdbc_drivers
from support.jdbc_surface import JdbcPeer, served
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.products.jdbc.engine.connection import JdbcConnection
from tidegate.products.jdbc.engine.startup import start_worker
from tidegate.products.jdbc.engine.url import parse_jdbc_url

OTHER = Actor("tok_other", "other", Scope.READ_ONLY)


async def run(peer: JdbcPeer, id: str, what: str) -> dict[str, object]:
    query = f"SELECT '{what}'"
    await peer.bare("record", query=query)
    return await peer.bare("record", query=query, connectionId=id, confirmed=True)


@pytest.mark.parametrize(
    ("what", "code"),
    [("hang", "limit.time"), ("fill", "limit.bytes"), ("exit", "source.unreachable")],
)
async def test_the_answer_names_what_a_lost_process_held(tmp_path, jar, monkeypatch, what, code):
    monkeypatch.setenv("JDBC_URL", "jdbc:hostile:x")
    limits = {"timeout_s": 0.5 if what == "hang" else 60.0}
    settings = {"limits": limits, "jdbc": {"driver_path": str(jar)}}
    async with served(tmp_path, **settings) as jdbc:
        peer, stranger = jdbc.peer(), jdbc.peer(OTHER)
        connect = {"url": "${JDBC_URL}", "driver": "HostileDriver"}
        ids = [await peer.connected(**connect) for _ in range(2)]
        foreign = await stranger.connected(**connect)
        failed = await run(peer, ids[0], what)
        assert failed["code"] == code, failed
        assert all(id in str(failed["hint"]) for id in ids)
        assert foreign not in json.dumps(failed)
        for id in ids:
            assert (await run(peer, id, "fine"))["error"] == "Invalid connection"
        assert (await run(stranger, foreign, "fine"))["status"] == "executed"
        again = await peer.connected(**connect)
        assert (await run(peer, again, "fine"))["status"] == "executed"


async def test_a_connection_that_is_never_made_ends_no_process_that_others_use(jar):
    options = {"driver_path": str(jar), "driver": "HostileDriver", "heap": "64m"}
    url = parse_jdbc_url("jdbc:hostile:x")
    worker = await start_worker({**options, "jvm_options": jdbc_drivers.QUICK}, url)

    async def hang() -> JdbcConnection:
        connection = JdbcConnection(worker.process, "other")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await connection.open({"url": "jdbc:hostile:hang"})
        await connection.closed()
        return connection

    other = JdbcConnection(worker.process, "other")
    await other.open({"url": url.text})
    assert (await hang()).gone
    await other.ask("run", {"text": "SELECT 'fine'"}, dict)
    other.close()
    await other.closed()
    await hang()
    assert not worker.process.check()
    with pytest.raises(TidegateError) as caught:
        await JdbcConnection(worker.process, "other").open({"url": url.text})
    assert "while it connected" in caught.value.message
    await worker.leave()
