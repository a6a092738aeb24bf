"""A step of the gate: a ledger takes new entries, and no entry is changed or removed."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.gateway.context import CallContext

_REWRITES = frozenset({"update", "delete", "replace", "merge"})


def refuse_rewriting(ctx: CallContext) -> None:
    """Raises: TidegateError POLICY_DENIED."""
    if ctx.judgement.verb in _REWRITES:
        raise TidegateError(
            Code.POLICY_DENIED,
            "Entries of a ledger stay as they are.",
            hint="Add an entry that corrects the other one.",
            details={"rule": "ledger.rewriting"},
        )
