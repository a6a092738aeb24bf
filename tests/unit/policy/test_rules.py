"""Each rule by itself: the case that it alone refuses, and the cases that it lets pass."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from tidegate.errors import ERRORS, Code
from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.changes import PUTS_BACK
from tidegate.model.requests import METADATA
from tidegate.model.source_settings import RunAs
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Administration, Effect, Judgement
from tidegate.policy.explanation import explain
from tidegate.policy.rules import RULES, PolicyInput
from tidegate.policy.verdict import ALLOWED, evaluate

AGENT = Actor("t1", "agent", Scope.READ_WRITE)
PERSON = Actor("p1", "ann", Scope.READ_WRITE, kind="human")
READER = Actor("t2", "reader", Scope.READ_ONLY)
OWNER = Actor("t3", "owner", Scope.FULL_ACCESS)
SHOP = Source("s1", "shop", "sqlite:///shop.db", "sqlite", "sqlite", access="write")
VIEWER = structs.replace(PERSON, roles=(RoleGrant("viewer"),))
READ = Judgement(Effect.READ, "read", "It reads")
WRITE = Judgement(Effect.WRITE, "node.Insert", "It inserts")
EVERY = Judgement(Effect.WRITE, "node.Update", "It changes every row", unqualified=True)
DROP = Judgement(Effect.DESTRUCTIVE, "node.Drop", "It drops a table")
SESSION = Judgement(Effect.SESSION, "root.SET", "It sets")
ADMIN = Judgement(Effect.ADMIN, "root.GRANT", "It grants", "sql.admin", "Ask.")
GRANT = Judgement(
    Effect.ADMIN, "admin.rights", "It grants", administration=Administration(in_transaction=False)
)
DROP_USER = Judgement(
    Effect.ADMIN, "admin.account", "It drops", administration=Administration(drops=True)
)
UNKNOWN = Judgement(Effect.UNKNOWN, "parser.syntax", "It cannot be read", "sql.unreadable", "Mend.")
NO_CODE = Judgement(Effect.UNKNOWN, "parser.depth", "It is too deep")

ALL = (READ, WRITE, EVERY, DROP, SESSION, ADMIN, UNKNOWN)


def said(
    rule: str, judgement: Judgement = READ, actor: Actor = AGENT, *,
    scope: Scope = Scope.READ_ONLY, confirmed: bool = False, reads_only: bool = False,
    **source: Any,
) -> Any:  # fmt: skip
    """What one rule says of a case."""
    (check,) = (each.check for each in RULES if each.name == rule)
    changed = structs.replace(SHOP, **source)
    return check(PolicyInput(actor, changed, scope, judgement, confirmed, reads_only))


def word(*case: Any, **more: Any) -> str:
    verdict = said(*case, **more)
    return "" if verdict is None else f"{verdict.kind} {verdict.rule} {verdict.code}"


@pytest.mark.parametrize(
    ("caller", "judgement", "way"),
    [
        ("bridge", WRITE, "set `bridge.scope` to `readWrite` in the settings file"),
        ("bridge-a1", DROP, "set `bridge.scope` to `fullAccess` in the settings file"),
        ("stdio", WRITE, "start the server with --allow-writes"),
        ("stdio", DROP, "Use a token with a wider scope."),
        ("t2", WRITE, "Use a token with a wider scope."),
    ],
)
def test_a_refused_scope_names_the_way_that_the_caller_has(
    caller: str, judgement: Judgement, way: str
) -> None:
    actor = Actor(caller, caller, Scope.READ_ONLY)
    rule = "actor.destructive" if judgement is DROP else "actor.writes"
    verdict = said(rule, judgement, actor, destructive_scope="fullAccess")
    assert verdict is not None and verdict.hint is not None
    assert way in verdict.hint


@pytest.mark.parametrize(
    ("agents", "actor", "refused"),
    [
        ("deny", AGENT, "deny source.agents policy.blocked"),
        ("deny", PERSON, ""),
        ("ask", AGENT, ""),
        ("allow", AGENT, ""),
    ],
)
def test_a_source_may_be_closed_to_agents(agents: str, actor: Actor, refused: str) -> None:
    assert word("source.agents", actor=actor, agents=agents) == refused


def test_a_source_may_be_closed_to_all() -> None:
    assert word("source.access", access="none") == "deny source.access policy.blocked"
    assert word("source.access", access="read") == word("source.access", access="write") == ""


@pytest.mark.parametrize(
    ("sources", "tags", "refused"),
    [(None, None, False), ({"shop"}, None, False), ({"other"}, None, True), (set(), None, True),
     (None, {"prod"}, False), (None, {"test"}, True), ({"other"}, {"prod"}, False),
     ({"other"}, {"test"}, True)],
)  # fmt: skip
def test_a_token_has_the_sources_and_tags_that_it_lists(
    sources: set[str] | None, tags: set[str] | None, refused: bool
) -> None:
    actor = structs.replace(
        AGENT,
        sources=None if sources is None else frozenset(sources),
        tags=None if tags is None else frozenset(tags),
    )
    expected = "deny actor.sources policy.source" if refused else ""
    assert word("actor.sources", actor=actor, tags=("prod",)) == expected


@pytest.mark.parametrize("actor", [READER, AGENT, OWNER])
@pytest.mark.parametrize("scope", list(Scope))
def test_a_tool_needs_its_scope_and_says_which(actor: Actor, scope: Scope) -> None:
    order = [Scope.READ_ONLY, Scope.READ_WRITE, Scope.FULL_ACCESS]
    verdict = said("actor.scope", actor=actor, scope=scope)
    if order.index(actor.scope) >= order.index(scope):
        assert verdict is None
    else:
        assert (verdict.kind, verdict.code) == ("deny", Code.POLICY_SCOPE.value)
        assert scope.value in verdict.reason and actor.scope.value in verdict.reason


def test_a_tool_for_changes_needs_a_source_that_takes_them() -> None:
    refused = "deny source.access policy.read_only"
    for scope, access, expected in (
        (Scope.READ_ONLY, "read", ""), (Scope.READ_WRITE, "write", ""),
        (Scope.READ_WRITE, "read", refused), (Scope.FULL_ACCESS, "read", refused),
    ):  # fmt: skip
        assert word("source.tools", scope=scope, access=access) == expected


def test_what_cannot_be_read_is_refused_with_the_judge_s_own_words() -> None:
    verdict = said("sql.readable", UNKNOWN)
    assert (verdict.kind, verdict.rule, verdict.reason) == ("deny", UNKNOWN.rule, UNKNOWN.reason)
    assert (verdict.code, verdict.hint) == ("sql.unreadable", "Mend.")
    assert said("sql.readable", NO_CODE).code == Code.SQL_UNKNOWN.value
    assert [said("sql.readable", each) for each in ALL if each is not UNKNOWN] == [None] * 6


def test_what_neither_reads_nor_changes_is_refused_with_the_judge_s_own_words() -> None:
    verdict = said("sql.effect", ADMIN)
    assert (verdict.kind, verdict.rule, verdict.reason) == ("deny", ADMIN.rule, ADMIN.reason)
    assert (verdict.code, verdict.hint) == ("sql.admin", "Ask.")
    verdict = said("sql.effect", SESSION)
    assert verdict.code == Code.POLICY_DENIED.value
    assert verdict.hint == ERRORS[Code.POLICY_DENIED].hint
    assert [said("sql.effect", each) for each in (READ, WRITE, EVERY, DROP)] == [None] * 4


def test_what_administers_in_a_known_way_is_for_later_rules() -> None:
    assert said("sql.effect", GRANT) is None
    higher = structs.replace(GRANT, effect=Effect.UNKNOWN)
    assert said("sql.effect", higher) is not None, "the database raised it"
    for access, refused in (("read", True), ("write", True), ("admin", False)):
        assert bool(word("source.administration", GRANT, OWNER, access=access)) is refused
    for actor, refused in ((READER, True), (AGENT, True), (OWNER, False)):
        assert bool(word("actor.administration", GRANT, actor, access="admin")) is refused
    assert [word("source.administration", each) for each in (READ, WRITE, EVERY, DROP)] == [""] * 4


def test_a_source_with_roles_refuses_what_could_leave_them() -> None:
    outside = structs.replace(WRITE, refuses_transaction=True)
    mapped = {"access": "admin", "run_as": RunAs(role="clerk")}
    for judgement in (DROP_USER, GRANT, outside):
        assert word("source.run_as", judgement, OWNER, **mapped).startswith("deny source.run_as")
        assert word("source.run_as", judgement, OWNER, access="admin") == ""
    for judgement in (READ, WRITE, EVERY, DROP):
        assert word("source.run_as", judgement, OWNER, **mapped) == ""


def test_a_tool_for_reads_refuses_all_else() -> None:
    refused = "deny tool.reads policy.read_only"
    assert [word("tool.reads", each, reads_only=True) for each in ALL] == ["", *[refused] * 6]
    assert [word("tool.reads", each) for each in ALL] == [""] * 7


@pytest.mark.parametrize(
    ("judgement", "confirmed", "unqualified", "refused"),
    [
        (READ, True, "confirm", True),
        (WRITE, True, "confirm", True),
        (READ, False, "confirm", False),
        (DROP, True, "confirm", False),
        (EVERY, True, "confirm", False),
        (EVERY, True, "deny", False),
        (EVERY, True, "allow", True),
        (METADATA, True, "confirm", False),
    ],
)
def test_a_confirmed_statement_that_needs_none_is_refused(
    judgement: Judgement, confirmed: bool, unqualified: str, refused: bool
) -> None:
    expected = f"deny sql.confirmable {Code.CONFIRM_NEEDLESS.value}" if refused else ""
    case = word("sql.confirmable", judgement, confirmed=confirmed, unqualified=unqualified)
    assert case == expected


def test_a_source_takes_changes_only_where_it_says_so() -> None:
    for access in ("none", "read", "write"):
        for judgement in (READ, WRITE, DROP):
            refused = judgement is not READ and access != "write"
            expected = "deny source.access policy.read_only" if refused else ""
            assert word("source.writes", judgement, access=access) == expected
    for changes in ("allow", "deny"):
        for judgement in (READ, WRITE, DROP):
            refused = judgement is not READ and changes == "deny"
            expected = "deny source.changes policy.read_only" if refused else ""
            assert word("source.changes", judgement, changes=changes) == expected


def test_a_change_needs_a_token_that_may_write() -> None:
    assert word("actor.writes", WRITE, READER) == "deny actor.writes policy.scope"
    assert word("actor.writes", READ, READER) == ""
    assert word("actor.writes", DROP, AGENT) == word("actor.writes", WRITE, OWNER) == ""
    reason = said("actor.writes", WRITE, READER).reason
    assert "readWrite" in reason and "readOnly" in reason


@pytest.mark.parametrize(
    ("role", "judgement", "refused"),
    [
        ("viewer", READ, False),
        ("viewer", PUTS_BACK, True),
        ("viewer", WRITE, True),
        ("approver", PUTS_BACK, False),
        ("approver", WRITE, True),
        ("approver", DROP, True),
        ("admin", PUTS_BACK, False),
        ("admin", DROP, False),
    ],
)
def test_an_operator_changes_what_its_role_on_the_source_covers(
    role: Any, judgement: Judgement, refused: bool
) -> None:
    expected = "deny actor.role policy.scope" if refused else ""
    elsewhere = RoleGrant("admin", frozenset({"other"}))
    for here in (RoleGrant(role), RoleGrant(role, frozenset({"shop", "desk"}))):
        actor = structs.replace(PERSON, roles=(elsewhere, here))
        assert word("actor.role", judgement, actor) == expected
    assert word("actor.role", judgement, structs.replace(PERSON, roles=(elsewhere,))) == (
        "" if judgement is READ else "deny actor.role policy.scope"
    )
    assert word("actor.role", judgement, AGENT) == ""


@pytest.mark.parametrize(
    ("judgement", "actor", "needed", "refused"),
    [
        (DROP, AGENT, "fullAccess", True),
        (DROP, OWNER, "fullAccess", False),
        (DROP, AGENT, "readWrite", False),
        (DROP, READER, "readWrite", True),
        (WRITE, AGENT, "fullAccess", False),
        (EVERY, AGENT, "fullAccess", False),
    ],
)
def test_a_destructive_statement_needs_the_scope_that_the_source_names(
    judgement: Judgement, actor: Actor, needed: str, refused: bool
) -> None:
    expected = "deny actor.destructive policy.scope" if refused else ""
    assert word("actor.destructive", judgement, actor, destructive_scope=needed) == expected
    if refused:
        reason = said("actor.destructive", judgement, actor, destructive_scope=needed).reason
        assert needed in reason and actor.scope.value in reason


def test_a_change_of_every_row_may_be_refused_for_good() -> None:
    assert word("source.unqualified", EVERY, unqualified="deny") == (
        "deny source.unqualified policy.denied"
    )
    assert said("source.unqualified", EVERY, unqualified="deny").hint.startswith("Add a WHERE")
    for judgement, setting in ((EVERY, "confirm"), (EVERY, "allow"), (WRITE, "deny")):
        assert word("source.unqualified", judgement, unqualified=setting) == ""


@pytest.mark.parametrize(
    ("judgement", "confirmed", "unqualified", "asked"),
    [
        (DROP, False, "confirm", "Destructive statements"),
        (DROP, True, "confirm", ""),
        (EVERY, False, "confirm", "The statement changes every row"),
        (EVERY, True, "confirm", ""),
        (EVERY, False, "allow", ""),
        (WRITE, False, "confirm", ""),
        (READ, False, "confirm", ""),
        (GRANT, False, "confirm", ""),
        (DROP_USER, False, "confirm", "What drops an account"),
        (DROP_USER, True, "confirm", ""),
    ],
)
def test_what_cannot_be_undone_asks_for_the_phrase(
    judgement: Judgement, confirmed: bool, unqualified: str, asked: str
) -> None:
    verdict = said("sql.irreversible", judgement, confirmed=confirmed, unqualified=unqualified)
    if not asked:
        assert verdict is None
    else:
        assert (verdict.kind, verdict.rule) == ("confirm", judgement.rule)
        assert verdict.reason.startswith(asked)
        assert (verdict.code, verdict.hint) == (
            Code.POLICY_CONFIRM.value,
            ERRORS[Code.POLICY_CONFIRM].hint,
        )


@pytest.mark.parametrize(
    ("judgement", "actor", "settings", "rule"),
    [
        (READ, AGENT, {"agents": "ask"}, "source.agents"),
        (READ, PERSON, {"agents": "ask"}, ""),
        (WRITE, PERSON, {"agents": "ask", "approval_for": "writes"}, "source.approval_for"),
        (READ, AGENT, {"approval_for": "everything"}, "source.approval_for"),
        (WRITE, AGENT, {"approval_for": "writes"}, "source.approval_for"),
        (READ, AGENT, {"approval_for": "writes"}, ""),
        (WRITE, AGENT, {"approval_for": "nothing"}, ""),
        (DROP, AGENT, {"approval_for": "nothing"}, "sql.irreversible"),
        (EVERY, AGENT, {}, "sql.irreversible"),
        (EVERY, AGENT, {"unqualified": "allow"}, ""),
        (METADATA, AGENT, {"agents": "ask", "approval_for": "everything"}, ""),
        (GRANT, OWNER, {"approval_for": "nothing", "unattended": "allow"}, "sql.administration"),
        (GRANT, PERSON, {"agents": "ask"}, "sql.administration"),
    ],
)
def test_a_person_is_asked_by_the_rule_that_says_so(
    judgement: Judgement, actor: Actor, settings: dict[str, str], rule: str
) -> None:
    expected = f"ask {rule} {Code.APPROVAL_NEEDED.value}" if rule else ""
    assert word("source.approval", judgement, actor, confirmed=True, **settings) == expected


def test_every_rule_refuses_in_the_decision_too() -> None:
    """A case for each rule that no rule before it refuses."""
    cases: dict[str, tuple[Judgement, Actor, Scope, dict[str, Any], dict[str, Any]]] = {
        "actor.sources": (
            READ, structs.replace(AGENT, sources=frozenset({"x"})), Scope.READ_ONLY, {}, {},
        ),
        "source.agents": (READ, AGENT, Scope.READ_ONLY, {"agents": "deny"}, {}),
        "source.access": (READ, AGENT, Scope.READ_ONLY, {"access": "none"}, {}),
        "actor.scope": (READ, READER, Scope.READ_WRITE, {}, {}),
        "source.tools": (READ, AGENT, Scope.READ_WRITE, {"access": "read"}, {}),
        "sql.readable": (UNKNOWN, AGENT, Scope.READ_ONLY, {}, {}),
        "sql.effect": (ADMIN, OWNER, Scope.READ_ONLY, {}, {}),
        "tool.reads": (WRITE, AGENT, Scope.READ_ONLY, {}, {"reads_only": True}),
        "sql.confirmable": (READ, AGENT, Scope.READ_ONLY, {}, {"confirmed": True}),
        "source.writes": (WRITE, AGENT, Scope.READ_ONLY, {"access": "read"}, {}),
        "source.changes": (WRITE, AGENT, Scope.READ_ONLY, {"changes": "deny"}, {}),
        "source.statements": (
            WRITE, AGENT, Scope.READ_ONLY, {}, {"statements": StatementRules("shut", ())},
        ),
        "actor.writes": (WRITE, READER, Scope.READ_ONLY, {}, {}),
        "actor.role": (WRITE, VIEWER, Scope.READ_ONLY, {}, {}),
        "actor.destructive": (
            DROP, AGENT, Scope.READ_ONLY, {"destructive_scope": "fullAccess"}, {},
        ),
        "source.administration": (GRANT, OWNER, Scope.READ_ONLY, {}, {}),
        "actor.administration": (GRANT, AGENT, Scope.READ_ONLY, {"access": "admin"}, {}),
        "source.run_as": (
            GRANT, OWNER, Scope.READ_ONLY, {"access": "admin", "run_as": RunAs("r")}, {},
        ),
        "source.unqualified": (EVERY, AGENT, Scope.READ_ONLY, {"unqualified": "deny"}, {}),
        "sql.irreversible": (DROP, AGENT, Scope.READ_ONLY, {}, {}),
        "source.approval": (WRITE, AGENT, Scope.READ_ONLY, {"approval_for": "writes"}, {}),
    }  # fmt: skip
    assert list(cases) == [rule.name for rule in RULES]
    for name, (judgement, actor, scope, settings, flags) in cases.items():
        source = structs.replace(SHOP, **settings)
        verdict = evaluate(actor, source, scope, judgement, **flags)
        explained = explain(actor, source, scope, judgement, **flags)
        assert verdict.kind != "allow", name
        assert explained.verdict == verdict == explained.findings[-1].verdict
        assert explained.findings[-1].rule == name
        assert all(finding.verdict is None for finding in explained.findings[:-1])
    assert evaluate(AGENT, SHOP, Scope.READ_WRITE, WRITE) == ALLOWED
    assert len(explain(AGENT, SHOP, Scope.READ_WRITE, WRITE).findings) == len(RULES)


BY_VERB = StatementRules("some", (("insert", "allow"), ("delete", "ask"), ("exec", "deny")))


@pytest.mark.parametrize(
    ("verb", "kind"),
    [("insert", "allow"), ("delete", "ask"), ("exec", "deny"), ("unheard", "deny"), ("", "deny")],
)
def test_rules_for_classes_decide_by_the_verb_and_the_strictest_on_any_other(
    verb: str, kind: str
) -> None:
    judgement = structs.replace(WRITE, verb=verb)
    verdict = evaluate(AGENT, SHOP, Scope.READ_ONLY, judgement, statements=BY_VERB)
    assert verdict.kind == kind
    assert kind == "allow" or verdict.rule == "source.statements"
    read = evaluate(AGENT, SHOP, Scope.READ_ONLY, READ, statements=BY_VERB)
    assert read == ALLOWED


@pytest.mark.parametrize("judgement", [EVERY, DROP])
def test_rules_for_classes_add_no_question_of_confirmation(judgement: Judgement) -> None:
    open_to_all = StatementRules("open", ((judgement.verb, "allow"),))
    assert evaluate(AGENT, SHOP, Scope.READ_ONLY, judgement).kind == "confirm"
    assert evaluate(AGENT, SHOP, Scope.READ_ONLY, judgement, statements=open_to_all) == ALLOWED
    stricter = structs.replace(SHOP, unqualified="deny", destructive_scope="fullAccess")
    refused = evaluate(AGENT, stricter, Scope.READ_ONLY, judgement, statements=open_to_all)
    assert refused.kind == "deny"
