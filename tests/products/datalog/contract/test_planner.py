"""What the planner of Datalevin gets wrong is asked past it, or computed from the facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.datalog import Datalog, Opened

SCHEMA = {
    ":name": {":db/valueType": ":db.type/string"},
    ":age": {":db/valueType": ":db.type/long"},
    ":boss": {":db/valueType": ":db.type/ref"},
    ":size": {":db/valueType": ":db.type/bigint"},
    ":price": {":db/valueType": ":db.type/bigdec"},
}
FACTS: list[dict[str, Any]] = [
    {":db/id": 1, ":name": "Ada", ":age": 80, ":boss": 1, ":price": {"~bigdec": "2.50"}},
    {":db/id": 2, ":name": "Ben", ":boss": 1, ":size": {"~bigint": "99999999999999999999"}},
    {":db/id": 3, ":name": "Cy", ":age": 30, ":boss": 2, ":size": {"~bigint": "5"}},
    {":db/id": 4, ":name": "Di", ":age": 9, ":boss": 3},
]


@pytest.fixture
def facts(datalog: Datalog, tmp_path: Path) -> Opened:
    source = datalog.open(tmp_path / "facts", "write")
    source.ask("open_database", create=True, schema=SCHEMA)
    source.ask("transact", txData=FACTS)
    return source


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        # A variable twice in a pattern.
        ("[:find ?e :where [?e :boss ?e]]", [[1]]),
        ("[:find ?n :where [?e :boss ?e] [?e :name ?n]]", [["Ada"]]),
        ("{:find [?e] :where [[?e :boss ?e]]}", [[1]]),
        ("[:find ?e :where [?e :name] (not [?e :boss ?e])]", [[2], [3], [4]]),
        ("[:find ?e :where [?e :age] (or [?e :boss ?e] [?e :age 9])]", [[1], [4]]),
        ("[:find ?e :where [?e :name] (or-join [?e] [?e :boss ?e] [?e :age 9])]", [[1], [4]]),
        ("[:find ?e :where [?e :name] (not-join [?e] [?e :boss ?e])]", [[2], [3], [4]]),
        # A value that is not used, of an entity that is found by what it refers to.
        ('[:find ?f :where [?f :name "Ada"] [?g :boss ?f] [?g :size _]]', [[1]]),
        ('[:find ?g :where [?f :name "Ada"] [?g :boss ?f] [?g :size ?x]]', [[2]]),
        ('[:find ?f :where [?f :name "Ben"] [?g :boss ?f] [?g :age ?x]]', [[2]]),
        ('[:find ?f :where [?f :name "Cy"] [?g :boss ?f] [?g :size ?x]]', []),
        ('[:find ?f :where [?f :name "Cy"] [?g :boss ?f] [?g :size]]', []),
        ('[:find ?f :where [?f :name "Cy"] [?g :boss ?f] [?g :size _]]', []),
        # Numbers of classes of their own.
        ("[:find ?e :where [?e :size 5]]", [[3]]),
        ("[:find ?e :where [?e :size 99999999999999999999]]", [[2]]),
        ("[:find ?e :where [?e :size ?s] [(> ?s 5)]]", [[2]]),
        ("[:find ?e :where [?e :price ?p] [(> ?p 2)]]", [[1]]),
    ],
)
def test_queries_that_the_planner_gets_wrong_are_answered(
    facts: Opened, query: str, answer: Any
) -> None:
    assert facts.query(query) == answer


def test_a_rule_compares_a_variable_that_a_pattern_has_twice(facts: Opened) -> None:
    for rules in ("[[(own ?e) [?e :boss ?e]]]", {"~edn": "[[(own ?e) [?e :boss ?e]]]"}):
        assert facts.query("[:find ?e :in $ % :where (own ?e)]", rules) == [[1]]


def test_a_big_number_may_be_an_input(facts: Opened) -> None:
    query = "[:find ?e :in $ ?s :where [?e :size ?s]]"
    assert facts.query(query, {"~bigint": "99999999999999999999"}) == [[2]]


@pytest.mark.parametrize("number", [5, 99999999999999999999, {"~bigint": "5"}, {"~i64": "5"}])
def test_facts_are_found_by_big_numbers(facts: Opened, number: Any) -> None:
    found = [2] if number == 99999999999999999999 else [3]
    named = {"c1": ":size", "c2": number}
    assert [each["e"] for each in facts.ask("datoms", index="ave", **named)] == found
    by_entity = {"c1": found[0], "c2": ":size", "c3": number}
    assert [each["e"] for each in facts.ask("datoms", index="eav", **by_entity)] == found
    assert [each["e"] for each in facts.ask("search_datoms", a=":size", v=number)] == found
    assert facts.ask("count_datoms", a=":size", v=number) == 1
    assert facts.query("[:find ?e :in $ ?s :where [?e :size ?s]]", number) == [found]
    assert facts.query("[:find ?e :in $ [?s ...] :where [?e :size ?s]]", [number]) == [found]


EMPTY_IN_THE_PLANNER = [
    ("[:find ?e :where [?e :boss ?f] [(< -1.5 ?f)]]", [[1], [2], [3], [4]]),
    ("[:find (count ?e) . :where [?e :boss ?f] [(< -1.5 ?f)]]", 4),
    ("[:find [?n ...] :where [?e :boss ?f] [(< -1.5 ?f)] [?e :name ?n]]", None),
    ("[:find ?e :where [?e :price 2.5M]]", [[1]]),
    ("[:find ?e :where [?e :boss ?f] [(< -1.5 ?f)] (not [?e :age 9])]", [[1], [2], [3]]),
]


@pytest.mark.parametrize(("query", "answer"), EMPTY_IN_THE_PLANNER)
def test_an_empty_answer_is_compared_with_the_facts(facts: Opened, query: str, answer: Any) -> None:
    found = facts.query(query)
    assert (sorted(found) == ["Ada", "Ben", "Cy", "Di"]) if answer is None else found == answer
    assert facts.last_corrected
    assert facts.query(query) == found  # also when it is asked again


@pytest.mark.parametrize(
    "query",
    [
        "[:find ?e :where [?e :age 31]]",
        "[:find ?e :where [?e :age ?a] [(> ?a 100)]]",
        "[:find ?e :where [?e :age ?a] (not [?e :name])]",
        "[:find ?e . :where [?e :age ?a] [?e :size 7]]",
        "[:find ?e ?f ?g :where [?e :age ?a] [?f :age ?b] [?g :age ?c] [(+ ?a ?b) ?s] [(= ?s ?c)]]",
        "[:find (pull ?e [:name]) :where [?e :age 31]]",
    ],
)
def test_an_answer_that_is_rightly_empty_stays_so(facts: Opened, query: str) -> None:
    assert facts.query(query) in ([], None)
    assert not facts.last_corrected


def test_a_right_empty_answer_is_asked_again_after_a_change(facts: Opened) -> None:
    query = "[:find ?e :where [?e :boss ?f] [(< -1.5 ?f)] [?e :age 31]]"
    assert facts.query(query) == []
    facts.ask("transact", txData=[{":name": "Eve", ":age": 31, ":boss": 4}])
    assert facts.query(query) == [[5]]


def test_the_comparison_ends_within_its_bounds(facts: Opened) -> None:
    """Three of 300 entities without a common variable are 27 million combinations."""
    facts.ask("transact", txData=[{":n": n} for n in range(300)])
    query = "[:find ?x :where [?x :n ?a] [?y :n ?b] [?z :n ?c] [?z :boss ?f] [(< -1.5 ?f)]]"
    assert facts.query(query) == []
    assert not facts.last_corrected
