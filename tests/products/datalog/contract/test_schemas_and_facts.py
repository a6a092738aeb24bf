"""A schema that contradicts the facts is refused, and nothing of the database changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.datalog import Datalog, Opened
from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.language.judge import judge_operation

SCHEMA: dict[str, Any] = {
    ":name": {":db/valueType": ":db.type/string"},
    ":tag": {":db/valueType": ":db.type/string", ":db/cardinality": ":db.cardinality/many"},
    ":code": {":db/valueType": ":db.type/string", ":db/unique": ":db.unique/identity"},
    ":boss": {":db/valueType": ":db.type/ref"},
}
FACTS: list[dict[str, Any]] = [
    {":db/id": 1, ":name": "Ann", ":tag": ["x", "y"], ":code": "a", ":free": 5},
    {":db/id": 2, ":name": "Ann", ":code": "b", ":boss": 1},
]
CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({":name": {":db/valueType": ":db.type/long"}}, "2 facts of it are kept as :db.type/string"),
    ({":name": {":db/valueType": ":db.type/ref"}}, "would not be found as :db.type/ref"),
    ({":free": {":db/valueType": ":db.type/long"}}, "kept as values of any type"),
    ({":name": {":db/unique": ":db.unique/identity"}}, "two entities have the same value"),
    ({":name": {":db/unique": ":db.unique/value"}}, "two entities have the same value"),
    ({":tag": {":db/cardinality": ":db.cardinality/one"}}, "the entity 1 has several values"),
    ({":name": {":db/isComponent": True}}, "for which it would not hold"),
    ({":new": {":db/valueType": ":db.type/string", ":db/isComponent": True}}, "no :db.type/ref"),
    ({":name": {":db/fulltext": True}}, "for which it would not hold"),
    ({":both": {":db/tupleAttrs": [":name", ":code"]}}, "no tuple would be made"),
]


@pytest.fixture
def facts(datalog: Datalog, tmp_path: Path) -> Opened:
    source = datalog.open(tmp_path / "facts", "write")
    source.ask("open_database", create=True, schema=SCHEMA)
    source.ask("transact", txData=FACTS)
    return source


@pytest.mark.parametrize(("schema", "why"), CONTRADICTIONS)
def test_a_schema_that_contradicts_the_facts_is_refused(
    facts: Opened, schema: dict[str, Any], why: str
) -> None:
    before = facts.ask("datoms", index="eav"), facts.catalog().tables
    error = facts.refused("open_database", create=True, schema=schema)
    assert error.code is Code.ARGUMENT_INVALID
    assert why in error.message
    assert "Nothing was changed" in error.message
    assert (facts.ask("datoms", index="eav"), facts.catalog().tables) == before
    assert facts.query('[:find ?e :where [?e :name "Ann"]]') == [[1], [2]]


def test_a_schema_that_the_facts_fit_is_taken(facts: Opened) -> None:
    fitting: dict[str, Any] = {
        ":name": {":db/valueType": ":db.type/string", ":db/cardinality": ":db.cardinality/many"},
        ":code": {":db/unique": ":db.unique/value"},
        ":new": {":db/valueType": ":db.type/string", ":db/fulltext": True},
    }
    facts.ask("open_database", create=True, schema=fitting)
    facts.ask("transact", txData=[[":db/add", 1, ":name", "Bea"], {":db/id": 2, ":new": "red"}])
    assert facts.query("[:find ?n :where [1 :name ?n]]") == [["Ann"], ["Bea"]]
    assert facts.ask("fulltext_datoms", query="red") == [[2, ":new", "red"]]


@pytest.mark.parametrize(
    "form",
    [
        {":db/ident": ":size", ":db/valueType": ":db.type/long"},
        [":db/add", "a", ":db/unique", ":db.unique/identity"],
        {":db/ident": ":both", ":db/tupleAttrs": [":name", ":code"]},
    ],
)
def test_a_transaction_that_would_define_an_attribute_is_refused(form: Any) -> None:
    with pytest.raises(TidegateError) as caught:
        judge_operation("transact", {"txData": [form]})
    assert "A transaction defines no attribute" in caught.value.message
    assert "`schema`" in caught.value.message
