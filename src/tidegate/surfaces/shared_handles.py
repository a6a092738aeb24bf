"""Ids that a tool has given to a caller, for calls with them that come to another process.

What an id names is in the memory of the process that opened it. Where another process may get the
next call, that process keeps in the state where the id is from, and, if any process can open it
again, how. What only one process can have, such as a login that a caller typed, a file of its
machine or a driver's process, is refused elsewhere with the name of that process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.store.carried import decode_carried
from tidegate.surfaces.tool_context import ToolContext
from tidegate.typed_values import decode_msgpack

LIFETIME_S = 86_400.0
_OPEN_AGAIN = "Open it again."

Value = TypeVar("Value")


class SharedHandle(msgspec.Struct, frozen=True, array_like=True):
    """An id of a caller. `session` is that of the caller's session, empty without one; `how` says
    how it is opened at another process, empty if it cannot be."""

    place: str
    session: str
    how: bytes = b""

    def elsewhere(self, what: str) -> TidegateError:
        """The refusal of an id of which `place` alone has what it names."""
        return TidegateError(
            Code.SOURCE_UNKNOWN,
            f"The {what} was opened by {self.place}, which has it alone",
            hint="Open it again here, or send your calls there.",
            details={"cause": "elsewhere"},
        )


async def keep_handle(context: ToolContext, id: str, session: str, how: bytes = b"") -> None:
    """Keep where an id of this caller is from. Raises: TidegateError STATE_FAILED."""
    choices = context.gate.choices
    if choices is not None:
        body = msgspec.msgpack.encode(SharedHandle(choices.place, session, how))
        await choices.keep(context.actor.id, f"handle {id}", body, LIFETIME_S)


async def find_handle(context: ToolContext, id: str) -> SharedHandle | None:
    """What is known of an id that is not here; None if another process did not give it to this
    caller, in this session. Raises: TidegateError STATE_FAILED, RESULT_GONE if it is of another
    release."""
    choices = context.gate.choices
    body = None if choices is None else await choices.find(context.actor.id, f"handle {id}")
    if choices is None or body is None:
        return None
    found = decode_handle(lambda body: decode_msgpack(body, SharedHandle), body, id)
    if found.place == choices.place or found.session != context.context.state_id:
        return None  # it has ended here, or is of another session of this caller
    return found


def decode_handle(decode: Callable[[bytes], Value], body: bytes, id: str) -> Value:
    """What was kept of an id. Raises: TidegateError RESULT_GONE if it is of another release."""
    return decode_carried(decode, body, f"What {id[:80]} names", _OPEN_AGAIN)


async def forget_handle(context: ToolContext, id: str) -> None:
    """An id was closed. Raises: TidegateError STATE_FAILED."""
    if context.gate.choices is not None:
        await context.gate.choices.forget(context.actor.id, f"handle {id}")
