"""Asks the person at the caller's client about a call, by elicitation, and sends it again.

The client is the caller's own, so an operator who does not trust it sets `approval = "inbox"`.
"""

from __future__ import annotations

import time
from typing import Any

from msgspec import structs

from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.approvals.wording import describe
from tidegate.calls import Call, Progress
from tidegate.errors import GateError
from tidegate.protocol.exchange import InputRequired
from tidegate.protocol.model import Ask, Context, RpcError
from tidegate.replies import Reply
from tidegate.surfaces.turn import Gate

ALLOW = "allow once"
DENY = "deny"
SHOWN_S = 60.0
"""For so long a question that a stateless client shows is not given to another call like it."""

_BEFORE = 0.1
"""The share of a call that is done before the question can come up."""

_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Applies to exactly this statement, once.",
            "enum": [DENY, ALLOW],
        }
    },
    "required": ["decision"],
}
_shown: dict[str, float] = {}


async def ask(gate: Gate, context: Context, call: Call, error: GateError) -> Reply:
    """Show the question and send the call again with the answer; one call at a time shows it.

    A client that cannot show it, or whose person gives no answer, leaves it in the inbox.
    Raises: `error` if it is not answered here; GateError, whatever the gate says after it was.
    """
    if not isinstance(error, ApprovalNeeded) or not error.askable:
        raise error
    allow = await _answer(context, error)
    if allow is None:
        raise error
    await gate.settle(error, call, allow)
    return await gate.handle(structs.replace(call, progress=_onward(call.progress)))


async def _answer(context: Context, needed: ApprovalNeeded) -> bool | None:
    """What the person said; None if nothing."""
    question = needed.question
    modern = context.revision >= "2026-07-28"
    shown = _shown.get(question.id, 0.0) > time.monotonic()
    if shown and not modern:
        return None
    message = f"May this run?\n{describe(question, rows=not question.subject.guarded)}"
    form = Ask("elicitation/create", {"message": message, "requestedSchema": _FORM})
    _shown[question.id] = time.monotonic() + SHOWN_S if modern else float("inf")
    try:
        answer = await context.ask(f"approval-{question.id}", form)
    except InputRequired:
        # Answered by a retry, which comes with the answer. Others like it need not ask as well.
        if shown:
            return None
        _forget_old()
        raise
    except RpcError:
        _shown.pop(question.id, None)
        return None
    except BaseException:
        _shown.pop(question.id, None)
        raise
    _shown.pop(question.id, None)
    if answer["action"] == "cancel":
        return None
    return answer["action"] == "accept" and answer["content"]["decision"] == ALLOW


def _forget_old() -> None:
    now = time.monotonic()
    for id in [id for id, until in _shown.items() if until <= now]:
        del _shown[id]


def _onward(progress: Progress | None) -> Progress | None:
    """Leaves out what was reported before the question: progress does not go back."""
    if progress is None:
        return None
    return lambda share, stage: progress(share, stage) if share > _BEFORE else None
