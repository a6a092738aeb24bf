"""Audit events that are not calls: failed logins, changes of tokens and settings, start and stop.

Event names have the form `area.what`, such as `token.created`. Details are short text without
secrets. Events that callers without a token can cause are limited in number, so that such callers
cannot fill the disk.

`record` and `record_as` are called before an action, which is done only if they return.
`record_done` is called after an action that must work without a record, such as revoking a token:
if the log cannot be written, the event is kept in the state and recorded later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal

import msgspec

from tidegate.audit.event import escape_invisible, short_text
from tidegate.audit.sink import Sink
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.protocol.model import Context
from tidegate.secrets.redaction import redact
from tidegate.store.api import SharedStore
from tidegate.typed_values import decode_json

MAX_DETAILS = 32
PERIOD_S = 60.0
RECORDED_PER_PERIOD = 10
"""The number of events of one name in a period that get a line each; further ones are counted."""
MAX_ORIGINS = 16
"""The number of origins that a count distinguishes."""

_encode = msgspec.json.Encoder().encode


class ServerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is not a call. `actor` is the id of the one that caused it: a token's id,
    `stdio`, `cli`; empty if it is unknown. `address` is the IP address of an actor's client that
    called over HTTP."""

    name: str
    actor: str = ""
    actor_name: str = ""
    client: str = ""
    details: dict[str, str] = {}
    address: str = ""
    phase: Literal["event"] = "event"


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A server event as a line holds it; `count` is the number of events that it counts."""

    seq: int
    time: datetime
    phase: str
    name: str
    actor: str = ""
    actor_name: str = ""
    client: str = ""
    details: dict[str, str] = {}
    count: int | None = None
    address: str = ""


def encode_server_event(
    event: ServerEvent, seq: int, now: float, count: int | None = None
) -> bytes:
    """The body of the line: a JSON object that starts with `seq`, without line breaks."""
    details = {
        short_text(name): short_text(redact(value))
        for name, value in list(event.details.items())[:MAX_DETAILS]
    }
    return escape_invisible(
        _encode(
            _Line(
                seq,
                datetime.fromtimestamp(now, UTC),
                "event",
                short_text(event.name),
                short_text(event.actor),
                short_text(event.actor_name),
                short_text(event.client),
                details,
                count,
                short_text(event.address),
            )
        )
    )


class RepeatCounter:
    """Limits the lines of events that callers without a token can cause.

    The first `RECORDED_PER_PERIOD` events of a name in a period get a line each. Further ones are
    counted by origin (`details["address"]`, else the actor), and one line states the count at the
    end of the period. The names are constants of this program, so their number is small.
    """

    def __init__(self) -> None:
        self._periods: dict[str, _Period] = {}

    def should_record(self, event: ServerEvent, now: float) -> bool:
        """Whether the event gets a line of its own; if not, it has been counted."""
        period = self._periods.get(event.name)
        if period is None:
            period = self._periods[event.name] = _Period(now)
        if period.recorded < RECORDED_PER_PERIOD:
            period.recorded += 1
            return True
        period.count(event)
        return False

    def finish_periods(
        self, now: float, *, every_period: bool = False
    ) -> list[tuple[ServerEvent, int]]:
        """End the periods that are over and return an event and a count for each."""
        reported: list[tuple[ServerEvent, int]] = []
        for name, period in list(self._periods.items()):
            # A negative age means that the clock was set back.
            if not every_period and 0 <= now - period.started_at < PERIOD_S:
                continue
            del self._periods[name]
            if period.counted:
                details = {origin: str(count) for origin, count in period.origins.items()}
                reported.append((ServerEvent(name=name, details=details), period.counted))
        return reported

    @property
    def has_open_period(self) -> bool:
        """Whether a period is open, whose count may have to be recorded."""
        return bool(self._periods)


class _Period:
    __slots__ = ("counted", "origins", "recorded", "started_at")

    def __init__(self, started_at: float) -> None:
        self.started_at = started_at
        self.recorded = 0
        self.counted = 0
        self.origins: dict[str, int] = {}

    def count(self, event: ServerEvent) -> None:
        self.counted += 1
        origin = event.details.get("address") or event.actor or "unknown"
        if origin not in self.origins and len(self.origins) >= MAX_ORIGINS - 1:
            origin = "others"
        self.origins[origin] = self.origins.get(origin, 0) + 1


class ServerAudit:
    """Records the server events of one process.

    `default_actor` is the actor of events that name none; `name_of` gives the name of an actor by
    its id, empty if that is unknown. `shared` keeps events that could not be
    recorded; without it they are counted as missed. `make_room` gives up disk space that was kept
    for such events, and says whether there was some.
    """

    def __init__(
        self,
        audit: Sink,
        default_actor: str = "cli",
        shared: SharedStore | None = None,
        name_of: Callable[[str], str] | None = None,
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        self.observers: list[Callable[[str], None]] = []
        """Are given the name of each event, before it is recorded."""
        self.late = 0
        """How many events of this process could not be recorded when they happened."""
        self._audit = audit
        self._make_room = make_room
        self._name_of = name_of
        self._shared = shared
        self._may_have_kept = shared is not None
        self._default_actor = default_actor

    def record(self, name: str, details: Mapping[str, str]) -> None:
        """Record an action before it is done. Raises: TidegateError AUDIT_UNAVAILABLE."""
        self.record_as(name, "", details)

    def record_as(self, name: str, actor: str, details: Mapping[str, str]) -> None:
        """Like `record`, for the given actor if it is not empty."""
        self._tell(name)
        self._audit.record_event(self._event(name, actor, details))
        if self._may_have_kept:
            self._record_kept()

    def record_done(self, name: str, details: Mapping[str, str]) -> None:
        """Record an action that is done in any case, later if the log fails now. Never raises."""
        self.record_done_as(name, "", details)

    def record_done_as(self, name: str, actor: str, details: Mapping[str, str]) -> None:
        """Like `record_done`, for the given actor if it is not empty."""
        self._tell(name)
        event = self._event(name, actor, details)
        while True:
            try:
                self._audit.record_event(event)
                return
            except TidegateError:
                if not self._make_room():
                    self._keep(event)
                    return

    def _tell(self, name: str) -> None:
        for observe in self.observers:
            observe(name)

    def _event(self, name: str, actor: str, details: Mapping[str, str]) -> ServerEvent:
        actor = actor or self._default_actor
        known = "" if self._name_of is None else self._name_of(actor)
        return ServerEvent(name=name, actor=actor, actor_name=known, details=dict(details))

    def _keep(self, event: ServerEvent) -> None:
        self.late += 1
        at = datetime.now(UTC).isoformat(timespec="seconds")
        late = msgspec.structs.replace(event, details={**event.details, "happened_at": at})
        if self._shared is not None:
            with suppress(TidegateError):
                self._shared.keep_unrecorded(msgspec.json.encode(late))
                self._may_have_kept = True
                return
        self._audit.count_missed()

    def _record_kept(self) -> None:
        """Record the events that were kept, by any process. Two processes may do so at once and
        record an event twice, which is better than to lose it."""
        if self._shared is None:
            return
        with suppress(TidegateError):
            for id, kept in self._shared.unrecorded():
                self._audit.record_event(decode_json(kept, ServerEvent))
                self._shared.forget_unrecorded(id)
            self._may_have_kept = False

    def record_anonymous(self, name: str, details: Mapping[str, str]) -> None:
        """Record an event that a caller without a token caused."""
        self._tell(name)
        self._audit.record_repeated(ServerEvent(name=name, details=dict(details)))

    def record_rejected(self, context: Context, tool: str, reason: str) -> None:
        """Record a call that was rejected before it reached the gateway."""
        actor, client = context.actor, context.client
        self._tell("call.rejected")
        self._audit.record_repeated(
            ServerEvent(
                name="call.rejected",
                actor=actor.id,
                actor_name=actor.name,
                client=f"{client.name}/{client.version}",
                details={"tool": tool, "reason": reason},
                address=context.address,
            )
        )

    def record_start(self, config: Config, edge: str) -> None:
        """Record what is served, with which settings. Raises: TidegateError."""
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
        """Record that the settings changed. Raises: TidegateError."""
        self.record_as("settings.changed", "server", {"settings": _digest(config)})

    def record_stop(self) -> None:
        """Record that the server stops."""
        self._audit.record_repeated(ServerEvent(name="server.stopped", actor="server"))


def _digest(config: Config) -> str:
    """A digest that identifies the settings without revealing them."""
    return f"sha256:{sha256(msgspec.json.encode(config)).hexdigest()}"
