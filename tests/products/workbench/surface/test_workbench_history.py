"""`search_query_history` and the history resource."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from contract.surfaces.engine_shops import ENGINE_SHOPS, EngineShop
from support.surface_client import READER, WRITER, Peer
from support.surface_gateway import SHOP_ID, sqlite_source
from support.surface_shop import build_shop
from tidegate.model.actors import Actor, Scope

OTHER_ID = SHOP_ID.replace("9", "8")
NARROW = Actor("tok_narrow", "narrow", Scope.READ_ONLY, frozenset({"shop"}))
ACTIVE = "SELECT * FROM customers WHERE city = 'active'"


@pytest.fixture
def shop(tmp_path: Path) -> EngineShop:
    return ENGINE_SHOPS["sqlite"](tmp_path)


async def run(peer: Peer, *queries: str, connection_id: str = SHOP_ID) -> None:
    for query in queries:
        await peer.call("execute_query", connection_id=connection_id, query=query)


async def found(peer: Peer, query: str = "", **arguments: Any) -> list[dict[str, Any]]:
    result = await peer.result("search_query_history", query=query, **arguments)
    return result["structuredContent"]["entries"]


async def resource(peer: Peer, id: str = SHOP_ID, **query: Any) -> dict[str, Any]:
    tail = f"?{urlencode(query)}" if query else ""
    return await peer.request("resources/read", uri=f"tablepro://connections/{id}/history{tail}")


def test_an_entry_has_the_documents_keys(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> list[dict[str, Any]]:
        await run(peer, "SELECT id FROM orders", "SELECT nope FROM orders")
        return await found(peer)

    failed, done = engine_shop.converse(talk, READER)
    keys = ["id", "connection_id", "database_name", "query", "executed_at", "execution_time_ms",
            "row_count", "was_successful"]  # fmt: skip
    assert list(done) == keys
    assert (done["connection_id"], done["database_name"]) == (SHOP_ID, engine_shop.database)
    assert (done["query"], done["row_count"]) == ("SELECT id FROM orders", 3)
    assert done["was_successful"] is True
    assert list(failed) == [*keys, "error_message"]
    assert failed["was_successful"] is False
    assert "nope" in failed["error_message"]


@pytest.mark.parametrize(
    ("words", "hits"),
    [
        ("customers active", 1),
        ("CUST act", 1),
        ("active nowhere", 0),
        ("customers OR nowhere", 0),
        ("NOT customers", 0),
        ("customers -active", 1),
        ('"customers', 1),
        ("(customers)", 1),
        ("custom*", 1),
        ("text:customers", 0),
        ("", 1),
        ("   ", 1),
    ],
)
def test_every_word_must_begin_a_word_and_none_is_an_operator(
    shop: EngineShop, words: str, hits: int
) -> None:
    async def talk(peer: Peer) -> int:
        await run(peer, ACTIVE)
        return len(await found(peer, words))

    assert shop.converse(talk) == hits


def test_both_ends_of_a_time_are_inclusive_and_entries_are_newest_first(shop: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        await run(peer, "SELECT 1", "SELECT 2", "SELECT 3")
        entries = await found(peer)
        assert [entry["query"] for entry in entries] == ["SELECT 3", "SELECT 2", "SELECT 1"]
        at = entries[1]["executed_at"]
        assert [e["query"] for e in await found(peer, since=at, until=at)] == ["SELECT 2"]
        assert len(await found(peer, since=at)) == 2
        assert len(await found(peer, until=at)) == 2
        assert await found(peer, since=at + 1_000) == []
        assert len(await found(peer, limit=2)) == 2
        assert len(await found(peer, limit=0)) == 1
        assert len(await found(peer, limit=9_999)) == 3

    shop.converse(talk)


def test_a_time_that_ends_before_it_begins_is_refused(shop: EngineShop) -> None:
    error = shop.error("search_query_history", query="", since=5, until=1)
    assert error["code"] == -32602
    assert error["message"] == "Invalid params: Parameter since must not be after until"


def test_only_what_the_caller_may_see_is_found(shop: EngineShop, tmp_path: Path) -> None:
    other = sqlite_source(build_shop(tmp_path / "other.db"), "other", OTHER_ID)
    gate = shop.gate(other)

    async def use_both(peer: Peer) -> int:
        await run(peer, "SELECT 'mine'")
        await run(peer, "SELECT 'theirs'", connection_id=OTHER_ID)
        return len(await found(peer))

    assert shop.converse(use_both, WRITER, gate=gate) == 2

    async def talk(peer: Peer) -> None:
        assert [entry["query"] for entry in await found(peer)] == ["SELECT 'mine'"]
        error = await peer.error("search_query_history", query="", connection_id=OTHER_ID)
        assert error["code"] == -32007
        reply = await resource(peer, OTHER_ID)
        assert reply["error"]["code"] == -32007

    shop.converse(talk, NARROW, gate=gate)
    blocked = shop.gate(other, access="none")
    assert shop.converse(found, gate=blocked) != []
    entries = shop.converse(found, gate=blocked)
    assert {entry["connection_id"] for entry in entries} == {OTHER_ID}


def test_a_password_is_not_kept(engine_shop: EngineShop) -> None:
    """Of a statement that ran: a refused one is in no history."""
    query = "SELECT 'hunter2hunter2' AS password"

    async def talk(peer: Peer) -> list[dict[str, Any]]:
        ran = await peer.result("execute_query", connection_id=SHOP_ID, query=query)
        assert ran["structuredContent"]["rows"] == [["hunter2hunter2"]]
        kept = await found(peer)
        assert [entry["query"] for entry in kept] == ["SELECT '***' AS password"]
        assert await found(peer, "hunter2hunter2") == []
        return [*kept, *await found(peer, "password")]

    assert "hunter2" not in msgspec.json.encode(engine_shop.converse(talk)).decode()


def test_the_resource_shows_a_connections_history(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        await run(peer, "SELECT 1", ACTIVE)
        (contents,) = (await resource(peer))["result"]["contents"]
        assert contents["mimeType"] == "application/json"
        entries = msgspec.json.decode(contents["text"])["entries"]
        assert [entry["query"] for entry in entries] == [ACTIVE, "SELECT 1"]
        for query, count in (
            ({"limit": 1}, 1), ({"search": "customers"}, 1), ({"search": "nowhere"}, 0),
            ({"date_filter": "today"}, 2), ({"date_filter": "thisWeek"}, 2),
            ({"date_filter": "thisMonth", "limit": "999999", "search": ""}, 2),
        ):  # fmt: skip
            (contents,) = (await resource(peer, **query))["result"]["contents"]
            assert len(msgspec.json.decode(contents["text"])["entries"]) == count, query

    engine_shop.converse(talk, READER)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"limit": "many"}, "Parameter limit must be a whole number"),
        ({"limit": "-1"}, "Parameter limit must be a whole number"),
        ({"date_filter": "ever"}, "Parameter date_filter must be today, thisWeek or thisMonth"),
        ({"nope": "1"}, "The resource has no parameter 'nope'"),
    ],
)
def test_a_parameter_of_the_resource_that_does_not_fit_is_named(
    shop: EngineShop, query: dict[str, str], words: str
) -> None:
    error = shop.converse(lambda peer: resource(peer, **query))["error"]
    assert (error["code"], error["message"]) == (-32602, f"Invalid params: {words}")


def test_the_resource_of_no_connection_is_refused(shop: EngineShop) -> None:
    assert shop.converse(lambda peer: resource(peer, "nope"))["error"]["code"] == -32602
    assert shop.converse(lambda peer: resource(peer, OTHER_ID))["error"]["code"] == -32004
