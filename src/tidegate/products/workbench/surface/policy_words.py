"""The product words of the workbench's document for a source's policy and for refusals.

The rest of Tidegate uses neutral words (`access`, `agents`, `approval_for`, `changes`). The
document has six safe modes, of which `alert` and `safeMode` mean the same here, as do `alertFull`
and `safeModeFull`: a source shows the first of each pair.
"""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source

_AI_POLICIES = {"allow": "alwaysAllow", "ask": "askEachTime", "deny": "never"}
_SAFE_MODES = {"nothing": "silent", "writes": "alert", "everything": "alertFull"}
_REFUSALS = {
    ("source.agents", Code.POLICY_BLOCKED): "AI access is disabled for this connection",
    ("source.access", Code.POLICY_BLOCKED): "External access is disabled for this connection",
    ("source.access", Code.POLICY_READ_ONLY): "Connection is read-only for external clients",
    ("source.changes", Code.POLICY_READ_ONLY): (
        "Cannot execute write queries: connection is read-only"
    ),
    ("actor.sources", Code.POLICY_SOURCE): "Token does not have access to this connection",
    ("actor.writes", Code.POLICY_SCOPE): (
        "Principal lacks tools:write scope required for write queries"
    ),
    ("sql.confirmable", Code.CONFIRM_NEEDLESS): (
        "This tool only accepts destructive queries (DROP, TRUNCATE, ALTER...DROP). Use"
        " execute_query for other queries."
    ),
}


def ai_policy(source: Source) -> str:
    """The source's `ai_policy`: alwaysAllow, askEachTime or never."""
    return _AI_POLICIES[source.agents]


def safe_mode(source: Source) -> str:
    """The source's `safe_mode`: silent, alert, alertFull or readOnly."""
    return "readOnly" if source.changes == "deny" else _SAFE_MODES[source.approval_for]


def refusal_words(error: TidegateError) -> str | None:
    """The document's text for a refusal by a policy rule; None if it has none."""
    rule = error.details.get("rule")
    return None if rule is None else _REFUSALS.get((rule, error.code))
