"""The sources, and which of them are open: the first step of a call finds one, a later opens it.

A source is opened when it is first needed, once, however many calls wait for it. Sources come from
the store, the settings and the command line; a change of the first two takes effect on the next
call.
"""

from __future__ import annotations

import asyncio
import difflib
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

import msgspec

from tidegate.engines.api import Engine
from tidegate.engines.common.errors import ANSWERED
from tidegate.errors import Code, TidegateError
from tidegate.gateway.source_connection import SourceConnection
from tidegate.model.actors import Actor
from tidegate.model.identity_cache import IdentityCache
from tidegate.model.replies import SourceEntry
from tidegate.model.requests import EngineRequest, ListSources
from tidegate.model.sources import Source
from tidegate.policy.rules import ALLOWLIST_RULE, NOT_LISTED
from tidegate.policy.verdict import is_visible

if TYPE_CHECKING:
    from tidegate.gateway.context import CallContext

_MOST_SHOWN = 80
_MOST_COMPARED = 500
_MOST_ACTORS = 1_024
_CLOSE_S = 5.0
_OUT_OF_REACH = frozenset(
    {
        *(Code.SOURCE_UNREACHABLE, Code.SOURCE_URL, Code.SOURCE_LOCKED),
        *(Code.SECRET_UNAVAILABLE, Code.KEYRING_FAILED),
        *(Code.CREDENTIAL_UNAVAILABLE, Code.CREDENTIAL_REFUSED),
    }
)
"""Why every other call on a source will fail as well."""
"""How long a caller waits for the engine of a source that it closes."""
_ALL = ListSources()

OpenEngine = Callable[[Source], Awaitable[Engine]]
ApplyGlobalRules = Callable[[Source], Source]
ConfiguredSources = tuple[tuple[Source, ...], ApplyGlobalRules]
"""The sources that the settings name, and what the settings put on every source."""

_name_of = attrgetter("name")


class SavedSources(Protocol):
    """What the directory reads of the saved sources (`store.api.SourceStore`)."""

    def generation(self) -> int: ...
    def list(self) -> tuple[Source, ...]: ...


class NoSavedSources:
    """For a gate whose sources are all given to it."""

    def generation(self) -> int:
        return 0

    def list(self) -> tuple[Source, ...]:
        return ()


class SourceConnections:
    """The directory of sources and their open engines."""

    def __init__(
        self,
        store: SavedSources,
        open_engine: OpenEngine,
        ephemeral: Iterable[Source] = (),
        apply_global_rules: ApplyGlobalRules | None = None,
    ) -> None:
        """`apply_global_rules` adds to a source, saved or not, the rules that the settings
        have for all of them."""
        self._apply_global_rules = apply_global_rules
        self._store = store
        self._open_engine = open_engine
        self._ephemeral = tuple(ephemeral)
        self._follow: Callable[[], ConfiguredSources | None] | None = None
        self._generation: int | None = None
        self._connections: dict[str, SourceConnection] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._temporary: dict[tuple[str, str], SourceConnection] = {}
        self._timers: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._ordered: tuple[Source, ...] = ()
        self._only: dict[int, tuple[Actor, SourceConnection]] = {}
        self._unopened: set[SourceConnection] = set()
        self._visible = IdentityCache(self._visible_now)
        self._opened: set[SourceConnection] = set()
        self._note_close: Callable[[SourceConnection], None] = _note_nothing

    def with_global_rules(self, source: Source) -> Source:
        """The source as it would be served: with the rules that the settings have for all."""
        return source if self._apply_global_rules is None else self._apply_global_rules(source)

    def watch_closes(self, closed: Callable[[SourceConnection], None]) -> None:
        """Call `closed` when the engine of a source is closed while the server runs on."""
        self._note_close = closed

    def watch_settings(self, changed: Callable[[], ConfiguredSources | None]) -> None:
        """Ask `changed`, before anything else, what the settings say now, if it is new."""
        self._follow = changed

    def sources(self) -> tuple[Source, ...]:
        """Every source by name; one given for this run replaces a saved one of its name."""
        self._refresh()
        return self._ordered

    def source_of(self, name: str) -> Source | None:
        """The source of that name as it was last read; None if there was none."""
        connection = self._connections.get(name)
        return connection.source if connection and connection.source.name == name else None

    def list_for(
        self, actor: Actor, session: str = "", wanted: ListSources = _ALL, surface: str = ""
    ) -> tuple[SourceEntry, ...]:
        """The sources that the actor may see, with the state of their connections; those that
        `session` opened for itself come last. Costs what it lists, however many there are."""
        self._refresh()
        if wanted.keys is not None:
            found = [self._visible_by(key, actor, session) for key in wanted.keys]
            listed = [connection for connection in found if connection is not None]
        elif wanted.connected:
            opened = sorted(self._opened, key=lambda connection: connection.source.name)
            listed = [each for each in opened if self._is_for(each, actor, session)]
        else:
            listed = self._listed(actor, session, wanted.after)
        few = islice(listed, wanted.limit)
        return tuple(
            [SourceEntry(each.source, each.state(actor, surface), each.temporary) for each in few]
        )

    def _listed(
        self, actor: Actor, session: str, after: tuple[bool, str] | None
    ) -> Iterator[SourceConnection]:
        temporary, name = after or (False, "")
        if not temporary:
            visible = self.visible_to(actor)
            first = 0 if after is None else bisect_right(visible, name, key=_name_of)
            for place in range(first, len(visible)):
                yield self._connections[visible[place].name]
            name = ""
        own = {
            place: connection
            for (owner, place), connection in self._temporary.items()
            if place > name and self._is_for(connection, actor, session, owner)
        }
        for place in sorted(own):
            yield own[place]

    def _visible_by(self, key: str, actor: Actor, session: str) -> SourceConnection | None:
        """The connection of a source by name or id, if the actor may see it."""
        connection = self._connections.get(key)
        if connection is not None:
            return connection if is_visible(actor, connection.source) else None
        for owner in (session, actor.id):
            connection = self._temporary.get((owner, key))
            if connection is not None and is_visible(actor, connection.source):
                return connection
        for (owner, _), each in self._temporary.items():
            if each.source.id == key and self._is_for(each, actor, session, owner):
                return each
        return None

    def _is_for(
        self, connection: SourceConnection, actor: Actor, session: str, owner: str | None = None
    ) -> bool:
        """Whether the actor may see a connection; of a temporary one, whether it is its own."""
        source = connection.source
        if connection.temporary:
            if source.name in self._connections:
                return False
            owners = (session, actor.id) if owner is None else (owner,)
            own = [each for each in owners if self._temporary.get((each, source.name))]
            if not any(self._temporary[each, source.name] is connection for each in own):
                return False
            if owner is not None and owner not in (session, actor.id):
                return False
        return is_visible(actor, source)

    def in_use(self) -> tuple[SourceConnection, ...]:
        """Those that are open, are being opened or could not be; temporary ones left out."""
        every = self._connections.values()
        kept = {each.source.name: each for each in every if each.engine or each.opening}
        kept |= {each.source.name: each for each in self._unopened}
        return tuple(kept.values())

    def unopened(self) -> dict[str, str]:
        """Why sources could not be opened at the last attempt, by name."""
        return {each.source.name: each.error for each in self._unopened if each.error is not None}

    def visible_to(self, actor: Actor) -> tuple[Source, ...]:
        """The sources that the actor may see, by name."""
        self._refresh()
        return self._visible.get(actor)

    def _visible_now(self, actor: Actor) -> tuple[Source, ...]:
        return tuple([source for source in self._ordered if is_visible(actor, source)])

    def find(self, key: str | None, actor: Actor, session: str = "") -> SourceConnection:
        """The connection of a source by name or id; None means the actor's only source.

        Raises: TidegateError SOURCE_UNKNOWN that names the known sources. For a name that is not on
        an actor's allowlist POLICY_SOURCE, as for a source that exists, so that the actor cannot
        find out which sources there are.
        """
        self._refresh()
        if key is not None:
            connection = self._connections.get(key)
            if connection is None and self._temporary:
                # A configured source comes first: a session cannot put its own in front of it.
                connection = self._temporary.get((session, key)) or self._temporary.get(
                    (actor.id, key)
                )
            if connection is not None:
                return connection
        else:
            # By the actor's identity, which the entry keeps from being taken by another.
            only = self._only.get(id(actor))
            if only is not None:
                return only[1]
        visible = self.visible_to(actor)
        if key is None and len(visible) == 1:
            connection = self._connections[visible[0].name]
            if len(self._only) >= _MOST_ACTORS:
                self._only.clear()
            self._only[id(actor)] = actor, connection
            return connection
        limited = actor.sources is not None or actor.tags is not None
        if key is not None and limited and key not in (actor.sources or ()):
            raise _not_listed()
        raise _unknown(key, [source.name for source in visible[:_MOST_COMPARED]])

    async def engine(self, connection: SourceConnection) -> Engine:
        """The open engine, opened now if it is not.

        Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_URL, ENGINE_MISSING.
        """
        if connection.engine is not None:
            return connection.engine
        if connection.ended:  # found before that
            raise _ended(connection)
        if connection.opening is None:
            connection.opening = asyncio.ensure_future(self._open(connection))
            connection.opening.add_done_callback(_retrieve)
        opening = connection.opening
        try:
            # Shielded: when one caller is cancelled, the others still wait for the connection.
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if opening.cancelled() and connection.ended:  # the source ended, not the call
                raise _ended(connection) from None
            raise

    def add_temporary(
        self,
        source: Source,
        id: str,
        owner: str,
        lifetime_s: float,
        most: int,
        on_end: Callable[[], None] | None = None,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> Source:
        """Add a source that only `owner` sees, the id of a session's state or of an actor. The
        settings for all sources apply to it. `on_end` is called when it has ended, and `check`
        before and after its engine is opened and before each call.
        `temporary_sources.open_temporary` checks the policy.

        Raises: TidegateError ARGUMENT_INVALID if the name is taken or `owner` has `most` already.
        """
        self._refresh()
        if not owner:
            raise TidegateError(Code.INTERNAL, "A temporary source needs an owner")
        key = owner, source.name
        own = [name for other, name in self._temporary if other == owner]
        if source.name in self._connections or source.name in own:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"There is a source {source.name!r} already.",
                hint="Use another name.",
            )
        if len(own) >= most:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"This session has {most} temporary sources, which is the most it may have.",
                hint="Close one of them first.",
            )
        source = msgspec.structs.replace(source, id=id, ephemeral=True, temporary=True)
        source = self.with_global_rules(source)
        self._temporary[key] = SourceConnection(source, temporary=True, on_end=on_end, check=check)
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(lifetime_s, self._end_temporary, key)
        return source

    def close_temporary_of(self, owner: str) -> None:
        """Remove what `owner` opened. Engines close in the background; `close` waits for them."""
        for key in [key for key in self._temporary if key[0] == owner]:
            self._end_temporary(key)

    def find_temporary(self, owner: str, name: str) -> SourceConnection | None:
        """The connection of a source that `owner` opened, while it lasts."""
        return self._temporary.get((owner, name))

    async def close_temporary(self, owner: str, name: str) -> bool:
        """Remove one source that `owner` opened, and wait until its engine has let go of what it
        holds, such as a lock on a directory. Returns whether there was one."""
        connection = self._temporary.get((owner, name))
        closing = self._end_temporary((owner, name))
        if closing is not None:
            await asyncio.wait((closing,), timeout=_CLOSE_S)
        return connection is not None

    def _end_temporary(self, key: tuple[str, str]) -> asyncio.Task[None] | None:
        """Remove a source. Returns the task that closes its engine, if it has one."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        connection = self._temporary.pop(key, None)
        if connection is None:
            return None
        if connection.opening is not None:
            connection.opening.cancel()
        closing = self._end(connection)
        connection.engine = None
        if connection.on_end is not None:
            connection.on_end()
        return closing

    async def try_login(self, connection: SourceConnection) -> None:
        """Log in once more where an open source was refused the login last. Raises: as `engine`."""
        if connection.engine is None or connection.error is None:
            return
        tried = await self._open_engine(connection.source)
        await tried.close()
        connection.error = None

    async def disconnect(self, connection: SourceConnection) -> None:
        """Close a source's engine. Raises: TidegateError SOURCE_NOT_CONNECTED if it is closed."""
        engine, connection.engine = connection.engine, None
        connection.catalog = connection.visible = None
        self._opened.discard(connection)
        connection.forget_profiles()
        if engine is None:
            raise TidegateError(
                Code.SOURCE_NOT_CONNECTED, f"The source {connection.source.name!r} is not connected"
            )
        self._note_close(connection)
        await engine.close()

    async def close(self) -> None:
        """Close every engine."""
        for key in list(self._temporary):
            self._end_temporary(key)
        engines: list[Engine] = []
        for connection in set(self._connections.values()):
            connection.forget_profiles()
            if connection.opening is not None:
                connection.opening.cancel()
            if connection.engine is not None:
                engines.append(connection.engine)
                connection.engine = None
                self._opened.discard(connection)
        await asyncio.gather(*(engine.close() for engine in engines))
        if self._closing:
            await asyncio.wait(self._closing)

    async def _refuse_known(self, source: Source, opened: Engine) -> None:
        """Refuse a temporary source whose server says that it is the database of another source,
        whatever address led to it. Those that are closed are opened for that, unless they could not
        be. Raises: TidegateError POLICY_DENIED."""
        identity = opened.status.identity
        for connection in set(self._connections.values()):
            if connection.source.engine != source.engine:
                continue
            if connection.engine is None and connection.error is None:
                with suppress(TidegateError):
                    await self.engine(connection)
            engine = connection.engine
            if engine is not None and engine.status.identity == identity:
                raise TidegateError(
                    Code.POLICY_DENIED,
                    "That database is a source of this server already.",
                    hint="Use the source by its name.",
                    details={"rule": "source.temporary"},
                )

    async def _open(self, connection: SourceConnection) -> Engine:
        try:
            if connection.check is not None:
                await connection.check()
            engine = await self._open_engine(connection.source)
            if connection.check is not None:
                await _check_opened(connection.check, engine)
            if connection.temporary and engine.status.identity:
                await _check_opened(partial(self._refuse_known, connection.source, engine), engine)
        except TidegateError as error:
            connection.error = error.without_secrets().message
            self._unopened.add(connection)
            raise
        finally:
            connection.opening = None
        if connection.ended:  # while it was opened: no later call would close it
            await engine.close()
            raise _ended(connection)
        connection.engine = engine
        self._opened.add(connection)
        connection.limiter.share(engine.capabilities.max_concurrency)
        connection.error = None
        self._unopened.discard(connection)
        connection.connected_at = connection.last_active_at = time.time()
        return engine

    def _refresh(self) -> None:
        if self._follow is not None:
            declared = self._follow()
            if declared is not None:
                self._ephemeral, self._apply_global_rules = declared
                self._generation = None
                # They were opened under the rules before, of which some may be stricter now.
                for key in list(self._temporary):
                    self._end_temporary(key)
        generation = self._store.generation()
        if generation == self._generation:
            return
        named = {source.name: source for source in self._store.list()}
        named.update((source.name, source) for source in self._ephemeral)
        named = {name: self.with_global_rules(source) for name, source in named.items()}
        old = self._connections
        fresh: dict[str, SourceConnection] = {}
        for name in sorted(named):
            source = named[name]
            kept = old.get(name)
            connection = (
                kept if kept is not None and kept.source == source else SourceConnection(source)
            )
            fresh[name] = connection
            fresh.setdefault(source.id, connection)
        self._connections = fresh
        self._ordered = tuple(named[name] for name in sorted(named))
        self._generation = generation
        self._only.clear()
        self._visible.clear()
        self._drop(set(old.values()) - set(fresh.values()))

    def _drop(self, gone: set[SourceConnection]) -> None:
        """Close what was removed or changed, without making the caller wait."""
        for connection in gone:
            self._end(connection)

    def _end(self, connection: SourceConnection) -> asyncio.Task[None] | None:
        """Take no more calls, and close the engine in a task of its own."""
        self._unopened.discard(connection)
        self._opened.discard(connection)
        connection.ended = True
        connection.forget_profiles()
        if connection.engine is None:
            return None
        self._note_close(connection)
        task = asyncio.ensure_future(connection.engine.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task


def find(ctx: CallContext) -> None:
    """Find the source that the call is about, or all that its caller may see.

    Raises: TidegateError SOURCE_UNKNOWN, POLICY_SOURCE.
    """
    call, connections = ctx.call, ctx.services.connections
    if call.source is None and call.request.spans_sources:
        ctx.sources = connections.visible_to(call.actor)
        return
    ctx.connection = connection = connections.find(call.source, call.actor, call.session)
    ctx.source = connection.source
    ctx.sources = (connection.source,)


async def connect(ctx: CallContext) -> None:
    """Open the source if it is closed, and find out where the request will run.

    Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_URL, ENGINE_MISSING.
    """
    call, connection, request = ctx.call, ctx.connection, ctx.call.request
    if not isinstance(request, EngineRequest):
        raise TidegateError(Code.INTERNAL, f"{type(request).__name__} needs no engine")
    if call.progress is not None:
        call.progress(0.0, "Connecting")
    if connection.check is not None and connection.engine is not None:
        await connection.check()
    ctx.engine = connection.engine or await ctx.services.connections.engine(connection)
    if connection.targets:
        request = connection.target_of(call.actor, call.surface).apply_to(request)
    ctx.request = ctx.rewritten = request
    ctx.database = request.database or ctx.engine.status.database


def note_reach(
    connection: SourceConnection, error: TidegateError | None, database: str | None = None
) -> None:
    """Note that an open source could not be reached, or refused the login, or that a statement ran
    on it. That a `database` which the call names is not there says nothing of the source."""
    if error is None:
        connection.error = None
        return
    is_out = error.code in _OUT_OF_REACH and database is None
    if connection.engine is not None and (is_out or error.details.get("cause") in ANSWERED):
        connection.error = error.without_secrets().message


async def _check_opened(check: Callable[[], Awaitable[None]], engine: Engine) -> None:
    try:
        await check()
    except BaseException:
        await engine.close()
        raise


def _note_nothing(connection: SourceConnection) -> None:
    """No one wants to know."""


def _retrieve(opening: asyncio.Task[Engine]) -> None:
    """Consume the error: those who waited for the source may all have been cancelled."""
    if not opening.cancelled():
        opening.exception()


def _ended(connection: SourceConnection) -> TidegateError:
    name = connection.source.name
    if connection.temporary:
        return _unknown(name, ())
    return TidegateError(
        Code.SOURCE_UNREACHABLE,
        f"The settings of the source {name!r} changed while the call began.",
        hint="Send it again.",
    )


def _not_listed() -> TidegateError:
    """As `policy.rules` refuses a source that is not on the caller's allowlist."""
    return TidegateError(Code.POLICY_SOURCE, NOT_LISTED, details={"rule": ALLOWLIST_RULE})


def _unknown(key: str | None, visible: Sequence[str]) -> TidegateError:
    if key is None:
        message = "Name a source" if visible else "There is no source that you may use"
    else:
        key = key[:_MOST_SHOWN]
        message = f"There is no source {key!r}"
    near = difflib.get_close_matches(key or "", visible, 1)
    if near:
        hint = f"Did you mean {near[0]!r}?"
    elif visible:
        hint = "Sources: " + ", ".join(visible[:10]) + (", ..." if len(visible) > 10 else "")
    else:
        hint = "Ask the operator to add one."
    return TidegateError(Code.SOURCE_UNKNOWN, message, hint=hint)
