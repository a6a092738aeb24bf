"""Calls that a connection repeats are recognized by their bytes. Each reply and each line of the
record is that of a call which is read whole."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.audit_records import records
from support.judge_cases import load
from support.surface_shop import build_shop
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.actors import Scope
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.protocol.repeated_calls import RepeatedCalls
from tidegate.serve.edges import open_http
from tidegate.store.records import TokenRights

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
}
SHOPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "hidden": {
        "masks": (Mask("customers.email", "hash"),),
        "filters": (RowFilter("orders", "customer_id = 1"),),
    },
    "guarded": {"access": "write", "approval_for": "writes", "approval": "client"},
    "written": {"access": "write", "undo": "keep"},
}
STATEMENTS = (
    "SELECT id, full_name FROM customers WHERE id = 1",
    "SELECT id, full_name FROM customers WHERE id = 2",
    "SELECT id, full_name FROM customers WHERE id = 2",
    "SELECT email FROM customers WHERE email = 'ada@example.org'",
    "SELECT * FROM orders",
    "SELECT '葛飾', \"full_name\", 'a\\b' FROM customers",
    "SELECT nothing FROM customers",
    "SELECT full_name FROM customers WHERE full_name = 'ada lovelace'",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 400) SELECT x FROM n",
    "UPDATE customers SET city = 'Oslo' WHERE id = 3",
    "UPDATE customers SET city = 'Rome' WHERE id = 3",
    "DELETE FROM orders",
    "DROP TABLE orders",
    "",
    "SELECT 1; SELECT 2",
    "ATTACH 'x.db' AS x",
    *[case.sql for case in load() if case.dialect == "sqlite" and len(case.sql) < 2_000][::12],
)
VARYING = re.compile(
    r'"requestState":"[^"]*"|\\"more\\":\\"[^"]*"|[0-9a-f]{10,}'
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)?"
)
"""What differs from one run to the next: seals, ids and codes, moments."""
UNLIKE = frozenset({"time", "elapsed_ms"})


async def converse(state: Path, shop: Path, settings: dict[str, Any]) -> list[str]:
    """The replies to the statements, each sent as a call of its own on one connection."""
    source = SourceSettings("shop", f"sqlite:///{shop}", **settings)
    app = App.open(Config(state=str(state), sources=(source,), http="127.0.0.1:0"))
    edge = open_http(app, "127.0.0.1", 0)
    token, _ = app.tokens.create("tests", TokenRights(Scope.FULL_ACCESS))
    await edge.start()
    replies: list[str] = []
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(edge.name).port)
        for number, sql in enumerate(STATEMENTS, 10):
            params = {"name": "query", "arguments": {"sql": sql}, "_meta": META}
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            body = json.dumps(call, ensure_ascii=number % 2 == 0).encode()
            writer.write(
                b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                b"Accept: application/json, text/event-stream\r\n"
                + f"Authorization: Bearer {token}\r\nMCP-Protocol-Version: {MODERN}\r\n".encode()
                + b"Mcp-Method: tools/call\r\nMcp-Name: query\r\n"
                + f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            assert length is not None, head
            text = (await reader.readexactly(int(length[1]))).decode()
            text = text.replace(str(shop), "shop.db")
            replies.append(f"{head.split(b' ')[1].decode()} {VARYING.sub('#', text)}")
        writer.close()
    finally:
        await edge.stop(0)
        await app.close()
    return replies


def told(state: Path) -> list[str]:
    """The record, without what no two calls have in common."""
    return [
        VARYING.sub("#", json.dumps({k: v for k, v in line.items() if k not in UNLIKE}))
        for line in records(state)
    ]


@pytest.mark.parametrize("name", SHOPS)
def test_the_short_way_and_the_whole_one_say_and_record_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found = RepeatedCalls.find
    recognized: list[bool] = []

    def counted(self: RepeatedCalls, *given: Any) -> Any:
        call = found(self, *given)
        recognized.append(call is not None)
        return call

    said: dict[str, list[str]] = {}
    for way, find in (("short", counted), ("whole", lambda *_: None)):
        place = tmp_path / way
        place.mkdir()
        monkeypatch.setattr(RepeatedCalls, "find", find)
        shop = build_shop(place / "shop.db")
        said[way] = asyncio.run(converse(place / "state", shop, SHOPS[name]))
    assert sum(recognized) > len(STATEMENTS) * 0.9
    assert unlike(said["short"], said["whole"]) == []
    lines = [told(tmp_path / way / "state") for way in said]
    assert unlike(*lines) == []


def unlike(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The pairs that differ."""
    return [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
