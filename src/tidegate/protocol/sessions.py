"""The sessions of the handshake era over HTTP: found by id, bound to their actor, bounded.

Clients do not all come back after a lost session, so sessions are kept long and the one unused
for longest makes room for a new one.
"""

from __future__ import annotations

import time
from collections import OrderedDict

from tidegate.protocol.session import Session
from tidegate.types import Actor

MOST_SESSIONS = 4096
IDLE_S = 86_400.0


class Sessions:
    """Sessions by id, in order of use."""

    def __init__(self, most: int = MOST_SESSIONS, idle_s: float = IDLE_S) -> None:
        self._most = most
        self._idle_s = idle_s
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def open(self, actor: Actor) -> Session:
        """A new session for `actor`; the least recently used one ends if there are too many."""
        session = Session(actor)
        self._sessions[session.id] = session
        self._sweep()
        return session

    def find(self, id: str, actor: Actor) -> Session | None:
        """The actor's own session, or None: another's is as unknown as one that never was."""
        session = self._sessions.get(id)
        if session is None or session.actor.id != actor.id:
            return None
        session.last_active = time.monotonic()
        self._sessions.move_to_end(id)
        return session

    def end(self, session: Session) -> None:
        if self._sessions.pop(session.id, None) is not None:
            session.close()

    def close(self) -> None:
        """End every session."""
        for session in list(self._sessions.values()):
            self.end(session)

    def _sweep(self) -> None:
        oldest_allowed = time.monotonic() - self._idle_s
        for session in list(self._sessions.values()):
            idle = session.last_active < oldest_allowed and not session.running
            if not idle and len(self._sessions) <= self._most:
                break
            self.end(session)
