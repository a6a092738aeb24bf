"""Queries, pulls and datoms on a real Datalevin database."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import Any

from support.datalog import Datalog, Opened
from tidegate.errors import Code
from tidegate.model.requests import Explain, Query
from tidegate.model.statements import Statement

ANCESTORS = """[[(ancestor ?a ?d) [?d :parent ?a]]
 [(ancestor ?a ?d) [?d :parent ?p] (ancestor ?a ?p)]]"""

GENERATIONS = """[[(odd ?a ?d) [?d :parent ?a]]
 [(odd ?a ?d) [?d :parent ?p] (even ?a ?p)]
 [(even ?a ?d) [?d :parent ?p] (odd ?a ?p)]]"""


def test_a_join_is_a_plain_array_in_the_same_order_at_every_call(people: Opened) -> None:
    text = "[:find ?child ?parent :where [?c :parent ?p] [?c :name ?child] [?p :name ?parent]]"
    expected = [["Ben", "Ada"], ["Cy", "Ben"], ["Di", "Cy"]]
    assert people.query(text) == expected
    assert people.query(text) == expected
    assert people.last_items == 3


def test_recursive_and_mutual_rules_are_followed(people: Opened) -> None:
    text = '[:find [?n ...] :in $ % :where [?a :name "Ada"] (ancestor ?a ?d) [?d :name ?n]]'
    assert sorted(people.query(text, {"~edn": ANCESTORS})) == ["Ben", "Cy", "Di"]
    text = '[:find [?n ...] :in $ % :where [?a :name "Ada"] (odd ?a ?d) [?d :name ?n]]'
    assert sorted(people.query(text, {"~edn": GENERATIONS})) == ["Ben", "Di"]


def test_each_form_of_find_has_its_shape(people: Opened) -> None:
    assert people.query("[:find (sum ?a) . :where [_ :age ?a]]") == 171
    assert people.query("[:find [(min ?a) (max ?a)] :where [_ :age ?a]]") == [9, 80]
    named = '[:find ?n ?a :keys name age :where [?e :name ?n] [?e :age ?a] [(= ?n "Di")]]'
    assert people.query(named) == [{":name": "Di", ":age": 9}]
    ordered = "[:find ?n ?a :where [?e :name ?n] [?e :age ?a] :order-by [?a :desc]]"
    assert [row[0] for row in people.query(ordered)] == ["Ada", "Ben", "Cy", "Di"]


def test_a_whole_number_of_json_finds_a_long(people: Opened) -> None:
    text = "[:find ?n . :in $ ?a :where [?e :age ?a] [?e :name ?n]]"
    assert people.query(text, 30) == "Cy"
    assert people.query(text, {"~i64": "30"}) == "Cy"


def test_a_large_relation_is_cut_and_its_true_size_is_said(people: Opened) -> None:
    people.ask("transact", txData=[{":age": 1000 + n} for n in range(1000)])
    text = "[:find ?a :where [_ :age ?a]]"
    shown = people.query(text)
    assert (len(shown), people.last_items) == (200, 1004)
    assert shown == sorted(shown)
    assert people.query(text, items=3) == [[9], [30], [52]]
    assert len(people.query(text, items=2000)) == 1004


def test_datoms_are_counted_paged_and_found_by_either_spelling(people: Opened) -> None:
    people.ask("transact", txData=[{":likes": [f"{n}-{m}" for m in range(10)]} for n in range(60)])
    whole = people.ask("datoms", index="eav", items=5000)
    assert people.last_items == len(whole) > 600
    assert len(people.ask("datoms", index=":eav")) == 200
    assert people.last_items == len(whole)
    paged = [
        datom
        for offset in range(0, len(whole), 90)
        for datom in people.ask("datoms", index="eav", limit=90, offset=offset)
    ]
    assert paged == whole
    assert people.ask("datoms", index="ave", c1=":age", c2=30)[0]["e"] == 3
    assert people.ask("count_datoms", a=":likes") == 603
    assert len(people.ask("search_datoms", a=":likes", v="tea")) == 2
    for wrong in (None, "2", 1.5, -1):
        error = people.refused("datoms", index="eav", limit=wrong)
        assert error.code is Code.ARGUMENT_INVALID
        assert error.details["engine_code"] == ":invalid-request"


def test_pulls_and_entities_show_what_is_there(people: Opened) -> None:
    found = people.ask("pull", selector=[":name", {":parent": [":name"]}], eid=[":name", "Cy"])
    assert found == {":name": "Cy", ":parent": {":name": "Ben"}}
    assert people.ask("pull", selector="[:name {:_parent [:name]}]", eid=1) == {
        ":name": "Ada",
        ":_parent": [{":name": "Ben"}],
    }
    assert len(people.ask("pull_many", selector=[":name"], eids=[1, 2, 3], items=2)) == 2
    assert people.last_items == 3
    entity = people.ask("entity", eid=[":name", "Ada"])
    assert entity[":likes"] == {"~set": ["maps", "tea"]}
    assert people.ask("entity", eid=9999) == {}
    assert people.ask("entity", eid=[":name", "Nobody"]) is None


def test_text_in_facts_is_searched(people: Opened) -> None:
    assert people.ask("fulltext_datoms", query="red boat") == [[3, ":bio", "sails a red boat"]]
    assert people.ask("fulltext_datoms", query="submarine") == []


def test_a_transaction_that_fails_changes_nothing(people: Opened) -> None:
    added = people.ask("transact", txData=[{":db/id": -1, ":name": "Eve", ":parent": 1}])
    assert {each["a"] for each in added["tx-data"]} == {":name", ":parent"}
    before = people.ask("datoms", index="eav")
    error = people.refused(
        "transact", txData=[{":name": "Flo"}, [":db/cas", [":name", "Ada"], ":age", 1, 2]]
    )
    assert error.code is Code.SQL_FAILED
    assert people.ask("datoms", index="eav") == before


def test_a_query_is_a_table_with_the_names_of_its_variables(people: Opened) -> None:
    text = "[:find ?n (max ?a) :in $ ?least :where [?e :name ?n] [?e :age ?a] [(> ?a ?least)]]"
    names, rows = people.table(Query(Statement(text, (40,))))
    assert names == ["?n", "(max ?a)"]
    assert sorted(rows) == [["Ada", 80], ["Ben", 52]]


def test_the_schema_is_described_and_a_plan_is_shown(people: Opened) -> None:
    columns = {each.name: each for table in people.catalog().tables for each in table.columns}
    assert columns[":age"].type == "long"
    assert columns[":likes"].extra == "many, 3 facts"
    _, plan = people.table(Explain(Statement("[:find ?n :where [?e :name ?n]]")))
    assert any(":opt-clauses" in line for (line,) in plan)


def test_what_cannot_be_read_is_an_error_and_the_worker_lives(people: Opened) -> None:
    pid = people.engine._worker.pid
    for text in ("[:find ?e", "", "[:find ?e :where [?e", "#foo/bar 1", "[" * 5000, "42"):
        assert people.refused("query", query=text).code in (
            Code.ARGUMENT_INVALID,
            Code.SQL_FAILED,
        ), text
    for value in ({"~i64": "zz"}, {"~date": "never"}, {"~edn": "[["}):
        error = people.refused("entity", eid=value)
        assert error.details["engine_code"] in (":invalid-json-tag", ":tool-error")
    assert people.engine._worker.pid == pid
    assert people.query("[:find (count ?e) . :where [?e :name]]") == 4


def test_facts_are_counted_by_each_of_their_parts(people: Opened) -> None:
    counts: list[tuple[dict[str, Any], int]] = [
        ({"e": 1}, 5),
        ({"e": 1, "a": ":age"}, 1),
        ({"e": 1, "a": ":likes"}, 2),
        ({"e": 1, "a": ":age", "v": 80}, 1),
        ({"e": 1, "a": ":age", "v": 79}, 0),
        ({"e": 1, "a": ":parent"}, 0),
        ({"e": 1, "v": "tea"}, 1),
        ({"a": ":likes", "v": "tea"}, 2),
        ({"v": "tea"}, 2),
        ({"v": 80}, 1),
        ({"v": "no such value"}, 0),
        ({"a": ":likes"}, 3),
        ({}, 16),
    ]
    for parts, wanted in counts:
        count = people.ask("count_datoms", **parts)
        found = people.ask("search_datoms", **parts)
        assert (count, len(found), people.last_items) == (wanted, wanted, wanted), parts
    assert people.ask("datoms", index="eav", c1=1, c2=":age", c3=79) == []
    assert people.last_items == 0


def test_facts_found_by_any_of_their_parts_are_those_that_have_them(people: Opened) -> None:
    whole = people.ask("datoms", index="eav")
    for datom, parts in product(whole, (subset for n in range(4) for subset in parts_of(n))):
        asked = {part: datom[part] for part in parts}
        expected = [each for each in whole if all(each[part] == datom[part] for part in parts)]
        found = people.ask("search_datoms", **asked)
        assert sorted(map(str, found)) == sorted(map(str, expected)), asked
        assert people.last_items == people.ask("count_datoms", **asked) == len(expected), asked


def parts_of(number: int) -> Iterator[tuple[str, ...]]:
    return combinations(("e", "a", "v"), number)


def test_an_entity_shows_what_it_refers_to_by_number_and_its_components_whole(
    datalog: Datalog, tmp_path: Path
) -> None:
    facts = datalog.open(tmp_path / "circle", "write")
    schema = {
        ":knows": {":db/valueType": ":db.type/ref", ":db/cardinality": ":db.cardinality/many"},
        ":chief": {":db/valueType": ":db.type/ref"},
        ":home": {":db/valueType": ":db.type/ref", ":db/isComponent": True},
    }
    facts.ask("open_database", create=True, schema=schema)
    data = [
        {":db/id": -1, ":n": "a", ":knows": [-1, -2], ":chief": -2, ":home": {":town": "Ghent"}},
        {":db/id": -2, ":n": "b", ":knows": [-1], ":chief": -1},
    ]
    ids = dict(facts.ask("transact", txData=data)["tempids"]["~map"])
    assert facts.ask("entity", eid=ids[-1]) == {
        ":n": "a",
        ":knows": {"~set": sorted(({":db/id": ids[n]} for n in (-1, -2)), key=str)},
        ":chief": {":db/id": ids[-2]},
        ":home": {":town": "Ghent"},
    }


def test_a_ratio_is_the_nearest_number_and_has_its_place_in_the_order(people: Opened) -> None:
    third = "[:find ?h :where [?e :age ?a] [(/ ?a 7) ?h]]"
    assert people.query(third) == [[9 / 7], [30 / 7], [52 / 7], [80 / 7]]
    _, rows = people.table(Query(Statement(third)))
    assert rows == people.query(third)
    mixed = "[:find ?h :where (or [(ground [1.5M 2 1.25]) [?h ...]] [(/ 5 3) ?h])]"
    assert people.query(mixed) == [[1.25], [{"~bigdec": "1.5"}], [5 / 3], [2]]


def test_a_query_that_reads_no_fact_is_answered(people: Opened) -> None:
    assert people.query("[:find ?x . :where [(ground 3) ?x]]") == 3
    assert people.query("{:find [?x .] :where [[(ground 3) ?x]]}") == 3
    assert people.query("[:find ?x . :in $ ?y :where [(inc ?y) ?x]]", 3) == 4


def test_half_of_a_character_is_shown_as_a_replacement_and_ends_no_process(
    people: Opened,
) -> None:
    pid = people.engine._worker.pid
    for begin, end, shown in ((0, 1, "\ufffd"), (1, 3, "\ufffda"), (0, 2, "\U0001f600")):
        text = "[:find ?x . :in $ ?t ?m ?n :where [(subs ?t ?m ?n) ?x]]"
        assert people.query(text, "\U0001f600a", begin, end) == shown
    text = "[:find ?x . :in $ ?t :where [(subs ?t 0 1) ?h] [(keyword ?h) ?k] [(hash-map ?k ?h) ?x]]"
    assert people.query(text, "\U0001f600") == {":\ufffd": "\ufffd"}
    long = "x" * 599 + "\U0001f600"
    for message in (long, long[1:], long[2:]):  # a message is cut after 600 of Java's characters
        failed = people.refused("query", query="[:find ?x :in $ ?t :where [(keyword ?t ?t ?t) ?x]]")
        assert failed.message
        people.refused("entity", eid=[":" + message, 1])
    assert people.engine._worker.pid == pid
