"""Listings with 10,000 sources: pages of a bounded size, each call at the cost of its own page."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support.surface_client import OWNER, READER, Peer
from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.config.model import Config
from tidegate.errors import TidegateError
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


Ways = dict[str, Callable[[], Awaitable[Any]]]


async def ways_of(gate: SqliteGate, last: str) -> Ways:
    """Each way of asking, of which a source is named by the id of the last one."""
    core = await peer_of(gate, "core", OWNER)

    async def ask(request: Any, source: str | None = None) -> None:
        await gate.handle(Call(OWNER, "core", "t", request, source))

    async def unknown(source: str | None) -> None:
        with pytest.raises(TidegateError):
            await ask(Query(Statement("SELECT 1")), source)

    return {
        "next page": lambda: ask(ListSources(after=(False, "s00050"), limit=10)),
        "one by its id": lambda: ask(ListSources(keys=(last,))),
        "core's sources": lambda: core.text("sources"),
        "a query": lambda: ask(Query(Statement("SELECT 1")), "s00003"),
        "no source named": lambda: unknown(None),
    }


def calls_of(
    directory: Path, count: int, ways_of: Callable[[SqliteGate, str], Awaitable[Ways]]
) -> dict[str, int]:
    """The calls that each way of asking takes with so many sources, once the first has been."""

    async def scene() -> dict[str, int]:
        async with SqliteGate(directory, *sources_of(directory, count)).opened() as gate:
            ways = await ways_of(gate, f"00000000-0000-4000-8000-{count - 1:012}")
            found: dict[str, int] = {}
            for name, way in ways.items():
                await way()
                await way()
                found[name] = await calls_within(PACKAGE, way)
            return found

    return asyncio.run(scene())


def find_grown(
    directory: Path, ways_of: Callable[[SqliteGate, str], Awaitable[Ways]]
) -> dict[str, tuple[int, int]]:
    """The ways of asking that take more calls with more sources."""
    few, many = (directory / "few", directory / "many")
    few.mkdir()
    many.mkdir()
    at_600, at_10_000 = calls_of(few, 600, ways_of), calls_of(many, 10_000, ways_of)
    slack = 25  # a flush of the history or a look at a file may fall into a call
    return {
        name: (at_600[name], calls)
        for name, calls in at_10_000.items()
        if calls > at_600[name] + slack
    }


def test_no_call_costs_more_with_ten_thousand_sources(tmp_path: Path) -> None:
    assert not find_grown(tmp_path, ways_of)


def test_a_search_of_the_history_goes_over_the_sources_once(tmp_path: Path) -> None:
    async def calls(directory: Path, count: int) -> int:
        async with SqliteGate(directory, *sources_of(directory, count)).opened() as gate:
            call = Call(OWNER, "core", "t", SearchHistory(""))
            await gate.handle(call)
            return await calls_within(PACKAGE, lambda: gate.handle(call))

    few, many = (tmp_path / "few", tmp_path / "many")
    few.mkdir()
    many.mkdir()
    small, large = asyncio.run(calls(few, 500)), asyncio.run(calls(many, 5_000))
    assert large < 11 * small
