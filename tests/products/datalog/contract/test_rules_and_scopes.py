"""Rules, joins and inputs have the answers of an evaluator that shares nothing with Datalevin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from products.datalog.oracle.comparison import compare, compare_pulls
from support.datalog import Datalog, Opened
from tidegate.errors import Code

QUERIES = 400

CHAIN: list[dict[str, Any]] = [
    *[{":db/id": n, ":edge": n + 1, ":size": n} for n in range(1, 5)],
    {":db/id": 5, ":size": 5},
    {":db/id": 6, ":edge": 6, ":to": [2, 9]},
]
SCHEMA: dict[str, Any] = {
    ":edge": {":db/valueType": ":db.type/ref"},
    ":size": {":db/valueType": ":db.type/long"},
    ":to": {":db/valueType": ":db.type/long", ":db/cardinality": ":db.cardinality/many"},
}
TWICE = "[[(r ?a ?b) [?a :edge ?b]] [(r ?a ?b) (r ?a ?c) (r ?c ?b)]]"
ALL = [[a, b] for a in range(1, 6) for b in range(a + 1, 6)]


@pytest.fixture
def chain(datalog: Datalog, tmp_path: Path) -> Opened:
    source = datalog.open(tmp_path / "chain", "write")
    source.ask("open_database", create=True, schema=SCHEMA)
    source.ask("transact", txData=CHAIN)
    return source


def test_random_queries_have_the_answers_of_an_independent_evaluator(
    datalog: Datalog, tmp_path: Path
) -> None:
    """`./dev datalog` asks as many as it is told to."""
    summary = compare(datalog, tmp_path, QUERIES, seed=5)
    assert summary.finds == []
    assert summary.answered > QUERIES / 3
    assert summary.refused < QUERIES / 50


def test_random_pulls_show_what_an_independent_evaluator_shows(
    datalog: Datalog, tmp_path: Path
) -> None:
    summary = compare_pulls(datalog, tmp_path, QUERIES, seed=3)
    assert summary.finds == []
    assert summary.answered > QUERIES / 2


def test_a_rule_that_calls_itself_twice_finds_all(chain: Opened) -> None:
    assert chain.query("[:find ?a ?b :in $ % :where (r ?a ?b)]", TWICE) == [*ALL, [6, 6]]
    assert chain.query("[:find ?b :in $ % :where (r 2 ?b)]", TWICE) == [[3], [4], [5]]
    denied = "[:find ?a ?b :in $ % :where [?a :size] [?b :size] (not (r ?a ?b))]"
    assert len(chain.query(denied, TWICE)) == 25 - len(ALL)


def test_a_rule_that_calls_itself_twice_over_many_facts_finds_all(
    datalog: Datalog, tmp_path: Path
) -> None:
    """More facts than the evaluation in the worker takes: the planner's own, corrected."""
    source = datalog.open(tmp_path / "many", "write")
    source.ask("open_database", create=True, schema=SCHEMA)
    source.ask("transact", txData=[*CHAIN, *[{":edge": 5} for _ in range(10_001)]])
    assert source.query("[:find ?b :in $ % :where (r 1 ?b)]", TWICE) == [[2], [3], [4], [5]]
    counts = "[[(far ?a ?n) [?a :size ?n]] [(far ?b ?m) (far ?a ?n) [?b :edge ?a] [(inc ?n) ?m]]]"
    found = source.query("[:find (count ?a) . :in $ % :where (far ?a ?n)]", counts)
    assert found > 10_001


def test_rules_that_no_one_evaluates_rightly_are_refused_in_words(
    datalog: Datalog, tmp_path: Path
) -> None:
    source = datalog.open(tmp_path / "many", "write")
    source.ask("open_database", create=True, schema=SCHEMA)
    source.ask("transact", txData=[*CHAIN, *[{":edge": 5} for _ in range(10_001)]])
    apart = "[[(r ?a) [?a :size] [?b :edge ?c] (not [?b :size 3])]]"
    error = source.refused("query", query="[:find ?a :in $ % :where (r ?a)]", inputs=[apart])
    assert error.code is Code.ARGUMENT_INVALID
    assert "10000 facts" in error.message
    assert "clauses that share variables" in error.message


def test_a_rule_that_denies_itself_is_refused(chain: Opened) -> None:
    rules = "[[(odd ?a) [?a :size] (not (odd ?a))]]"
    error = chain.refused("query", query="[:find ?a :in $ % :where (odd ?a)]", inputs=[rules])
    assert "The rule `odd` holds where it does not hold itself" in error.message


@pytest.mark.parametrize(
    ("query", "inputs", "answer"),
    [
        # Local variables are not those of the same name outside.
        ("[:find ?a :in $ ?c :where [?a :size] (not-join [?a] [?a :edge ?c])]", [3], [[5]]),
        ("[:find ?a :in $ ?c :where [?a :size] (or-join [?a] [?a :edge ?c])]", [3],
         [[1], [2], [3], [4]]),
        ("[:find ?b :in $ % ?c :where (r 4 ?b)]", [TWICE, 3], [[5]]),
        # An input in the variables of a join.
        ("[:find ?b :in $ ?a :where (or-join [?a ?b] [?a :edge ?b])]", [1], [[2]]),
        ("[:find ?b :in $ ?a :where (or-join [[?a] ?b] [?a :edge ?b])]", [1], [[2]]),
        ("[:find ?b :in $ ?a :where [?b :size] (not-join [?a ?b] [?a :edge ?b])]", [1],
         [[1], [3], [4], [5]]),
        ("[:find ?s . :in $ ?a :where [?x :size ?s] [?x :edge 2] (not [?a :to _])]", [1], 1),
        # Arguments of rules: blank, constant, the same twice.
        ("[:find ?b :in $ % :where (r _ ?b)]", [TWICE], [[2], [3], [4], [5], [6]]),
        ("[:find ?a :in $ % :where (r ?a ?a)]", [TWICE], [[6]]),
        ("[:find ?a :in $ % :where [?a :size 1] (r 1 5)]", [TWICE], [[1]]),
        # Two values of one attribute, of which an input is one.
        ("[:find ?a :in $ ?v :where [?a :to ?v] [?a :to 2]]", [9], [[6]]),
        ("[:find ?a :in $ ?v :where [?a :to ?v] [?a :to 2]]", [7], []),
        # A variable beside itself.
        ("[:find ?a :where [?a :size ?s] [(<= ?s ?s)] [(> ?s 3)]]", [], [[4], [5]]),
        # A `not` that comes first.
        ("[:find ?a :where (not [?d :edge ?c] [?a :edge ?b]) [?a :edge ?c] [?c :edge ?b]]", [],
         [[1], [2], [3]]),
    ],
)  # fmt: skip
def test_variables_have_one_meaning(
    chain: Opened, query: str, inputs: list[Any], answer: Any
) -> None:
    assert chain.query(query, *inputs) == answer


def test_a_pull_of_what_a_rule_finds_is_made(chain: Opened) -> None:
    found = chain.query("[:find (pull ?b [:size]) :in $ % :where (r 3 ?b)]", TWICE)
    assert found == [[{":size": 4}], [{":size": 5}]]
