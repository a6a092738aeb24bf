"""One source, and its engine while it is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from tidegate.engines.api import Engine, Lease, LeasedEngine, PooledEngine, PoolWaits
from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.gateway.shared_check import SharedCheck
from tidegate.model.actors import Actor
from tidegate.model.replies import ConnectionState
from tidegate.model.requests import Browse, EngineRequest, Switch
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source

if TYPE_CHECKING:
    from tidegate.gateway.decision import Decision
    from tidegate.gateway.metadata import VisibleCatalogs
    from tidegate.gateway.profile_views import ProfileViews

_MOST_PLACES = 10_000
"""Actors whose switches to other databases and schemas are kept."""


class SessionTarget(msgspec.Struct, frozen=True):
    """Where a caller's statements run on a source; None: where the source's URL says."""

    database: str | None = None
    schema: str | None = None

    def apply_to(self, request: EngineRequest) -> EngineRequest:
        """The request with the database and schema that it does not name itself. A request that
        names its database does not get this schema, which belongs to another one."""
        if request.database is not None:
            return request
        if isinstance(request, Browse):
            return msgspec.structs.replace(request, database=self.database)
        schema = request.schema or self.schema
        return msgspec.structs.replace(request, database=self.database, schema=schema)


DecisionKey = tuple[str, int, int, bool, bool]
"""Text, actor and scope by identity, `confirmed` and `reads_only`."""

_DEFAULT_TARGET = SessionTarget()


class SourceConnection:
    """One source's engine, and since when. `gateway.decision` keeps `decisions`."""

    __slots__ = (
        "catalog",
        "check",
        "connected_at",
        "decisions",
        "decisions_alike",
        "ended",
        "engine",
        "error",
        "last_active_at",
        "limiter",
        "on_end",
        "opening",
        "profiles",
        "schema_check",
        "source",
        "targets",
        "temporary",
        "visible",
    )

    def __init__(
        self,
        source: Source,
        *,
        temporary: bool = False,
        on_end: Callable[[], None] | None = None,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.source = source
        self.temporary = temporary
        self.on_end = on_end
        """Called when a temporary source has ended."""
        self.check = check
        """Raises where a temporary source may not be opened, or used, any more."""
        self.engine: Engine | None = None
        self.opening: asyncio.Task[Engine] | None = None
        self.connected_at: float | None = None
        self.last_active_at: float | None = None
        self.error: str | None = None
        self.catalog: Catalog | None = None
        self.schema_check = SharedCheck()
        self.visible: VisibleCatalogs | None = None
        """What is shown of `catalog` to callers with rules. Kept by `gateway.metadata`."""
        self.targets: dict[tuple[str, str], SessionTarget] = {}
        """By the id of the actor and the surface on which it switched: over another road its
        statements run where the source's URL says."""
        self.decisions: dict[DecisionKey, Decision] = {}
        self.decisions_alike: dict[DecisionKey, Decision] = {}
        """Of reads, with the fingerprint in place of the text. Kept apart: a fingerprint may be the
        text of a statement as well, and what is known of that holds for nothing else."""
        self.limiter = ConcurrencyLimiter()
        self.profiles: ProfileViews | None = None
        self.ended = False
        """Whether the source was removed, or has other settings now: a connection of its own."""

    def forget_profiles(self) -> None:
        """End the sampling of tables and forget what was learned."""
        if self.profiles is not None:
            self.profiles.stop()
            self.profiles = None

    def target_of(self, actor: Actor, surface: str) -> SessionTarget:
        """Where the actor's statements run."""
        return self.targets.get((actor.id, surface), _DEFAULT_TARGET)

    def switch(self, actor: Actor, surface: str, switch: Switch) -> None:
        """Run the actor's later statements on this surface elsewhere. Another database has schemas
        of its own."""
        schema, key = switch.schema, (actor.id, surface)
        database = switch.database or self.target_of(actor, surface).database
        if key not in self.targets and len(self.targets) >= _MOST_PLACES:
            del self.targets[next(iter(self.targets))]
        self.targets[key] = SessionTarget(database, schema)

    @property
    def open_connections(self) -> int | None:
        """How many connections the engine has open; None where it does not say."""
        engine = self.engine
        return engine.open_connections if isinstance(engine, PooledEngine) else None

    @property
    def pool_waits(self) -> PoolWaits | None:
        """The waits for connections of the engine; None where it does not say."""
        engine = self.engine
        return engine.pool_waits if isinstance(engine, PooledEngine) else None

    @property
    def lease(self) -> Lease | None:
        """For how long the account of the source is there; None if it is not on lease."""
        engine = self.engine
        return engine.lease if isinstance(engine, LeasedEngine) else None

    def state(self, actor: Actor, surface: str = "") -> ConnectionState:
        """As the actor sees it, who may have switched to another database or schema."""
        if self.engine is not None:
            # New connections may be refused while the engine has others.
            status, current = "error" if self.error else "connected", self.engine.status
            place = self.target_of(actor, surface)
            if place is not _DEFAULT_TARGET:
                current = msgspec.structs.replace(
                    current,
                    database=place.database or current.database,
                    schema=place.schema or (None if place.database else current.schema),
                )
        else:
            current = None
            status = "connecting" if self.opening else "error" if self.error else "disconnected"
        return ConnectionState(status, current, self.connected_at, self.last_active_at, self.error)
