"""Waits for the answers to questions that calls of the Data page put to people."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.approvals.approvals import QUESTION_TTL_S, ApprovalNeeded, Approvals
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.replies import Reply
from tidegate.model.requests import Call
from tidegate.products.console.data_calls import DataCalls
from tidegate.store.calls import read_state

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
    question = await read_state(approvals.look_up, needed.question.id)
    if question is None or question.state in ("pending", "expired"):
        raise TidegateError(
            Code.APPROVAL_NEEDED,
            "The question was not answered in time, and nothing was run.",
            hint="Run it again.",
        )


async def handle_asking(
    calls: DataCalls, approvals: Approvals, call: Call, tell: Callable[[str], None]
) -> Reply:
    """The answer to a call, which waits for people where they are asked. `tell` is given the id of
    a question when the call begins to wait, and an empty text when it goes on.

    Raises: as `DataCalls.handle` and `await_answer`.
    """
    while True:
        try:
            return await calls.handle(call)
        except ApprovalNeeded as needed:
            tell(needed.question.id)
            await await_answer(approvals, needed, call.cancellation)
            tell("")


def sentences(clauses: tuple[str, ...]) -> list[str]:
    """What an engine remarks, as a person reads it."""
    return [f"{each[:1].upper()}{each[1:]}." for each in clauses]
