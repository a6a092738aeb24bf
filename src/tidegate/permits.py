"""What is decided on a call, and the proof of it that engines ask for. Frozen."""

from __future__ import annotations

from typing import Literal

import msgspec

from tidegate.actors import Actor
from tidegate.calls import EngineRequest
from tidegate.pages import Limits
from tidegate.sources import Identity, Source
from tidegate.statements import Effect


class Verdict(msgspec.Struct, frozen=True):
    """The decision on a call: only `allow` leads to a permit."""

    kind: Literal["allow", "ask", "confirm", "deny"]
    rule: str
    reason: str
    code: str | None = None
    hint: str | None = None


class Permit(msgspec.Struct, frozen=True):
    """Proof that a verdict was allow and that the intent is on record.

    Made in `gateway.py` only; the only thing an engine accepts. With an `identity` the engine runs
    as that, or not at all.
    """

    call_id: str
    actor: Actor
    source: Source
    request: EngineRequest
    effect: Effect
    limits: Limits
    identity: Identity | None = None
