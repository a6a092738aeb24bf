"""Records what happens to a server around its calls: what a person does to it, when it starts and
stops, and which calls were rejected before they reached the gateway.

`record` and `record_as` go before the deed, which is only done if they return. `record_done` goes
after what nothing may prevent, such as revoking a token: if the log cannot be written, the record
is kept in the state and written by the next process that can.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256

import msgspec

from tidegate.audit.server_event import ServerEvent
from tidegate.audit.sink import Sink
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.protocol.model import Context
from tidegate.store.api import SharedStore


class ServerAudit:
    """The server events of one process. `default_actor` is the actor where no other is named.

    `shared` keeps what could not be recorded; without it, that is counted as missing.
    """

    def __init__(
        self, audit: Sink, default_actor: str = "cli", shared: SharedStore | None = None
    ) -> None:
        self._audit = audit
        self._shared = shared
        self._may_wait = shared is not None
        self._default_actor = default_actor

    def record(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what is about to be done. Raises: TidegateError AUDIT_UNAVAILABLE."""
        self.record_as(name, "", details)

    def record_as(self, name: str, actor: str, details: Mapping[str, str]) -> None:
        """As `record`, done by that actor if one is named."""
        self._audit.record_event(self._event(name, actor, details))
        if self._may_wait:
            self._record_kept()

    def record_done(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what was done already; later, if it cannot be done now. Never raises."""
        self.record_done_as(name, "", details)

    def record_done_as(self, name: str, actor: str, details: Mapping[str, str]) -> None:
        """As `record_done`, done by that actor if one is named."""
        event = self._event(name, actor, details)
        try:
            self._audit.record_event(event)
        except TidegateError:
            self._keep(event)

    def _event(self, name: str, actor: str, details: Mapping[str, str]) -> ServerEvent:
        return ServerEvent(name=name, actor=actor or self._default_actor, details=dict(details))

    def _keep(self, event: ServerEvent) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        late = msgspec.structs.replace(event, details={**event.details, "happened_at": at})
        if self._shared is not None:
            with suppress(TidegateError):
                self._shared.keep_unrecorded(msgspec.json.encode(late))
                self._may_wait = True
                return
        self._audit.count_missed()

    def _record_kept(self) -> None:
        """Record what this process or another could not. Two may do so at once: a line twice is
        better than none."""
        if self._shared is None:
            return
        with suppress(TidegateError):
            for id, kept in self._shared.unrecorded():
                self._audit.record_event(msgspec.json.decode(kept, type=ServerEvent))
                self._shared.forget_unrecorded(id)
            self._may_wait = False

    def record_anonymous(self, name: str, details: Mapping[str, str]) -> None:
        """Put on record what callers without a token cause."""
        self._audit.record_repeated(ServerEvent(name=name, details=dict(details)))

    def record_rejected(self, context: Context, tool: str, reason: str) -> None:
        """Put on record a call that never reached the gate."""
        actor, client = context.actor, context.client
        self._audit.record_repeated(
            ServerEvent(
                name="call.turned_away",
                actor=actor.id,
                actor_name=actor.name,
                client=f"{client.name}/{client.version}",
                details={"tool": tool, "reason": reason},
            )
        )

    def record_start(self, config: Config, edge: str) -> None:
        """Put on record who serves what under which settings. Raises: TidegateError."""
        details = {
            "edge": edge,
            "surfaces": " ".join(config.surfaces) or "default",
            "auth": str(config.auth).lower(),
            "writes": str(config.allow_writes).lower(),
            "failure_mode": config.audit.failure_mode,
            "settings": _digest(config),
        }
        self.record_as("server.started", "server", details)

    def record_settings_change(self, config: Config) -> None:
        """Put on record that other settings hold from now on. Raises: TidegateError."""
        self.record_as("settings.changed", "server", {"settings": _digest(config)})

    def record_stop(self) -> None:
        """Put on record that the server ends."""
        self._audit.record_repeated(ServerEvent(name="server.stopped", actor="server"))


def _digest(config: Config) -> str:
    """What tells two settings apart in the record, without their content."""
    return f"sha256:{sha256(msgspec.json.encode(config)).hexdigest()}"
