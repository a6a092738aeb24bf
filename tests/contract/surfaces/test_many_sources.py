"""Listings with 10,000 sources: pages of a bounded size, each call at the cost of its own page."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tidegate
from support.surface_client import OWNER, READER, Peer
from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Call, ListSources, Query, SearchHistory
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.surfaces.registry import open_surface

PACKAGE = os.path.dirname(tidegate.__file__)


def sources_of(directory: Path, count: int) -> list[Source]:
    made = directory / "shop.db"
    made.touch()
    return [
        sqlite_source(made, f"s{number:05}", f"00000000-0000-4000-8000-{number:012}")
        for number in range(count)
    ]


async def peer_of(gate: SqliteGate, surface: str, actor: Any = READER) -> Peer:
    peer = Peer(open_surface(surface, gate, Config()), actor)
    await peer.open()
    return peer


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


def test_core_lists_by_pages_as_well(tmp_path: Path) -> None:
    async def scene() -> None:
        async with SqliteGate(tmp_path, *sources_of(tmp_path, 450)).opened() as gate:
            peer = await peer_of(gate, "core")
            seen: list[str] = []
            given: dict[str, str] = {}
            for expected in (200, 200, 50):
                lines = (await peer.text("sources", **given)).splitlines()
                if lines[-1].startswith("more: cursor "):
                    given = {"cursor": lines.pop().removeprefix("more: cursor ")}
                assert len(lines) == expected
                seen += [line.partition(":")[0] for line in lines]
            assert seen == [f"s{number:05}" for number in range(450)]

    asyncio.run(scene())


def calls_within(package: str, work: Callable[[], Awaitable[Any]]) -> Awaitable[int]:
    """How many calls of functions of the package `work` takes, and of C functions from there."""

    async def counted() -> int:
        count = 0

        def note(frame: Any, event: str, _: object) -> None:
            nonlocal count
            if event in ("call", "c_call") and frame.f_code.co_filename.startswith(package):
                count += 1

        sys.setprofile(note)
        try:
            await work()
        finally:
            sys.setprofile(None)
        return count

    return counted()


def looks_of(directory: Path, count: int) -> dict[str, int]:
    """The calls that each way of asking takes with so many sources, once the first has been."""

    async def scene() -> dict[str, int]:
        async with SqliteGate(directory, *sources_of(directory, count)).opened() as gate:
            peer = await peer_of(gate, "workbench", OWNER)
            core = await peer_of(gate, "core", OWNER)
            last = f"00000000-0000-4000-8000-{count - 1:012}"

            async def ask(request: Any, source: str | None = None) -> None:
                await gate.handle(Call(OWNER, "core", "t", request, source))

            async def unknown(source: str | None) -> None:
                with pytest.raises(TidegateError):
                    await ask(Query(Statement("SELECT 1")), source)

            ways: dict[str, Callable[[], Awaitable[Any]]] = {
                "list_connections": lambda: peer.result("list_connections", limit=10),
                "next page": lambda: ask(ListSources(after=(False, "s00050"), limit=10)),
                "one by its id": lambda: ask(ListSources(keys=(last,))),
                "resources/list": lambda: peer.request("resources/list"),
                "core's sources": lambda: core.text("sources"),
                "a query": lambda: ask(Query(Statement("SELECT 1")), "s00003"),
                "export": lambda: peer.call(
                    "export_data", connection_id=last, format="sql", query="SELECT 1 AS a"
                ),
                "no source named": lambda: unknown(None),
                "list of tabs": lambda: peer.result("list_recent_tabs"),
            }
            found: dict[str, int] = {}
            for name, way in ways.items():
                await way()
                await way()
                found[name] = await calls_within(PACKAGE, way)
            return found

    return asyncio.run(scene())


def test_no_call_costs_more_with_ten_thousand_sources(tmp_path: Path) -> None:
    few, many = (tmp_path / "few", tmp_path / "many")
    few.mkdir()
    many.mkdir()
    at_600, at_10_000 = looks_of(few, 600), looks_of(many, 10_000)
    slack = 25  # a flush of the history or a look at a file may fall into a call
    grown = {
        name: (at_600[name], calls)
        for name, calls in at_10_000.items()
        if calls > at_600[name] + slack
    }
    assert not grown


def test_a_search_of_the_history_goes_over_the_sources_once(tmp_path: Path) -> None:
    async def calls(directory: Path, count: int) -> int:
        async with SqliteGate(directory, *sources_of(directory, count)).opened() as gate:
            call = Call(OWNER, "workbench", "t", SearchHistory(""))
            await gate.handle(call)
            return await calls_within(PACKAGE, lambda: gate.handle(call))

    few, many = (tmp_path / "few", tmp_path / "many")
    few.mkdir()
    many.mkdir()
    small, large = asyncio.run(calls(few, 500)), asyncio.run(calls(many, 5_000))
    assert large < 11 * small
