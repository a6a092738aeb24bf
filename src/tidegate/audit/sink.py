"""The protocol of an audit sink, which stores the events of the gateway and the server.

`audit.log.AuditLog`, the signed chain, is the sink of a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidegate.audit.event import Event
    from tidegate.audit.server_events import ServerEvent


class Sink(Protocol):
    """Stores audit events. Safe to use from several threads; `append` takes microseconds."""

    @property
    def failing(self) -> bool:
        """Whether the last record could not be written."""
        ...

    def append(self, event: Event, *, awaited: bool = False) -> int:
        """Record an event and return its number, for `durable`; `awaited` says that this follows.

        Raises: TidegateError AUDIT_UNAVAILABLE; then the event is not recorded.
        """
        ...

    def append_later(self, event: Event) -> None:
        """Record an event that has already happened, as soon as that is possible. Never raises."""
        ...

    async def durable(self, number: int) -> None:
        """Return when the event `number` and all before it survive a power failure.

        Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        ...

    def record_event(self, event: ServerEvent) -> int:
        """Record an action of a person or of the server.

        Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        ...

    def record_repeated(self, event: ServerEvent) -> None:
        """Record an event that callers without a token can cause, limited in number.

        Never raises.
        """
        ...

    def tolerates(self, *, changes: bool) -> bool:
        """Whether a call may continue unrecorded; `changes` says that it could change data."""
        ...

    def count_missed(self) -> None:
        """Count an event that was not recorded although its call continued."""
        ...
