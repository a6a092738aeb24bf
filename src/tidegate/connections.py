"""Which sources there are, and which of them are open. Decides nothing about permission.

A source is opened when it is first needed, once, however many calls wait for it. Sources come from
the store and from the command line; a change in the store takes effect on the next call.
"""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from tidegate.actors import Actor
from tidegate.calls import Browse, EngineRequest, Switch
from tidegate.engines.api import Engine
from tidegate.errors import Code, GateError
from tidegate.metadata import Catalog
from tidegate.policy.decide import is_visible
from tidegate.replies import ConnectionState, SourceEntry
from tidegate.shares import Shares
from tidegate.sources import Source
from tidegate.store.api import Store

_MOST_SHOWN = 80
_MOST_COMPARED = 500
_MOST_PLACES = 10_000

OpenEngine = Callable[[Source], Awaitable[Engine]]
Dress = Callable[[Source], Source]
Declared = tuple[tuple[Source, ...], Dress]
"""The sources that the settings name, and what the settings put on every source."""


class Place(msgspec.Struct, frozen=True):
    """Where a caller's statements run on a source; None: where the source's URL says."""

    database: str | None = None
    schema: str | None = None

    def applied(self, request: EngineRequest) -> EngineRequest:
        """The request with what it does not say itself; schemas are those of their database."""
        if request.database is not None:
            return request
        if isinstance(request, Browse):
            return msgspec.structs.replace(request, database=self.database)
        schema = request.schema or self.schema
        return msgspec.structs.replace(request, database=self.database, schema=schema)


_HERE = Place()


class Connection:
    """One source's engine, and since when."""

    __slots__ = (
        "catalog",
        "connected_at",
        "engine",
        "error",
        "last_active_at",
        "opening",
        "places",
        "shares",
        "source",
    )

    def __init__(self, source: Source) -> None:
        self.source = source
        self.engine: Engine | None = None
        self.opening: asyncio.Task[Engine] | None = None
        self.connected_at: float | None = None
        self.last_active_at: float | None = None
        self.error: str | None = None
        self.catalog: Catalog | None = None
        self.places: dict[str, Place] = {}
        self.shares = Shares()

    def place(self, actor: Actor) -> Place:
        """Where the actor's statements run."""
        return self.places.get(actor.id, _HERE)

    def switch(self, actor: Actor, switch: Switch) -> None:
        """Run the actor's later statements elsewhere. Another database has schemas of its own."""
        schema = switch.schema
        database = switch.database or self.place(actor).database
        if actor.id not in self.places and len(self.places) >= _MOST_PLACES:
            del self.places[next(iter(self.places))]
        self.places[actor.id] = Place(database, schema)

    def state(self, actor: Actor) -> ConnectionState:
        """As the actor sees it, who may have switched to another database or schema."""
        if self.engine is not None:
            status, current = "connected", self.engine.status
            place = self.place(actor)
            if place is not _HERE:
                current = msgspec.structs.replace(
                    current,
                    database=place.database or current.database,
                    schema=place.schema or (None if place.database else current.schema),
                )
        else:
            current = None
            status = "connecting" if self.opening else "error" if self.error else "disconnected"
        return ConnectionState(status, current, self.connected_at, self.last_active_at, self.error)


class Connections:
    """The directory of sources and their open engines."""

    def __init__(
        self,
        store: Store,
        open_engine: OpenEngine,
        ephemeral: Iterable[Source] = (),
        dress: Dress | None = None,
    ) -> None:
        """`dress` puts on a source, saved or not, what the settings say of all of them."""
        self._dress = dress
        self._store = store
        self._open_engine = open_engine
        self._ephemeral = tuple(ephemeral)
        self._follow: Callable[[], Declared | None] | None = None
        self._generation: int | None = None
        self._connections: dict[str, Connection] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._ordered: tuple[Source, ...] = ()

    def follow(self, changed: Callable[[], Declared | None]) -> None:
        """Ask `changed`, before anything else, what the settings say now, if it is new."""
        self._follow = changed

    def sources(self) -> tuple[Source, ...]:
        """Every source by name; one given for this run stands for a saved one of its name."""
        self._refresh()
        return self._ordered

    def entries(self, actor: Actor) -> tuple[SourceEntry, ...]:
        """What the actor may see of the sources, and where their connections stand."""
        self._refresh()
        return tuple(
            SourceEntry(source, self._connections[source.name].state(actor))
            for source in self._ordered
            if is_visible(actor, source)
        )

    def find(self, key: str | None, actor: Actor) -> Connection:
        """The connection of a source by name or id; None stands for the actor's only source.

        Raises: GateError SOURCE_UNKNOWN that names what there is.
        """
        self._refresh()
        if key is not None:
            connection = self._connections.get(key)
            if connection is not None:
                return connection
        visible = [source.name for source in self._ordered if is_visible(actor, source)]
        if key is None and len(visible) == 1:
            return self._connections[visible[0]]
        raise _unknown(key, visible)

    async def engine(self, connection: Connection) -> Engine:
        """The open engine, opened now if it is not.

        Raises: GateError SOURCE_UNREACHABLE, SOURCE_URL, ENGINE_MISSING.
        """
        if connection.engine is not None:
            return connection.engine
        if connection.opening is None:
            connection.opening = asyncio.ensure_future(self._open(connection))
        # Shielded: one caller's end must not close the door on the others who wait.
        return await asyncio.shield(connection.opening)

    async def disconnect(self, connection: Connection) -> None:
        """Close a source's engine. Raises: GateError SOURCE_NOT_CONNECTED if it is closed."""
        engine, connection.engine, connection.catalog = connection.engine, None, None
        if engine is None:
            raise GateError(
                Code.SOURCE_NOT_CONNECTED, f"The source {connection.source.name!r} is not connected"
            )
        await engine.close()

    async def close(self) -> None:
        """Close every engine."""
        for connection in set(self._connections.values()):
            if connection.opening is not None:
                connection.opening.cancel()
            if connection.engine is not None:
                engine, connection.engine = connection.engine, None
                await engine.close()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _open(self, connection: Connection) -> Engine:
        try:
            engine = await self._open_engine(connection.source)
        except GateError as error:
            connection.error = error.discreet().message
            raise
        finally:
            connection.opening = None
        connection.engine = engine
        connection.error = None
        connection.connected_at = connection.last_active_at = time.time()
        return engine

    def _refresh(self) -> None:
        if self._follow is not None:
            declared = self._follow()
            if declared is not None:
                self._ephemeral, self._dress = declared
                self._generation = None
        generation = self._store.generation("sources")
        if generation == self._generation:
            return
        named = {source.name: source for source in self._store.sources()}
        named.update((source.name, source) for source in self._ephemeral)
        if self._dress is not None:
            named = {name: self._dress(source) for name, source in named.items()}
        old = self._connections
        fresh: dict[str, Connection] = {}
        for name in sorted(named):
            source = named[name]
            kept = old.get(name)
            connection = kept if kept is not None and kept.source == source else Connection(source)
            fresh[name] = connection
            fresh.setdefault(source.id, connection)
        self._connections = fresh
        self._ordered = tuple(named[name] for name in sorted(named))
        self._generation = generation
        self._drop(set(old.values()) - set(fresh.values()))

    def _drop(self, gone: set[Connection]) -> None:
        """Close what was removed or changed, without making the caller wait."""
        for connection in gone:
            if connection.engine is not None:
                task = asyncio.ensure_future(connection.engine.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)


def _unknown(key: str | None, visible: Sequence[str]) -> GateError:
    if key is None:
        message = "Name a source" if visible else "There is no source that you may use"
    else:
        key = key[:_MOST_SHOWN]
        message = f"There is no source {key!r}"
    near = difflib.get_close_matches(key or "", visible[:_MOST_COMPARED], 1)
    if near:
        hint = f"Did you mean {near[0]!r}?"
    elif visible:
        hint = "Sources: " + ", ".join(visible[:10]) + (", ..." if len(visible) > 10 else "")
    else:
        hint = "Ask the operator to add one."
    return GateError(Code.SOURCE_UNKNOWN, message, hint=hint)
