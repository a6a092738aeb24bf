"""Where audit records go: the protocol that the gateway writes to.

`audit.log.AuditLog`, the signed chain, is the first sink.
"""

from __future__ import annotations

from typing import Protocol

from tidegate.audit.event import Event
from tidegate.audit.server_event import ServerEvent


class Sink(Protocol):
    """A place for records. Safe to use from several threads; `append` takes microseconds."""

    @property
    def failing(self) -> bool:
        """Whether the last record could not be written."""
        ...

    def append(self, event: Event) -> int:
        """Put an event on record and return its number, for `durable`.

        Raises: TidegateError AUDIT_UNAVAILABLE; then the event is not on record.
        """
        ...

    def append_later(self, event: Event) -> None:
        """Put an event on record as soon as that is possible: it has happened. Never raises."""
        ...

    async def durable(self, number: int) -> None:
        """Return when the event `number` and all before it outlive a power cut.

        Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        ...

    def record_event(self, happening: ServerEvent) -> int:
        """Put on record what a person or the server does. Raises: TidegateError
        AUDIT_UNAVAILABLE."""
        ...

    def record_repeated(self, happening: ServerEvent) -> None:
        """Put on record what callers without a token can cause, within bounds. Never raises."""
        ...

    def tolerates(self, *, changes: bool) -> bool:
        """Whether a call that cannot be recorded goes on; `changes`: it could change data."""
        ...

    def count_missed(self) -> None:
        """Count an event that is not on record although its call went on."""
        ...
