"""What the rules of the gate look at, and what a rule is. Decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.model.actors import Actor, Scope
from tidegate.model.decisions import Verdict
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement


class PolicyInput(msgspec.Struct, frozen=True):
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
    description: str
    check: Callable[[PolicyInput], Verdict | None]
