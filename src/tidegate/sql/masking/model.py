"""Refusals that keep hidden data hidden."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules, Show

__all__ = ["DataRules", "Show", "is_masked"]


def is_masked(reason: str, rule: str, hint: str | None = None) -> TidegateError:
    """The refusal of a statement that could show hidden data. `rule` names the mask, the filter
    or the check that found it."""
    return TidegateError(Code.POLICY_MASKED, reason, hint=hint, details={"rule": rule})
