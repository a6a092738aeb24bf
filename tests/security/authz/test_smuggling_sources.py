"""What is of another source, or of another caller, is reached by no id, handle, tab or record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from msgspec import structs

from support.authz_calls import HANDLE, ID, OPENED, ROWS, TAB, URI, Row
from support.authz_engines import SqliteShop
from support.authz_server import Harness, play
from support.surface_client import Peer
from tidegate.app import App
from tidegate.identity.builtin_actors import cli
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.surfaces.registry import SURFACES
from tidegate.workspace.requests import OpenTable, Tab

pytestmark = pytest.mark.needs("workbench")

OWN = Actor("tok_own", "own", Scope.FULL_ACCESS, frozenset({"readWrite"}))
"""Whose allowlist has the source `readWrite` and not the one beside it."""

Talk = Callable[[Harness, Peer, Peer, Source], Awaitable[Any]]


def talk(directory: Path, scenario: Talk, **beside: Any) -> Any:
    """Run `scenario(harness, workbench, core, other)` for `OWN`; both databases stay unchanged."""
    place = directory / "other"
    place.mkdir()
    shop = SqliteShop(place, ())
    other = {"name": "other", "url": shop.url, "access": "write", **beside}

    async def whole(harness: Harness) -> Any:
        peers = [Peer(harness.app.surface(name), OWN) for name in ("workbench", "core")]
        for peer in peers:
            await peer.open()
        (foreign,) = [each for each in harness.app.connections.sources() if each.name == "other"]
        before = shop.digest(), harness.shop.digest()
        result = await scenario(harness, *peers, foreign)
        assert (shop.digest(), harness.shop.digest()) == before
        return result

    return play(directory, "sqlite", "readWrite", whole, beside=[other])


async def desk_tab(harness: Harness, source: Source) -> str:
    call = Call(cli(), "test", "test", OpenTable("orders"), source.name)
    tab = await harness.app.workspace.open_table(call, (source,))
    assert isinstance(tab, Tab)
    return tab.id


def test_the_tabs_of_a_foreign_source_are_neither_listed_nor_focused(tmp_path: Path) -> None:
    async def scenario(harness: Harness, peer: Peer, core: Peer, other: Source) -> None:
        own, foreign = await harness.tab(), await desk_tab(harness, other)
        listed = await peer.result("list_recent_tabs", limit=500)
        tabs = listed["structuredContent"]["tabs"]
        assert own in {tab["tab_id"] for tab in tabs}
        assert {tab["connection_id"] for tab in tabs} == {harness.source.id}
        error = await peer.error("focus_query_tab", tab_id=foreign)
        assert (error["code"], "not found" in error["message"]) == (-32602, True)
        unknown = await peer.error("focus_query_tab", tab_id="0")
        assert unknown["message"] == error["message"]
        await peer.result("focus_query_tab", tab_id=own)

    talk(tmp_path, scenario)


def test_the_resources_of_a_foreign_source_are_refused(tmp_path: Path) -> None:
    async def scenario(harness: Harness, peer: Peer, core: Peer, other: Source) -> None:
        for path in ("schema", "history", "history?search=customers&limit=500"):
            uri = f"tablepro://connections/{other.id}/{path}"
            reply = await peer.request("resources/read", uri=uri)
            assert reply["error"]["code"] == -32007
            refused = await peer.request(
                "resources/read", uri=uri.replace(other.id, other.id.upper())
            )
            assert refused["error"]["code"] == -32007
        listed = await peer.request("resources/read", uri="tablepro://connections")
        assert other.id not in repr(listed)

    talk(tmp_path, scenario)


@pytest.mark.parametrize("setting", [{}, {"access": "none"}, {"agents": "deny"}])
@pytest.mark.parametrize("text", ["SELECT id FROM customers", "DROP TABLE customers", "NONSENSE ("])
def test_a_foreign_source_is_answered_as_one_that_does_not_exist(
    tmp_path: Path, text: str, setting: dict[str, str]
) -> None:
    async def scenario(harness: Harness, bench: Peer, core: Peer, other: Source) -> None:
        peers = {"workbench": bench, "core": core}
        for surface in SURFACES.keys() - peers:
            peers[surface] = Peer(harness.app.surface(surface), OWN)
            await peers[surface].open()
        asked = 0
        for (surface, tool), row in ROWS.items():
            if row.takes in (TAB, OPENED) or (row.takes == URI and "{id}" not in tool):
                continue  # no source is named; for tabs of other sources see the test above
            foreign, absent = [
                repr(await _ask(peers[surface], tool.partition(" ")[0], row, text, id, name))
                .replace(id, "ID")
                .replace(name, "NAME")
                for id, name in ((other.id, other.name), (str(uuid4()), "absent"))
            ]
            assert foreign == absent, tool
            assert "policy.source" in foreign or "-32007" in foreign, (tool, foreign)
            asked += 1
        assert asked > 30

    talk(tmp_path, scenario, **setting)


async def _ask(peer: Peer, tool: str, row: Row, text: str, id: str, name: str) -> dict[str, Any]:
    """The reply to the call of a row, without the number of its request."""
    arguments = row.arguments | ({} if row.text is None else {row.text: text})
    if row.takes == URI:
        uri = tool.replace("{id}", id)
        reply = await peer.request("resources/read", uri=uri.partition("{?")[0])
    elif row.takes == HANDLE:
        reply = await peer.call(tool, handle=f"{name}/1-abc")
    else:
        reply = await peer.call(tool, **arguments, **{row.takes: id if row.takes == ID else name})
    del reply["id"]
    return reply


def test_the_history_of_a_foreign_source_is_not_searched(tmp_path: Path) -> None:
    async def scenario(harness: Harness, peer: Peer, core: Peer, other: Source) -> None:
        everyone = Peer(harness.app.surface("workbench"), Actor("tok_all", "all", Scope.READ_ONLY))
        await everyone.open()
        for source in (harness.source, other):
            text = f"SELECT id AS {source.name} FROM customers"
            await everyone.result("execute_query", connection_id=source.id, query=text)
        both = await everyone.result("search_query_history", query="customers")
        assert len(both["structuredContent"]["entries"]) == 2
        for words in ("customers", "", "other", '" OR 1=1 --', "*"):
            found = await peer.result("search_query_history", query=words)
            assert other.id not in repr(found)
            assert "AS other" not in repr(found)
        error = await peer.error("search_query_history", query="", connection_id=other.id)
        assert error["code"] == -32007

    talk(tmp_path, scenario)


def test_an_allowlist_that_shrank_shrinks_the_history_too(tmp_path: Path) -> None:
    async def scenario(harness: Harness, peer: Peer, core: Peer, other: Source) -> None:
        wide = Actor(OWN.id, OWN.name, OWN.scope)
        before = Peer(harness.app.surface("workbench"), wide)
        await before.open()
        text = "SELECT id FROM customers"
        await before.result("execute_query", connection_id=other.id, query=text)
        seen = await before.result("search_query_history", query="customers")
        assert len(seen["structuredContent"]["entries"]) == 1
        found = await peer.result("search_query_history", query="customers")
        assert found["structuredContent"]["entries"] == []

    talk(tmp_path, scenario)


def test_a_handle_shows_no_more_to_another_caller_or_of_another_source(tmp_path: Path) -> None:
    async def scenario(harness: Harness, peer: Peer, core: Peer, other: Source) -> None:
        wide = Peer(harness.app.surface("core"), Actor("tok_all", "all", Scope.READ_ONLY))
        await wide.open()
        sql = "SELECT id FROM customers"
        said = await wide.text("query", sql=sql, max_rows=1, source="other")
        handle = msgspec.json.decode(said)["more"]
        bare = handle.partition("/")[2]
        assert (await core.text("more", handle=handle)).startswith("policy.source: ")
        assert (await core.text("more", handle=bare)).startswith("result.gone: ")
        moved = f"readWrite/{bare}"
        assert (await core.text("more", handle=moved)).startswith("result.gone: ")
        assert (await wide.text("more", handle=moved)).startswith("result.gone: ")
        assert "rows" in await wide.text("more", handle=handle)

    talk(tmp_path, scenario)


@pytest.mark.parametrize("setting", [{"access": "none"}, {"agents": "deny"}])
def test_a_source_that_is_closed_keeps_what_was_open_there(
    tmp_path: Path, setting: dict[str, str]
) -> None:
    async def scenario(harness: Harness, peer: Peer, core: Peer, other: Source) -> None:
        wide = Actor("tok_all", "all", Scope.FULL_ACCESS)
        bench = Peer(harness.app.surface("workbench"), wide)
        await bench.open()
        foreign = await desk_tab(harness, other)
        listed = await bench.result("list_recent_tabs")
        assert listed["structuredContent"]["tabs"] == []
        assert (await bench.error("focus_query_tab", tab_id=foreign))["code"] == -32602
        for tool in ("connect", "disconnect", "get_connection_status", "search_query_history"):
            error = await bench.error(tool, connection_id=other.id, query="")
            assert error["code"] == -32007

    talk(tmp_path, scenario, **setting)


def test_a_change_of_the_settings_holds_from_the_next_call_on(tmp_path: Path) -> None:
    """The operator works in a process of its own, while sessions are open."""

    async def scenario(harness: Harness) -> None:
        harness.app.state.sources.add(
            structs.replace(harness.source, name="kept", id="", ephemeral=False)
        )
        kept = harness.app.state.sources.find("kept")
        assert kept is not None
        operator = App.open(structs.replace(harness.config, sources=()))
        try:
            (owner,) = await harness.peers("core", "owner")
            write = "UPDATE orders SET total = total + 1 WHERE id = 1"
            read = "SELECT id FROM customers"
            said = await owner.text("query", source="kept", sql=read, max_rows=1)
            handle = msgspec.json.decode(said)["more"]
            assert "affected" in await owner.text("query", source="kept", sql=write)
            for change, code in (
                ({"access": "read"}, "policy.read_only"),
                ({"changes": "deny"}, "policy.read_only"),
                ({"approval_for": "writes"}, "approval.needed"),
                ({"agents": "deny"}, "policy.blocked"),
                ({"access": "none"}, "policy.blocked"),
            ):
                operator.state.sources.remove("kept")
                operator.state.sources.add(structs.replace(kept, **change))
                before = harness.shop.digest()
                assert (await owner.text("query", source="kept", sql=write)).startswith(code)
                rest = await owner.text("more", handle=handle)
                assert rest.startswith(("result.gone: ", "policy.blocked: "))
                assert harness.shop.digest() == before
            operator.state.sources.remove("kept")
            gone = await owner.text("query", source="kept", sql=read)
            assert gone.startswith("source.unknown: ")
        finally:
            await operator.close()

    play(tmp_path, "sqlite", "readWrite", scenario)
