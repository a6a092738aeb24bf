"""What callers have chosen or opened, for their calls that come to other processes.

A process has in memory which database a caller has chosen. Where another one may get the next
call, the choice is in the state as well, and each call that may depend on it reads it there: a
choice that has not come yet would send a statement to another database without a word.
"""

from __future__ import annotations

import msgspec

from tidegate.errors import TidegateError
from tidegate.gateway.context import NO_SOURCE, CallContext
from tidegate.gateway.source_connection import SessionTarget
from tidegate.model.requests import Switch
from tidegate.store.calls import change_state, read_state
from tidegate.store.carried import CarriedValues, decode_carried, name_of
from tidegate.typed_values import msgpack_decoder

LIFETIME_S = 2_592_000.0
"""Thirty days, as a session."""
MOST_OF_OWNER = 4_096
"""Of a caller, in all its sessions."""


class _Target(msgspec.Struct, frozen=True, array_like=True):
    database: str | None
    schema: str | None


class Choices:
    """The choices of callers on all processes. `surfaces` are those that have some; `place` names
    this process, for people."""

    def __init__(self, values: CarriedValues, surfaces: frozenset[str], place: str) -> None:
        self._values = values
        self.surfaces = surfaces
        self.place = place
        self._decoder = msgpack_decoder(_Target)

    async def find(self, owner: str, name: str) -> bytes | None:
        """What was kept under a name for an actor, by its id. Raises: TidegateError
        STATE_FAILED."""
        found = await read_state(self._values.read, name_of(owner, name))
        return found[0] if found else None

    async def keep(
        self, owner: str, name: str, value: bytes, lifetime_s: float = LIFETIME_S
    ) -> None:
        """Keep it in place of what was there. Raises: TidegateError STATE_FAILED."""
        await change_state(
            self._values.put, name_of(owner, name), owner, [value], lifetime_s, MOST_OF_OWNER
        )

    async def forget(self, owner: str, name: str) -> None:
        """Remove it. Raises: TidegateError STATE_FAILED."""
        await change_state(self._values.remove, name_of(owner, name))

    # Where the statements of a caller run on a source (`model.requests.Switch`)

    async def load_target(self, ctx: CallContext) -> None:
        """Have the call's connection know where the caller's statements run. Raises: TidegateError
        STATE_FAILED, RESULT_GONE if another release has kept that in another form."""
        if ctx.source is NO_SOURCE or ctx.connection.temporary:
            return
        connection, key = ctx.connection, (ctx.call.actor.id, ctx.call.surface)
        body = await self.find(key[0], _name_of_target(ctx))
        if body is None:
            connection.targets.pop(key, None)
            return
        what = f"Where the statements of this caller run on {ctx.source.name}"
        try:
            kept = decode_carried(self._decoder.decode, body, what, "Choose the database again.")
        except TidegateError:
            if isinstance(ctx.call.request, Switch):
                return  # it says where they run from now on
            raise
        target = SessionTarget(kept.database, kept.schema)
        if connection.targets.get(key) != target:
            connection.targets[key] = target

    async def keep_target(self, ctx: CallContext) -> None:
        """Keep where the caller has switched to. Raises: TidegateError STATE_FAILED."""
        connection, call = ctx.connection, ctx.call
        if connection.temporary:
            return
        target = connection.target_of(call.actor, call.surface)
        body = msgspec.msgpack.encode(_Target(target.database, target.schema))
        await self.keep(call.actor.id, _name_of_target(ctx), body)


def _name_of_target(ctx: CallContext) -> str:
    return f"target {ctx.call.surface} {ctx.source.id}"
