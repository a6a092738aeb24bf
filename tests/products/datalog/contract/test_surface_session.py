"""A scripted session through every tool of the surface `datalog`, on databases made here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.datalog import PEOPLE, SCHEMA, Datalog
from support.surface_client import OWNER, READER, Peer
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.products.datalog.language.options import ALLOWED
from tidegate.products.datalog.surface.tools import SPECS

RULES = """[[(ancestor ?a ?b) [?b :parent ?a]]
            [(ancestor ?a ?b) [?b :parent ?c] (ancestor ?a ?c)]
            [(even ?e) [?e :name "Ada"]]
            [(even ?e) [?e :parent ?p] (odd ?p)]
            [(odd ?e) [?e :parent ?p] (even ?p)]]"""


class Client:
    """One caller of the surface in this process; `used` has the tools that it called."""

    def __init__(self, datalog: Datalog, peer: Peer) -> None:
        self._datalog = datalog
        self._peer = peer
        self.used: set[str] = set()
        datalog.run(peer.open())

    def __call__(self, tool: str, **arguments: Any) -> Any:
        """The structured content of a call that must succeed; of one with a result, that."""
        shown = self.reply(tool, **arguments)
        assert "error" not in shown, shown
        return shown.get("result", shown)

    def whole(self, method: str, **params: Any) -> dict[str, Any]:
        """The reply to a request of the protocol."""
        return self._datalog.run(self._peer.request(method, **params))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.whole(method, **params)["result"]

    def reply(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.used.add(tool)
        result = self._datalog.run(self._peer.call(f"datalevin_{tool}", **arguments))["result"]
        assert bool(result.get("isError")) == ("error" in result["structuredContent"])
        return result["structuredContent"]

    def code(self, tool: str, **arguments: Any) -> str:
        """The code of a call that must fail."""
        return self.reply(tool, **arguments)["code"]


class Gate:
    """A gate with the surface, and callers of it."""

    def __init__(self, datalog: Datalog, app: App) -> None:
        self._datalog = datalog
        self._app = app
        self._surface = app.surface("datalog")

    def client(self, actor: Any = OWNER) -> Client:
        return Client(self._datalog, Peer(self._surface, actor, "2025-06-18"))


@pytest.fixture
def gate(datalog: Datalog, tmp_path: Path) -> Iterator[Gate]:
    datalog.make(tmp_path / "saved")
    config = Config(
        state=str(tmp_path / "state"),
        sources=(
            SourceSettings(name="family", url=f"datalevin://{tmp_path}/saved"),
            SourceSettings(name="closed", url=f"datalevin://{tmp_path}/closed", access="none"),
        ),
    )
    app = App.open(config)
    yield Gate(datalog, app)
    datalog.run(app.close())


def test_a_session_uses_every_tool_on_a_real_database(gate: Gate, tmp_path: Path) -> None:
    call = gate.client()
    call("api_info")
    opened = call.reply("open_database", dir=f"{tmp_path}/facts", create=True, schema=SCHEMA)
    database = opened["database"]
    assert database.startswith("database-") and len(database) == 45
    assert (opened["created"], opened["target"], opened["remote"]) == (
        True, f"{tmp_path}/facts", False,
    )  # fmt: skip
    assert call("open_database", dir=f"{tmp_path}/facts")["database"] == database
    report = call("transact", database=database, txData=PEOPLE, txMeta={":by": "test"})
    assert {"tx-data", "tempids", "tx-id"} <= report.keys()

    def query(text: str, *inputs: Any) -> Any:
        return call("query", database=database, query=text, inputs=list(inputs))

    join = "[:find ?n ?m :where [?e :name ?n] [?e :parent ?p] [?p :name ?m]]"
    assert query(join) == [["Ben", "Ada"], ["Cy", "Ben"], ["Di", "Cy"]]
    assert query("[:find [?n ...] :in $ ?a :where [?e :age ?a] [?e :name ?n]]", 30) == ["Cy"]
    ancestors = "[:find ?n :in $ % ?a :where [?x :name ?a] (ancestor ?x ?y) [?y :name ?n]]"
    assert query(ancestors, RULES, "Ada") == [["Ben"], ["Cy"], ["Di"]]
    assert query("[:find ?n :in $ % :where (even ?e) [?e :name ?n]]", RULES) == [["Ada"], ["Cy"]]
    assert query("[:find (sum ?a) . :where [?e :age ?a]]") == 171
    assert query("[:find (pull ?e [:name]) . :where [?e :age 9]]") == {":name": "Di"}
    ordered = "[:find ?n ?a :where [?e :name ?n] [?e :age ?a] :order-by [?a :desc] :limit 2]"
    assert query(ordered) == [["Ada", 80], ["Ben", 52]]
    refused = call.reply("query", database=database, query='[:find ?x :where [(slurp "/x") ?x]]')
    assert refused["code"] == ":function-refused"
    assert call.code("query", database=database, query="[:find ?x") == ":datalog-unreadable"

    selector = [":name", {":parent": [":name"]}]
    assert call("pull", database=database, selector=selector, eid=[":name", "Ben"]) == {
        ":name": "Ben", ":parent": {":name": "Ada"},
    }  # fmt: skip
    assert call("pull_many", database=database, selector="[:age]", eids=[[":name", "Cy"]]) == [
        {":age": 30}
    ]
    assert call("entity", database=database, eid=[":name", "Di"])[":age"] == 9
    assert call("entity", database=database, eid=[":name", "Nobody"]) is None
    both = [call("datoms", database=database, index=index, c1=":age", limit=2, offset=1)
            for index in ("ave", ":ave")]  # fmt: skip
    assert both[0] == both[1] and [each["v"] for each in both[0]] == [30, 52]
    assert len(call("search_datoms", database=database, a=":likes", v="tea")) == 2
    assert call("count_datoms", database=database, a="likes") == 3
    assert call("fulltext_datoms", database=database, query="red") == [
        [call("fulltext_datoms", database=database, query="red")[0][0], ":bio", "sails a red boat"]
    ]

    kv = call("open_kv", dir=f"{tmp_path}/kv")["kv"]
    pairs = [["put", number, f"n{number}"] for number in (1, 2, 3)]
    assert call("kv_transact", kv=kv, dbi="cities", txs=pairs, keyType="long") == ":transacted"
    assert call("kv_get", kv=kv, dbi="cities", key=2, keyType=":long") == "n2"
    assert call("kv_get", kv=kv, dbi="cities", key=9, keyType="long") is None

    def ranged(*wanted: Any) -> list[int]:
        found = call("kv_range", kv=kv, dbi="cities", keyRange=list(wanted), keyType="long")
        return [key for key, _ in found]

    assert ranged(":all") == [1, 2, 3] and ranged("all-back") == [3, 2, 1]
    assert ranged(":closed", 2, 3) == [2, 3] and ranged(":less-than-back", 3) == [2, 1]
    assert call.code("kv_get", kv=kv, dbi="none", key=1) == ":absent"

    search = call("open_search_index", kv=kv)["searchIndex"]
    assert call("add_document", searchIndex=search, docRef="a", docText=":) a red boat")["added"]
    call("add_document", searchIndex=search, docRef="b", docText="a blue boat")
    assert call("search_documents", searchIndex=search, query="red") == ["a"]
    call("add_document", searchIndex=search, docRef="a", docText="a green boat")
    assert call("search_documents", searchIndex=search, query="red") == []
    assert call("document_count", searchIndex=search) == 2
    assert call("document_indexed", searchIndex=search, docRef="a") is True
    assert call("remove_document", searchIndex=search, docRef="a")["removed"]
    assert call("clear_documents", searchIndex=search)["cleared"]
    assert call("document_count", searchIndex=search) == 0

    options = {":dimensions": 2}
    vectors = call("open_vector_index", kv=kv, opts=options)["vectorIndex"]
    for ref, data in (("near", [1, 0]), ("far", [0, 9])):
        assert call("add_vector", vectorIndex=vectors, vectorRef=ref, vectorData=data)["added"]
    assert call("vector_search", vectorIndex=vectors, queryVector=[1, 0.1]) == ["near", "far"]
    assert call("vector_index_info", vectorIndex=vectors)[":dimensions"] == 2
    assert call("vector_indexed", vectorIndex=vectors, vectorRef="far") is True
    assert call("remove_vector", vectorIndex=vectors, vectorRef="far")["removed"]
    assert call.code("add_vector", vectorIndex=vectors, vectorRef="x", vectorData=[1]) != ""

    assert call("close_vector_index", vectorIndex=vectors)["closed"]
    assert call("close_search_index", searchIndex=search)["closed"]
    again = call("open_search_index", kv=kv)["searchIndex"]
    assert call("close_kv", kv=kv)["closed"]
    assert call.code("document_count", searchIndex=again) == ":unknown-search-index"
    assert call("close_database", database=database)["closed"]
    assert call.code("query", database=database, query="[:find ?e :where [?e]]") == (
        ":unknown-database"
    )
    assert call.used == {spec.name for spec in SPECS}


def test_a_reader_opens_a_saved_source_by_its_name_and_changes_nothing(
    gate: Gate, tmp_path: Path
) -> None:
    call = gate.client(READER)
    database = call("open_database", dir="family")["database"]
    assert call("count_datoms", database=database, a=":name") == 4
    assert call.code("transact", database=database, txData=[{":name": "Eve"}]) == ":writes-disabled"
    assert call("count_datoms", database=database, a=":name") == 4
    assert call.code("open_database", dir=f"{tmp_path}/new") in (":absent", ":source-unreachable")
    assert call.code("open_kv", dir=f"{tmp_path}/new") in (":absent", ":source-unreachable")
    assert not (tmp_path / "new").exists()
    assert call.code("open_database", dir=f"{tmp_path}/saved") == ":policy-denied"
    assert call.code("open_database", dir="closed") == ":absent"  # as if there were none
    other = gate.client(READER)
    assert other.code("count_datoms", database=database, a=":name") == ":unknown-database"


def test_a_long_relation_is_cut_and_comes_in_the_same_order_at_every_call(
    gate: Gate, tmp_path: Path
) -> None:
    call = gate.client()
    database = call("open_database", dir=f"{tmp_path}/many", create=True)["database"]
    facts = [{":n": number, ":t": f"t{number}"} for number in range(300)]
    call("transact", database=database, txData=facts)
    text = "[:find ?n ?t :where [?e :n ?n] [?e :t ?t]]"
    shown = call.reply("query", database=database, query=text)
    assert shown["result"] == [[number, f"t{number}"] for number in range(200)]
    assert shown["meta"]["truncations"] == [
        {"kind": "items", "path": "result", "limit": 200, "returned": 200, "original": 300}
    ]
    paged = call.reply("datoms", database=database, index="eav", limit=5)
    assert len(paged["result"]) == 5 and "meta" not in paged


def test_a_request_that_finds_nothing_says_which_attribute_was_meant(gate: Gate) -> None:
    call = gate.client(READER)
    database = {"database": call("open_database", dir="family")["database"]}
    for tool, arguments, nothing in (
        ("query", {"query": "[:find ?e :where [?e :nmae]]"}, []),
        ("query", {"query": "[:find ?e . :where [?e :nmae]]"}, None),
        ("datoms", {"index": "ave", "c1": "nmae"}, []),
        ("search_datoms", {"a": ":nmae"}, []),
        ("count_datoms", {"a": ":nmae"}, 0),
    ):
        shown = call.reply(tool, **database, **arguments)
        note = {"note": "no entity has :nmae (nearest: :name)"}
        assert (shown["result"], shown["meta"]) == (nothing, note), tool
    for query in ('[:find ?e :where [?e :name "Zoe"]]', "[:find ?e . :where [?e :age 1]]"):
        assert "meta" not in call.reply("query", **database, query=query)


def test_an_answer_that_the_planner_did_not_find_says_so(gate: Gate) -> None:
    reader = gate.client(READER)
    database = reader("open_database", dir="family")["database"]
    query = "[:find [?n ...] :where [?e :parent ?p] [(< -1.5 ?p)] [?e :name ?n]]"
    shown = reader.reply("query", database=database, query=query)
    assert sorted(shown["result"]) == ["Ben", "Cy", "Di"]
    assert "planner" in shown["meta"]["note"]
    query = "[:find [?n ...] :where [?e :parent ?p] [?e :name ?n]]"
    assert "meta" not in reader.reply("query", database=database, query=query)


def test_the_schema_is_a_resource_by_id_and_by_name(gate: Gate) -> None:
    call = gate.client(READER)
    listed = call.ask("resources/list")["resources"]
    assert [each["uri"] for each in listed] == ["datalevin://family/schema"]
    database = call("open_database", dir="family")["database"]
    for name in ("family", database):
        (read,) = call.ask("resources/read", uri=f"datalevin://{name}/schema")["contents"]
        schema = {each["attribute"]: each for each in json.loads(read["text"])["attributes"]}
        assert (schema[":likes"]["cardinality"], schema[":likes"]["facts"]) == ("many", 3)
        assert (schema[":name"]["unique"], schema[":bio"]["fulltext"]) == ("identity", True)
        assert schema[":age"]["type"] == "long"
    for hidden in ("closed", "database-none", "none"):
        reply = call.whole("resources/read", uri=f"datalevin://{hidden}/schema")
        assert "error" in reply and "attributes" not in str(reply)


OPENING: dict[str, dict[str, Any]] = {
    "open_database": {
        "auto-entity-time?": True,
        "closed-schema?": True,
        "validate-data?": True,
        "cache-limit": 10,
        "search-opts": {":index-position?": True},
        "vector-opts": {":dimensions": 2},
        "search-domains": {"notes": {":index-position?": True}},
        "vector-domains": {"places": {":dimensions": 2}},
    },
    "open_kv": {"mapsize": 200, "max-dbs": 200, "max-readers": 64},
}
"""Every option that a database or a store may be opened with."""


def test_what_was_opened_with_an_option_can_be_used_also_in_another_process(
    gate: Gate, datalog: Datalog, tmp_path: Path
) -> None:
    call, reader = gate.client(), gate.client(READER)
    schema = {":name": {":db/valueType": ":db.type/string"}}
    opened: dict[str, dict[str, Any]] = {}
    for tool, options in OPENING.items():
        kind = "database" if tool == "open_database" else "kv"
        made: dict[str, Any] = {"create": True, "schema": schema} if kind == "database" else {}
        for option, value in options.items():
            place: dict[str, Any] = {"dir": f"{tmp_path}/{option}", "opts": {option: value}}
            assert reader.code(tool, **place) == ":writes-disabled"
            assert not (tmp_path / option).exists()
            opened[option] = {kind: call.reply(tool, **place, **made)[kind]}
    for name in ("Ada", "Ben"):
        for id in opened.values():
            if "database" in id:
                call("transact", **id, txData=[{":name": name}])
            else:
                put = [["put", name, "x"]]
                assert call("kv_transact", **id, dbi="a", txs=put) == ":transacted"
        datalog.kill()
        for option, id in opened.items():
            if "database" in id:
                found = call("query", **id, query="[:find [?n ...] :where [_ :name ?n]]")
                assert name in found, option
            else:
                assert call("kv_get", **id, dbi="a", key=name) == "x", option


def test_every_option_of_an_opening_is_tried() -> None:
    assert {tool: OPENING[tool].keys() for tool in OPENING} == {
        tool: ALLOWED[tool].keys() for tool in OPENING
    }


def test_a_store_has_as_many_tables_as_it_was_opened_for(
    gate: Gate, datalog: Datalog, tmp_path: Path
) -> None:
    call = gate.client()
    plain = call("open_kv", dir=f"{tmp_path}/kv")["kv"]
    wide = call("open_kv", dir=f"{tmp_path}/kv", opts={":max-dbs": 300})["kv"]
    for number in range(150):
        call("kv_transact", kv=wide, dbi=f"t{number}", txs=[["put", 1, number]])
    assert call("kv_get", kv=plain, dbi="t149", key=1) == 149
    datalog.kill()
    assert call("kv_get", kv=plain, dbi="t149", key=1) == 149
    assert call("kv_transact", kv=wide, dbi="t150", txs=[["put", 1, 150]]) == ":transacted"
    assert call("kv_get", kv=wide, dbi="t0", key=1) == 0
