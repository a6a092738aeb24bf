"""The surface `datalog` over HTTP, by an official client: every tool on a real database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.command_line import serving, tidegate
from support.datalog import CACHE_HOME, PEOPLE, SCHEMA, prepare
from tidegate.surfaces.datalog.tools import SPECS
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
        f'state = "{state}"\n[temporary_sources]\ndatalog_changes = true\n'
        f'datalog_directories = ["{tmp_path}/data"]\n'
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
    assert not (tmp_path / "elsewhere").exists()


def sorted_like(structured: dict[str, Any], wanted: Any) -> Any:
    """The result; of names without an order, in order."""
    found = structured["result"]
    return sorted(found) if wanted == ["Ben", "Cy", "Di"] else found
