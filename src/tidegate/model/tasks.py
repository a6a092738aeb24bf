"""A call that goes on after its request was answered, as it is kept in the state. Frozen."""

from __future__ import annotations

from typing import Literal

import msgspec

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
ENDED = frozenset({"completed", "failed", "cancelled"})


class TaskRecord(msgspec.Struct, frozen=True):
    """A task without its result, which its process alone has. Times are Unix seconds.

    `id` has 128 random bits, and is no right: only the `actor` may use it. `server` names the
    process that works on it, which is there until `alive_until` at least, and says so again in
    time. `waiting`: a person is asked, and what that is about was not sent yet. `changes`: what was
    sent may change data, which is kept here before it is sent. `call` is the digest by which the
    same call is found when it is sent again; empty if its client comes back in another way, or has
    had the outcome.
    """

    id: str
    actor: str
    surface: str
    tool: str
    server: str
    created_at: float
    updated_at: float
    alive_until: float
    status: TaskStatus = "working"
    waiting: bool = False
    changes: bool = False
    call: str = ""


def lost_words(record: TaskRecord) -> str:
    """What became of a task whose process has ended, and what to do now."""
    if record.status in ENDED:
        if record.changes:
            return (
                "The call had ended, and its result is not here any more. If it changed data, that"
                " change stands: check the data before you send it again."
            )
        return "The call had ended, and its result is not here any more. Send the call again."
    if record.waiting and not record.changes:
        return (
            "The server ended while the call waited for a person: nothing ran. Send the same call"
            " again; a person's answer counts for it."
        )
    if record.changes:
        return (
            "The server ended while the call ran. It is not known whether it changed data: check"
            " the data before you send it again."
        )
    return "The server ended while the call ran. It had changed nothing: send the call again."
