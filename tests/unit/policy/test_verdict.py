"""Verdicts: which rule speaks first, and what it tells the caller."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tidegate.errors import Code
from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.requests import METADATA
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement
from tidegate.policy.explanation import explain
from tidegate.policy.rules import RULES
from tidegate.policy.verdict import evaluate, is_visible

ACTOR = Actor("t1", "agent", Scope.READ_WRITE)
SOURCE = Source("s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite", access="write")
READ = Judgement(Effect.READ, "read", "Reads only")
WRITE = Judgement(Effect.WRITE, "node.Insert", "Holds an INSERT", Code.POLICY_READ_ONLY.value)
EVERY_ROW = msgspec.structs.replace(WRITE, unqualified=True)
DROP = Judgement(Effect.DESTRUCTIVE, "drop", "Drops a table", Code.POLICY_READ_ONLY.value)
ADMIN = Judgement(Effect.ADMIN, "root.GRANT", "GRANT administers", Code.POLICY_DENIED.value, "No.")
SESSION = Judgement(Effect.SESSION, "root.SET", "SET changes the session", "policy.denied", "No.")
GARBLED = Judgement(
    Effect.UNKNOWN, "parser.syntax", "The statement cannot be read", "sql.unreadable", "Mend it."
)


def verdict(
    judgement: Judgement,
    *,
    actor: Actor = ACTOR,
    scope: Scope = Scope.READ_ONLY,
    confirmed: bool = False,
    **source: Any,
) -> Verdict:
    changed = msgspec.structs.replace(SOURCE, **source)
    return evaluate(actor, changed, scope, judgement, confirmed=confirmed)


def reader() -> Actor:
    return msgspec.structs.replace(ACTOR, scope=Scope.READ_ONLY)


def test_a_read_is_allowed() -> None:
    assert verdict(READ).kind == "allow"
    assert verdict(READ, actor=reader(), access="read").kind == "allow"
    assert verdict(READ, changes="deny").kind == "allow"


def test_a_write_is_allowed_where_everything_admits_it() -> None:
    assert verdict(WRITE).kind == "allow"


def test_a_write_is_refused_on_a_source_that_is_read_only() -> None:
    refused = verdict(WRITE, access="read")
    assert refused.reason == "The source is read-only for callers"


def test_a_write_is_refused_where_the_source_denies_changes() -> None:
    refused = verdict(WRITE, changes="deny")
    assert refused.reason == "The source refuses statements that change data"


def test_a_write_needs_the_scope_for_writing() -> None:
    refused = verdict(WRITE, actor=reader())
    assert refused.code == Code.POLICY_SCOPE.value
    assert refused.reason == (
        "Statements that change data need the scope readWrite; the caller has readOnly"
    )


@pytest.mark.parametrize("judgement", [DROP, EVERY_ROW])
def test_what_cannot_be_undone_needs_a_confirmation(judgement: Judgement) -> None:
    asked = verdict(judgement)
    assert (asked.kind, asked.code) == ("confirm", Code.POLICY_CONFIRM.value)


@pytest.mark.parametrize("judgement", [DROP, EVERY_ROW])
def test_what_was_confirmed_still_needs_a_person(judgement: Judgement) -> None:
    asked = verdict(judgement, confirmed=True)
    assert (asked.kind, asked.rule) == ("ask", "sql.irreversible")


def test_a_change_of_every_row_follows_the_source_s_setting() -> None:
    assert verdict(EVERY_ROW, unqualified="allow").kind == "allow"
    assert verdict(EVERY_ROW, unqualified="deny", confirmed=True).rule == "source.unqualified"


def test_what_cannot_be_undone_needs_the_scope_that_the_source_names() -> None:
    refused = verdict(DROP, destructive_scope="fullAccess", confirmed=True)
    assert (refused.kind, refused.code) == ("deny", Code.POLICY_SCOPE.value)
    full = msgspec.structs.replace(ACTOR, scope=Scope.FULL_ACCESS)
    assert verdict(DROP, actor=full, destructive_scope="fullAccess", confirmed=True).kind == "ask"


def test_a_tool_for_writing_is_refused_on_a_source_that_is_read_only() -> None:
    refused = verdict(READ, scope=Scope.READ_WRITE, access="read")
    assert (refused.kind, refused.code) == ("deny", Code.POLICY_READ_ONLY.value)


@pytest.mark.parametrize("settings", [{"agents": "ask"}, {"approval_for": "everything"}])
def test_no_one_is_asked_about_names(settings: dict[str, str]) -> None:
    assert verdict(METADATA, **settings).kind == "allow"


def test_a_source_is_visible_to_whom_it_admits() -> None:
    for settings in ({"access": "none"}, {"agents": "deny"}):
        assert not is_visible(ACTOR, msgspec.structs.replace(SOURCE, **settings))
    assert is_visible(reader(), SOURCE)


@pytest.mark.parametrize("judgement", [ADMIN, SESSION, GARBLED])
def test_what_goes_beyond_writing_is_never_allowed(judgement: Judgement) -> None:
    full = msgspec.structs.replace(ACTOR, scope=Scope.FULL_ACCESS)
    refused = verdict(judgement, actor=full)
    assert refused == Verdict(
        "deny", judgement.rule, judgement.reason, judgement.code, judgement.hint
    )


def test_a_blocked_source_refuses_before_the_statement_is_looked_at() -> None:
    refused = verdict(GARBLED, access="none")
    assert refused.reason == "The source is closed to all callers"


def test_the_allowlist_refuses_before_anything_else() -> None:
    outsider = msgspec.structs.replace(ACTOR, sources=frozenset({"other"}), kind="agent")
    for settings in ({"access": "none"}, {"agents": "deny"}, {}):
        refused = verdict(GARBLED, actor=outsider, **settings)
        assert refused.reason == "The caller's token does not include this source"


def test_the_allowlist_refuses_before_scopes() -> None:
    outsider = msgspec.structs.replace(reader(), sources=frozenset({"other"}))
    refused = verdict(WRITE, actor=outsider, scope=Scope.FULL_ACCESS)
    assert refused.code == Code.POLICY_SOURCE.value
    assert refused.reason == "The caller's token does not include this source"


def test_an_allowlist_that_names_the_source_admits() -> None:
    named = msgspec.structs.replace(ACTOR, sources=frozenset({"shop"}))
    assert verdict(READ, actor=named).kind == "allow"


def test_the_scope_of_the_tool_refuses_before_the_statement_is_looked_at() -> None:
    refused = verdict(GARBLED, actor=reader(), scope=Scope.READ_WRITE)
    assert (refused.code, refused.rule) == (Code.POLICY_SCOPE.value, "actor.scope")


def test_an_unreadable_statement_keeps_its_own_code() -> None:
    refused = verdict(GARBLED, actor=reader(), access="read")
    assert (refused.code, refused.hint) == ("sql.unreadable", "Mend it.")


def test_a_source_closed_to_agents_admits_people() -> None:
    person = msgspec.structs.replace(ACTOR, kind="human")
    assert verdict(READ, agents="deny").reason == "The source does not admit agents"
    assert verdict(READ, actor=person, agents="deny").kind == "allow"


@pytest.mark.parametrize(
    ("settings", "judgement", "kind"),
    [
        ({"agents": "ask"}, READ, "ask"),
        ({"approval_for": "writes"}, READ, "allow"),
        ({"approval_for": "writes"}, WRITE, "ask"),
        ({"approval_for": "everything"}, READ, "ask"),
        ({"approval_for": "writes"}, WRITE, "ask"),
        ({"approval_for": "everything"}, READ, "ask"),
        ({"approval_for": "nothing"}, WRITE, "allow"),
    ],
)
def test_a_person_is_asked_where_the_source_says_so(
    settings: dict[str, str], judgement: Judgement, kind: str
) -> None:
    assert verdict(judgement, **settings).kind == kind


def test_every_verdict_but_allow_has_a_code_and_a_hint() -> None:
    for judgement in (WRITE, EVERY_ROW, DROP, ADMIN, SESSION, GARBLED):
        for actor in (ACTOR, reader()):
            for confirmed in (True, False):
                given = verdict(judgement, actor=actor, confirmed=confirmed)
                assert given.kind == "allow" or (Code(given.code) and given.hint)


@pytest.mark.parametrize("judgement", [READ, WRITE, EVERY_ROW, DROP, ADMIN, GARBLED])
def test_explaining_gives_the_same_verdict_with_the_rules_looked_at(judgement: Judgement) -> None:
    explanation = explain(ACTOR, SOURCE, Scope.READ_ONLY, judgement)
    assert explanation.verdict == verdict(judgement)
    assert [found.rule for found in explanation.findings] == [
        rule.name for rule in RULES[: len(explanation.findings)]
    ]
    assert all(found.verdict is None for found in explanation.findings[:-1])
    assert (len(explanation.findings) == len(RULES)) or explanation.findings[-1].verdict is not None


def test_a_kept_verdict_is_for_its_own_caller_source_and_tool_however_often_it_is_asked():
    """Verdicts on reads and plain changes are kept: each must be the one that the rules give."""
    reads = Judgement(Effect.READ, "select", "It reads")
    opened = Source("1", "shop", "sqlite:///a.db", "sqlite", "sqlite")
    blocked = msgspec.structs.replace(opened, access="none")
    known = Actor("tok_1", "reader", Scope.READ_ONLY, frozenset({"shop"}))
    unlisted = msgspec.structs.replace(known, sources=frozenset({"other"}))
    for _ in range(2):
        assert evaluate(known, opened, Scope.READ_ONLY, reads).kind == "allow"
        assert evaluate(known, blocked, Scope.READ_ONLY, reads).kind == "deny"
        assert evaluate(unlisted, opened, Scope.READ_ONLY, reads).kind == "deny"
        assert evaluate(known, opened, Scope.READ_WRITE, reads).kind == "deny"
        assert evaluate(known, opened, Scope.READ_ONLY, reads, confirmed=True).kind == "deny"
        assert evaluate(known, opened, Scope.READ_ONLY, WRITE).kind == "deny"
        assert evaluate(ACTOR, SOURCE, Scope.READ_WRITE, WRITE).kind == "allow"
        assert evaluate(ACTOR, SOURCE, Scope.READ_WRITE, EVERY_ROW).kind == "confirm"
        assert evaluate(ACTOR, opened, Scope.READ_ONLY, WRITE).kind == "deny"
        assert is_visible(known, opened)
        assert not is_visible(unlisted, opened)
    for number in range(3_000):  # callers that come and go, whose memory is used again
        passing = Actor(f"tok_{number}", "x", Scope.READ_ONLY, frozenset({"shop", str(number)}))
        assert evaluate(passing, opened, Scope.READ_ONLY, reads).kind == "allow"
        assert evaluate(unlisted, opened, Scope.READ_ONLY, reads).kind == "deny"
