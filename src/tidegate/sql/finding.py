"""One opinion on a statement, and how opinions are joined: the highest effect wins."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect


class Finding(msgspec.Struct, frozen=True):
    """The result of one check of a statement. `rule` names the rule that decided."""

    effect: Effect
    rule: str
    reason: str
    code: Code | None = None
    hint: str | None = None


class Refusal(Exception):
    """The text cannot be read on. What judges a text makes a judgement of it."""

    def __init__(self, code: Code, rule: str, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.finding = Finding(Effect.UNKNOWN, rule, reason, code, hint)

    def error(self) -> TidegateError:
        """The same for a caller, where the text has been judged before."""
        finding = self.finding
        return TidegateError(finding.code or Code.SQL_UNREADABLE, finding.reason, hint=finding.hint)


def temporary(what: str) -> Refusal:
    """The refusal of what would be made for a session: each statement has one of its own, so it
    would be reported as made, and be gone."""
    return Refusal(
        Code.UNSUPPORTED,
        "session.temporary",
        f"{what} would be gone before the next statement: each statement has a session of its own"
        " here",
        "Write its query as WITH name AS (...) in the statement that reads it, or make an ordinary"
        " table.",
    )


READS = Finding(Effect.READ, "read", "Reads only")

CODES = {
    Effect.SESSION: Code.POLICY_DENIED,
    Effect.WRITE: Code.POLICY_READ_ONLY,
    Effect.DESTRUCTIVE: Code.POLICY_READ_ONLY,
    Effect.ADMIN: Code.POLICY_DENIED,
    Effect.UNKNOWN: Code.SQL_UNKNOWN,
}


def most_severe(opinions: Iterable[Finding]) -> Finding:
    """The first of the opinions with the highest effect; `READS` if there are none."""
    top = READS
    for finding in opinions:
        if finding.effect > top.effect:
            top = finding
    return top
