"""Which settings a person has to change for another verdict, by the rule that gave it."""

from __future__ import annotations

import pytest
from msgspec import structs

from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.source_settings import Mask, RowFilter, RunAs
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.policy.deciding_settings import (
    DecidingSetting,
    deciding_settings,
    every_rule,
    known_rules,
)
from tidegate.policy.rules import RULES

ANN = Actor("t1", "ann", Scope.READ_WRITE)
SHOP = Source(
    "s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite",
    access="write", agents="ask", approval_for="writes", changes="deny", unqualified="allow",
    destructive_scope="fullAccess", masks=(Mask("a.b"), Mask("a.c")),
    filters=(RowFilter("a", "b = 1"),), run_as=RunAs("reader"),
)  # fmt: skip
SAFE = StatementRules("safe", (("insert", "ask"),))

_SCOPE = ("caller", "scope", "readWrite")
_SOURCES = ("caller", "sources", "every source")
_ACCESS = ("source", "access", "write")
_DATA_RULES = [("source", "masks", "2"), ("source", "filters", "1")]
SETTINGS = {
    "actor.sources": [_SOURCES],
    "source.agents": [("source", "agents", "ask")],
    "source.access": [_ACCESS],
    "actor.scope": [_SCOPE],
    "source.tools": [_ACCESS],
    "sql.readable": [("program", "", "")],
    "sql.effect": [("program", "", "")],
    "tool.reads": [("program", "", "")],
    "sql.confirmable": [("program", "", "")],
    "source.writes": [_ACCESS],
    "source.changes": [("source", "changes", "deny")],
    "source.statements": [("mode", "mode", "safe")],
    "actor.writes": [_SCOPE],
    "actor.role": [("caller", "roles", "none")],
    "actor.destructive": [_SCOPE, ("source", "destructive_scope", "fullAccess")],
    "source.administration": [_ACCESS],
    "actor.administration": [_SCOPE],
    "source.run_as": [("source", "run_as", "callers are mapped to roles")],
    "source.unqualified": [("source", "unqualified", "allow")],
    "sql.irreversible": [("program", "", "")],
    "source.approval": [("source", "approval_for", "writes")],
    "source.approval_for": [("source", "approval_for", "writes")],
    "sql.administration": [("program", "", "")],
    "all": [_SOURCES, _SCOPE, _ACCESS, ("source", "agents", "ask")],
    "source.masking": _DATA_RULES,
}


def shown(
    rule: str, actor: Actor = ANN, source: Source = SHOP, statements: StatementRules | None = SAFE
) -> list[tuple[str, str, str]]:
    found = deciding_settings(rule, actor, source, statements)
    return [(each.holder, each.name, each.value) for each in found]


@pytest.mark.parametrize("rule", sorted(known_rules()))
def test_a_rule_names_the_settings_that_it_looked_at(rule: str) -> None:
    assert shown(rule) == SETTINGS[rule]


def test_every_rule_of_policy_names_settings() -> None:
    assert every_rule() == {rule.name for rule in RULES}
    assert every_rule() <= known_rules() == SETTINGS.keys()


@pytest.mark.parametrize("rule", ["filter.a", "mask.a.b", "table.a", "an.unknown.rule"])
def test_a_refusal_by_a_data_rule_names_what_hides_data(rule: str) -> None:
    assert shown(rule) == _DATA_RULES


def test_a_refusal_of_an_identity_names_the_mapping() -> None:
    assert shown("source.run_as.role") == SETTINGS["source.run_as"]
    assert shown("source.run_as", source=structs.replace(SHOP, run_as=None)) == []


def test_a_source_that_hides_nothing_names_no_masks() -> None:
    plain = structs.replace(SHOP, masks=(), filters=())
    assert shown("source.masking", source=plain) == []
    assert shown("source.masking", source=structs.replace(SHOP, masks=())) == _DATA_RULES[1:]


def test_a_source_without_rules_for_classes_has_no_name_of_a_mode() -> None:
    assert shown("source.statements", statements=None) == [("mode", "mode", "")]


@pytest.mark.parametrize(
    ("tables", "value"),
    [(frozenset({"b", "a"}), "a, b"), (frozenset[str](), "no table")],
)
def test_a_list_of_tables_is_shown_with_what_hides_data(tables: frozenset[str], value: str) -> None:
    listed = structs.replace(ANN, tables=tables)
    assert shown("source.masking", listed) == [*_DATA_RULES, ("caller", "tables", value)]


@pytest.mark.parametrize(
    ("sources", "tags", "value"),
    [
        (frozenset({"shop", "crm"}), None, "crm, shop"),
        (frozenset({"shop"}), frozenset({"eu"}), "#eu, shop"),
        (None, frozenset({"us", "eu"}), "#eu, #us"),
        (frozenset[str](), None, "no source"),
        (None, frozenset[str](), "no source"),
    ],
)
def test_an_allowlist_is_shown_as_people_write_it(
    sources: frozenset[str] | None, tags: frozenset[str] | None, value: str
) -> None:
    listed = structs.replace(ANN, sources=sources, tags=tags)
    assert shown("actor.sources", listed) == [("caller", "sources", value)]


@pytest.mark.parametrize(
    ("roles", "value"),
    [
        ((), "none"),
        ((RoleGrant("viewer"), RoleGrant("approver", frozenset({"shop"}))), "approver"),
        ((RoleGrant("admin", frozenset({"crm"})),), "none"),
    ],
)
def test_an_operator_s_role_is_the_one_on_the_source(
    roles: tuple[RoleGrant, ...], value: str
) -> None:
    assert shown("actor.role", structs.replace(ANN, roles=roles)) == [("caller", "roles", value)]


def test_a_setting_names_its_holder() -> None:
    assert deciding_settings("source.access", ANN, SHOP) == (
        DecidingSetting("source", "access", "write"),
    )
