"""Waits for the answer to a question that a call of the Data page has put to people."""

from __future__ import annotations

import asyncio

from tidegate.approvals.approvals import QUESTION_TTL_S, ApprovalNeeded, Approvals
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation

_WAIT_LEASE_S = 20.0
"""For how long a card says that a call waits, unless the call renews that."""


async def await_answer(
    approvals: Approvals, needed: ApprovalNeeded, cancellation: Cancellation
) -> None:
    """Return once the call may be sent again. Raises: TidegateError CALL_CANCELLED,
    APPROVAL_NEEDED if there was no answer in time."""
    await approvals.wait(needed.question, cancellation, QUESTION_TTL_S, lease_s=_WAIT_LEASE_S)
    if cancellation.reason is not None:
        raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
    question = await asyncio.to_thread(approvals.look_up, needed.question.id)
    if question is None or question.state in ("pending", "expired"):
        raise TidegateError(
            Code.APPROVAL_NEEDED,
            "The question was not answered in time, and nothing was run.",
            hint="Run it again.",
        )
