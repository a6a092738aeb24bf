"""Asks the user of the caller's client to approve a call, by elicitation, and sends it again.

The client is under the caller's control, so an operator who does not trust it sets
`approval = "inbox"`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from tidegate.approvals.approvals import ApprovalNeeded
from tidegate.approvals.render import describe_at_client
from tidegate.errors import TidegateError
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, Progress
from tidegate.protocol.model import Ask, Context, RpcError
from tidegate.protocol.request import InputRequired
from tidegate.store.records import PendingApproval
from tidegate.surfaces.tool_context import ApprovalForm, Gate

ALLOW = "allow once"
DENY = "deny"
SHOWN_S = 60.0
"""How long a question that a stateless client shows is withheld from another call like it."""

_BEFORE = 0.1
"""The share of a call's progress that is reported before the question can come up."""

_SCHEMA: dict[str, Any] = {
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


def _message(question: PendingApproval) -> str:
    return f"May this run?\n{describe_at_client(question)}"


def _allows(content: Mapping[str, Any]) -> bool:
    return content["decision"] == ALLOW


DEFAULT_FORM = ApprovalForm(_message, _SCHEMA, _allows)


async def ask(
    gate: Gate,
    context: Context,
    call: Call,
    error: TidegateError,
    form: ApprovalForm | None = None,
) -> Reply:
    """Show the question and send the call again with the answer; one call at a time shows it.

    If the client cannot show it, or its user gives no answer, the question stays in the inbox.
    Raises: `error` if it is not answered here; TidegateError, whatever the gateway refuses then.
    """
    if not isinstance(error, ApprovalNeeded) or not error.client_may_ask:
        raise error
    allow = await _answer(context, error, form or DEFAULT_FORM)
    if allow is None:
        raise error
    await gate.answer_approval(error, call, allow)
    return await gate.handle(structs.replace(call, progress=_onward(call.progress)))


async def _answer(context: Context, needed: ApprovalNeeded, form: ApprovalForm) -> bool | None:
    """The user's decision; None if there is none."""
    question = needed.question
    modern = context.revision >= "2026-07-28"
    shown = _shown.get(question.id, 0.0) > time.monotonic()
    if shown and not modern:
        return None
    params = {"message": form.message(question), "requestedSchema": form.schema}
    _shown[question.id] = time.monotonic() + SHOWN_S if modern else float("inf")
    try:
        async with asyncio.timeout(needed.form_s):
            answer = await context.ask(f"approval-{question.id}", Ask("elicitation/create", params))
    except TimeoutError:
        # The call and its place are not held for a person who is not there.
        _shown.pop(question.id, None)
        needed.problem = f"no one answered the form within {needed.form_s:g} s"
        needed.message = f"{needed.message}: {needed.problem}"
        return None
    except InputRequired:
        # Answered by a retry, which comes with the answer. Others like it need not ask as well.
        if shown:
            return None
        _forget_old()
        raise
    except RpcError as error:
        _shown.pop(question.id, None)
        needed.problem = error.message
        if isinstance(error.data, Mapping):
            needed.unexpected_action = error.data.get("action")
        return None
    except BaseException:
        _shown.pop(question.id, None)
        raise
    _shown.pop(question.id, None)
    if answer["action"] == "cancel":
        needed.dismissed = True
        return None
    return answer["action"] == "accept" and form.allows(answer.get("content") or {})


def _forget_old() -> None:
    now = time.monotonic()
    for id in [id for id, until in _shown.items() if until <= now]:
        del _shown[id]


def _onward(progress: Progress | None) -> Progress | None:
    """Leaves out what was reported before the question: progress does not go back."""
    if progress is None:
        return None
    return lambda share, stage: progress(share, stage) if share > _BEFORE else None
