"""One opinion on a statement, and how opinions are joined: the highest effect wins."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import Code
from tidegate.statements import Effect


class Opinion(msgspec.Struct, frozen=True):
    """What one way of looking at a statement told. `rule` names what decided."""

    effect: Effect
    rule: str
    reason: str
    code: Code | None = None
    hint: str | None = None


class Refusal(Exception):
    """The text cannot be read on; never leaves the package."""

    def __init__(self, code: Code, rule: str, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.opinion = Opinion(Effect.UNKNOWN, rule, reason, code, hint)


READS = Opinion(Effect.READ, "read", "Reads only")

CODES = {
    Effect.SESSION: Code.POLICY_DENIED,
    Effect.WRITE: Code.POLICY_READ_ONLY,
    Effect.DESTRUCTIVE: Code.POLICY_READ_ONLY,
    Effect.ADMIN: Code.POLICY_DENIED,
    Effect.UNKNOWN: Code.SQL_UNKNOWN,
}


def highest(opinions: Iterable[Opinion]) -> Opinion:
    """The first of the opinions with the highest effect; `READS` if there are none."""
    top = READS
    for opinion in opinions:
        if opinion.effect > top.effect:
            top = opinion
    return top
