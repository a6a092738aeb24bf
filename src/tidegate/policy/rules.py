"""The policy rules, in the order in which they are checked.

`verdict.py` stops at the first rule with a verdict; `explanation.py` lists them all. The order is
part of the contract with callers: a caller whose token does not include a source learns nothing of
it, not even that it exists, and an unreadable statement is reported before any missing scope.

Reasons are in neutral words. A surface whose document has texts of its own finds the rule's id in
the error's `details["rule"]` and renders its own.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.errors import ERRORS, Code
from tidegate.model.actors import Actor, Scope, holds
from tidegate.model.changes import PUTS_BACK
from tidegate.model.decisions import Verdict
from tidegate.model.sources import Source
from tidegate.model.statement_rules import StatementRules
from tidegate.model.statements import Effect, Judgement
from tidegate.policy.allowlist import admits

_CHANGES = frozenset({Effect.WRITE, Effect.DESTRUCTIVE})
ADMINISTRATION = "sql.administration"
"""The rule by which a person must approve each statement that administers the database."""
_READ_ONLY = "The source is read-only for callers"
STATEMENT_RULES = "source.statements"
"""The rule by which an operator refuses statements of a class, or has a person approve them."""

ALLOWLIST_RULE = "actor.sources"
NOT_LISTED = "The caller's token does not include this source"
"""What a caller with an allowlist reads of a source that is not on it, whether it exists or not."""


class PolicyInput(msgspec.Struct, frozen=True):
    """One question put to the rules.

    `scope` is what the tool demands whatever the statement does; `confirmed` shows that the
    phrase of confirmation was typed, `reads_only` that the tool is for reading. `statements` are
    the rules for classes of statements, where the source has some.
    """

    actor: Actor
    source: Source
    scope: Scope
    judgement: Judgement
    confirmed: bool = False
    reads_only: bool = False
    statements: StatementRules | None = None


class Rule(msgspec.Struct, frozen=True):
    """A named test of a case: a verdict ends the search, None lets the next rule speak."""

    name: str
    description: str
    check: Callable[[PolicyInput], Verdict | None]


def _deny(rule: str, code: Code, reason: str, hint: str | None = None) -> Verdict:
    return Verdict("deny", rule, reason, code.value, hint or ERRORS[code].hint)


def _agents_allowed(case: PolicyInput) -> Verdict | None:
    if case.source.agents == "deny" and case.actor.kind == "agent":
        return _deny("source.agents", Code.POLICY_BLOCKED, "The source does not admit agents")
    return None


def _blocked(case: PolicyInput) -> Verdict | None:
    if case.source.access == "none":
        return _deny("source.access", Code.POLICY_BLOCKED, "The source is closed to all callers")
    return None


def _allowlist(case: PolicyInput) -> Verdict | None:
    if not admits(case.actor, case.source):
        return _deny(ALLOWLIST_RULE, Code.POLICY_SOURCE, NOT_LISTED)
    return None


def _tool_scope(case: PolicyInput) -> Verdict | None:
    if not case.actor.scope.covers(case.scope):
        return _deny(
            "actor.scope",
            Code.POLICY_SCOPE,
            f"This tool requires the scope {case.scope.value}; the caller has"
            f" {case.actor.scope.value}",
            _wider(case, case.scope),
        )
    return None


def _wider(case: PolicyInput, needed: Scope) -> str | None:
    """How a caller without a token of its own gets a wider scope; None if it has a token."""
    caller = case.actor.id.partition("-")[0]
    if caller == "bridge":
        return f"The operator can set `bridge.scope` to `{needed.value}` in the settings file."
    if caller == "stdio" and Scope.READ_WRITE.covers(needed):
        return "The operator can start the server with --allow-writes."
    return None


def _tool_access(case: PolicyInput) -> Verdict | None:
    if case.scope is Scope.READ_ONLY or case.source.writable:
        return None
    return _deny("source.access", Code.POLICY_READ_ONLY, _READ_ONLY)


def _unreadable(case: PolicyInput) -> Verdict | None:
    judgement = case.judgement
    if judgement.effect is not Effect.UNKNOWN:
        return None
    code = judgement.code or Code.SQL_UNKNOWN.value
    return Verdict("deny", judgement.rule, judgement.reason, code, judgement.hint)


def _admin_statement(case: PolicyInput) -> Verdict | None:
    judgement = case.judgement
    if judgement.effect is Effect.READ or judgement.effect in _CHANGES:
        return None
    if judgement.effect is Effect.ADMIN and judgement.administration is not None:
        return None
    code = judgement.code or Code.POLICY_DENIED.value
    hint = judgement.hint or ERRORS[Code.POLICY_DENIED].hint
    return Verdict("deny", judgement.rule, judgement.reason, code, hint)


def _tool_reads(case: PolicyInput) -> Verdict | None:
    if case.reads_only and case.judgement.effect is not Effect.READ:
        return _deny(
            "tool.reads", Code.POLICY_READ_ONLY, "This tool only runs statements that read data"
        )
    return None


def _confirmable(case: PolicyInput) -> Verdict | None:
    judgement = case.judgement
    if not case.confirmed or judgement.metadata or _must_confirm(case) is not None:
        return None
    if judgement.unqualified and case.source.unqualified == "deny":
        return None  # refused as that, further down
    if _unqualified(case) is not None:
        return None  # refused for what it is: no other tool takes it
    return _deny(
        "sql.confirmable",
        Code.CONFIRM_NEEDLESS,
        "The statement needs no confirmation, and this tool only runs statements that do",
    )


def _source_writes(case: PolicyInput) -> Verdict | None:
    if case.judgement.effect is Effect.READ:
        return None
    if not case.source.writable:
        return _deny("source.access", Code.POLICY_READ_ONLY, _READ_ONLY)
    return None


def _source_changes(case: PolicyInput) -> Verdict | None:
    if case.judgement.effect is not Effect.READ and case.source.changes == "deny":
        return _deny(
            "source.changes",
            Code.POLICY_READ_ONLY,
            "The source refuses statements that change data",
        )
    return None


def _statement_class(case: PolicyInput) -> Verdict | None:
    rules = case.statements
    if rules is None or rules.admission(case.judgement) != "deny":
        return None
    return _deny(
        STATEMENT_RULES,
        Code.POLICY_READ_ONLY,
        f"The source refuses statements of this class: its mode is '{rules.name}'",
    )


def _write_scope(case: PolicyInput) -> Verdict | None:
    if case.judgement.effect is Effect.READ or case.actor.scope.covers(Scope.READ_WRITE):
        return None
    return _deny(
        "actor.writes",
        Code.POLICY_SCOPE,
        f"Statements that change data need the scope {Scope.READ_WRITE.value}; the caller has"
        f" {case.actor.scope.value}",
        _wider(case, Scope.READ_WRITE),
    )


def _role(case: PolicyInput) -> Verdict | None:
    roles, judgement = case.actor.roles, case.judgement
    if roles is None or judgement.effect is Effect.READ:
        return None
    needed = "approver" if judgement == PUTS_BACK else "admin"
    if holds(roles, needed, case.source.name):
        return None
    what = "Putting rows back needs" if judgement == PUTS_BACK else "Changes need"
    return _deny(
        "actor.role",
        Code.POLICY_SCOPE,
        f"{what} the role {needed} on this source",
        f"Ask an admin for the role {needed} there.",
    )


def _destructive_scope(case: PolicyInput) -> Verdict | None:
    if case.judgement.effect is not Effect.DESTRUCTIVE:
        return None
    needed = Scope(case.source.destructive_scope)
    if case.actor.scope.covers(needed):
        return None
    return _deny(
        "actor.destructive",
        Code.POLICY_SCOPE,
        f"Destructive statements on this source need the scope {needed.value}; the caller has"
        f" {case.actor.scope.value}",
        _wider(case, needed),
    )


def _source_administration(case: PolicyInput) -> Verdict | None:
    if case.judgement.effect is not Effect.ADMIN or case.source.access == "admin":
        return None
    return _deny(
        "source.administration",
        Code.POLICY_DENIED,
        "The source does not admit statements that administer the database",
        "Ask the operator: `access = admin` admits them, each with a person's approval.",
    )


def _administration_scope(case: PolicyInput) -> Verdict | None:
    needed = Scope.FULL_ACCESS
    if case.judgement.effect is not Effect.ADMIN or case.actor.scope.covers(needed):
        return None
    return _deny(
        "actor.administration",
        Code.POLICY_SCOPE,
        f"Statements that administer the database need the scope {needed.value}; the caller has"
        f" {case.actor.scope.value}",
        _wider(case, needed),
    )


def _administration_identity(case: PolicyInput) -> Verdict | None:
    leaves = case.judgement.effect is Effect.ADMIN or case.judgement.outside_transaction
    if not leaves or case.source.run_as is None:
        return None
    return _deny(
        "source.run_as",
        Code.POLICY_DENIED,
        "The source maps callers to roles of the database, and such a statement could leave them",
        "Ask the operator to run it, or to add a source without `run_as` for it.",
    )


_COMPARE = ": compare a column of the table with a constant, as in id = 7"


def _unqualified(case: PolicyInput) -> Verdict | None:
    if not case.judgement.unqualified or case.source.unqualified != "deny":
        return None
    return _deny(
        "source.unqualified",
        Code.POLICY_DENIED,
        "The source does not admit changes of every row of a table",
        "Add a WHERE that selects the rows" + (_COMPARE if case.judgement.touches else "") + ".",
    )


def _irreversible(case: PolicyInput) -> Verdict | None:
    reason = _must_confirm(case)
    if reason is None or case.confirmed:
        return None
    code = Code.POLICY_CONFIRM
    return Verdict("confirm", case.judgement.rule, reason, code.value, ERRORS[code].hint)


def _must_confirm(case: PolicyInput) -> str | None:
    """Why the call needs the confirmation phrase and a person; None if it needs neither."""
    judgement = case.judgement
    if case.statements is not None:
        return None  # rules by class decide alone
    if judgement.effect is Effect.DESTRUCTIVE:
        return "Destructive statements (DROP, TRUNCATE, ALTER...DROP) need a confirmation"
    if judgement.administration is not None and judgement.administration.drops:
        return "What drops an account, a routine or a trigger needs a confirmation"
    if judgement.unqualified and case.source.unqualified == "confirm":
        if judgement.touches:
            return (
                "The statement may change every row: it compares no column of the table with a"
                " constant, and this source cannot compare the rows. It needs a confirmation"
            )
        return (
            "The statement changes every row of a table, by its text or by the rows: it needs a"
            " confirmation"
        )
    return None


def _needs_approval(case: PolicyInput) -> Verdict | None:
    source, judgement = case.source, case.judgement
    if judgement.metadata:
        return None
    if judgement.effect is Effect.ADMIN:
        rule = ADMINISTRATION  # whatever the source's other settings say
    elif case.statements is not None and case.statements.admission(judgement) == "ask":
        rule = STATEMENT_RULES
    elif source.agents == "ask" and case.actor.kind == "agent":
        rule = "source.agents"
    elif source.approval_for == "everything" or (
        source.approval_for == "writes" and judgement.effect is not Effect.READ
    ):
        rule = "source.approval_for"
    elif _must_confirm(case) is not None:
        rule = "sql.irreversible"
    else:
        return None
    code = Code.APPROVAL_NEEDED
    return Verdict("ask", rule, "A person must approve this call", code.value, ERRORS[code].hint)


RULES: tuple[Rule, ...] = (
    Rule(ALLOWLIST_RULE, "The caller's allowlist has the source", _allowlist),
    Rule("source.agents", "The source admits agents", _agents_allowed),
    Rule("source.access", "The source is open to callers", _blocked),
    Rule("actor.scope", "The caller's scope covers the tool", _tool_scope),
    Rule("source.tools", "The source admits tools of this scope", _tool_access),
    Rule("sql.readable", "The statement can be read", _unreadable),
    Rule(
        "sql.effect",
        "The statement reads or changes data, or administers the database in a known way",
        _admin_statement,
    ),
    Rule("tool.reads", "The tool is for statements like this one", _tool_reads),
    Rule("sql.confirmable", "A confirmed statement needs its confirmation", _confirmable),
    Rule("source.writes", "The source's access covers the statement", _source_writes),
    Rule("source.changes", "The source does not refuse changes", _source_changes),
    Rule(STATEMENT_RULES, "The source's mode admits statements of this class", _statement_class),
    Rule("actor.writes", "The caller's scope covers a change", _write_scope),
    Rule("actor.role", "An operator's role on the source covers a change", _role),
    Rule("actor.destructive", "The caller's scope covers a destructive change", _destructive_scope),
    Rule("source.administration", "The source admits what administers it", _source_administration),
    Rule("actor.administration", "The caller's scope covers administration", _administration_scope),
    Rule("source.run_as", "Administration needs no role of the caller", _administration_identity),
    Rule("source.unqualified", "The source admits changes of every row", _unqualified),
    Rule("sql.irreversible", "The statement needs no confirmation", _irreversible),
    Rule("source.approval", "The call needs no person's approval", _needs_approval),
)
