"""Which database a call is about, and waiting for one that cannot be reached yet."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TypeVar

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.identity.builtin_actors import ANONYMOUS
from tidegate.model.actors import Actor
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Connect, Request
from tidegate.products.pgedge.surface.errors import is_not_ready
from tidegate.products.pgedge.surface.settings import PostgresSettings
from tidegate.store.carried import decode_carried
from tidegate.surfaces.tool_context import Choices, ToolContext
from tidegate.typed_values import decode_json

PayloadT = TypeVar("PayloadT")

_FIRST_WAIT_S = 0.1
_MOST_KNOWN = 1_024
_DEFAULT = "postgres.default_source"
_SET_AGAIN = "Set the default again, or name a source in the call."
"""The name of a session's default source in its state."""


class _Default(msgspec.Struct, frozen=True, array_like=True):
    """A default that all processes know; `place` is the one that alone has its source."""

    source: str
    place: str = ""


class Databases:
    """Finds the database of a call, by the settings of the surface, and sends requests to it."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._reached: set[str | None] = set()
        """Sources that could be reached when they were last asked for something."""
        self._defaults: dict[str, str] = {}
        """The default sources of callers without a session, by the id of the actor."""

    async def name_of(self, context: ToolContext, given: str | None) -> str | None:
        """The source that a call is about: the one it names, else the default of its session or
        token, else that of the settings, unless the token is bound to others. None means the only
        one that its caller may see. Raises: TidegateError SOURCE_UNKNOWN, STATE_FAILED."""
        if given:
            return given
        if context.gate.choices is not None:
            chosen = await _kept_default(context, context.gate.choices)
        elif context.context.state_id:
            chosen = context.new_state().get(_DEFAULT)
        else:
            chosen = self._defaults.get(context.actor.id)
        return chosen or self._default_of(context.actor)

    def _default_of(self, actor: Actor) -> str | None:
        default = self._settings.source
        bound = actor.sources is not None and actor.tags is None
        return None if bound and default not in (actor.sources or ()) else default

    async def set_default(
        self, context: ToolContext, source: str, *, temporary: bool = False
    ) -> None:
        """Make it the source of later calls that name none: of the session, or where there is none
        of the token. Raises: TidegateError STATE_FAILED, ARGUMENT_INVALID where there is neither.
        """
        choices = context.gate.choices
        if choices is not None and (context.context.state_id or not _is_anonymous(context.actor)):
            kept = _Default(source, choices.place if temporary else "")
            await choices.keep(context.actor.id, _name_of(context), msgspec.json.encode(kept))
            return
        if context.context.state_id:
            # With the session itself, so that others cannot make it forgotten.
            context.new_state()[_DEFAULT] = source
            return
        actor = context.actor.id
        if _is_anonymous(context.actor):
            raise no_owner()
        self._defaults.pop(actor, None)
        if len(self._defaults) >= _MOST_KNOWN:
            del self._defaults[next(iter(self._defaults))]
        self._defaults[actor] = source

    async def handle(
        self,
        context: ToolContext,
        source: str | None,
        request: Request,
        expected: type[PayloadT],
        *,
        quiet: bool = False,
    ) -> PayloadT:
        """Send a request that reads to a source, once that can be reached.

        Raises: TidegateError SOURCE_UNREACHABLE if it cannot after `ready_wait_s` seconds, and
        whatever the gate refuses or the database says.
        """
        await self.reach(context, source)
        try:
            return await context.handle(request, source, expected, reads_only=True, quiet=quiet)
        except TidegateError as error:
            if error.code is Code.SOURCE_UNREACHABLE:
                self._reached.discard(source)
            raise

    async def reach(self, context: ToolContext, source: str | None) -> None:
        """Wait for a source that could not be reached yet. Raises: as `handle`."""
        if source not in self._reached:
            await self._wait(context, source)

    async def dialect_of(self, context: ToolContext, source: str | None) -> str | None:
        """The dialect of a source; None if the caller sees no such source."""
        found = [
            entry.source.dialect
            for entry in await context.sources()
            if source in (None, entry.source.name, entry.source.id)
        ]
        return found[0] if len(found) == 1 else None

    async def _wait(self, context: ToolContext, source: str | None) -> None:
        until, pause = monotonic() + self._settings.ready_wait_s, _FIRST_WAIT_S
        while True:
            left = until - monotonic()
            try:
                async with asyncio.timeout(max(left, _FIRST_WAIT_S)):
                    await context.handle(Connect(), source, ConnectionState)
                break
            except TimeoutError:
                raise TidegateError(
                    Code.SOURCE_UNREACHABLE, "The database has not answered yet"
                ) from None
            except TidegateError as error:
                # A wrong password is not sent again: servers lock accounts.
                if not is_not_ready(error) or left <= pause:
                    raise
            await asyncio.sleep(pause)
            pause *= 2
        if len(self._reached) >= _MOST_KNOWN:
            self._reached.clear()
        self._reached.add(source)


async def _kept_default(context: ToolContext, choices: Choices) -> str | None:
    """The default that was set at any process. Raises: TidegateError SOURCE_UNKNOWN if its source
    is at another process alone; RESULT_GONE if it is of another release; STATE_FAILED."""
    body = await choices.find(context.actor.id, _name_of(context))
    if body is None:
        return None
    kept = decode_carried(
        lambda body: decode_json(body, _Default), body, "The default of this session", _SET_AGAIN
    )
    if kept.place not in ("", choices.place):
        raise TidegateError(
            Code.SOURCE_UNKNOWN,
            f"The default of this session is a database that was opened by {kept.place}, which has"
            " it alone",
            hint=_SET_AGAIN,
        )
    return kept.source


def _name_of(context: ToolContext) -> str:
    """Under which the default of the session is kept for its caller, else that of the token. It is
    the caller's, so that one with many sessions has no more than its share."""
    return f"{_DEFAULT} {context.context.state_id}"


def _is_anonymous(actor: Actor) -> bool:
    return actor.id.partition("-")[0] == ANONYMOUS.id


def no_owner() -> TidegateError:
    """The refusal of a default that could belong to no one, or that would not last."""
    return TidegateError(
        Code.ARGUMENT_INVALID,
        "There is no session that this default could belong to",
        hint="Send the Mcp-Session-Id of `initialize`, or name the database in each call.",
    )
