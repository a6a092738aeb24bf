"""Listings of the workbench with 10,000 sources, at the cost of their own page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contract.surfaces.test_many_sources import Ways, find_grown, peer_of, sources_of
from support.surface_client import OWNER, Peer
from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.errors import Code


async def pages_of(peer: Peer, **arguments: Any) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await peer.result("list_connections", **arguments, **cursor))["structuredContent"]
        pages.append(page)
        if "next_cursor" not in page:
            return pages
        cursor = {"cursor": page["next_cursor"]}


def test_the_pages_hold_every_connection_once_and_are_bounded(tmp_path: Path) -> None:
    async def scene() -> None:
        async with SqliteGate(tmp_path, *sources_of(tmp_path, 10_000)).opened() as gate:
            peer = await peer_of(gate, "workbench")
            pages = await pages_of(peer, limit=500)
            assert len(pages) == 20
            names = [one["name"] for page in pages for one in page["connections"]]
            assert names == [f"s{number:05}" for number in range(10_000)]
            assert max(len(msgspec.json.encode(page)) for page in pages) < 200_000
            (first, *_) = await pages_of(peer)
            assert len(first["connections"]) == 200
            clamped = (await peer.result("list_connections", limit=9_999))["structuredContent"]
            assert len(clamped["connections"]) == 500
            read = await peer.request("resources/read", uri="tablepro://connections")
            listed = msgspec.json.decode(read["result"]["contents"][0]["text"])
            assert len(listed["connections"]) == 500 and listed["next_cursor"]

    asyncio.run(scene())


def test_a_cursor_keeps_its_place_when_sources_come_and_go(tmp_path: Path) -> None:
    async def scene() -> None:
        async with SqliteGate(tmp_path).opened() as gate:
            store = gate.connections._store
            for source in sources_of(tmp_path, 7):
                store.add(source)
            peer = await peer_of(gate, "workbench")
            page = (await peer.result("list_connections", limit=3))["structuredContent"]
            assert [one["name"] for one in page["connections"]] == ["s00000", "s00001", "s00002"]
            store.remove("s00002")  # the place itself
            store.remove("s00004")
            store.add(sqlite_source(tmp_path / "shop.db", "s000005", "another"))
            rest = await peer.result("list_connections", limit=9, cursor=page["next_cursor"])
            assert [one["name"] for one in rest["structuredContent"]["connections"]] == [
                "s00003", "s00005", "s00006",
            ]  # fmt: skip

    asyncio.run(scene())


@pytest.mark.parametrize("cursor", ["x", "!!", "c3\u00e9", "eA", "0" * 5_000])
def test_a_cursor_of_no_list_is_refused_with_what_to_do(tmp_path: Path, cursor: str) -> None:
    async def scene() -> None:
        async with SqliteGate(tmp_path, *sources_of(tmp_path, 3)).opened() as gate:
            peer = await peer_of(gate, "workbench")
            error = await peer.error("list_connections", cursor=cursor)
            assert error["data"]["code"] == Code.ARGUMENT_INVALID.value
            assert "begin again" in error["data"]["hint"]

    asyncio.run(scene())


async def ways_of(gate: SqliteGate, last: str) -> Ways:
    """Each way of asking, of which a source is named by the id of the last one."""
    peer = await peer_of(gate, "workbench", OWNER)
    return {
        "list_connections": lambda: peer.result("list_connections", limit=10),
        "resources/list": lambda: peer.request("resources/list"),
        "export": lambda: peer.call(
            "export_data", connection_id=last, format="sql", query="SELECT 1 AS a"
        ),
        "list of tabs": lambda: peer.result("list_recent_tabs"),
    }


def test_no_call_costs_more_with_ten_thousand_sources(tmp_path: Path) -> None:
    assert not find_grown(tmp_path, ways_of)
