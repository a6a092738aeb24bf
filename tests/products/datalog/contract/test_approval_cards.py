"""What is hidden from some people is on no approval card of a Datalog source that they may see.

Two databases differ only in the hidden attributes; what is told of a change to who may not see them
is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from products.datalog.contract.test_derived_attributes import SCHEMA, people
from products.datalog.contract.test_through_the_gate import WRITER, Asked
from support.datalog import Datalog, Opened
from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.approvals.render import describe, describe_at_client
from tidegate.errors import Code, TidegateError
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.products.datalog.requests import DatalogOperation, DatalogRequest, DatalogTarget

SECRETS = ("5000", "6000", "zeppelin", "balloon")
FOR_ONE: dict[str, dict[str, Any]] = {
    "mask": {
        "masks": (
            Mask("person.salary", operators=("ann",)),
            Mask("person.secret", operators=("ann",)),
        )
    },
    "filter": {"filters": (RowFilter("person", "true", operators=("ann",)),)},
}
"""Rules that bind an operator, and not the caller."""
FOR_ALL: dict[str, dict[str, Any]] = {
    "mask": {"masks": (Mask("person.salary"), Mask("person.secret"))},
    "filter": {"filters": (RowFilter("person", "true"),)},
}
TOUCHING: list[Any] = [
    [{":db/id": 1, ":person/salary": 1}],
    [[":db/retract", 1, ":person/salary"]],
    [[":db.fn/retractAttribute", 1, ":person/secret"]],
    [[":db.fn/cas", 1, ":person/salary", 4, 1]],
    [{":db/id": 1, ":card/number": 8}],
    [{":db/id": 1, ":person/name": "Eve"}],
    [{":db/id": 1, ":person/secret": "x"}],
    [[":db/retractEntity", 1]],
    [[":db/retractEntity", 2]],
    [[":db.fn/retractAttribute", 2, ":team/person"]],
    [{":db/id": 1, ":card/pay": [1, 7]}],
    [{":db/id": [":card/pay", [5000, 7]], ":team/name": "x"}],
]
"""Changes whose facts have, or are found by, what is hidden."""
APART: list[Any] = [
    [{":db/id": 2, ":team/name": "South"}],
    [[":db/add", 2, ":team/name", "South"]],
    [[":db/retract", 2, ":team/name", "North"]],
]


@pytest.fixture
def worlds(datalog: Datalog, tmp_path: Path) -> Iterator[list[Opened]]:
    made: list[Opened] = []
    for which, salary, secret in (("a", 5000, "zeppelin"), ("b", 6000, "balloon")):
        opened = datalog.open(tmp_path / which, "write")
        opened.ask("open_database", create=True, schema=SCHEMA)
        opened.ask("transact", txData=people(salary, secret))
        made.append(opened)
        opened.close()
    yield made


def _asked(ask: Asked, forms: Any) -> TidegateError:
    request = DatalogRequest(
        operation=DatalogOperation.TRANSACT,
        target=DatalogTarget("database"),
        arguments={"txData": forms},
        text="a change",
    )
    return ask.refused(request, WRITER)


def _gates(
    datalog: Datalog, worlds: list[Opened], tmp_path: Path, rules: dict[str, Any]
) -> list[Asked]:
    return [
        Asked(
            datalog,
            tmp_path / f"state-{number}",
            structs.replace(
                opened.source, id="1", name="facts", access="write", approval_for="writes", **rules
            ),
        )
        for number, opened in enumerate(worlds)
    ]


@pytest.mark.parametrize("rule", FOR_ONE)
def test_facts_that_an_operator_may_not_see_are_kept_from_operators(
    datalog: Datalog, worlds: list[Opened], tmp_path: Path, rule: str
) -> None:
    ask = _gates(datalog, worlds, tmp_path, FOR_ONE[rule])[0]
    for forms in TOUCHING:
        error = _asked(ask, forms)
        assert isinstance(error, ApprovalNeeded), (forms, error)
        dry_run = error.question.dry_run
        assert dry_run is not None
        assert not dry_run.separable_under, forms
    for forms in APART:
        error = _asked(ask, forms)
        assert isinstance(error, ApprovalNeeded), (forms, error)
        dry_run = error.question.dry_run
        assert dry_run is not None and dry_run.affected
        assert dry_run.separable_under, forms
        assert not any(secret in describe(error.question) for secret in SECRETS)


@pytest.mark.parametrize("rule", FOR_ALL)
def test_who_asks_is_told_nothing_that_is_hidden(
    datalog: Datalog, worlds: list[Opened], tmp_path: Path, rule: str
) -> None:
    said: list[list[str]] = []
    for ask in _gates(datalog, worlds, tmp_path, FOR_ALL[rule]):
        told: list[str] = []
        for forms in (*TOUCHING, *APART):
            error = _asked(ask, forms)
            if forms in TOUCHING:
                assert error.code is Code.POLICY_MASKED, (forms, error)
                told.append(f"{error.message} {error.hint} {json.dumps(error.details)}")
            else:
                assert isinstance(error, ApprovalNeeded), (forms, error)
                told.append(describe_at_client(error.question).partition("Dry run")[2])
        assert not any(secret in ask.records() for secret in ("zeppelin", "balloon"))
        said.append(told)
    assert said[0] == said[1]
