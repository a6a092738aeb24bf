"""What a cell of the matrix of Access says of a caller, a source and a verb, and how it explains
itself."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tidegate.errors import Code
from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.source_settings import Mask, RowFilter, RunAs
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.policy.access_matrix import BY_NAME, VERBS, access_cell, explain_cell, kinds_of
from tidegate.sql.language import LANGUAGE

FULL = Actor("t1", "ann", Scope.FULL_ACCESS)
READER = Actor("t2", "bob", Scope.READ_ONLY)
WRITER = Actor("t3", "cid", Scope.READ_WRITE)
VIEWER = structs.replace(FULL, kind="human", roles=(RoleGrant("viewer"),))
SHOP = Source("s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite", access="admin")
HIDING = {"masks": (Mask("a.b"),)}
UNMAPPED = {"run_as": RunAs(roles=(("zoe", "reader"),))}
BROKEN = {"filters": (RowFilter("a", "b = {actor.unknown}"),)}
MIXED = StatementRules("mixed", (("insert", "allow"), ("update", "ask"), ("delete", "deny")))


def row(actor: Actor, rules: StatementRules | None = None, **settings: Any) -> str:
    """The cells of all verbs: `~` behind one that confirms, `*` where its kinds differ."""
    source = structs.replace(SHOP, **settings)
    found: list[str] = []
    for verb in VERBS:
        cell = access_cell(actor, source, verb, LANGUAGE, rules)
        marks = "~" * cell.strictest.confirms + "*" * cell.differs
        found.append(cell.kind + marks)
    return " ".join(found)


@pytest.mark.parametrize(
    ("actor", "settings", "expected"),
    [
        (FULL, {}, "allow allow allow allow ask~ allow ask~ ask"),
        (WRITER, {}, "allow allow allow allow ask~ allow ask~ deny"),
        (READER, {}, "allow allow allow deny deny deny deny deny"),
        (VIEWER, {}, "allow allow allow deny deny deny deny deny"),
        (FULL, {"access": "write"}, "allow allow allow allow ask~ allow ask~ deny"),
        (FULL, {"access": "read"}, "allow allow allow deny deny deny deny deny"),
        (FULL, {"access": "none"}, "deny deny deny deny deny deny deny deny"),
        (FULL, {"changes": "deny"}, "allow allow allow deny deny deny deny deny"),
        (FULL, {"agents": "deny"}, "deny deny deny deny deny deny deny deny"),
        (FULL, {"agents": "ask"}, "allow ask ask ask ask~ ask ask~ ask"),
        (FULL, {"approval_for": "writes"}, "allow allow allow ask ask~ ask ask~ ask"),
        (FULL, {"approval_for": "everything"}, "allow ask ask ask ask~ ask ask~ ask"),
        (FULL, {"unqualified": "allow"}, "allow allow allow allow allow allow ask~ ask"),
        (FULL, {"unqualified": "deny"}, "allow allow allow allow deny allow ask~ ask"),
        (WRITER, {"destructive_scope": "fullAccess"},
         "allow allow allow allow ask~ allow deny deny"),
        (FULL, HIDING, "masked masked masked masked ask~ masked ask~ ask"),
        (structs.replace(FULL, tables=frozenset({"a"})), {},
         "masked masked masked masked ask~ masked ask~ ask"),
        (FULL, {"masks": (Mask("a.b", except_tokens=("ann",)),)},
         "allow allow allow allow ask~ allow ask~ ask"),
        (FULL, {**HIDING, "agents": "ask"}, "masked ask ask ask ask~ ask ask~ ask"),
        (structs.replace(FULL, sources=frozenset({"crm"})), {},
         "deny deny deny deny deny deny deny deny"),
    ],
)  # fmt: skip
def test_a_row_of_the_matrix_follows_the_scope_and_the_settings(
    actor: Actor, settings: dict[str, Any], expected: str
) -> None:
    assert row(actor, **settings).replace("*", "") == expected


def test_kinds_of_one_verb_that_are_decided_differently_show_the_strictest() -> None:
    assert row(FULL, MIXED).split()[3] == "deny*"
    assert row(FULL, StatementRules("one", (("insert", "ask"),))).split()[3] == "ask"
    cell = access_cell(FULL, SHOP, BY_NAME["change"], LANGUAGE, MIXED)
    assert [(each.word, each.kind) for each in cell.kinds] == [
        ("insert", "allow"), ("update", "ask"), ("delete", "deny"),
    ]  # fmt: skip
    assert cell.strictest == cell.kinds[2]


def test_what_drops_an_account_confirms_beside_what_only_asks() -> None:
    cell = access_cell(FULL, SHOP, BY_NAME["administer"], LANGUAGE)
    assert [each.confirms for each in cell.kinds] == [False, True, False]
    assert {each.kind for each in cell.kinds} == {"ask"}
    assert not cell.differs


def test_kinds_of_statements_are_classes_where_a_source_has_rules_for_them() -> None:
    assert [each.word for each in kinds_of(BY_NAME["change"], MIXED)] == [
        "insert", "update", "delete",
    ]  # fmt: skip
    named = StatementRules("x", (("call_procedure", "ask"),))
    (kind,) = kinds_of(BY_NAME["change"], named)
    assert (kind.word, kind.judgement.verb) == ("call procedure", "call_procedure")
    for verb in VERBS:
        assert kinds_of(verb, None) == verb.kinds
        if verb.name != "change":
            assert kinds_of(verb, MIXED) == verb.kinds


@pytest.mark.parametrize(
    ("settings", "code", "rule"),
    [
        (UNMAPPED, Code.POLICY_IDENTITY, "source.run_as"),
        (BROKEN, Code.POLICY_MASKED, "filter.a"),
    ],
)
@pytest.mark.parametrize("approval", ["nothing", "everything"])
def test_what_refuses_every_request_of_a_caller_denies_each_cell(
    settings: dict[str, Any], code: Code, rule: str, approval: Any
) -> None:
    source = structs.replace(SHOP, access="write", approval_for=approval, **settings)
    for verb in VERBS[:-1]:
        cell = access_cell(FULL, source, verb, LANGUAGE)
        explained = explain_cell(FULL, source, verb, LANGUAGE)
        for kind in cell.kinds:
            assert (kind.kind, kind.verdict.code, kind.verdict.rule) == ("deny", code.value, rule)
        assert explained.verdict == cell.strictest.verdict
        assert explained.findings[-1].verdict == explained.verdict


def test_a_refusal_of_policy_is_shown_before_one_of_the_data_rules() -> None:
    source = structs.replace(SHOP, access="read", **BROKEN)
    cell = access_cell(FULL, source, BY_NAME["change"], LANGUAGE)
    assert cell.strictest.verdict.rule == "source.access"
    explained = explain_cell(FULL, source, BY_NAME["change"], LANGUAGE)
    assert explained.verdict == cell.strictest.verdict
    assert explained.findings[-1].rule == "source.writes"


@pytest.mark.parametrize("settings", [{}, HIDING, UNMAPPED, BROKEN, {"agents": "ask"}])
@pytest.mark.parametrize("rules", [None, MIXED])
def test_the_explanation_of_a_cell_has_the_cell_s_verdict(
    settings: dict[str, Any], rules: StatementRules | None
) -> None:
    source = structs.replace(SHOP, **settings)
    for actor in (FULL, WRITER, READER, VIEWER):
        for verb in VERBS:
            explained = explain_cell(actor, source, verb, LANGUAGE, rules)
            assert (
                explained.verdict
                == access_cell(actor, source, verb, LANGUAGE, rules).strictest.verdict
            )


def test_only_what_hides_or_refuses_is_explained_behind_the_rules_of_policy() -> None:
    plain = explain_cell(FULL, SHOP, BY_NAME["read"], LANGUAGE)
    assert plain.findings[-1].rule == "source.approval"
    hiding = explain_cell(FULL, structs.replace(SHOP, **HIDING), BY_NAME["read"], LANGUAGE)
    assert [each.rule for each in hiding.findings[:-1]] == [each.rule for each in plain.findings]
    assert (hiding.findings[-1].rule, hiding.findings[-1].verdict) == ("source.masking", None)
    assert hiding.verdict == plain.verdict


def test_an_export_is_for_reading_alone() -> None:
    assert [verb.name for verb in VERBS if verb.reads_only] == ["export"]


def test_the_kinds_of_a_verb_are_those_that_the_rules_tell_apart() -> None:
    def marked(verb: str) -> list[bool]:
        return [each.judgement.unqualified for each in BY_NAME[verb].kinds]

    assert marked("change") == [False, False, False]
    assert marked("every_row") == [True, True]
    known = [each.judgement.administration for each in BY_NAME["administer"].kinds]
    assert [(each.drops, each.in_transaction) for each in known if each is not None] == [
        (False, True), (True, True), (False, False),
    ]  # fmt: skip


def test_each_verb_is_found_by_its_name() -> None:
    assert list(BY_NAME) == [verb.name for verb in VERBS] == [
        "names", "read", "export", "change", "every_row", "structure", "destroy", "administer",
    ]  # fmt: skip
