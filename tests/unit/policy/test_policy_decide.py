"""Verdicts: which rule speaks first, and what it tells the caller."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tidegate.actors import Actor, Scope
from tidegate.errors import Code
from tidegate.permits import Verdict
from tidegate.policy.decide import decide, is_visible
from tidegate.policy.explain import explain
from tidegate.policy.requests import METADATA
from tidegate.policy.rules import RULES
from tidegate.sources import Source
from tidegate.statements import Effect, Judgement

ACTOR = Actor("t1", "agent", Scope.READ_WRITE)
SOURCE = Source("s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite", external_access="readWrite")
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
    return decide(actor, changed, scope, judgement, confirmed=confirmed)


def reader() -> Actor:
    return msgspec.structs.replace(ACTOR, scope=Scope.READ_ONLY)


def test_a_read_is_allowed() -> None:
    assert verdict(READ).kind == "allow"
    assert verdict(READ, actor=reader(), external_access="readOnly").kind == "allow"
    assert verdict(READ, safe_mode="readOnly").kind == "allow"


def test_a_write_is_allowed_where_everything_admits_it() -> None:
    assert verdict(WRITE).kind == "allow"


def test_a_write_is_refused_on_a_source_that_is_read_only() -> None:
    refused = verdict(WRITE, external_access="readOnly")
    assert refused.reason == "Connection is read-only for external clients"


def test_a_write_is_refused_in_the_safe_mode_for_reading() -> None:
    refused = verdict(WRITE, safe_mode="readOnly")
    assert refused.reason == "Cannot execute write queries: connection is read-only"


def test_a_write_needs_the_scope_for_writing() -> None:
    refused = verdict(WRITE, actor=reader())
    assert refused.code == Code.POLICY_SCOPE.value
    assert refused.reason == "Principal lacks tools:write scope required for write queries"


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
    refused = verdict(READ, scope=Scope.READ_WRITE, external_access="readOnly")
    assert (refused.kind, refused.code) == ("deny", Code.POLICY_READ_ONLY.value)


@pytest.mark.parametrize("settings", [{"ai_policy": "askEachTime"}, {"safe_mode": "safeModeFull"}])
def test_nobody_is_asked_about_names(settings: dict[str, str]) -> None:
    assert verdict(METADATA, **settings).kind == "allow"


def test_a_source_is_visible_to_whom_it_admits() -> None:
    for settings in ({"external_access": "blocked"}, {"ai_policy": "never"}):
        assert not is_visible(ACTOR, msgspec.structs.replace(SOURCE, **settings))
    assert is_visible(reader(), SOURCE)


@pytest.mark.parametrize("judgement", [ADMIN, SESSION, GARBLED])
def test_what_goes_beyond_writing_is_never_allowed(judgement: Judgement) -> None:
    full = msgspec.structs.replace(ACTOR, scope=Scope.FULL_ACCESS)
    refused = verdict(judgement, actor=full)
    assert refused == Verdict(
        "deny", judgement.rule, judgement.reason, judgement.code, judgement.hint
    )


def test_a_blocked_source_refuses_before_anything_else() -> None:
    outsider = msgspec.structs.replace(ACTOR, sources=frozenset({"other"}))
    refused = verdict(GARBLED, actor=outsider, external_access="blocked")
    assert refused.reason == "External access is disabled for this connection"


def test_the_allowlist_refuses_before_scopes() -> None:
    outsider = msgspec.structs.replace(reader(), sources=frozenset({"other"}))
    refused = verdict(WRITE, actor=outsider, scope=Scope.FULL_ACCESS)
    assert refused.code == Code.POLICY_SOURCE.value
    assert refused.reason == "Token does not have access to this connection"


def test_an_allowlist_that_names_the_source_admits() -> None:
    named = msgspec.structs.replace(ACTOR, sources=frozenset({"shop"}))
    assert verdict(READ, actor=named).kind == "allow"


def test_the_scope_of_the_tool_refuses_before_the_statement_is_looked_at() -> None:
    refused = verdict(GARBLED, actor=reader(), scope=Scope.READ_WRITE)
    assert (refused.code, refused.rule) == (Code.POLICY_SCOPE.value, "actor.scope")


def test_an_unreadable_statement_keeps_its_own_code() -> None:
    refused = verdict(GARBLED, actor=reader(), external_access="readOnly")
    assert (refused.code, refused.hint) == ("sql.unreadable", "Mend it.")


def test_a_source_closed_to_agents_admits_people() -> None:
    person = msgspec.structs.replace(ACTOR, kind="human")
    assert verdict(READ, ai_policy="never").reason == "AI access is disabled for this connection"
    assert verdict(READ, actor=person, ai_policy="never").kind == "allow"


@pytest.mark.parametrize(
    ("settings", "judgement", "kind"),
    [
        ({"ai_policy": "askEachTime"}, READ, "ask"),
        ({"safe_mode": "alert"}, READ, "allow"),
        ({"safe_mode": "alert"}, WRITE, "ask"),
        ({"safe_mode": "alertFull"}, READ, "ask"),
        ({"safe_mode": "safeMode"}, WRITE, "ask"),
        ({"safe_mode": "safeModeFull"}, READ, "ask"),
        ({"safe_mode": "silent"}, WRITE, "allow"),
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
