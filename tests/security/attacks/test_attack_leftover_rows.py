"""Rows that were read under wider rights and kept for `more`: whoever has fewer rights by then gets
none of them, whichever surface asks."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from msgspec import structs

from support.surface_client import READER, Peer
from support.surface_gateway import SqliteGate, sqlite_source
from tidegate.config.model import Config
from tidegate.errors import Code, TidegateError
from tidegate.gateway.result_cache import AppliedRules, CachedResult, ResultCache, RowBuffer
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, FetchMore, Query
from tidegate.model.results import Column, Limits
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Identity, Source
from tidegate.model.statements import Statement
from tidegate.surfaces.registry import SURFACES, open_surface

WIDE = structs.replace(READER, tables=frozenset({"letters", "people"}))
FEWER = [
    pytest.param(WIDE, structs.replace(WIDE, tables=frozenset({"letters"})), id="fewer tables"),
    pytest.param(READER, structs.replace(READER, tables=frozenset({"letters"})), id="a list now"),
    pytest.param(READER, structs.replace(READER, name="intern"), id="a name with a mask"),
]
LOST = [
    pytest.param(structs.replace(READER, sources=frozenset({"other"})), id="no such source"),
    pytest.param(structs.replace(READER, sources=frozenset(), tags=frozenset()), id="no source"),
]
PAGES_OF_NAMES = {"core": ["sources"], "jdbc": ["discover"], "workbench": ["list_connections"]}
"""Their cursors are places among names of sources or tables, which are read again for each call;
they hold no row."""
RULES = {
    "masks": (Mask("people.email", "nothing", tokens=("intern",)),),
    "filters": (RowFilter("people", "id = 1", tokens=("intern",)),),
}


def people(path: Path) -> Source:
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, email TEXT)")
        made.execute("CREATE TABLE letters (id INTEGER PRIMARY KEY)")
        rows = [(number, f"hush{number}@mail.example") for number in range(1, 31)]
        made.executemany("INSERT INTO people VALUES (?, ?)", rows)
    made.close()
    return structs.replace(sqlite_source(path), **RULES)


def ask(gate: SqliteGate, actor: Actor, request: Query | FetchMore):
    return gate.handle(Call(actor, "test", "tool", request, scope=Scope.READ_ONLY, source="shop"))


@pytest.mark.parametrize(("before", "after"), FEWER + [(READER, *p.values) for p in LOST])
def test_more_shows_no_row_that_was_read_under_wider_rights(
    tmp_path: Path, before: Actor, after: Actor
) -> None:
    async def scenario() -> None:
        async with SqliteGate(tmp_path, people(tmp_path / "shop.db")).opened() as gate:
            query = Query(
                Statement("SELECT * FROM people"), limits=Limits(max_rows=10), keep_rest=True
            )
            first = (await ask(gate, before, query)).payload
            assert first.more is not None
            with pytest.raises(TidegateError) as refused:
                await ask(gate, after, FetchMore(first.more, 10))
            assert refused.value.code in (Code.RESULT_GONE, Code.POLICY_SOURCE)

    asyncio.run(scenario())


def test_rows_that_were_refused_once_are_dropped_and_others_are_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteGate(tmp_path, people(tmp_path / "shop.db")).opened() as gate:
            query = Query(
                Statement("SELECT * FROM people"), limits=Limits(max_rows=10), keep_rest=True
            )
            handles = [(await ask(gate, WIDE, query)).payload.more for _ in range(2)]
            narrow = structs.replace(WIDE, tables=frozenset({"letters"}))
            for actor in (narrow, WIDE):
                with pytest.raises(TidegateError) as refused:
                    await ask(gate, actor, FetchMore(handles[0], 10))
                assert refused.value.code is Code.RESULT_GONE
            again = structs.replace(WIDE)
            assert (await ask(gate, again, FetchMore(handles[1], 10))).payload.row_count == 10

    asyncio.run(scenario())


def test_a_result_of_another_database_role_is_not_handed_out() -> None:
    results = ResultCache()
    query = Query(Statement("SELECT 1"))
    rest = RowBuffer(query, [("hush",)])
    read_as = AppliedRules(None, Identity("clerk"))
    handle = results.put(CachedResult("a", "s", query, (Column("x", ""),), rest, read_as))
    with pytest.raises(TidegateError) as refused:
        results.take(handle, "a", "s", AppliedRules(None, Identity("intern")))
    assert refused.value.code is Code.RESULT_GONE


@pytest.mark.parametrize("surface", sorted(SURFACES))
@pytest.mark.parametrize(("before", "after"), FEWER)
def test_no_tool_of_a_surface_goes_on_with_rows_of_wider_rights(
    tmp_path: Path, surface: str, before: Actor, after: Actor
) -> None:
    """Whichever tool hands out a handle, and whichever takes one: found from the surfaces."""

    async def scenario() -> None:
        async with SqliteGate(tmp_path, people(tmp_path / "shop.db")).opened() as gate:
            config = Config(
                surface={"workbench": {"extended": True}} if "workbench" in SURFACES else {}
            )
            wide = Peer(open_surface(surface, gate, config), before)
            await wide.open()
            listed = (await wide.request("tools/list"))["result"]["tools"]
            takes = [tool["name"] for tool in listed if _takes(tool, "handle", "page_token")]
            assert takes == (["more"] if surface == "core" else [])
            pages = [tool["name"] for tool in listed if _takes(tool, "cursor")]
            assert pages == PAGES_OF_NAMES.get(surface, [])
            for tool in takes:
                text = await wide.text("query", sql="SELECT * FROM people", max_rows=10)
                handle = text.partition('"more":"')[2].partition('"')[0]
                assert "hush1@mail.example" in text and handle
                wide.actor = wide.session.actor = after
                refused = await wide.text(tool, handle=handle)
                assert "hush" not in refused and "result.gone" in refused
                fresh = await wide.text("query", sql="SELECT * FROM people", max_rows=10)
                assert "hush" not in fresh

    asyncio.run(scenario())


def _takes(tool: dict, *names: str) -> bool:
    properties = tool["inputSchema"].get("properties", {})
    return any(name in properties for name in names)
