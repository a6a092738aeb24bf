"""How long a connection may keep us waiting for a request: for its first byte or its last.

A client that never ends what it began costs a file descriptor, and perhaps a body in memory, for
ever. What already has an answer on its way is let be, however slowly the client reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PATIENCE_S = 120.0
"""From the first byte of a request to its last; more than uvicorn lets an idle connection be."""


class Patience:
    """Remembers since when each connection has kept us waiting."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._since: dict[Any, tuple[Any, float]] = {}

    def sweep(self, connections: Iterable[Any], now: float) -> None:
        """Close the connections (protocols of uvicorn) that have waited for too long."""
        since: dict[Any, tuple[Any, float]] = {}
        for connection in connections:
            request = connection.cycle
            if not _keeps_waiting(request):
                continue
            known = self._since.get(connection)
            if known is None or known[0] is not request:
                since[connection] = request, now
            elif now - known[1] < self._patience_s:
                since[connection] = known
            else:
                connection.transport.close()
        self._since = since


def _keeps_waiting(request: Any) -> bool:
    """Whether the next thing to happen is the client's: `request` is its last one so far."""
    if request is None or request.response_complete:
        return True
    return request.more_body and not request.response_started
