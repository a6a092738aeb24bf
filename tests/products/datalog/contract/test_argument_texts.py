"""Every tool takes what clients send that know one type for each argument, texts above all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from products.datalog.contract.test_surface_session import Client, Gate
from support.datalog import PEOPLE, SCHEMA, Datalog
from support.surface_client import WRITER
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.products.datalog.surface.tools import SPECS, schema_of


@pytest.fixture
def call(datalog: Datalog, tmp_path: Path) -> Iterator[Client]:
    url = f"datalevin://{tmp_path}/facts"
    app = App.open(
        Config(
            state=str(tmp_path / "state"),
            sources=(SourceSettings(name="facts", url=url, access="write"),),
        )
    )
    try:
        yield Gate(datalog, app).client(WRITER)
    finally:
        datalog.run(app.close())


def _lint(schema: Any) -> Iterator[str]:
    """What one of the converters refuses or loses."""
    if not isinstance(schema.get("type"), str):
        yield "no type"
    if schema["type"] == "array":
        yield from _lint(schema.get("items", {}))
    if "additionalProperties" in schema or "anyOf" in schema:
        yield "a word that is not converted"
    for each in schema.get("properties", {}).values():
        yield from _lint(each)


def test_every_schema_has_one_type_for_each_argument() -> None:
    assert len(SPECS) == 32
    assert {spec.name: list(_lint(schema_of(spec))) for spec in SPECS} == {
        spec.name: [] for spec in SPECS
    }


def test_texts_are_read_where_their_meaning_is_certain(call: Client) -> None:
    database = call("open_database", dir="facts", create=True, schema=SCHEMA)["database"]

    def ask(tool: str, **arguments: Any) -> Any:
        return call(tool, database=database, **arguments)

    ask("transact", txData=PEOPLE)
    ask("transact", txData=['{:name "Eve" :age 5 :parent 1}', '[:db/add 1 :likes "5"]'])
    assert ask("entity", eid="1")[":name"] == "Ada"
    assert ask("entity", eid='[:name "Eve"]')[":age"] == 5
    assert ask("pull", selector="[:name]", eid="1") == {":name": "Ada"}
    assert ask("pull_many", selector="[:age]", eids=["1", "2"]) == [{":age": 80}, {":age": 52}]
    assert [each["e"] for each in ask("search_datoms", a="age", v="5")] == [5]
    assert [each["a"] for each in ask("search_datoms", v="5")] == [":likes", ":age"]
    assert ask("count_datoms", a=":age", v="5") == 1
    assert ask("count_datoms", a=":likes", v="5") == 1
    assert ask("count_datoms", e="5", a=":parent", v="1") == 1
    assert len(ask("datoms", index="eav", c1="5", limit="2")) == 2
    assert [each["e"] for each in ask("datoms", index="ave", c1=":age", c2="5")] == [5]
    by_age = "[:find ?n :in $ ?a :where [?e :age ?a] [?e :name ?n]]"
    assert ask("query", query=by_age, inputs=["5"]) == [["Eve"]]
    several = "[:find ?n :in $ [?a ...] :where [?e :age ?a] [?e :name ?n]]"
    assert ask("query", query=several, inputs=["[5, 80]"]) == [["Ada"], ["Eve"]]
    by_entity = "[:find ?n . :in $ ?e :where [?e :name ?n]]"
    assert ask("query", query=by_entity, inputs=["1"]) == "Ada"
    for ada in ('[:name "Ada"]', '[":name", "Ada"]'):
        assert [each["e"] for each in ask("search_datoms", a=":parent", v=ada)] == [2, 5]
        assert ask("count_datoms", a=":parent", v=ada) == 2
        assert [each["e"] for each in ask("datoms", index="ave", c1=":parent", c2=ada)] == [2, 5]
        assert ask("query", query=by_entity, inputs=[ada]) == "Ada"
    by_text = "[:find ?e . :in $ ?t :where [?e :likes ?t]]"
    assert ask("query", query=by_text, inputs=["5"]) == 1


def test_texts_of_stores_and_indexes_are_read_by_their_types(call: Client) -> None:
    kv = call("open_kv", dir="facts")["kv"]
    types = {"keyType": ":long", "valueType": ":long"}
    call("kv_transact", kv=kv, dbi="n", txs=[[":put", "1", "10"], "[:put 2 20]"], **types)
    assert call("kv_get", kv=kv, dbi="n", key="1", **types) == 10
    ranged = call("kv_range", kv=kv, dbi="n", keyRange=[":closed", "1", "2"], limit="5", **types)
    assert ranged == [[1, 10], [2, 20]]
    call("kv_transact", kv=kv, dbi="t", txs=[[":put", "1", "10"]])
    assert call("kv_get", kv=kv, dbi="t", key="1") == "10"
    assert call("kv_get", kv=kv, dbi="t", key='{"~i64": "1"}') is None
    index = call("open_vector_index", kv=kv, opts={":dimensions": 2, ":domain": "v"})["vectorIndex"]
    call("add_vector", vectorIndex=index, vectorRef="a", vectorData=["1", "0.5"])
    assert call("vector_search", vectorIndex=index, queryVector=["1", "0.5"]) == ["a"]


def test_an_object_that_comes_as_a_text_of_json_is_the_object(call: Client) -> None:
    schema = '{":name": {":db/valueType": ":db.type/string", ":db/fulltext": true}}'
    opened = call("open_database", dir="facts", create=True, schema=schema)["database"]
    call("transact", database=opened, txData=[{":name": "Ada"}, {":name": "Ada too"}])
    for opts in ({":top": 1}, '{":top": 1}'):
        assert len(call("fulltext_datoms", database=opened, query="Ada", opts=opts)) == 1, opts
    assert call("open_kv", dir="facts", opts='{":mapsize": 20}')["kv"]
    assert call.reply("open_kv", dir="facts", opts="{nonsense")["code"]


STRANGE: tuple[Any, ...] = (
    *("nonsense", "true", "nil", "[1 2", "1.5", "1e3", "0x1", "", "9" * 24),
    *(1.5, True, {"~edn": "nil"}, {"~i64": "9" * 24}),
)
"""What is no entity, whatever reads it."""
UNREAD = (":invalid-request", ":invalid-params", ":invalid-json-tag", ":datalog-unreadable")


def test_what_is_no_entity_and_no_value_is_refused_and_finds_nothing_else(call: Client) -> None:
    database = call("open_database", dir="facts", create=True, schema=SCHEMA)["database"]
    call("transact", database=database, txData=PEOPLE)

    def said(tool: str, **arguments: Any) -> tuple[Any, Any]:
        reply = call.reply(tool, database=database, **arguments)
        return reply.get("code"), reply.get("error", reply.get("result"))

    def refused(tool: str, word: str, **arguments: Any) -> None:
        code, text = said(tool, **arguments)
        assert code in UNREAD, (tool, arguments, text)
        assert word in text, (tool, arguments, text)
        assert "class" not in text, text

    names = "[:find ?n :in $ {} :where [?e :name ?n]]"
    for x in STRANGE:
        for binding, given in (("?e", x), ("[?e ...]", [1, x]), ("[[?e ?o]]", [[x, 1]])):
            refused("query", "", query=names.format(binding), inputs=[given])
        parents = "[:find ?e :in $ ?p :where (or [?e :parent ?p])]"
        refused("query", "", query=parents, inputs=[x])
        if x != "":  # which is how frameworks send an optional argument that is not given
            refused("search_datoms", "", e=x)
            refused("count_datoms", "", e=x)
            refused("datoms", "", index="eav", c1=x)
        refused("pull", "", selector="[:name]", eid=x)
        refused("pull_many", "", selector="[:name]", eids=[1, x])
        refused("entity", "", eid=x)
    for clause, word in (
        ('["nonsense" :name ?n]', "entity"),
        ("[1.5 :name ?n]", "entity"),
        ("[nil :name ?n]", "entity"),
        ("[?e :name ?n] (not [true :age ?n])", "entity"),
        ("[?e :name ?n] (or-join [?e] [?e :parent 1.5])", ":parent"),
        ('[?e :name ?n] [?e :age "x"]', ":age"),
        ("[?e :name ?n] [?e :age 80.5]", ":age"),
        ("[?e :name ?n] [?e :likes 5]", ":likes"),
        ("[?e :name ?n] [?e :age 80 ?t]", "transaction"),
    ):
        refused("query", word, query=f"[:find ?n :where {clause}]")
        rules = f"[[(r ?n) {clause}]]"
        refused("query", word, query="[:find ?n :in $ % :where (r ?n)]", inputs=[rules])
    for x in (1, "1", [":name", "Ada"], {"~edn": '[:name "Ada"]'}):
        assert said("query", query=names.format("?e"), inputs=[x]) == (None, [["Ada"]])
    aged = "[:find ?n :in $ ?a :where [?e :age ?a] [?e :name ?n]]"
    for x in (80, "80", 80.0):
        assert said("query", query=aged, inputs=[x]) == (None, [["Ada"]])
    for lookup in ([":name", "Ada"], "1", 1.0):
        assert said("count_datoms", e=lookup, a=":name") == (None, 1)
        assert said("search_datoms", a=":parent", v=lookup)[1][0]["e"] == 2
    for e in ([":name", "Nobody"], [], [1, 2], ["name", "Ada"]):
        for tool in ("search_datoms", "count_datoms"):
            refused(tool, "entity", e=e)


TYPED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "string": (":ad", (":ad",)),
    "double": (5.0, (5, 5.0, "5")),
    "float": (2.5, (2.5, "2.5")),
    "bigint": ({"~bigint": "7"}, (7, 7.0, "7", {"~bigint": "7"})),
    "bigdec": ({"~bigdec": "1.5"}, (1.5, "1.5", {"~bigdec": "1.5"})),
    "long": (80, (80, 80.0, "80", {"~bigint": "80"}, {"~bigdec": "80"})),
    "keyword": (":red", (":red",)),
    "boolean": (True, (True, "true")),
    "instant": ({"~date": "2020-01-01T00:00:00Z"}, ("2020-01-01T00:00:00Z",)),
}
"""Of each type a value, and what is given for it."""


def test_an_input_finds_the_value_of_its_attributes_type(call: Client) -> None:
    types = {f":{name}": {":db/valueType": f":db.type/{name}"} for name in TYPED}
    database = call("open_database", dir="facts", create=True, schema=SCHEMA | types)["database"]
    call("transact", database=database, txData=PEOPLE)
    facts = {f":{name}": {"~str": x} if name == "string" else x for name, (x, _) in TYPED.items()}
    facts[":untyped"] = "Ada"
    call("transact", database=database, txData=[{":db/id": 1, ":db/ident": ":ada", **facts}])

    def asked(query: str, *inputs: Any) -> Any:
        reply = call.reply("query", database=database, query=query, inputs=list(inputs))
        return reply["result"] if "code" not in reply else reply["code"]

    for name, (_, given) in TYPED.items():
        for x in given:
            for query, rules in (
                (f"[:find [?n ...] :in $ ?v :where [?e :{name} ?v] [?e :name ?n]]", ()),
                (
                    "[:find [?n ...] :in $ ?v % :where (r ?e ?v) [?e :name ?n]]",
                    (f"[[(r ?e ?v) [?e :{name} ?v]]]",),
                ),
            ):
                assert asked(query, x, *rules) == ["Ada"], (name, x)
    for e in ("1", "1.0", "1N", '"1"', ":ada", '[:name "Ada"]'):
        assert asked(f"[:find [?n ...] :where [{e} :name ?n]]") == ["Ada"], e
    for e in ("[]", "[1]", "[1 2]", "(1 2)", '["name" "Ada"]', "{}", "#{1}"):
        assert asked(f"[:find [?n ...] :where [{e} :name ?n]]") in UNREAD, e
    missing = "[:find [?n ...] :where [?e :name ?n] [(missing? $ {} :age)]]"
    assert asked(missing.format('"x"')) in UNREAD
    assert asked(missing.format("?e")) == []
    nested = (
        "[:find [?n ...] :in $ ?o :where [(q [:find [?m ...] {} [?e :name ?m]] $ {}) [?n ...]]]"
    )
    assert asked(nested.format(":in $ ?e :where", "?o"), 1) == ["Ada"]
    assert asked(nested.format(":in $ ?e :where", '"x"'), 1) == []
    assert asked(nested.format(":where [1.5 :age]", ""), 1) in UNREAD
    of_value = "[:find [?n ...] :where [?x :untyped ?o] [(q [:find [?m ...] :in $ ?e :where"
    assert asked(f"{of_value} [?e :name ?m]] $ ?o) [?n ...]]]") == []
    assert asked("[:find ?v :in $ ?a :where [?e ?a ?v]]", "name") in UNREAD
