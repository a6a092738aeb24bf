"""What an operator says of statements that change something, by what they do. Frozen."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.model.statements import Effect, Judgement

Admission = Literal["allow", "ask", "deny"]
"""Whether such statements run, run when a person has approved them, or never run."""

_STRICTEST_FIRST: tuple[Admission, ...] = ("deny", "ask", "allow")


class StatementRules(msgspec.Struct, frozen=True):
    """How statements that change something are admitted, by the `Judgement.verb` of each, for
    sources where the operator decides so. `name` is what the operator calls the rules.

    Such a source has no further questions about changes of every row or about destructive
    ones: the rules say all of it.
    """

    name: str
    verbs: tuple[tuple[str, Admission], ...]

    def admission(self, judgement: Judgement) -> Admission:
        """How the statement is admitted. One that changes something in a way without a rule of its
        own is admitted as the strictest of the rules says."""
        if judgement.effect is Effect.READ:
            return "allow"
        for verb, admission in self.verbs:
            if verb == judgement.verb:
                return admission
        admissions = {admission for _, admission in self.verbs} or {"deny"}
        return next(each for each in _STRICTEST_FIRST if each in admissions)
