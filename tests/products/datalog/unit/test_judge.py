"""What an operation of a Datalog source would do is known before it runs, or it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Effect
from tidegate.products.datalog.language.data_rules import check_reading
from tidegate.products.datalog.language.datalog import LANGUAGE
from tidegate.products.datalog.language.json_values import decode
from tidegate.products.datalog.language.judge import judge_operation
from tidegate.products.datalog.language.query import judge_query
from tidegate.products.datalog.language.reader import read
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget

ANCESTORS = (
    "[[(ancestor ?a ?b) [?a :person/parent ?b]]"
    " [(ancestor ?a ?b) [?a :person/parent ?c] (ancestor ?c ?b)]]"
)


def attributes(query: str, *inputs: Any) -> set[str] | None:
    """The attributes that a query reads; None if it may read any."""
    reading = judge_query(read(query), [decode(each) for each in inputs])
    return None if reading.everything else reading.attributes


@pytest.mark.parametrize(
    ("query", "inputs", "read_attributes"),
    [
        ("[:find ?n :where [?e :person/name ?n]]", [], {"person/name"}),
        ("{:find [?n] :where [[?e :person/name ?n]]}", [], {"person/name"}),
        ("[:find ?n . :in $db ?a :where [$db ?e :person/age ?a] [$db ?e :p/n ?n]]", [30],
         {"person/age", "p/n"}),
        ("[:find (pull ?e [:a/b {:a/_child [:c/d]}]) :where [?e :x]]", [],
         {"a/b", "a/child", "c/d", "x"}),
        ("[:find (pull ?e p) :in $ p :where [?e :x]]", [["*"]], None),
        ("[:find (pull ?e p) :in $ p :where [?e :x]]", [[":y"]], {"x", "y"}),
        ("[:find ?a :where [?e ?a ?v]]", [], None),
        ("[:find ?e :where [?e]]", [], None),
        ("[:find ?e :where [?e _ 5]]", [], None),
        ('[:find ?n :where [[:user/email "x"] :user/name ?n]]', [], {"user/email", "user/name"}),
        ("[:find ?n :in $ ?e :where [?e :user/name ?n]]", [[":user/email", "x"]],
         {"user/email", "user/name"}),
        ("[:find ?n :where [?e :a/x ?x] [(keyword ?x) ?k] [?e :a/y ?n]]", [], None),
        ("[:find ?n :where [?e :a/x ?x] [(vector :u/email ?x) ?r] [?r :u/name ?n]]", [], None),
        ("[:find ?v :where [?e :a] [(get-else $ ?e :b 0) ?v]]", [], {"a", "b"}),
        ("[:find ?v :where [?e :a] [(get-some $ ?e :b :c) [_ ?v]]]", [], {"a", "b", "c"}),
        ("[:find ?e :where [?e :a] (not [?e :b]) (or [?e :c] (and [?e :d] [?e :e]))"
         " (not-join [?e] [?e :f ?g]) (or-join [[?e] ?h] [?e :h ?h]) [(missing? $ ?e :i)]]", [],
         {"a", "b", "c", "d", "e", "f", "h", "i"}),
        ('[:find ?e :where [(fulltext $ :doc/text "red") [[?e]]]]', [], {"doc/text"}),
        ('[:find ?e :where [(fulltext $ "red") [[?e]]]]', [], None),
        ('[:find ?e :where [(fulltext $ :doc/text "red" {:domains ["x"]}) [[?e]]]]', [], None),
        ("[:find ?b :in $ % :where (ancestor 1 ?b)]", [ANCESTORS], {"person/parent"}),
        ("[:find ?b :in $ % :where (ancestor 1 ?b)]", [{"~edn": ANCESTORS}], {"person/parent"}),
        ("[:find ?x ?y :in $ [[?x ?y]] :where [?e :a ?x]]", [[[1, 2]]], {"a"}),
        ("[:find ?x :in $ $people :where [$people ?x ?n] [?e :a ?n]]", [[[1, "n"]]], {"a"}),
        ("[:find (sum ?a) (* 2 (avg ?a)) :where [?e :a ?a] :having [(> (sum ?a) 5)]"
         " :order-by [0 :desc] :limit 5 :offset 1]", [], {"a"}),
        ("[:find ?d :where [(q [:find (min ?x) :where [_ :t/x ?x]] $) [[?d]]]]", [], {"t/x"}),
        ("[:find ?e :keys e :with ?a :where [?e :a ?a] [(and (= ?a 1) (< ?a 5))]]", [], {"a"}),
    ],
)  # fmt: skip
def test_the_attributes_of_a_query_are_found(
    query: str, inputs: list[Any], read_attributes: set[str] | None
) -> None:
    assert attributes(query, *inputs) == read_attributes


@pytest.mark.parametrize(
    ("query", "inputs"),
    [
        ('[:find ?x :where [(spit "/tmp/x" "x") ?x]]', []),
        ('[:find ?x :where [(clojure.java.shell/sh "id") ?x]]', []),
        ('[:find ?x :where [(slurp "/etc/passwd") ?x]]', []),
        ('[:find ?x :where [(load-string "1") ?x]]', []),
        ('[:find ?x :where [?e :a ?v] [(.length ?v) ?x]]', []),
        ("[:find ?x :where [(datalevin.core/transact! $ []) ?x]]", []),
        ("[:find ?x :where [(apply slurp [\"/etc/passwd\"]) ?x]]", []),
        ("[:find ?x :where [(and (slurp \"/etc/passwd\")) ?x]]", []),
        ("[:find ?x :where [(udf :x) ?x]]", []),
        ("[:find ?x :where [(embedding-neighbors $ \"x\") ?x]]", []),
        ("[:find ?x :in $ ?f :where [(?f \"/etc/passwd\") ?x]]", [{"~edn": "slurp"}]),
        ("[:find ?x :in $ ?f :where [?e :a ?x]]", [{"~edn": "slurp"}]),
        ("[:find ?x :in $ ?f :where [?e :a ?x]]", [[{"~edn": "[slurp]"}]]),
        ("[:find ?x :in $ % :where (r ?x)]", ['[[(r ?x) [(slurp "/etc/passwd") ?x]]]']),
        ("[:find (clojure.core/pr-str ?x) :where [?e :a ?x]]", []),
        ("[:find (aggregate ?f ?x) :in $ ?f :where [?e :a ?x]]", ["x"]),
        ("[:find (pull ?e [(:a :xform clojure.core/slurp)]) :where [?e :a]]", []),
        ("[:find (pull ?e p) :in $ p :where [?e :a]]", [[{"~edn": "(:a :xform slurp)"}]]),
        ("[:find ?x :where [?e :a ?x] :having [(slurp ?x)]]", []),
        ("[:find ?x :where [(q [:find ?y :where [(slurp \"x\") ?y]] $) [[?x]]]]", []),
        ("[:find ?x :where [?e :a ?x] [(= ?x slurp)]]", []),
        ("[:find ?x :where [?e :a slurp] [?e :a ?x]]", []),
    ],
)  # fmt: skip
def test_a_function_that_is_not_built_in_is_refused_wherever_it_stands(
    query: str, inputs: list[Any]
) -> None:
    with pytest.raises(TidegateError) as refused:
        attributes(query, *inputs)
    assert refused.value.code in (Code.DATALOG_FUNCTION, Code.DATALOG_UNKNOWN)


@pytest.mark.parametrize(
    ("query", "inputs"),
    [
        ("5", []),
        ("[]", []),
        ("[?x :find]", []),
        ("[:find ?x :fetch ?y :where [?x :a ?y]]", []),
        ("[:find ?x :find ?y :where [?x :a ?y]]", []),
        ("[:find ?x :in ?y :where [?x :a ?y]]", [1]),
        ("[:find ?x :in $ ?y :where [?x :a ?y]]", []),
        ("[:find ?x :where (unknown ?x)]", []),
        ("[:find ?x :where [$other ?x :a]]", []),
        ("[:find ?x :where []]", []),
        ("[:find ?x :limit \"5\" :where [?x :a]]", []),
        ("[:find ?x :order-by ?x :sideways :where [?x :a]]", []),
    ],
)  # fmt: skip
def test_a_form_of_which_nothing_is_known_is_refused(query: str, inputs: list[Any]) -> None:
    with pytest.raises(TidegateError) as refused:
        attributes(query, *inputs)
    assert refused.value.code is Code.DATALOG_UNKNOWN


@pytest.mark.parametrize(
    ("operation", "arguments", "effect", "touched"),
    [
        ("open_database", {}, Effect.READ, set[str]()),
        ("open_database", {"schema": {":a/b": {":db/unique": ":db.unique/identity"}}},
         Effect.WRITE, {"a/b"}),
        ("pull", {"selector": [":a/b", {":a/c": ["d"]}], "eid": [":u/email", "x"]}, Effect.READ,
         {"a/b", "a/c", "d", "u/email"}),
        ("pull_many", {"selector": "[:a/b]", "eids": [1, [":u/email", "x"]]}, Effect.READ,
         {"a/b", "u/email"}),
        ("entity", {"eid": 1}, Effect.READ, None),
        ("datoms", {"index": ":eav", "c1": 1, "c2": ":a/b"}, Effect.READ, {"a/b"}),
        ("datoms", {"index": "ave", "c1": ":a/b"}, Effect.READ, {"a/b"}),
        ("datoms", {"index": "eav"}, Effect.READ, None),
        ("search_datoms", {"a": ":a/b", "v": 1}, Effect.READ, {"a/b"}),
        ("count_datoms", {"v": 1}, Effect.READ, None),
        ("fulltext_datoms", {"query": "x"}, Effect.READ, None),
        ("transact", {"txData": [{":db/id": -1, ":a/b": 1, ":a/_c": {":d/e": 2}}]}, Effect.WRITE,
         {"a/b", "a/c", "d/e"}),
        ("transact", {"txData": [[":db/add", [":u/email", "x"], ":a/b", ":c/red"]]}, Effect.WRITE,
         {"u/email", "a/b"}),
        ("transact", {"txData": [[":db/retractEntity", 1]]}, Effect.WRITE, None),
        ("kv_get", {"dbi": "cities", "key": 1}, Effect.READ, {"cities"}),
        ("kv_range", {"dbi": "datalevin/eav", "keyRange": [":all"]}, Effect.READ, None),
        ("kv_transact", {"txs": [[":put", "cities", 1, "x"], ["del", "towns", 1]]}, Effect.WRITE,
         {"cities", "towns"}),
        ("kv_transact", {"dbi": "cities", "txs": [[":put", 1, "x"]]}, Effect.WRITE, {"cities"}),
        ("add_document", {"docRef": 1, "docText": "x"}, Effect.WRITE, None),
        ("clear_documents", {}, Effect.WRITE, None),
    ],
)  # fmt: skip
def test_the_effect_of_an_operation_and_what_it_touches_are_known(
    operation: str, arguments: dict[str, Any], effect: Effect, touched: set[str] | None
) -> None:
    judged = judge_operation(operation, arguments)
    found = None if judged.reading.everything else judged.reading.attributes
    assert (judged.effect, found) == (effect, touched)


def test_what_may_make_a_directory_is_a_write() -> None:
    assert judge_operation("open_kv", {}, create=True).effect is Effect.WRITE


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("create-user", {}),
        ("open_database", {"schema": {":a": {":db.embedding/provider": "x"}}}),
        ("open_database", {"schema": {":a": {":db/embedding": True}}}),
        ("open_database", {"schema": {":a": {":db.attr/preds": ":f"}}}),
        ("open_database", {"schema": {":a": {":db/udf": {}}}}),
        ("open_database", {"schema": {":a": {":db.vec/domains": ["../../other/x"]}}}),
        ("open_database", {"schema": {":a": {":db.fulltext/domains": ["a/b"]}}}),
        ("open_database", {"schema": {":a": {":db/domain": "../x"}}}),
        ("transact", {"txData": [[":db/ensure", ":f", 1]]}),
        ("search_documents", {"query": "x", "opts": {":doc-filter": {"~edn": "some?"}}}),
        ("search_documents", {"query": "x", "opts": {":display": {"~edn": "some?"}}}),
        ("vector_search", {"queryVector": [1], "opts": {":vec-filter": {"~edn": "some?"}}}),
        ("datoms", {"index": "bad"}),
        ("transact", {"txData": [[":db.fn/call", 1]]}),
        ("transact", {"txData": [[{"~edn": "slurp"}, "x"]]}),
        ("transact", {"txData": [{":db/ident": ":f", ":db/fn": "x"}]}),
        ("transact", {"txData": [[":db/add", 1, ":db/fn", "x"]]}),
        ("transact", {"txData": [{":a": {"~edn": "slurp"}}]}),
        ("transact", {"txData": [[":db/drop", 1, ":a"]]}),
        ("transact", {"txData": [5]}),
        ("kv_transact", {"txs": [[":put", "datalevin/eav", 1, 2]]}),
        ("kv_transact", {"dbi": "datalevin/schema", "txs": [[":del", 1]]}),
        ("kv_transact", {"txs": [[":open", "x"]]}),
        ("kv_transact", {"txs": [[":put", 5]]}),
    ],
)
def test_an_operation_that_could_do_more_than_it_says_is_refused(
    operation: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(TidegateError):
        judge_operation(operation, arguments)


@pytest.mark.parametrize(
    ("rules", "query", "code"),
    [
        (DataRules(masks=(("person.ssn", "hash"),)), "[:find ?e :where [?e :person/ssn]]",
         Code.POLICY_MASKED),
        (DataRules(masks=(("main.Person.ssn", "nothing"),)), "[:find ?e :where [?e :person/ssn]]",
         Code.POLICY_MASKED),
        (DataRules(masks=(("person.ssn", "hash"),)), "[:find ?v :where [?e ?a ?v]]",
         Code.POLICY_MASKED),
        (DataRules(masks=(("person.ssn", "hash"),)),
         '[:find ?n :where [[:person/ssn "1"] :person/name ?n]]', Code.POLICY_MASKED),
        (DataRules(filters=(("person", "x"),)), "[:find ?n :where [?e :person/name ?n]]",
         Code.POLICY_MASKED),
        (DataRules(only=("order",)), "[:find ?n :where [?e :person/name ?n]]", Code.POLICY_TABLE),
        (DataRules(only=("order",)), "[:find ?n :where [?e :order/_person ?n]]", None),
        (DataRules(masks=(("person.ssn", "hash"),)), "[:find ?n :where [?e :person/name ?n]]",
         None),
    ],
)  # fmt: skip
def test_rules_refuse_what_could_show_a_hidden_attribute(
    rules: DataRules, query: str, code: Code | None
) -> None:
    reading = judge_query(read(query))
    if code is None:
        check_reading(reading, rules)
        return
    with pytest.raises(TidegateError) as refused:
        check_reading(reading, rules)
    assert refused.value.code is code


def test_what_runs_under_rules_is_written_from_what_was_read() -> None:
    request = DatalogRequest(
        operation=DatalogOperation.QUERY,
        target=DatalogTarget("database"),
        arguments={
            "query": "[:find,?n :in $ % ?a ; all\n :where (r ?e ?a) [?e :order/n ?n] #_ [?x :p]]",
            "inputs": ["[[(r ?e ?a) [?e :order/a ?a]]]", 5],
        },
    )
    source = Source("1", "facts", "datalevin:///facts", "datalevin", "datalog")
    catalog = Catalog("facts", "", ("",), (), "1")
    rules = DataRules(masks=(("person.ssn", "hash"),))
    rewritten = LANGUAGE.rewrite(request, source, rules, catalog, "")
    assert isinstance(rewritten, DatalogRequest)
    assert rewritten.arguments == {
        "query": "[:find ?n :in $ % ?a :where (r ?e ?a) [?e :order/n ?n]]",
        "inputs": [
            [[{"~edn": "(r ?e ?a)"}, [{"~edn": "?e"}, ":order/a", {"~edn": "?a"}]]],
            {"~i64": "5"},
        ],
    }
