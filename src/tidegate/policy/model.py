"""What the rules of the gate look at, and what a rule is. Decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.actors import Actor, Scope
from tidegate.permits import Verdict
from tidegate.sources import Source
from tidegate.statements import Judgement


class Case(msgspec.Struct, frozen=True):
    """One question put to the rules.

    `scope` is what the tool demands whatever the statement does; `confirmed` tells that the
    phrase of confirmation was typed, `reads_only` that the tool is for reading.
    """

    actor: Actor
    source: Source
    scope: Scope
    judgement: Judgement
    confirmed: bool = False
    reads_only: bool = False


class Rule(msgspec.Struct, frozen=True):
    """A named test of a case: a verdict ends the search, None lets the next rule speak."""

    name: str
    says: str
    look: Callable[[Case], Verdict | None]
