"""MCP Apps: a page and charts for clients that show them, and nothing of it for all others."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.surface_client import WRITER, Peer, modern_meta
from support.surface_gateway import SHOP_ID, SqliteGate, sqlite_source
from support.surface_shop import build_shop
from tidegate.config.model import Config
from tidegate.protocol.apps import MIME_TYPE, SHOWING
from tidegate.surfaces.apps.page import app_page
from tidegate.surfaces.registry import open_surface

SURFACES = ("core", "workbench")
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PAGE = "ui://tidegate/result"
BARS = {
    "mark": "bar",
    "encoding": {
        "x": {"field": "customer_id", "type": "nominal"},
        "y": {"aggregate": "sum", "field": "total"},
    },
}
BLOBS = {
    "mark": "bar",
    "encoding": {"x": {"field": "n", "type": "nominal"}, "y": {"aggregate": "count"}},
}
TOOLS = {"core": ("query", "sql"), "workbench": ("execute_query", "query")}


@pytest.fixture
def gate(tmp_path: Path) -> SqliteGate:
    return SqliteGate(tmp_path, sqlite_source(build_shop(tmp_path / "shop.db"), access="write"))


class AppPeer(Peer):
    """A client with these capabilities, in a session of a revision."""

    def __init__(self, surface: Any, revision: str, capabilities: dict[str, Any]) -> None:
        super().__init__(surface, WRITER, revision)
        self.declared = capabilities

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        if method == "initialize":
            params["capabilities"] = self.declared
        return await super().request(method, **params)


def talk(
    gate: SqliteGate,
    surface: str,
    revision: str,
    conversation: Callable[[AppPeer], Awaitable[Any]],
    capabilities: Any = SHOWING,
) -> Any:
    async def whole() -> Any:
        async with gate.opened():
            peer = AppPeer(open_surface(surface, gate, Config()), revision, dict(capabilities))
            return await conversation(peer)

    return asyncio.run(whole())


def arguments(surface: str, sql: str, **more: Any) -> dict[str, Any]:
    place = {"connection_id": SHOP_ID} if surface == "workbench" else {}
    return {TOOLS[surface][1]: sql, **place, **more}


async def ask_all(peer: AppPeer, surface: str, sql: str, **more: Any) -> list[Any]:
    """What a client is told at first, its tools, the page, a result, and a failure."""
    name = TOOLS[surface][0]
    wrong = arguments(surface, "SELECT nothing_such FROM orders")
    return [
        await peer.open(),
        await peer.request("tools/list"),
        await peer.request("resources/read", uri=PAGE),
        await peer.request("tools/call", name=name, arguments=arguments(surface, sql, **more)),
        await peer.request("tools/call", name=name, arguments=wrong),
    ]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("surface", SURFACES)
def test_a_client_that_shows_pages_gets_them_in_every_revision(
    gate: SqliteGate, surface: str, revision: str
) -> None:
    if (surface, revision) == ("workbench", "2024-11-05"):
        return  # which that surface does not speak
    sql = "SELECT customer_id, total FROM orders"
    told, listed, page, result, failure = talk(
        gate, surface, revision, lambda peer: ask_all(peer, surface, sql, chart=BARS)
    )
    assert "resources" in told["capabilities"]
    tools = {each["name"]: each for each in listed["result"]["tools"]}
    tool = tools[TOOLS[surface][0]]
    assert tool["_meta"]["ui"] == {"resourceUri": PAGE}
    assert tool["inputSchema"]["properties"]["chart"]["type"] == "object"
    (item,) = page["result"]["contents"]
    assert (item["uri"], item["mimeType"]) == (PAGE, MIME_TYPE)
    assert item["_meta"] == {"ui": {"prefersBorder": True}}
    assert item["text"] == app_page()
    answer = json.loads(result["result"]["content"][0]["text"])
    assert answer["columns"] == ["customer_id", "Sum of total"]
    assert len(answer["rows"]) == len(answer["chart"]["marks"])
    assert answer["chart"]["mark"] == "bar"
    # A page is given results alone, and knows them by their code.
    assert failure["result"]["isError"] is True
    assert failure["result"]["content"][0]["text"].startswith("sql.failed: ")


@pytest.mark.parametrize(
    "capabilities",
    [{}, {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}}],
    ids=["none", "other"],
)
@pytest.mark.parametrize("surface", SURFACES)
def test_a_client_that_shows_none_learns_nothing_of_it(
    gate: SqliteGate, surface: str, capabilities: dict[str, Any]
) -> None:
    told, listed, page, result, failure = talk(
        gate,
        surface,
        "2025-11-25",
        lambda peer: ask_all(peer, surface, "SELECT 1 AS one", chart=BARS),
        capabilities,
    )
    assert ("resources" in told["capabilities"]) == (surface == "workbench")
    said = json.dumps([told, listed])
    assert not re.search(r"\bui\b|ui://|chart|_meta", said)
    assert page["error"]["code"] in (-32601, -32002, -32602)
    refused = json.dumps(result)
    assert "marks" not in refused
    assert ("argument.invalid" in refused) == (surface == "core")
    assert ("error" in failure) == (surface == "workbench")


@pytest.mark.parametrize("surface", SURFACES)
def test_the_stateless_era_declares_it_with_each_request(gate: SqliteGate, surface: str) -> None:
    async def conversation(peer: AppPeer) -> list[Any]:
        shows = modern_meta(**SHOWING)
        return [
            await peer.request("server/discover", _meta=shows),
            await peer.request("tools/list", _meta=shows),
            await peer.request("resources/read", uri=PAGE, _meta=shows),
            await peer.request("tools/list", _meta=modern_meta()),
            await peer.request("resources/read", uri=PAGE, _meta=modern_meta()),
        ]

    told, listed, page, plain, refused = talk(gate, surface, "2026-07-28", conversation)
    assert "resources" in told["result"]["capabilities"]
    assert "chart" in json.dumps(listed)
    assert page["result"]["contents"][0]["mimeType"] == MIME_TYPE
    assert "chart" not in json.dumps(plain)
    assert "error" in refused


def test_a_chart_is_of_all_rows_and_reads_alone(gate: SqliteGate) -> None:
    count = {
        "mark": "bar",
        "encoding": {"x": {"field": "n", "bin": {"maxbins": 4}}, "y": {"aggregate": "count"}},
    }
    many = (
        "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s LIMIT 12000)"
        " SELECT n FROM s"
    )

    async def conversation(peer: AppPeer) -> list[Any]:
        await peer.open()
        asked = [
            {"sql": many, "chart": count},
            {"sql": "DELETE FROM orders RETURNING id AS n", "chart": count},
            {"sql": many, "chart": {"mark": "pie", "encoding": {}}},
            {"sql": many, "also": ["SELECT 1"], "chart": count},
            {"sql": "SELECT 1 AS m", "chart": count},
            {"sql": f"SELECT zeroblob(50000) AS n FROM ({many})", "chart": BLOBS},
        ]
        return [
            (await peer.request("tools/call", name="query", arguments=each))["result"]
            for each in asked
        ]

    made, *refused, large = talk(gate, "core", "2025-11-25", conversation)
    drawn = json.loads(large["content"][0]["text"])["chart"]
    assert drawn["row_count"] < 100 and "bytes" in drawn["notes"][0], drawn["notes"]
    answer = json.loads(made["content"][0]["text"])
    assert answer["chart"]["row_count"] == 10_000
    assert answer["chart"]["notes"] == ["cut after 10,000 rows, the limit: there are more"]
    assert sum([int(each[1]) for each in answer["rows"]]) == 10_000
    texts = [each["content"][0]["text"] for each in refused]
    assert [each["isError"] for each in refused] == [True] * 4
    assert texts[0].startswith("policy.read_only")
    assert "`mark` must be one of" in texts[1]
    assert "chart" in texts[2]
    assert "no column n" in texts[3]


def test_the_page_is_one_document_that_needs_nothing_from_outside() -> None:
    page = app_page()
    assert len(page.encode()) <= 60 * 1024
    assert set(re.findall(r"https?://[^\s\"'`]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "https?:\\/\\/[^\\s",
    }
    assert not re.search(r"^\s*(?:import|export)\b", page, re.MULTILINE)
    assert not re.search(
        r"innerHTML|eval\(|new Function|\bfetch\(|XMLHttpRequest|localStorage", page
    )
    assert re.findall(r"\b(?:src|href)=", page) == []
    assert re.findall(r'"tools/call", \{ name: "(\w+)"', page) == ["more"]
