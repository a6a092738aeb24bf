"""The contract of an edge: a protocol that callers outside speak to us, started and stopped by
`tidegate.serve`.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from tidegate.identity.revocation import SessionOwner


class Edge(Protocol):
    """One protocol at one place."""

    @property
    def name(self) -> str:
        """For the audit record and the log: `stdio`, or an address."""
        ...

    @property
    def listens(self) -> bool:
        """Whether callers connect to an address, to which a balancer may send them."""
        ...

    @property
    def sessions(self) -> SessionOwner:
        """The sessions and running calls, which end when their token is revoked."""
        ...

    async def start(self) -> None:
        """Accept callers from now on. Raises: TidegateError."""
        ...

    async def wait_ended(self) -> None:
        """Return when no caller can come any more, for instance at the end of stdin."""
        ...

    async def stop(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Accept no more callers, let running calls finish for `grace_s` seconds, less once
        `hurry` is set, then cancel them. Safe to call twice, and without `start`."""
        ...


class Companion(Protocol):
    """Something that runs as long as an edge does."""

    async def start(self) -> None:
        """Begin, now that callers can connect. Raises: TidegateError."""
        ...

    async def stop(self) -> None:
        """End, before the edge stops accepting callers. Safe to call twice."""
        ...
