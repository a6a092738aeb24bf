"""Attacks through every argument that a caller gives: nothing runs, and nothing on disk changes.

A directory with secrets lies beside the databases; it is compared byte by byte after each attack,
and so is what the database holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from products.datalog.contract.test_surface_session import Client
from support.datalog import Datalog
from support.surface_client import OWNER, READER, WRITER, Peer
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings

REFUSED = (
    ":function-refused", ":invalid-params", ":invalid-request", ":datalog-unknown-form",
    ":datalog-unreadable", ":policy-denied", ":writes-disabled", ":absent", ":tool-error",
    ":invalid-json-tag", ":source-unreachable",
    ":source-url",
)  # fmt: skip

Attack = tuple[str, dict[str, Any]]


def sealed(root: Path) -> dict[str, str]:
    """Every file below a directory with the digest of what it holds; without the lock file, which
    every opening writes, and the two pages at the beginning of the data, likewise."""
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.name != "lock.mdb":
            content = path.read_bytes()[8192 if path.name == "data.mdb" else 0 :]
            found[str(path.relative_to(root))] = hashlib.sha256(content).hexdigest()
    return found


def shown(wrong: list[Any]) -> str:
    return "".join(
        f"\n{each[0]} {str(each[1])[:200]} -> {str(each[2])[:300]}" for each in wrong[:40]
    )


class Shop:
    """A gate over one saved database, a foreign directory, and callers of it."""

    def __init__(self, datalog: Datalog, root: Path) -> None:
        self.root = root / "data"
        self.foreign = root / "foreign"
        self.root.mkdir()
        self.foreign.mkdir()
        (self.foreign / "secret.txt").write_text("tide and gate")
        (self.foreign / "index.vec").write_text("not an index")
        datalog.make(self.root / "facts")
        datalog.make(self.root / "store")
        datalog.close_sources()
        sources = tuple(
            SourceSettings(name=name, url=f"datalevin://{self.root}/{name}", access="write")
            for name in ("facts", "store")
        )
        self._datalog = datalog
        self.app = App.open(Config(state=str(root / "state"), sources=sources))
        self._surface = self.app.surface("datalog")

    def client(self, actor: Any = OWNER) -> Client:
        return Client(self._datalog, Peer(self._surface, actor, "2025-06-18"))

    def close(self) -> None:
        self._datalog.run(self.app.close())


@pytest.fixture
def shop(datalog: Datalog, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(datalog, tmp_path)
    yield shop
    shop.close()


def ids_of(call: Client) -> dict[str, str]:
    kv = call("open_kv", dir="store")["kv"]
    return {
        "database": call("open_database", dir="facts")["database"],
        "kv": kv,
        "searchIndex": call("open_search_index", kv=kv, opts={":domain": "notes"})["searchIndex"],
        "vectorIndex": call(
            "open_vector_index", kv=kv, opts={":dimensions": 2, ":domain": "places"}
        )["vectorIndex"],
    }


def queries(secret: Path, trace: Path) -> Iterator[tuple[str, list[Any]]]:
    """Queries that would run code or read and write files, by every way into one."""
    calls = (
        f'(slurp "{secret}")',
        f'(clojure.core/slurp "{secret}")',
        f'(spit "{trace}" "x")',
        '(clojure.java.shell/sh "id")',
        '(load-string "(+ 1 1)")',
        "(eval (quote (+ 1 1)))",
        '(read-string "#=(+ 1 1)")',
        "(requiring-resolve (quote clojure.java.io/file))",
        f'(java.io.File. "{trace}")',
        '(.exec (Runtime/getRuntime) "id")',
        '(System/getenv "HOME")',
        "(System/exit 0)",
        "(datalevin.core/transact! $ [])",
        '(datalevin.core/open-kv "/tmp/x")',
        '(datalevin.interpret/exec-code "1")',
        "(ground (slurp 1))",
        f'(q "[:find ?x :where [(slurp \\"{secret}\\") ?x]]" $)',
        f'(apply slurp ["{secret}"])',
        '(re-find #"(a+)+$" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!")',
        '(re-matches "(a|a)*b" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")',
        "(udf :x 1)",
    )
    for each in calls:
        yield f"[:find ?x :where [?e :name] [{each} ?x]]", []
        yield f"[:find ?e :where [?e :name] [{each}]]", []
        yield f"[:find ?e :where (or [?e :name] [{each}])]", []
        yield f"[:find ?e :where [?e :name] (not [{each}])]", []
        yield "[:find ?x :in $ % :where (r ?x)]", [f"[[(r ?x) [?e :name ?n] [{each} ?x]]]"]
        yield "[:find ?x :in $ % :where (r ?x)]", [{"~edn": f"[[(r ?x) [?e :name] [{each} ?x]]]"}]
        yield f"{{:find [?x] :where [[?e :name] [{each} ?x]]}}", []
    for named in ("clojure.core/slurp", "slurp", "clojure.core/eval", "user/f", "load-file"):
        yield f'[:find ?x :in $ ?f :where [(?f "{secret}") ?x]]', [{"~edn": named}]
        yield f'[:find ?x :in $ [?f ...] :where [(?f "{secret}") ?x]]', [[{"~edn": named}]]
        yield "[:find (aggregate ?f ?n) :in $ ?f :where [?e :name ?n]]", [{"~edn": named}]
        yield f"[:find ({named} ?n) :where [?e :name ?n]]", []
        yield f"[:find (pull ?e [(:name :xform {named})]) :where [?e :name]]", []
        yield f"[:find ?n :where [?e :name ?n] :having [({named} ?n)]]", []
        yield f"[:find ?n :where [?e :name ?n] :order-by [({named} ?n)]]", []
    for literal in (
        "#=(+ 1 1)", "#=(java.lang.System/exit 0)", "#inter/fn (fn [x] x)",
        '#object[java.io.File "x"]', "#datalevin/Datom [1 :name 2]", "#datalevin/DB {}",
        '#java.io.File["x"]', "#clojure/var a/b",
        "#user.Record{:a 1}", "@x", "#'clojure.core/slurp", "^:macro x", "#(slurp %)", "`(a ~b)",
    ):  # fmt: skip
        yield f"[:find ?e :where [?e :name {literal}]]", []
        yield "[:find ?e :in $ ?v :where [?e :name ?v]]", [{"~edn": literal}]
    yield "[:find ?x :in $ ?v :where [?x :name ?v]]", [{"~handle": "1"}]
    yield "[:find ?x :in $ ?v :where [?x :name ?v]]", [{"~pull": "[*]"}]


def others(secret: Path, trace: Path) -> Iterator[Attack]:
    """The other tools, with what may name a function, a path or a table of the database."""
    function: dict[str, Any] = {"~edn": "clojure.core/slurp"}
    for xform in ("clojure.core/slurp", "slurp", "user/f", "(fn [x] x)"):
        selector = f"[(:name :xform {xform})]"
        yield "pull", {"selector": selector, "eid": 1}
        yield "pull_many", {"selector": selector, "eids": [1]}
        yield "pull", {"selector": {"~edn": selector}, "eid": 1}
    yield "pull", {"selector": [[":name", ":xform", function]], "eid": 1}
    yield "entity", {"eid": function}
    yield "datoms", {"index": "eav", "c1": function}
    yield "search_datoms", {"v": {"~edn": "#=(+ 1 1)"}}
    for form in (
        [":db.fn/call", function, str(secret)],
        [":db/fn", 1],
        [function, 1],
        [":db/add", 1, ":db/fn", "(fn [db] [])"],
        [":db/ensure", function, 1],
        [":db.fn/patchIdoc", 1, ":name", []],
        {":db/ident": ":f", ":db/fn": "(fn [db] [])"},
        {":db/ident": ":f", ":db/udf": {":udf/id": ":x"}},
        {":name": function},
        {":name": {"~edn": "#=(+ 1 1)"}},
        {":parent": {":db/fn": "x"}},
    ):
        yield "transact", {"txData": [form]}
    for table in ("datalevin/eav", "datalevin/schema", "datalevin/opts", "datalevin/kv-info"):
        yield "kv_transact", {"dbi": table, "txs": [[":put", 1, 2]]}
        yield "kv_transact", {"txs": [[":del", table, 1]]}
    for kind in ("slurp", ":no/such", "(fn [x] x)", [":long", "slurp"]):
        yield "kv_get", {"dbi": "datalevin/eav", "key": 1, "keyType": kind}
        yield "kv_transact", {"dbi": "x", "txs": [[":put", 1, 2]], "keyType": kind}
    yield "kv_transact", {"dbi": "x", "txs": [[":put", 1, function]]}
    yield "kv_range", {"dbi": "x", "keyRange": [function]}
    for name, value in ((":doc-filter", function), (":display", function), (":top", 10**12)):
        yield "search_documents", {"query": "x", "opts": {name: value}}
        yield "fulltext_datoms", {"query": "x", "opts": {name: value}}
        yield "vector_search", {"queryVector": [1, 0], "opts": {name: value}}
    yield "add_document", {"docRef": function, "docText": "x"}
    yield "add_vector", {"vectorRef": function, "vectorData": [1, 0]}
    yield "add_vector", {"vectorRef": 1, "vectorData": [1, "x"]}
    yield "add_vector", {"vectorRef": 1, "vectorData": [1, 0, 0]}


def openings(shop: Shop) -> Iterator[Attack]:
    """What opens a directory, with options and paths that would change or read another."""
    facts, foreign = f"{shop.root}/facts", str(shop.foreign)
    link = shop.root / "link"
    link.symlink_to(shop.root / "facts")
    for option in (
        {":temp?": True}, {":flags": [":nosync"]}, {":inmemory?": True}, {":wal?": True},
        {":spill-opts": {":spill-root": foreign}}, {":runtime-opts": {":udf-registry": {}}},
        {":embedding-opts": {":provider": ":openai"}}, {":search-opts": {":analyzer": "x"}},
        {":search-opts": {":analyzer": {"~edn": "slurp"}}},
        {":vector-opts": {":dimensions": 10**9}},
        {":vector-domains": {"../../foreign/index": {":dimensions": 2}}}, {":db-name": "../x"},
    ):  # fmt: skip
        yield "open_database", {"dir": f"{shop.root}/new", "create": True, "opts": option}
        yield "open_kv", {"dir": f"{shop.root}/new", "opts": option}
    for schema in (
        {":v": {":db/valueType": ":db.type/vec", ":db.vec/domains": ["../../foreign/index"]}},
        {":t": {":db/fulltext": True, ":db.fulltext/domains": ["../x"]}},
        {":t": {":db/embedding": True}},
        {":t": {":db.attr/preds": {"~edn": "clojure.core/slurp"}}},
        {":t": {":db/fn": "x"}},
        {":t": {":db/valueType": {"~edn": "clojure.core/slurp"}}},
    ):
        yield "open_database", {"dir": f"{shop.root}/new", "create": True, "schema": schema}
    for directory in (
        facts, f"{facts}/", f"{facts}/.", f"{shop.root}/x/../facts", str(link), f"{link}/../facts",
        f"{shop.root}//facts", f"datalevin://{facts}", f"file://{facts}", f"{facts}\0", "", " ",
        f"{shop.root}", foreign, f"{foreign}/secret.txt", "/proc/self", "/dev/null",
        "~no-such-user/x", "http://h.example/x", "dtlv://h.example/x",
    ):  # fmt: skip
        yield "open_database", {"dir": directory}
        yield "open_kv", {"dir": directory}
    for uri in (
        "dtlv://", "dtlv:///x", "dtlv://h.example", "DTLV://h.example/x", "dtlv:h.example/x",
        "dtlv://u:p@h.example@127.0.0.1/x", "dtlv://h.example\\@127.0.0.1/x",
        "dtlv://127.0.0.1:99999/x", "dtlv://[::1/x", "dtlv://h.example/x?store=kv",
        "dtlv://h.example/x#y", "dtlv://h.example/../x", "dtlv://h.example/A_b",
        "dtlv://${ENV:HOME}@h.example/x", "dtlv://u:${FILE:/etc/passwd}@h.example/x",
        "dtlv://h example/x", "dtlv://h.example/x\ny", "http://h.example/x", "file:///etc/passwd",
    ):  # fmt: skip
        yield "open_database", {"uri": uri}
        yield "open_kv", {"uri": uri}


def test_no_query_runs_code_or_reads_a_file(shop: Shop) -> None:
    ids_of(shop.client())  # the first opening writes to the file
    before = sealed(shop.root), sealed(shop.foreign)
    secret, trace = shop.foreign / "secret.txt", shop.foreign / "trace"
    for actor in (OWNER, READER):
        call = shop.client(actor)
        database = call("open_database", dir="facts")["database"]
        wrong: list[Any] = []
        for text, inputs in queries(secret, trace):
            reply = call.reply("query", database=database, query=text, inputs=inputs)
            if reply.get("code") not in REFUSED or "tide and gate" in json.dumps(reply):
                wrong.append((text, inputs, reply))
        assert not wrong, shown(wrong)
        assert call("count_datoms", database=database, a=":name") == 4
    assert (sealed(shop.root), sealed(shop.foreign)) == before


def test_no_other_argument_runs_code_or_reaches_a_table_of_the_database(shop: Shop) -> None:
    call = shop.client()
    ids = ids_of(call)  # makes the indexes, so that only attacks follow
    before = sealed(shop.root), sealed(shop.foreign)
    secret, trace = shop.foreign / "secret.txt", shop.foreign / "trace"
    wrong: list[Any] = []
    for tool, arguments in others(secret, trace):
        name = next(
            name
            for name, prefixes in (
                ("kv", ("kv_",)),
                ("searchIndex", ("search_documents", "add_document")),
                ("vectorIndex", ("vector_", "add_vector")),
                ("database", ("",)),
            )
            if tool.startswith(prefixes)
        )
        reply = call.reply(tool, **{name: ids[name]}, **arguments)
        if reply.get("code") not in REFUSED or "tide and gate" in json.dumps(reply):
            wrong.append((tool, arguments, reply))
    assert not wrong, shown(wrong)
    assert (sealed(shop.root), sealed(shop.foreign)) == before


def test_no_option_schema_or_path_opens_another_directory(shop: Shop) -> None:
    ids_of(shop.client())
    attacks = list(openings(shop))
    before = sealed(shop.root), sealed(shop.foreign)
    for actor in (OWNER, READER):
        call = shop.client(actor)
        wrong: list[Any] = []
        for tool, arguments in attacks:
            reply = call.reply(tool, **arguments)
            if reply.get("code") not in REFUSED or "tide and gate" in json.dumps(reply):
                wrong.append((tool, arguments, reply))
        assert not wrong, shown(wrong)
    assert (sealed(shop.root), sealed(shop.foreign)) == before


def test_an_id_of_another_session_or_kind_opens_nothing(shop: Shop) -> None:
    owner = shop.client()
    ids = ids_of(owner)
    before = sealed(shop.root)
    for actor in (OWNER, WRITER, READER):
        stranger = shop.client(actor)
        for given in (
            *ids.values(),
            *(each.upper() for each in ids.values()),
            "",
            "*",
            "database-",
        ):
            assert stranger.code("query", database=given, query="[:find ?e :where [?e]]") == (
                ":unknown-database"
            )
            assert stranger.code("kv_get", kv=given, dbi="x", key=1) == ":unknown-kv"
            assert stranger.code("document_count", searchIndex=given) == ":unknown-search-index"
            assert stranger.code("vector_index_info", vectorIndex=given) == ":unknown-vector-index"
            assert stranger.code("close_kv", kv=given) == ":unknown-kv"
            assert stranger.code("open_search_index", kv=given) == ":unknown-kv"
    assert owner("document_count", searchIndex=ids["searchIndex"]) == 0
    assert sealed(shop.root) == before
