"""The rules of the gate in the order in which they refuse. Decides one rule at a time; the search
through them is in `decide.py` and `explain.py`.

The order is part of the contract with callers: who may not see a source learns nothing of what a
statement would do there, and who sends what cannot be read learns that before any talk of scopes.
"""

from __future__ import annotations

from tidegate.actors import Scope
from tidegate.errors import FATES, Code
from tidegate.permits import Verdict
from tidegate.policy.allowlist import admits
from tidegate.policy.model import Case, Rule
from tidegate.statements import Effect

_CHANGES = frozenset({Effect.WRITE, Effect.DESTRUCTIVE})
_ASK_ABOUT_CHANGES = frozenset({"alert", "alertFull", "safeMode", "safeModeFull"})
_ASK_ABOUT_ALL = frozenset({"alertFull", "safeModeFull"})


def _deny(rule: str, code: Code, reason: str, hint: str | None = None) -> Verdict:
    return Verdict("deny", rule, reason, code.value, hint or FATES[code].hint)


def _artificial(case: Case) -> Verdict | None:
    if case.source.ai_policy == "never" and case.actor.kind == "agent":
        return _deny(
            "source.ai_policy", Code.POLICY_BLOCKED, "AI access is disabled for this connection"
        )
    return None


def _blocked(case: Case) -> Verdict | None:
    if case.source.external_access == "blocked":
        return _deny(
            "source.external_access",
            Code.POLICY_BLOCKED,
            "External access is disabled for this connection",
        )
    return None


def _allowlist(case: Case) -> Verdict | None:
    if not admits(case.actor, case.source):
        return _deny(
            "actor.sources", Code.POLICY_SOURCE, "Token does not have access to this connection"
        )
    return None


def _tool_scope(case: Case) -> Verdict | None:
    if not case.actor.scope.covers(case.scope):
        return _deny(
            "actor.scope",
            Code.POLICY_SCOPE,
            f"This tool requires the scope {case.scope.value}; the caller has"
            f" {case.actor.scope.value}",
        )
    return None


def _tool_access(case: Case) -> Verdict | None:
    if case.scope is Scope.READ_ONLY or case.source.external_access == "readWrite":
        return None
    return _deny(
        "source.external_access",
        Code.POLICY_READ_ONLY,
        "Connection is read-only for external clients",
    )


def _unreadable(case: Case) -> Verdict | None:
    judgement = case.judgement
    if judgement.effect is not Effect.UNKNOWN:
        return None
    code = judgement.code or Code.SQL_UNKNOWN.value
    return Verdict("deny", judgement.rule, judgement.reason, code, judgement.hint)


def _beyond_writing(case: Case) -> Verdict | None:
    judgement = case.judgement
    if judgement.effect is Effect.READ or judgement.effect in _CHANGES:
        return None
    code = judgement.code or Code.POLICY_DENIED.value
    hint = judgement.hint or FATES[Code.POLICY_DENIED].hint
    return Verdict("deny", judgement.rule, judgement.reason, code, hint)


def _tool_reads(case: Case) -> Verdict | None:
    if case.reads_only and case.judgement.effect is not Effect.READ:
        return _deny(
            "tool.reads", Code.POLICY_READ_ONLY, "This tool only runs statements that read"
        )
    return None


def _confirmable(case: Case) -> Verdict | None:
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
        "This tool only accepts destructive queries (DROP, TRUNCATE, ALTER...DROP). Use"
        " execute_query for other queries.",
    )


def _external_access(case: Case) -> Verdict | None:
    if case.judgement.effect is Effect.READ:
        return None
    if case.source.external_access != "readWrite":
        return _deny(
            "source.external_access",
            Code.POLICY_READ_ONLY,
            "Connection is read-only for external clients",
        )
    return None


def _safe_mode(case: Case) -> Verdict | None:
    if case.judgement.effect is not Effect.READ and case.source.safe_mode == "readOnly":
        return _deny(
            "source.safe_mode",
            Code.POLICY_READ_ONLY,
            "Cannot execute write queries: connection is read-only",
        )
    return None


def _write_scope(case: Case) -> Verdict | None:
    if case.judgement.effect is Effect.READ or case.actor.scope.covers(Scope.READ_WRITE):
        return None
    return _deny(
        "actor.scope",
        Code.POLICY_SCOPE,
        "Principal lacks tools:write scope required for write queries",
    )


def _destructive_scope(case: Case) -> Verdict | None:
    if case.judgement.effect is not Effect.DESTRUCTIVE:
        return None
    needed = Scope(case.source.destructive_scope)
    if case.actor.scope.covers(needed):
        return None
    return _deny(
        "actor.scope",
        Code.POLICY_SCOPE,
        f"Destructive queries on this connection need the scope {needed.value}; the caller has"
        f" {case.actor.scope.value}",
    )


def _unqualified(case: Case) -> Verdict | None:
    if not case.judgement.unqualified or case.source.unqualified != "deny":
        return None
    return _deny(
        "source.unqualified",
        Code.POLICY_DENIED,
        "This connection admits no UPDATE or DELETE without WHERE",
        "Add a WHERE that names the rows.",
    )


def _irreversible(case: Case) -> Verdict | None:
    reason = _must_confirm(case)
    if reason is None or case.confirmed:
        return None
    code = Code.POLICY_CONFIRM
    return Verdict("confirm", case.judgement.rule, reason, code.value, FATES[code].hint)


def _must_confirm(case: Case) -> str | None:
    """Why the call needs the phrase of confirmation and a person; None if it needs neither."""
    judgement = case.judgement
    if judgement.effect is Effect.DESTRUCTIVE:
        return "Destructive queries (DROP, TRUNCATE, ALTER...DROP) need a confirmation"
    if judgement.unqualified and case.source.unqualified == "confirm":
        return "The statement has no WHERE and changes every row: it needs a confirmation"
    return None


def _asking(case: Case) -> Verdict | None:
    source, judgement = case.source, case.judgement
    if judgement.metadata:
        return None
    if source.ai_policy == "askEachTime" and case.actor.kind == "agent":
        rule = "source.ai_policy"
    elif source.safe_mode in _ASK_ABOUT_ALL or (
        source.safe_mode in _ASK_ABOUT_CHANGES and judgement.effect is not Effect.READ
    ):
        rule = "source.safe_mode"
    elif _must_confirm(case) is not None:
        rule = "sql.irreversible"
    else:
        return None
    code = Code.APPROVAL_NEEDED
    return Verdict("ask", rule, "A person must approve this call", code.value, FATES[code].hint)


RULES: tuple[Rule, ...] = (
    Rule("source.ai_policy", "The source admits agents", _artificial),
    Rule("source.external_access", "The source is open to callers from outside", _blocked),
    Rule("actor.sources", "The caller's allowlist has the source", _allowlist),
    Rule("actor.scope", "The caller's scope covers the tool", _tool_scope),
    Rule("source.access", "The source admits what the tool is for", _tool_access),
    Rule("sql.readable", "The statement can be read", _unreadable),
    Rule("sql.effect", "The statement at most changes data", _beyond_writing),
    Rule("tool.reads", "The tool is for what the statement does", _tool_reads),
    Rule("sql.confirmable", "What was confirmed needs a confirmation", _confirmable),
    Rule("source.writes", "The source admits what the statement changes", _external_access),
    Rule("source.safe_mode", "The source's safe mode admits it", _safe_mode),
    Rule("actor.writes", "The caller's scope covers what the statement changes", _write_scope),
    Rule(
        "actor.destructive", "The caller's scope covers what cannot be undone", _destructive_scope
    ),
    Rule("source.unqualified", "The source admits changes of every row", _unqualified),
    Rule("sql.irreversible", "The statement needs no confirmation", _irreversible),
    Rule("source.approval", "No person needs to be asked", _asking),
)
