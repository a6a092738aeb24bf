"""What Datalevin derives from a hidden attribute is hidden too, on every road.

Two databases differ only in the hidden attribute; every reply to its reader is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from products.datalog.contract.test_surface_session import Client, Gate
from support.datalog import Datalog
from support.surface_client import WRITER, Peer
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.source_settings import Mask, RowFilter

TEXT = {":db/valueType": ":db.type/string"}
REF = {":db/valueType": ":db.type/ref"}
SCHEMA: dict[str, Any] = {
    ":person/name": TEXT,
    ":person/salary": {":db/valueType": ":db.type/long"},
    ":person/both": {":db/tupleAttrs": [":person/name", ":person/salary"]},
    ":card/pay": {
        ":db/tupleAttrs": [":person/salary", ":card/number"],
        ":db/unique": ":db.unique/value",
    },
    ":card/number": {":db/valueType": ":db.type/long"},
    ":person/secret": {**TEXT, ":db/fulltext": True, ":db.fulltext/domains": ["card_note"]},
    ":card/note": {**TEXT, ":db/fulltext": True, ":db.fulltext/autoDomain": True},
    ":team/person": {**REF, ":db/isComponent": True},
    ":team/name": TEXT,
}  # fmt: skip
RULES: dict[str, dict[str, Any]] = {
    "mask": {"masks": (Mask("person.salary"), Mask("person.secret"))},
    "filter": {"filters": (RowFilter("person", "true"),)},
}


def people(salary: int, secret: str) -> list[dict[str, Any]]:
    return [
        {":db/id": 1, ":person/name": "Ann", ":person/salary": salary, ":card/number": 7,
         ":person/secret": secret, ":card/note": "a red card"},
        {":db/id": 2, ":team/name": "North", ":team/person": 1},
    ]  # fmt: skip


ATTEMPTS: list[tuple[str, dict[str, Any]]] = [
    *[
        attempt
        for name in (":person/both", ":card/pay")
        for attempt in (
            ("query", {"query": f"[:find ?v :where [?e {name} ?v]]"}),
            ("query", {"query": f"[:find (count ?v) . :where [?e {name} ?v]]"}),
            ("query", {"query": f"[:find (pull ?e [{name}]) :where [?e :card/number 7]]"}),
            ("query", {"query": f"[:find ?x :where [?e :x/y] [(get-else $ ?e {name} 0) ?x]]"}),
            ("query", {"query": "[:find ?e :in $ ?a :where [?e ?a]]", "inputs": [name]}),
            ("pull", {"selector": [name], "eid": 1}),
            ("pull", {"selector": [":card/number"], "eid": [name, ["Ann", 5000]]}),
            ("pull_many", {"selector": [name], "eids": [1]}),
            ("datoms", {"index": "ave", "c1": name}),
            ("datoms", {"index": "eav", "c1": 1, "c2": name}),
            ("datoms", {"index": "eav"}),
            ("search_datoms", {"e": 1, "a": name}),
            ("search_datoms", {"e": 1}),
            ("count_datoms", {"a": name, "v": ["Ann", 5000]}),
            ("search_datoms", {"e": [name, [5000, 7]], "a": ":card/number"}),
            ("count_datoms", {"e": [name, [5000, 7]], "a": ":card/number"}),
            ("search_datoms", {"a": ":team/person", "v": [name, [5000, 7]]}),
            ("datoms", {"index": "eav", "c1": [name, [5000, 7]], "c2": ":card/number"}),
            ("datoms", {"index": "ave", "c1": ":card/number", "c2": 7, "c3": [name, [5000, 7]]}),
            ("transact", {"txData": [{":db/id": 1, name: ["Ann", 5000]}]}),
        )
    ],
    ("entity", {"eid": 1}),
    ("pull", {"selector": ["*"], "eid": 1}),
    ("pull", {"selector": [":team/person"], "eid": 2}),
    ("transact", {"txData": [{":db/id": 1, ":card/number": 8}]}),
    ("transact", {"txData": [[":db/retract", 1, ":card/number", 7]]}),
    ("transact", {"txData": [[":db.fn/retractAttribute", 2, ":team/person"]]}),
    ("transact", {"txData": [[":db/retractEntity", 1]]}),
    ("query", {"query": '[:find ?e :where [(fulltext $ :card/note "zeppelin red") [[?e _ _]]]]'}),
    ("fulltext_datoms", {"query": "zeppelin"}),
]  # fmt: skip


@pytest.fixture
def gates(datalog: Datalog, tmp_path: Path) -> Iterator[tuple[Gate, App]]:
    sources: list[SourceSettings] = []
    for which, salary, secret in (("a", 5000, "zeppelin"), ("b", 6000, "balloon")):
        made = datalog.open(tmp_path / which, "write")
        made.ask("open_database", create=True, schema=SCHEMA)
        made.ask("transact", txData=people(salary, secret))
        made.close()
        url = f"datalevin://{tmp_path}/{which}"
        sources += [
            SourceSettings(name=f"{which}-{rule}", url=url, access="write", **more)
            for rule, more in RULES.items()
        ]
    app = App.open(Config(state=str(tmp_path / "state"), sources=tuple(sources)))
    try:
        yield Gate(datalog, app), app
    finally:
        datalog.run(app.close())


def replies(call: Client, source: str) -> list[str]:
    database = call("open_database", dir=source)["database"]
    found = [
        str(call.reply(tool, database=database, **arguments)).replace(database, "")
        for tool, arguments in ATTEMPTS
    ]
    read = call.ask("resources/read", uri=f"datalevin://{source}/schema")
    return [*found, str(read).replace(source, "")]


def test_nothing_that_is_derived_shows_a_hidden_attribute(gates: tuple[Gate, App]) -> None:
    call = gates[0].client(WRITER)
    for rule in RULES:
        first, second = replies(call, f"a-{rule}"), replies(call, f"b-{rule}")
        for attempt, one, other in zip([*ATTEMPTS, "schema"], first, second, strict=True):
            assert one == other, attempt
        for attempt, reply in zip(ATTEMPTS, first, strict=False):
            assert ":policy-masked" in reply, attempt


def test_what_is_not_derived_from_it_is_still_shown(gates: tuple[Gate, App]) -> None:
    call = gates[0].client(WRITER)
    database = call("open_database", dir="a-mask")["database"]
    names = call("query", database=database, query="[:find ?n :where [?e :person/name ?n]]")
    assert names == [["Ann"]]
    call("transact", database=database, txData=[{":db/id": 2, ":team/name": "South"}])
    pulled = call("pull", database=database, selector=[":team/name"], eid=2)
    assert pulled == {":team/name": "South"}


def test_a_tuple_of_a_hidden_attribute_cannot_be_defined(gates: tuple[Gate, App]) -> None:
    call = gates[0].client(WRITER)
    schema = {":open/both": {":db/tupleAttrs": [":person/salary", ":open/x"]}}
    assert call.code("open_database", dir="a-mask", schema=schema) == ":policy-masked"


CORE: list[tuple[str, dict[str, Any]]] = [
    ("describe", {"tables": ["person", "card", "team"]}),
    ("search", {"words": ["salary", "pay", "both"]}),
    ("search", {"words": ["zeppelin", "balloon", "5000", "6000"]}),
    ("query", {"sql": "[:find ?v :where [?e :person/both ?v]]"}),
    ("query", {"sql": "[:find ?n :where [?e :card/number ?n]]"}),
    ("query", {"sql": "[:find ?v :where [?e :card/pay ?v]]"}),
    ("query", {"sql": "[{:db/id 1 :card/number 8}]"}),
]


def test_core_describes_and_finds_nothing_of_a_hidden_attribute(
    gates: tuple[Gate, App], datalog: Datalog
) -> None:
    surface = gates[1].surface("core")

    def told(source: str, tool: str, arguments: dict[str, Any]) -> str:
        peer = Peer(surface, WRITER, "2025-06-18")
        datalog.run(peer.open())
        text = "ask again"
        for _ in range(100):  # samples of values are read in the background
            asked = peer.request("tools/call", name=tool, arguments={**arguments, "source": source})
            text = str(datalog.run(asked)["result"])
            if "ask again" not in text:
                break
        legend = re.compile(r"\\nSigns: [^']*")  # shown once to each caller
        return legend.sub("", text).replace(source, "")

    for rule in RULES:
        for tool, arguments in CORE:
            one, other = (told(f"{which}-{rule}", tool, arguments) for which in "ab")
            assert one == other, (rule, tool, arguments)
            assert not any(word in one for word in ("5000", "6000", "zeppelin", "balloon")), one
