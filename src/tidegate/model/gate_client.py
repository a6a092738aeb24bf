"""A caller for code that sends its requests: its identity, and its way through the gate.

A surface's tool context is one. Packages below the surfaces take this protocol, so that whatever
they read or run is decided on and recorded as the caller's own.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from tidegate.model.actors import Actor
from tidegate.model.requests import Request

PayloadT = TypeVar("PayloadT")


class GateClient(Protocol):
    """Sends requests through the gate as one actor."""

    @property
    def actor(self) -> Actor:
        """Who calls."""
        ...

    async def handle(
        self,
        request: Request,
        source: str | None,
        expected: type[PayloadT],
        *,
        reads_only: bool = False,
        quiet: bool = False,
        asks: bool = True,
    ) -> PayloadT:
        """Send `request`; the reply's payload must be `expected`.

        `source` is a source's name or id; None means the one source that the actor may see.
        `reads_only`: only a statement that reads may run, whatever the caller may do elsewhere.
        `quiet`: report no progress. Without `asks` no person is asked, and what needs an approval
        is refused. Raises: TidegateError, whatever the gate refuses or the database says.
        """
        ...
