"""Both forms of the surface `jdbc` on one stream of a real process, and the official client."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from support.jdbc_surface import QUERY, make_file
from wire.conversations import python_sdk
from wire.wires import StdioPeer


@pytest.fixture
def shop(tmp_path: Path) -> str:
    (tmp_path / "files").mkdir()
    return make_file(tmp_path / "files" / "shop.db")


@pytest.fixture
def command(tmp_path: Path, shop: str) -> list[str]:
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'state = "{tmp_path}/state"\n[temporary_sources]\ndirectories = ["{tmp_path}/files"]\n'
    )
    settings.chmod(0o600)
    serve = ["serve", "--surface", "jdbc", "--config", str(settings)]
    return [sys.executable, "-m", "tidegate", *serve]


@pytest.fixture
def peer(command: list[str]):
    peer = StdioPeer("2025-11-25", command)
    yield peer
    peer.close()


def _message(id, method, **params):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def _ask(peer, id, method, **params):
    peer.send(_message(id, method, **params))
    reply = peer.receive()
    assert reply["id"] == id
    return reply["result"]


def test_both_forms_share_one_session(peer: StdioPeer, shop: str) -> None:
    id = _ask(peer, 1, "connect", url=shop)["id"]
    _ask(
        peer,
        2,
        "initialize",
        protocolVersion="2025-11-25",
        capabilities={},
        clientInfo={"name": "test", "version": "1"},
    )
    peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    arguments = {"connectionId": id, "table": "users"}
    found = _ask(peer, 3, "tools/call", name="discover", arguments=arguments)
    assert found["structuredContent"] == json.loads(found["content"][0]["text"])
    assert found["structuredContent"] == _ask(peer, 4, "discover", **arguments)
    assert _ask(peer, 5, "close", connectionId=id)["status"] == "closed"


def test_a_notification_gets_no_answer_and_bad_lines_end_nothing(
    peer: StdioPeer, shop: str
) -> None:
    peer.send({"jsonrpc": "2.0", "method": "connect", "params": {"url": shop}})
    peer.write(b"{\n")
    assert peer.receive()["error"]["code"] == -32700
    peer.send([_message(1, "connect", url=shop)])
    assert peer.receive()["error"]["code"] == -32600
    assert _ask(peer, 2, "connect", url=shop)["status"] == "connected"


def test_what_was_read_before_the_end_of_the_input_is_answered(peer: StdioPeer, shop: str) -> None:
    lines = [_message(1, "connect", url=shop), _message(2, "record", query=QUERY)]
    peer.write("".join(json.dumps(line) + "\n" for line in lines).encode())
    assert peer.process.stdin is not None
    peer.process.stdin.close()
    assert {peer.receive()["id"] for _ in lines} == {1, 2}
    assert peer.process.wait(60) == 0


def test_an_official_client_has_the_whole_conversation(command: list[str], shop: str) -> None:
    report = python_sdk(
        1,
        {
            "command": command,
            "calls": [
                ["connect", {"url": shop}],
                ["record", {"query": QUERY}],
                ["discover", {"connectionId": "x", "table": "users"}],
            ],
        },
    )
    assert report["tools"] == ["connect", "discover", "record", "close"]
    connected, extracted, refused = report["results"]
    assert connected["structured"]["status"] == "connected"
    assert extracted["structured"]["extracted"]["selectFields"] == ["id", "name", "email"]
    assert json.loads(extracted["text"]) == extracted["structured"]
    assert refused["is_error"]
    assert refused["structured"]["error"] == "Invalid connection"
