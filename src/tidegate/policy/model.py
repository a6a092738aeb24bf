"""What the rules of the gate look at, and what a rule is. Decides nothing itself."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.types import Actor, Judgement, Scope, Source, Verdict


class Case(msgspec.Struct, frozen=True):
    """One question put to the rules.

    `scope` is what the tool demands whatever the statement does; `writes_open` is the operator's
    word that statements which change something may be decided on at all.
    """

    actor: Actor
    source: Source
    scope: Scope
    judgement: Judgement
    writes_open: bool


class Rule(msgspec.Struct, frozen=True):
    """A named test of a case: a verdict ends the search, None lets the next rule speak."""

    name: str
    says: str
    look: Callable[[Case], Verdict | None]
