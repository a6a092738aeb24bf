"""What is hidden in rows that no statement was rewritten for, by names of tables and columns."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.data_rules import DataRules
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.policy.data_rules import (
    digest_of,
    hidden_columns,
    is_filtered,
    is_filtered_table,
    masked_names,
    rules_by_name,
    rules_for_people,
)

TOKEN = Actor("t1", "reports", Scope.READ_ONLY)
VIEWER = Actor("o1", "Ann", Scope.READ_ONLY, kind="human", roles=(RoleGrant("viewer"),))


def source(*rules: Mask | RowFilter, tags: tuple[str, ...] = ()) -> Source:
    masks = tuple(rule for rule in rules if isinstance(rule, Mask))
    filters = tuple(rule for rule in rules if isinstance(rule, RowFilter))
    return Source("s", "shop", "", "sqlite", "sqlite", tags=tags, masks=masks, filters=filters)


@pytest.mark.parametrize("actor", [TOKEN, VIEWER])
def test_rules_of_an_actor_have_names_and_no_conditions(actor: Actor) -> None:
    one = source(
        Mask("a.b", "hash"),
        Mask("a.c", except_tokens=("reports",), except_operators=("ann",)),
        RowFilter("d", "x = {actor.unknown}"),
        RowFilter("e", "x = 1", tag="eu"),
    )
    assert rules_by_name(actor, one) == DataRules((("a.b", "hash"),), (("d", "1 = 0"),))
    assert rules_by_name(actor, source(Mask("a.b", tag="eu"))) is None
    assert rules_by_name(actor, source()) is None
    only = source(RowFilter("d", "x = 1"))
    assert rules_by_name(actor, only) == DataRules((), (("d", "1 = 0"),))


@pytest.mark.parametrize(
    ("rule", "binds"),
    [
        ({}, True),
        ({"tokens": ("reports",)}, False),
        ({"operators": ("ann",)}, True),
        ({"roles": ("viewer",)}, True),
        ({"tokens": ("reports",), "roles": ("viewer",)}, True),
        ({"except_operators": ("ann",)}, True),
        ({"tag": "eu"}, False),
        ({"tag": "us"}, True),
    ],
)
def test_rules_for_people_are_those_that_bind_some_operator(
    rule: dict[str, Any], binds: bool
) -> None:
    for each in (Mask("a.b", **rule), RowFilter("a", "x = 1", **rule)):
        assert (rules_for_people(source(each, tags=("us",))) is not None) is binds


def test_rules_are_told_apart_by_their_digest() -> None:
    sets = [
        None,
        DataRules(),
        DataRules((("a.b", "nothing"),)),
        DataRules((("a.b", "hash"),)),
        DataRules((), (("a", "1 = 0"),)),
        DataRules(only=("a",)),
    ]
    digests = [digest_of(rules) for rules in sets]
    assert len(set(digests)) == len(sets)
    assert digest_of(DataRules((("a.b", "hash"),))) == digests[3]
    assert {len(digest) for digest in digests} == {16}


HIDING = DataRules(
    (("people.Email", "nothing"), ("crm.people.phone", "hash"), ("crm.notes.text", "partial")),
    (("people", "1 = 0"), ("crm.notes", "1 = 0")),
)


@pytest.mark.parametrize(
    ("schema", "table", "hidden"),
    [
        ("crm", "people", ("EMAIL", "phone")),
        ("CRM", "PEOPLE", ("EMAIL", "phone")),
        ("", "people", ("EMAIL", "phone")),
        ("other", "people", ("EMAIL",)),
        ("crm", "notes", ("text",)),
        ("other", "notes", ()),
        ("crm", "email", ()),
    ],
)
def test_masked_columns_are_found_in_any_case_of_letters(
    schema: str, table: str, hidden: tuple[str, ...]
) -> None:
    columns = ("id", "EMAIL", "phone", "text")
    assert hidden_columns(HIDING, schema, table, columns) == hidden


@pytest.mark.parametrize(
    ("schema", "table", "filtered"),
    [
        ("crm", "people", True),
        ("other", "People", True),
        ("", "notes", True),
        ("crm", "NOTES", True),
        ("other", "notes", False),
        ("crm", "other", False),
    ],
)
def test_tables_whose_rows_are_hidden_are_found(schema: str, table: str, filtered: bool) -> None:
    assert is_filtered(HIDING, schema, table) is filtered


@pytest.mark.parametrize(
    ("table", "masked", "filtered"),
    [
        ("people", {"Email", "phone"}, True),
        ("crm.people", {"Email", "phone"}, True),
        ("db.crm.people", {"Email", "phone"}, True),
        ("other.people", {"Email"}, True),
        ("notes", {"text"}, True),
        ("CRM.Notes", {"text"}, True),
        ("other.notes", set(), False),
        ("lepeople", set(), False),
    ],
)
def test_a_whole_name_is_hidden_by_any_rule_that_may_mean_it(
    table: str, masked: set[str], filtered: bool
) -> None:
    assert masked_names(HIDING, table) == masked
    assert is_filtered_table(HIDING, table) is filtered


def test_a_dash_in_a_name_is_an_underscore() -> None:
    rules = DataRules((("my-cloud.vms.key", "nothing"),), (("my_cloud.vms", "1 = 0"),))
    assert masked_names(rules, "my_cloud.vms") == {"key"}
    assert is_filtered_table(rules, "my-cloud.vms")
