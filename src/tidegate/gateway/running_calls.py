"""The running calls of this process, for operators who watch or end them.

A call is in it from its arrival to its reply. What is shown of it is found out when someone looks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from tidegate.gateway.context import NO_SOURCE, UNJUDGED, CallContext
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.secrets.redaction import cut_and_redact

MOST_TEXT = 1_000
"""Characters of a statement that are shown."""
_HIDDEN = frozenset({"sample"})
"""What the gate sends for itself, as little as Activity lists it."""
BLIND = "the state could not be read"
"""The reason of a cancellation because a right may have been taken away meanwhile."""
OPERATOR = "an operator cancelled the call"
"""The reason of a cancellation by a person who looks."""

CallState = Literal["preparing", "waiting", "queued", "running", "cancelling"]


class RunningCall(msgspec.Struct, frozen=True):
    """A call under way. `waiting`: for a person's approval; `queued`: for other statements of the
    same caller. `since` is Unix seconds, `rows` those read so far, None if that is not known.
    `source` is None for a call about several. `statement` has no secrets; it is cut."""

    id: str
    actor: Actor
    client: str
    address: str
    surface: str
    tool: str
    request: str
    source: Source | None
    statement: str
    effect: str
    state: CallState
    since: float
    rows: int | None


class RunningCalls(dict[str, CallContext]):
    """The contexts of the calls under way by their ids, in the order in which they came."""

    def oldest(
        self, most: int, is_visible: Callable[[Actor, Source | None], bool]
    ) -> tuple[list[RunningCall], int]:
        """Those under way that a reader may see, the oldest first, and how many there are besides.
        On the event loop."""
        found = [
            ctx
            for ctx in self.values()
            if ctx.call.request.kind not in _HIDDEN and is_visible(ctx.call.actor, _source_of(ctx))
        ]
        return [_described(ctx) for ctx in found[:most]], max(0, len(found) - most)

    def find(self, id: str) -> RunningCall | None:
        """The call of that id, if it is under way."""
        ctx = self.get(id)
        return None if ctx is None else _described(ctx)

    def end_all(self, reason: str) -> None:
        """Have every call end."""
        for ctx in list(self.values()):
            ctx.call.cancellation.cancel(reason)

    def cancel(self, id: str) -> bool:
        """Have a call end: its statement is interrupted in the database. False if it has ended."""
        ctx = self.get(id)
        if ctx is None:
            return False
        ctx.call.cancellation.cancel(OPERATOR)
        return True


def _described(ctx: CallContext) -> RunningCall:
    call, judgement = ctx.call, ctx.judgement
    source = _source_of(ctx)
    if ctx.shown_text is None:
        text = call.request.recorded_text() or ""
        if source is not None or not text:
            ctx.shown_text, _ = cut_and_redact(
                text, MOST_TEXT, ctx.language, "" if source is None else source.dialect
            )
    collected = ctx.collected
    return RunningCall(
        ctx.call_id,
        call.actor,
        *(call.client, call.address, call.surface, call.tool, call.request.kind),
        source,
        ctx.shown_text or "",
        "" if judgement is UNJUDGED else judgement.effect.label,
        _state(ctx),
        ctx.started_at,
        None if collected is None else collected.row_count,
    )


def _source_of(ctx: CallContext) -> Source | None:
    return None if ctx.source is NO_SOURCE else ctx.source


def _state(ctx: CallContext) -> CallState:
    if ctx.call.cancellation.reason is not None:
        return "cancelling"
    return ctx.stage or ("running" if ctx.sent else "preparing")
