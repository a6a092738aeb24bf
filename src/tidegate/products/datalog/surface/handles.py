"""The ids that callers hold: databases, key-value stores and the indexes in these.

An id belongs to one session of one actor. It ends when it is closed, with what it was opened in,
with its session, and over HTTP when it lies unused. What it names is opened again by each
call, so an id outlives a worker.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from functools import partial
from weakref import WeakValueDictionary

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import CloseTemporary
from tidegate.products.datalog.requests import DatalogTarget, TargetKind
from tidegate.products.datalog.surface.errors import invalid
from tidegate.products.datalog.surface.settings import DatalogSettings
from tidegate.surfaces.shared_handles import (
    decode_handle,
    find_handle,
    forget_handle,
    keep_handle,
)
from tidegate.surfaces.tool_context import ToolContext
from tidegate.typed_values import decode_json

ARGUMENT: dict[TargetKind, str] = {
    "database": "database",
    "kv": "kv",
    "search_index": "searchIndex",
    "vector_index": "vectorIndex",
}
"""The name of the argument, and of the member of a result, that holds an id of each kind."""

_WORDS: dict[TargetKind, str] = {
    "database": "database",
    "kv": "kv store",
    "search_index": "search index",
    "vector_index": "vector index",
}


Key = tuple[str, str, bytes]
"""What was opened, where, and how."""


class _Reopened(msgspec.Struct, frozen=True, array_like=True):
    """How an id in a saved source is opened at another process; `within` is the id of its store,
    empty if it is in none."""

    target: DatalogTarget
    source: str
    key: Key
    within: str


def unknown(kind: TargetKind, id: str) -> TidegateError:
    """The refusal of an id that the caller does not have."""
    code = f":unknown-{kind.replace('_', '-')}"
    return invalid(ARGUMENT[kind], f"Unknown {_WORDS[kind]}: {id[:80]}", code)


class Handle:
    """One id. `source` is the name of its source, `temporary` says that it was opened for the
    session; `key` is equal for what was opened alike; `within` is the store of an index."""

    def __init__(
        self,
        context: ToolContext,
        target: DatalogTarget,
        source: str,
        key: Key,
        *,
        temporary: bool,
        within: Handle | None = None,
        id: str = "",
    ) -> None:
        self.id = id or f"{target.kind.replace('_', '-')}-{uuid.uuid4()}"
        self.actor = context.actor.id
        self.session = context.context.state_id
        self.state_id = context.new_state().id
        self.target = target
        self.source = source
        self.key = key
        self.temporary = temporary
        self.within = within
        self.context = context
        self.timer: asyncio.TimerHandle | None = None


class HandleTable:
    """The ids of all callers."""

    def __init__(self, settings: DatalogSettings) -> None:
        self._settings = settings
        self._handles: dict[str, Handle] = {}
        self._orders: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Task[None]] = set()

    def check_room(self, context: ToolContext) -> None:
        """Raises: TidegateError LIMIT_RATE if the caller has all the ids that it may have."""
        own = sum(each.actor == context.actor.id for each in self._handles.values())
        if own >= self._settings.ids:
            raise TidegateError(
                Code.LIMIT_RATE,
                f"You have {own} ids, which is the most that you may have.",
                hint="Close some of them.",
            )

    async def add(self, handle: Handle) -> None:
        """Keep an id until it ends. Raises: TidegateError STATE_FAILED."""
        self._insert(handle)
        how = b""
        if not handle.temporary:
            within = "" if handle.within is None else handle.within.id
            how = msgspec.json.encode(_Reopened(handle.target, handle.source, handle.key, within))
        await keep_handle(handle.context, handle.id, handle.session, how)

    def _insert(self, handle: Handle) -> None:
        self._handles[handle.id] = handle
        state = handle.context.find_state(handle.state_id)
        if state is not None:
            state.on_close(partial(self._forget, handle.id))
        self._renew(handle)

    def same(self, context: ToolContext, key: Key) -> Handle | None:
        """The caller's id for what was opened by the same key."""
        return next((each for each in self.own(context) if each.key == key), None)

    def own(self, context: ToolContext) -> Iterable[Handle]:
        """The ids of the caller's session; none where a request comes without one."""
        state = context.context.state_id
        return [each for each in self._handles.values() if state and each.state_id == state]

    async def find(self, context: ToolContext, kind: TargetKind, id: str) -> Handle:
        """The caller's own id of a kind, which may be from another process. Raises: TidegateError
        ARGUMENT_INVALID, SOURCE_UNKNOWN, STATE_FAILED."""
        handle = self._handles.get(id)
        if (
            handle is None
            or handle.target.kind != kind
            or handle.actor != context.actor.id
            or context.find_state(handle.state_id) is None
        ):
            handle = await self._bring(context, kind, id)
        handle.context = context
        self._renew(handle)
        return handle

    async def _bring(self, context: ToolContext, kind: TargetKind, id: str) -> Handle:
        """An id of the caller that another process has opened, opened here as well. Raises: as
        `find`."""
        found = await find_handle(context, id)
        if found is None:
            raise unknown(kind, id)
        if not found.how:
            raise found.elsewhere(_WORDS[kind])
        how = decode_handle(lambda body: decode_json(body, _Reopened), found.how, id)
        if how.target.kind != kind:
            raise unknown(kind, id)
        self.check_room(context)
        within = await self.find(context, "kv", how.within) if how.within else None
        handle = Handle(
            context, how.target, how.source, how.key, temporary=False, within=within, id=id
        )
        self._insert(handle)
        return handle

    async def close(self, handle: Handle) -> None:
        """End an id and those within it, and the source if it was opened for them alone."""
        for each in list(self._handles.values()):
            if each is handle or each.within is handle:
                self._forget(each.id)
                await forget_handle(handle.context, each.id)
        used = any(each.source == handle.source for each in self._handles.values())
        if handle.temporary and not used:
            request = CloseTemporary(handle.source)
            await handle.context.handle(request, None, bool)

    def order(self, context: ToolContext) -> asyncio.Lock:
        """The lock that keeps the calls of one session in the order in which they came."""
        key = context.context.state_id
        if not key:
            return asyncio.Lock()
        lock = self._orders.get(key)
        if lock is None:
            lock = self._orders[key] = asyncio.Lock()
        return lock

    def _renew(self, handle: Handle) -> None:
        if not handle.context.context.address:
            return  # on stdio the session ends with the process
        if handle.timer is not None:
            handle.timer.cancel()
        loop = asyncio.get_running_loop()
        handle.timer = loop.call_later(self._settings.idle_s, self._expire, handle)

    def _expire(self, handle: Handle) -> None:
        task = asyncio.ensure_future(self._close_quietly(handle))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_quietly(self, handle: Handle) -> None:
        try:
            await self.close(handle)
        except TidegateError:
            return  # its source ended by itself, or the server does

    def _forget(self, id: str) -> None:
        handle = self._handles.pop(id, None)
        if handle is not None and handle.timer is not None:
            handle.timer.cancel()
