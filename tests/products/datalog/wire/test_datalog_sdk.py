"""The surface `datalog` over HTTP, by an official client: every tool on a real database."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.command_line import serving, tidegate
from support.datalog import CACHE_HOME, PEOPLE, SCHEMA, prepare
from tidegate.products.datalog.surface.tools import SPECS
from wire.conversations import python_sdk
from wire.wires import MODERN

RULES = "[[(ancestor ?a ?b) [?b :parent ?a]] [(ancestor ?a ?b) [?b :parent ?c] (ancestor ?a ?c)]]"
ANCESTORS = '[:find [?n ...] :in $ % :where [?a :name "Ada"] (ancestor ?a ?d) [?d :name ?n]]'
KV: dict[str, Any] = {"kv": "$kv", "dbi": "cities", "keyType": "long"}
SEARCH, VECTORS = {"searchIndex": "$searchIndex"}, {"vectorIndex": "$vectorIndex"}
FACTS = {"database": "$database"}


def script(root: Path) -> list[tuple[str, dict[str, Any], Any]]:
    """Tools, arguments, and what the result has, or a member of it, or None for anything."""
    return [
        ("api_info", {}, None),
        ("open_database", {"dir": f"{root}/facts", "create": True, "schema": SCHEMA}, None),
        ("transact", {**FACTS, "txData": PEOPLE}, None),
        ("query", {**FACTS, "query": ANCESTORS, "inputs": [RULES]}, ["Ben", "Cy", "Di"]),
        ("pull", {**FACTS, "selector": [":name"], "eid": 1}, {":name": "Ada"}),
        ("pull_many", {**FACTS, "selector": [":age"], "eids": [4]}, [{":age": 9}]),
        ("entity", {**FACTS, "eid": [":name", "Nobody"]}, None),
        ("datoms", {**FACTS, "index": "ave", "c1": ":age", "limit": 0}, []),
        ("search_datoms", {**FACTS, "a": ":age", "v": 1}, []),
        ("count_datoms", {**FACTS, "a": ":likes"}, 3),
        ("fulltext_datoms", {**FACTS, "query": "red"}, [[3, ":bio", "sails a red boat"]]),
        ("open_kv", {"dir": f"{root}/store"}, None),
        ("kv_transact", {**KV, "txs": [["put", 1, "one"], ["put", 2, "two"]]}, ":transacted"),
        ("kv_get", {**KV, "key": 2}, "two"),
        ("kv_range", {**KV, "keyRange": [":all-back"]}, [[2, "two"], [1, "one"]]),
        ("open_search_index", {"kv": "$kv"}, None),
        ("add_document", {**SEARCH, "docRef": "a", "docText": "a red boat"}, None),
        ("search_documents", {**SEARCH, "query": "red"}, ["a"]),
        ("document_indexed", {**SEARCH, "docRef": "a"}, True),
        ("document_count", SEARCH, 1),
        ("remove_document", {**SEARCH, "docRef": "a"}, None),
        ("clear_documents", SEARCH, None),
        ("open_vector_index", {"kv": "$kv", "opts": {":dimensions": 2}}, None),
        ("add_vector", {**VECTORS, "vectorRef": "x", "vectorData": [1, 0]}, None),
        ("vector_search", {**VECTORS, "queryVector": [1, 0.1]}, ["x"]),
        ("vector_indexed", {**VECTORS, "vectorRef": "x"}, True),
        ("vector_index_info", VECTORS, None),
        ("remove_vector", {**VECTORS, "vectorRef": "x"}, None),
        ("close_vector_index", VECTORS, None),
        ("close_search_index", SEARCH, None),
        ("close_kv", {"kv": "$kv"}, None),
        ("close_database", FACTS, None),
    ]  # fmt: skip


def test_an_official_client_uses_every_tool_over_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE_HOME))
    prepare()
    state = tmp_path / "state"
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'state = "{state}"\n[datalog]\nchanges = true\ndirectories = ["{tmp_path}/data"]\n'
    )
    settings.chmod(0o600)
    token = tidegate("token", "create", "peer", "--scope", "readWrite", state=state).out.strip()
    words = ["serve", "--surface", "datalog", "--http", "127.0.0.1:0", "--config", str(settings)]
    with serving([*words, "--allow-writes"], state) as server:
        said = next(word for word in server.until("serving").split() if word.startswith("http"))
        url = f"{said.removesuffix('/mcp')}/mcp/datalog"
        for mode, revision in (("legacy", "2025-11-25"), ("auto", MODERN)):
            root = tmp_path / "data" / mode
            root.mkdir(parents=True)
            called = script(root)
            report = python_sdk(
                2,
                {
                    "url": url,
                    "token": token,
                    "mode": mode,
                    "calls": [[f"datalevin_{tool}", arguments] for tool, arguments, _ in called]
                    + [
                        ["datalevin_open_database", {"dir": f"{tmp_path}/elsewhere"}],
                        ["datalevin_open_database", {"uri": "dtlv://u:pw@h.example/facts"}],
                        ["datalevin_count_datoms", {**FACTS, "a": ":likes"}],
                    ],
                },
            )
            assert report["revision"] == revision
            assert set(report["tools"]) == {f"datalevin_{spec.name}" for spec in SPECS}
            assert {tool for tool, _, _ in called} == {spec.name for spec in SPECS}
            wrong = [
                (tool, found)
                for (tool, _, wanted), found in zip(called, report["results"], strict=False)
                if found["is_error"]
                or (wanted is not None and sorted_like(found["structured"], wanted) != wanted)
            ]
            assert not wrong, wrong
            elsewhere, remote, closed = report["results"][len(called) :]
            assert elsewhere["structured"]["code"] == ":policy-denied"
            assert remote["structured"]["code"] == ":policy-denied"
            assert closed["structured"]["code"] == ":unknown-database"
            assert sorted(each.name for each in root.iterdir()) == ["facts", "store"]
        check_frames(url, token)
    assert not (tmp_path / "elsewhere").exists()


def check_frames(url: str, token: str) -> None:
    """Frames that a client should not send, over HTTP: each is answered, and the next is served."""
    invalid = (400, -32600)
    for frame, expected in [
        (b"{", (400, -32700)),
        (b'"\xff\xfe"', (400, -32700)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xc3("}}', (400, -32700)),
        (b"5", invalid),
        (b"[]", invalid),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', invalid),
        (b'{"jsonrpc":"1.0","id":6,"method":"ping"}', invalid),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', invalid),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', invalid),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', invalid),
    ]:
        status, reply = posted(url, token, frame)
        assert (status, reply["error"]["code"]) == expected, frame
    about = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "test", "version": "1"}}  # fmt: skip
    for id in ("0", "-7", '"x"', '""', "123456789012345678901234567890"):
        params = json.dumps(about)
        frame = f'{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{params}}}'
        status, reply = posted(url, token, frame.encode())
        assert (status, reply["id"]) == (200, json.loads(id))
        assert reply["result"]["serverInfo"]["name"] == "tidegate-datalog"


def posted(url: str, token: str, frame: bytes) -> tuple[int, Any]:
    """The status and the JSON of the answer to a POST."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    try:
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        connection.request("POST", where.path, frame, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    if "event-stream" in answer.headers.get("Content-Type", ""):
        text = next(line[5:] for line in text.splitlines() if line.startswith("data:{"))
    return answer.status, json.loads(text)


class Stdio:
    """`tidegate dtlv -w mcp` as a process, spoken to in frames, after its handshake."""

    def __init__(self, state: Path) -> None:
        command = [sys.executable, "-m", "tidegate", "dtlv", "-w", "mcp", "--state", str(state)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        about = {"name": "test", "version": "1"}
        opening = {"protocolVersion": "x", "capabilities": {}, "clientInfo": about}
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
        self.receive()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, frame: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, id: int, tool: str, **arguments: Any) -> None:
        params = {"name": f"datalevin_{tool}", "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})

    def call(self, tool: str, **arguments: Any) -> Any:
        self.ask(1, tool, **arguments)
        return self.receive()["result"]["structuredContent"]

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            assert self.process.stdout is not None
            self.process.stdout.close()


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Stdio]]:
    """Starts servers on stdio, each with a state directory of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE_HOME))
    prepare()
    servers: list[Stdio] = []

    def start(name: str) -> Stdio:
        servers.append(Stdio(tmp_path / name))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


def test_a_client_that_reads_late_gets_every_large_result_in_order(
    tmp_path: Path, started: Callable[[str], Stdio]
) -> None:
    """Twenty results of half a megabyte are asked for before the first is read: a pipe holds far
    less."""
    server = started("state")
    kv = server.call("open_kv", dir=f"{tmp_path}/store")["kv"]
    value = "x" * 500_000
    done = server.call("kv_transact", kv=kv, dbi="a", txs=[["put", 1, value]])
    assert done["result"] == ":transacted"
    for id in range(10, 30):
        server.ask(id, "kv_get", kv=kv, dbi="a", key=1)
    for id in range(10, 30):
        reply = server.receive()
        assert reply["id"] == id
        assert reply["result"]["structuredContent"]["result"] == value
        assert reply["result"]["content"][0]["text"] == "See structuredContent."
    assert server.end() == 0


def test_two_servers_on_one_directory_read_the_latest_and_never_both_change_it(
    tmp_path: Path, started: Callable[[str], Stdio]
) -> None:
    facts = {"dir": f"{tmp_path}/facts"}
    first, second = started("first"), started("second")
    one = first.call("open_database", **facts, create=True)["database"]
    assert "result" in first.call("transact", database=one, txData=[{":n": 1}])
    two = second.call("open_database", **facts)["database"]
    assert second.call("count_datoms", database=two, a=":n")["result"] == 1
    for server, id in ((first, one), (second, two)):
        refused = server.call("transact", database=id, txData=[{":n": 2}])
        assert refused["code"] == ":source-locked", refused
        assert "java" in refused["error"]
    assert first.call("count_datoms", database=one, a=":n")["result"] == 1
    assert second.call("close_database", database=two)["closed"] is True
    assert "result" in first.call("transact", database=one, txData=[{":n": 2}])
    again = second.call("open_database", **facts)["database"]
    assert second.call("count_datoms", database=again, a=":n")["result"] == 2


def sorted_like(structured: dict[str, Any], wanted: Any) -> Any:
    """The result; of names without an order, in order."""
    found = structured["result"]
    return sorted(found) if wanted == ["Ben", "Cy", "Di"] else found
