"""Windows and tabs as the workbench's tools see them. The windows are the same for every engine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from contract.surfaces.engine_shops import ENGINE_SHOPS, EngineShop
from support.surface_client import READER, WRITER, Peer
from support.surface_gateway import SHOP_ID, sqlite_source
from support.surface_shop import build_shop
from tidegate.model.actors import Actor, Scope

OTHER_ID = SHOP_ID.replace("9", "8")
NARROW = Actor("tok_narrow", "narrow", Scope.FULL_ACCESS, frozenset({"shop"}))
OF_ADA = Actor("tok_ada", "ada's", Scope.FULL_ACCESS, owner="ada")
OF_EVE = Actor("tok_eve", "eve's", Scope.FULL_ACCESS, owner="eve")
TAB = ["tab_id", "connection_id", "connection_name", "tab_type", "display_title", "is_active",
       "table_name", "database_name", "schema_name", "window_id"]  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> EngineShop:
    return ENGINE_SHOPS["sqlite"](tmp_path)


async def ask(peer: Peer, tool: str, **arguments: Any) -> dict[str, Any]:
    given = {"connection_id": SHOP_ID} | arguments
    return (await peer.result(tool, **given))["structuredContent"]


async def tabs(peer: Peer, **arguments: Any) -> list[dict[str, Any]]:
    return (await ask(peer, "list_recent_tabs", **arguments))["tabs"]


def test_a_window_and_a_table_open_on_every_engine(engine_shop: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        window = await ask(peer, "open_connection_window")
        assert list(window) == ["status", "connection_id", "window_id", "is_delivered"]
        tab = await ask(peer, "open_table_tab", table_name="orders")
        assert list(tab) == [
            "status", "connection_id", "table_name", "window_id", "tab_id", "is_delivered",
        ]  # fmt: skip
        assert (tab["status"], tab["window_id"]) == ("opened", window["window_id"])
        shown = (await tabs(peer))[0]
        assert list(shown) == TAB
        assert shown == {
            "tab_id": tab["tab_id"], "connection_id": SHOP_ID, "connection_name": "shop",
            "tab_type": "table", "display_title": "orders", "is_active": True,
            "table_name": "orders", "database_name": engine_shop.database,
            "schema_name": engine_shop.schema,
            "window_id": window["window_id"],
        }  # fmt: skip

    engine_shop.converse(talk, READER)


def test_the_same_table_is_the_same_tab(shop: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        first = await ask(peer, "open_table_tab", table_name="orders")
        other = await ask(peer, "open_table_tab", table_name="customers")
        again = await ask(peer, "open_table_tab", table_name="ORDERS", schema_name="main")
        assert again["tab_id"] == first["tab_id"] != other["tab_id"]
        assert [tab["display_title"] for tab in await tabs(peer)] == [
            "orders", "customers", "Query",
        ]  # fmt: skip

    shop.converse(talk)


def test_exactly_one_tab_of_a_window_is_active_and_focus_moves_it(shop: EngineShop) -> None:
    async def talk(peer: Peer) -> None:
        first = await ask(peer, "open_table_tab", table_name="orders")
        await ask(peer, "open_table_tab", table_name="customers")
        focused = await ask(peer, "focus_query_tab", tab_id=first["tab_id"])
        assert focused == {
            "status": "focused", "tab_id": first["tab_id"], "window_id": first["window_id"],
            "connection_id": SHOP_ID, "is_delivered": False,
        }  # fmt: skip
        shown = await tabs(peer)
        assert [tab["is_active"] for tab in shown] == [True, False, False]
        assert shown[0]["tab_id"] == first["tab_id"]
        assert [tab["tab_id"] for tab in await tabs(peer, limit=1)] == [first["tab_id"]]
        assert len(await tabs(peer, limit=0)) == 1
        assert len(await tabs(peer, limit=9_999)) == 3

    shop.converse(talk)


def test_a_closed_or_unknown_tab_is_not_found(shop: EngineShop) -> None:
    gate = shop.gate()

    async def talk(peer: Peer) -> None:
        tab = await ask(peer, "open_table_tab", table_name="orders")
        gate.workspace.close_tab("", tab["tab_id"])
        for tab_id in (tab["tab_id"], "no such tab", ""):
            error = await peer.error("focus_query_tab", tab_id=tab_id)
            assert (error["code"], error["message"]) == (-32602, "Invalid params: tab not found")
        assert sum(tab["is_active"] for tab in await tabs(peer)) == 1

    shop.converse(talk, gate=gate)


def test_tabs_outlast_the_server(shop: EngineShop) -> None:
    gate = shop.gate()
    first = shop.converse(lambda peer: ask(peer, "open_table_tab", table_name="orders"), gate=gate)
    again = shop.converse(lambda peer: ask(peer, "open_table_tab", table_name="orders"), gate=gate)
    assert again == first


@pytest.mark.parametrize(
    "settings", [{"access": "none"}, {"agents": "deny"}], ids=["blocked", "never"]
)
def test_tabs_of_a_closed_source_are_hidden(shop: EngineShop, settings: dict[str, Any]) -> None:
    tab = shop.converse(lambda peer: ask(peer, "open_table_tab", table_name="orders"))

    async def talk(peer: Peer) -> None:
        assert await tabs(peer) == []
        error = await peer.error("focus_query_tab", tab_id=tab["tab_id"])
        assert (error["code"], error["message"]) == (-32602, "Invalid params: tab not found")
        for tool, arguments in (
            ("open_table_tab", {"table_name": "orders"}), ("open_connection_window", {}),
        ):  # fmt: skip
            refused = await peer.error(tool, connection_id=SHOP_ID, **arguments)
            assert refused["code"] == -32007

    shop.converse(talk, gate=shop.gate(**settings))


def test_tabs_of_a_foreign_source_are_hidden(shop: EngineShop, tmp_path: Path) -> None:
    other = sqlite_source(build_shop(tmp_path / "other.db"), "other", OTHER_ID)
    gate = shop.gate(other)

    async def open_both(peer: Peer) -> list[dict[str, Any]]:
        return [
            await ask(peer, "open_table_tab", connection_id=id, table_name="orders")
            for id in (SHOP_ID, OTHER_ID)
        ]

    mine, theirs = shop.converse(open_both, gate=gate)
    assert mine["window_id"] != theirs["window_id"]

    async def talk(peer: Peer) -> None:
        assert {tab["connection_id"] for tab in await tabs(peer)} == {SHOP_ID}
        error = await peer.error("focus_query_tab", tab_id=theirs["tab_id"])
        assert error["message"] == "Invalid params: tab not found"

    shop.converse(talk, NARROW, gate=gate)


def test_a_source_that_is_added_again_has_no_old_tabs(shop: EngineShop) -> None:
    shop.converse(lambda peer: ask(peer, "open_table_tab", table_name="orders"))
    gate = shop.gate(id=OTHER_ID)
    assert shop.converse(tabs, gate=gate) == []


def test_a_page_of_the_owner_makes_what_is_opened_delivered(shop: EngineShop) -> None:
    gate = shop.gate()
    gate.operators = ["ada", "eve"]

    async def talk(peer: Peer) -> list[bool]:
        window = await ask(peer, "open_connection_window")
        gate.workspace.show(["eve"], time.time())
        others = await ask(peer, "open_connection_window")
        gate.workspace.show(["ada"], time.time())
        seen = await ask(peer, "open_connection_window")
        gate.workspace.show(["ada"], time.time() - 60)
        gone = await ask(peer, "open_connection_window")
        return [each["is_delivered"] for each in (window, others, seen, gone)]

    assert shop.converse(talk, OF_ADA, gate=gate) == [False, False, True, False]


def test_tools_act_on_the_windows_of_the_tokens_owner_alone(shop: EngineShop) -> None:
    gate = shop.gate()
    gate.operators = ["ada", "eve"]
    tab = shop.converse(
        lambda peer: ask(peer, "open_table_tab", table_name="orders"), OF_ADA, gate=gate
    )

    async def look(peer: Peer) -> list[str]:
        error = await peer.error("focus_query_tab", tab_id=tab["tab_id"])
        assert error["message"] == "Invalid params: tab not found"
        return [each["tab_id"] for each in await tabs(peer)]

    assert shop.converse(look, OF_EVE, gate=gate) == []
    assert shop.converse(look, WRITER, gate=gate) == []  # a token of no one, of several people
    theirs = shop.converse(
        lambda peer: ask(peer, "open_table_tab", table_name="orders"), OF_EVE, gate=gate
    )
    assert theirs["window_id"] != tab["window_id"]


def test_a_token_without_an_owner_is_the_only_operators(shop: EngineShop) -> None:
    gate = shop.gate()
    gate.operators = ["ada"]
    opened = shop.converse(
        lambda peer: ask(peer, "open_table_tab", table_name="orders"), WRITER, gate=gate
    )
    gate.operators = ["ada", "eve"]
    seen = shop.converse(tabs, OF_ADA, gate=gate)
    assert opened["tab_id"] in [each["tab_id"] for each in seen]
    assert shop.converse(tabs, WRITER, gate=gate) == []


def test_an_agent_moves_what_a_person_looks_at_once_a_second(shop: EngineShop) -> None:
    gate = shop.gate()
    gate.operators = ["ada"]
    now = 1_000.0
    gate.clock = lambda: now

    async def talk(peer: Peer) -> None:
        nonlocal now
        tab = await ask(peer, "open_table_tab", table_name="orders")
        gate.workspace.show(["ada"], now)
        await ask(peer, "focus_query_tab", tab_id=tab["tab_id"])
        now += 0.9
        for tool, arguments in (
            ("open_connection_window", {"connection_id": SHOP_ID}),
            ("open_table_tab", {"connection_id": SHOP_ID, "table_name": "customers"}),
            ("focus_query_tab", {"tab_id": tab["tab_id"]}),
        ):
            error = await peer.error(tool, **arguments)
            assert "one tab can be opened or focused a second" in error["message"]
        assert {each.get("table_name") for each in await tabs(peer)} == {"orders", None}
        now += 0.1
        await ask(peer, "open_table_tab", table_name="customers")

    shop.converse(talk, OF_ADA, gate=gate)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"table_name": "nope"}, "Table not found: nope"),
        ({"table_name": "orders", "schema_name": "nope"}, "Schema not found: nope"),
        ({"table_name": "orders", "database_name": "nope"}, "Database not found: nope"),
    ],
)
def test_what_is_not_there_opens_nothing(
    engine_shop: EngineShop, arguments: dict[str, Any], words: str
) -> None:
    async def talk(peer: Peer) -> None:
        error = await peer.error("open_table_tab", connection_id=SHOP_ID, **arguments)
        assert (error["code"], error["message"]) == (-32602, f"Invalid params: {words}")
        assert await tabs(peer) == []

    engine_shop.converse(talk)
