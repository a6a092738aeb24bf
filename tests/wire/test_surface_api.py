"""Everything that a surface may have, over both transports and on every revision."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.example_surface import MOST_BYTES, build_database
from support.free_ports import claim_port
from wire.served import Served
from wire.wires import REVISIONS, HttpPeer, Peer, StdioPeer

SERVER = Path(__file__).parents[1] / "support" / "example_surface.py"


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=REVISIONS)
def peer(request: pytest.FixtureRequest, transport: str, tmp_path: Path) -> Iterator[Peer]:
    build_database(tmp_path)
    if transport == "stdio":
        command = [sys.executable, str(SERVER), "--stdio", str(tmp_path)]
        with StdioPeer(request.param, command) as peer:
            yield peer.connect()
        return
    port = claim_port()
    server = Served([sys.executable, str(SERVER), "--http", str(port), str(tmp_path)], port)
    try:
        with HttpPeer(port, request.param) as peer:
            yield peer.connect()
    finally:
        server.close()


def complete(peer: Peer, reference: dict[str, str], value: str) -> list[str]:
    params = {"ref": reference, "argument": {"name": "table", "value": value}}
    return peer.request("completion/complete", params).result["completion"]["values"]


def rejected(directory: Path) -> list[str]:
    return (directory / "rejected.txt").read_text().splitlines()


def test_a_surface_has_all_that_its_parts_promise(peer: Peer, tmp_path: Path) -> None:
    # Methods of its own, with the gateway behind them.
    shown = peer.request("connect").result
    assert (shown["tables"], shown["actor"]) == (["empty", "items"], "reader")
    assert ("resultType" in shown) == peer.modern
    assert peer.request("record", {"table": "empty"}).result["rows"] == []
    assert peer.request("record", {"tabel": "empty"}).error["code"] == -32602
    assert peer.request("record", {"table": "nowhere"}).error["code"] == -32602
    assert peer.request("vanish").error["code"] == -32601
    assert peer.converse("close", {}).result["closed"] is True

    # Prompts with arguments.
    (prompt,) = peer.request("prompts/list").result["prompts"]
    assert [argument["name"] for argument in prompt["arguments"]] == ["table", "tone"]
    got = peer.request("prompts/get", {"name": "review", "arguments": {"table": "items"}}).result
    assert got["messages"][0]["content"]["text"] == "Review the table items."
    for params in (
        {"name": "review"},
        {"name": "review", "arguments": {"table": "items", "mood": "x"}},
        {"name": "nothing"},
    ):
        assert peer.request("prompts/get", params).error["code"] == -32602, params

    # Completions, for prompts and for resource templates.
    assert complete(peer, {"type": "ref/prompt", "name": "review"}, "i") == ["items"]
    template = {"type": "ref/resource", "uri": "example://{table}"}
    assert complete(peer, template, "") == ["empty", "items"]
    assert complete(peer, {"type": "ref/prompt", "name": "nothing"}, "") == []

    # A tool that does not exist, and one that is refused before its arguments are checked.
    unknown = peer.call("vanish").result
    assert (unknown["isError"], unknown["content"][0]["text"]) == (True, "no tool vanish")
    refused = peer.call("erase", {"no such": "argument"}).result
    assert refused["isError"]
    assert refused["content"][0]["text"].startswith("policy.scope: erase is for writers")
    with closing(sqlite3.connect(tmp_path / "example.db")) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (500,)
    assert {line.partition(":")[0] for line in rejected(tmp_path)} == {"record", "vanish", "erase"}

    # A result that is shortened by the size of the whole reply.
    whole = peer.call("rows", {"table": "items"})
    assert len(json.dumps(whole.response, separators=(",", ":"))) <= MOST_BYTES
    body: dict[str, Any] = json.loads(whole.text)
    assert body["truncated"]
    assert 0 < len(body["rows"]) < 500
    assert not json.loads(peer.call("rows", {"table": "empty"}).text)["truncated"]

    # A question to the user and one to the client's model, within one call.
    assert peer.call("interview").text == "Alice, Paris"


def test_a_user_who_declines_is_no_error(peer: Peer) -> None:
    peer.answer = lambda request: {"action": "decline"}
    assert peer.call("interview").text == "declined"
    assert peer.converse("close", {}).result["closed"] is False
