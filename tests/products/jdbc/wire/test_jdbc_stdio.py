"""Both forms of the surface `jdbc` on one stream of a real process, and the official clients."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from support.free_ports import claim_port
from support.jdbc_surface import QUERY, make_file
from wire.conversations import python_sdk, typescript_sdk
from wire.served import Served
from wire.wires import StdioPeer

CLIENTS = {
    "python 1": partial(python_sdk, 1),
    "python 2": partial(python_sdk, 2),
    "typescript 1": partial(typescript_sdk, 1),
    "typescript 2": partial(typescript_sdk, 2),
}


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


@pytest.fixture
def url(command: list[str]) -> Iterator[str]:
    port = claim_port()
    served = Served([*command, "--no-auth", "--http", f"127.0.0.1:{port}"], port)
    yield f"http://127.0.0.1:{port}/mcp/jdbc"
    served.close()


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("client", CLIENTS)
def test_each_official_client_connects_and_sees_extractions_and_errors(
    request: pytest.FixtureRequest, command: list[str], shop: str, client: str, transport: str
) -> None:
    place = (
        {"command": command} if transport == "stdio" else {"url": request.getfixturevalue("url")}
    )
    calls = [
        ["connect", {"url": shop}],
        ["record", {"query": QUERY}],
        ["discover", {"connectionId": "x", "table": "users"}],
    ]
    mode = {"mode": "auto"} if client.endswith("2") else {}
    report = CLIENTS[client]({**place, "calls": calls, **mode})
    assert report["tools"] == ["connect", "discover", "record", "close"]
    connected, extracted, refused = report["results"]
    assert connected["structured"]["status"] == "connected"
    assert extracted["structured"]["extracted"]["selectFields"] == ["id", "name", "email"]
    assert json.loads(extracted["text"]) == extracted["structured"]
    assert refused["is_error"]
    assert refused["structured"]["error"] == "Invalid connection"
