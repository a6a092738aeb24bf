"""The surface `datalog` on stdio: the document's rules of a session, to the letter, without a JVM.

Everything here runs in one process of the server with no Java on its path.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wire.wires import StdioPeer

ABOUT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
WRITES = (
    "transact", "kv_transact", "add_document", "remove_document", "clear_documents", "add_vector",
    "remove_vector",
)  # fmt: skip


def start(tmp_path: Path, *more: str) -> StdioPeer:
    settings = tmp_path / "settings.toml"
    settings.write_text(f'state = "{tmp_path}/state"\n')
    settings.chmod(0o600)
    serve = ["serve", "--surface", "datalog", "--config", str(settings), *more]
    return StdioPeer("2025-06-18", [sys.executable, "-m", "tidegate", *serve])


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[StdioPeer]:
    peer = start(tmp_path)
    yield peer
    peer.close()


def line(id: str, method: str, params: str | None = None) -> bytes:
    """A request whose id and params are JSON already."""
    rest = "" if params is None else f',"params":{params}'
    return f'{{"jsonrpc":"2.0","id":{id},"method":"{method}"{rest}}}\n'.encode()


def ask(peer: StdioPeer, frame: bytes) -> dict[str, Any]:
    peer.write(frame)
    return peer.receive()


def shake(peer: StdioPeer, **changes: Any) -> dict[str, Any]:
    reply = ask(peer, line("0", "initialize", json.dumps(ABOUT | changes)))
    peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    return reply


def call(peer: StdioPeer, tool: str, **arguments: Any) -> dict[str, Any]:
    params = json.dumps({"name": f"datalevin_{tool}", "arguments": arguments})
    return ask(peer, line("1", "tools/call", params))["result"]


def error(reply: dict[str, Any]) -> tuple[int, Any, Any]:
    """The code, the id and the keyword of an error."""
    assert "result" not in reply, reply
    return reply["error"]["code"], reply["id"], reply["error"]["data"][":code"]


def test_every_violation_of_the_lifecycle_is_refused_and_the_session_goes_on(
    peer: StdioPeer,
) -> None:
    invalid, params = ":invalid-request", ":invalid-params"
    for frame, expected in [
        # before initialize
        (line("2", "tools/list"), (-32600, 2, invalid)),
        (line('"a"', "tools/call", '{"name":"datalevin_api_info"}'), (-32600, "a", invalid)),
        (b'{"jsonrpc":"2.0","method":"initialize","params":{}}\n', (-32600, None, invalid)),
        (line("null", "initialize", json.dumps(ABOUT)), (-32600, None, invalid)),
        (line("true", "initialize", json.dumps(ABOUT)), (-32600, None, invalid)),
        (line("{}", "initialize", json.dumps(ABOUT)), (-32600, None, invalid)),
        (line("[1]", "initialize", json.dumps(ABOUT)), (-32600, None, invalid)),
        (line("3", "initialize"), (-32602, 3, params)),
        (line("3", "initialize", "null"), (-32602, 3, params)),
        (line("3", "initialize", "[]"), (-32602, 3, params)),
        *(
            (line("4", "initialize", json.dumps({k: v for k, v in ABOUT.items() if k != gone})),
             (-32602, 4, params))
            for gone in ABOUT
        ),
        (line("5", "initialize", json.dumps(ABOUT | {"capabilities": []})), (-32602, 5, params)),
        (line("5", "initialize", json.dumps(ABOUT | {"clientInfo": {"name": "x"}})),
         (-32602, 5, params)),
        (line("5", "initialize", json.dumps(ABOUT | {"protocolVersion": 5})), (-32602, 5, params)),
        # frames that are no message
        (b"{\n", (-32700, None, ":parse-error")),
        (b"[{\n", (-32700, None, ":parse-error")),
        (b'"\xff\xfe"\n', (-32700, None, ":parse-error")),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xc3("}}\n',
         (-32700, None, ":parse-error")),
        (b"5\n", (-32600, None, invalid)),
        (b"[]\n", (-32600, None, invalid)),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', (-32600, None, invalid)),
        (b'{"jsonrpc":"1.0","id":6,"method":"ping"}\n', (-32600, 6, invalid)),
        (b'{"id":7,"method":"ping"}\n', (-32600, 7, invalid)),
    ]:  # fmt: skip
        assert error(ask(peer, frame)) == expected, frame
    peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})  # too early: ignored
    assert error(ask(peer, line("1", "tools/list"))) == (-32600, 1, invalid)
    # MCP allows this one request at any time.
    assert ask(peer, line("1", "ping")) == {"jsonrpc": "2.0", "id": 1, "result": {}}

    reply = ask(peer, line("0", "initialize", json.dumps(ABOUT | {"capabilities": None})))
    assert reply["result"]["protocolVersion"] == "2025-06-18"
    assert ask(peer, line("1", "ping"))["result"] == {}  # while it is initializing
    assert error(ask(peer, line("2", "tools/list"))) == (-32600, 2, invalid)
    assert error(ask(peer, line("0", "initialize", json.dumps(ABOUT)))) == (-32600, 0, invalid)
    peer.write(b'{"jsonrpc":"2.0","id":9,"method":"notifications/initialized"}\n\r\n\n')
    for frame, expected in [
        (line("1", "no/such"), (-32601, 1, ":method-not-found")),
        (line("1", "tools/call", "[]"), (-32602, 1, params)),
        (line("1", "tools/call", "{}"), (-32602, 1, params)),
        (line("1", "tools/call", '{"name":"datalevin_api_info","arguments":[]}'),
         (-32602, 1, params)),
        (line("0", "initialize", json.dumps(ABOUT)), (-32600, 0, invalid)),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', (-32600, None, invalid)),
        (b'{"jsonrpc":"2.0","method":"tools/list"}\n', (-32600, None, invalid)),
        (b'{"jsonrpc":"2.0","method":"ping"}\n', (-32600, None, invalid)),
    ]:  # fmt: skip
        assert error(ask(peer, frame)) == expected, frame
    assert len(ask(peer, line("1", "tools/list", "null"))["result"]["tools"]) == 32


@pytest.mark.parametrize("asked", ["2024-11-05", "2025-03-26", "2025-11-25", "2099-01-01", "x"])
def test_every_handshake_is_answered_with_the_revision_of_the_document(
    peer: StdioPeer, asked: str
) -> None:
    assert shake(peer, protocolVersion=asked)["result"]["protocolVersion"] == "2025-06-18"
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n'
    assert error(ask(peer, batch)) == (-32600, None, ":invalid-request")


def test_an_id_of_any_kind_comes_back_as_it_was_written(peer: StdioPeer) -> None:
    shake(peer)
    for id in ("1", "-0", "1.50", "1e3", "123456789012345678901234567890", '"x"', '"é\\n"', '""'):
        peer.write(line(id, "ping"))
        echoed = peer.receive()["id"]
        assert (echoed, type(echoed)) == (json.loads(id), type(json.loads(id)))


def test_the_tools_are_those_of_the_document(peer: StdioPeer, snapshot_tools: list[Any]) -> None:
    shake(peer)
    tools = ask(peer, line("1", "tools/list"))["result"]["tools"]
    assert [(each["name"], each["inputSchema"]) for each in tools] == [
        (each["name"], each["inputSchema"]) for each in snapshot_tools
    ]


@pytest.fixture
def snapshot_tools() -> list[Any]:
    return json.loads((Path(__file__).parent / "datalog_tools.json").read_text())


def test_write_tools_are_refused_before_their_arguments_are_looked_at(peer: StdioPeer) -> None:
    shake(peer)
    for tool in WRITES:
        for arguments in ({}, {"database": "database-none"}, {"database": 5, "nonsense": True}):
            result = call(peer, tool, **arguments)
            assert result["isError"] is True
            assert result["structuredContent"]["code"] == ":writes-disabled", tool
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "field"),
    [
        ("nope", {}, ":unknown-tool", None),
        ("open_database", {}, ":invalid-params", "dir|uri"),
        ("open_database", {"dir": "/x", "uri": "dtlv://h/x"}, ":invalid-params", "dir|uri"),
        ("open_database", {"dir": 5}, ":invalid-params", "dir"),
        ("open_database", {"dir": "dtlv://h/x"}, ":invalid-params", "dir"),
        ("open_kv", {"uri": "http://h/x"}, ":invalid-params", "uri"),
        ("open_kv", {"uri": "/tmp/x"}, ":invalid-params", "uri"),
        ("open_kv", {"dir": "/x", "opts": []}, ":invalid-params", "opts"),
        ("open_database", {"dir": "/x", "more": 1}, ":invalid-params", "more"),
        ("open_database", {"dir": "/x", "create": "yes"}, ":invalid-params", "create"),
        ("open_database", {"dir": "/x", "create": True}, ":writes-disabled", None),
        ("open_database", {"dir": "/x", "schema": {}}, ":writes-disabled", None),
        ("query", {}, ":invalid-params", "database"),
        ("query", {"database": "database-x", "query": "[]"}, ":unknown-database", "database"),
        ("query", {"database": "database-x", "query": "[]", "inputs": {}}, ":invalid-params",
         "inputs"),
        ("datoms", {"database": "database-x", "index": "eav", "limit": -1}, ":invalid-request",
         "limit"),
        ("datoms", {"database": "database-x", "index": "eav", "offset": True}, ":invalid-request",
         "offset"),
        ("kv_range", {"kv": "kv-x", "dbi": "a", "keyRange": [], "limit": 1.5},
         ":invalid-request", "limit"),
        ("kv_get", {"kv": "kv-x", "dbi": "a", "key": 1}, ":unknown-kv", "kv"),
        ("close_kv", {"kv": "database-x"}, ":unknown-kv", "kv"),
        ("document_count", {"searchIndex": "x"}, ":unknown-search-index", "searchIndex"),
        ("vector_index_info", {"vectorIndex": "x"}, ":unknown-vector-index", "vectorIndex"),
        ("open_search_index", {"kv": "x"}, ":unknown-kv", "kv"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_an_error_result_that_names_it(
    refusing: StdioPeer, tool: str, arguments: dict[str, Any], code: str, field: str | None
) -> None:
    result = call(refusing, tool, **arguments)
    shown = result["structuredContent"]
    assert result["isError"] is True and shown["error"]
    assert (shown["code"], shown.get("details", {}).get("field")) == (code, field)
    assert json.loads(result["content"][0]["text"]) == shown


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioPeer]:
    peer = start(tmp_path_factory.mktemp("datalog"))
    shake(peer)
    yield peer
    peer.close()


def test_api_info_says_what_is_allowed_and_the_end_of_the_input_ends_the_server(
    tmp_path: Path,
) -> None:
    peer = start(tmp_path, "--allow-writes")
    try:
        shake(peer)
        info = call(peer, "api_info")["structuredContent"]
        assert info["mcp"]["protocolVersion"] == "2025-06-18"
        assert (info["mcp"]["transport"], info["mcp"]["allowWrites"]) == ("stdio", True)
        assert info["datalevin"]["json-api-version"] == 1
        assert peer.process.stdin is not None
        peer.process.stdin.close()
        assert peer.process.wait(60) == 0
    finally:
        peer.close()


@pytest.mark.parametrize(
    ("words", "writes"),
    [(["dtlv", "mcp"], False), (["dtlv", "--allow-writes", "mcp"], True), (["dtlv", "-w", "mcp"],
     True)],
)  # fmt: skip
def test_the_command_may_be_spelled_as_datalevins(
    tmp_path: Path, words: list[str], writes: bool
) -> None:
    command = [sys.executable, "-m", "tidegate", *words, "--state", str(tmp_path / "state")]
    peer = StdioPeer("2025-06-18", command)
    try:
        assert shake(peer)["result"]["serverInfo"]["name"] == "tidegate-datalog"
        info = call(peer, "api_info")["structuredContent"]
        assert info["mcp"]["allowWrites"] is writes
    finally:
        peer.close()
