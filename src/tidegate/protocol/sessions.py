"""The sessions of the handshake era over HTTP: found by id, bound to their actor, bounded.

Clients do not all come back after a lost session, so sessions are kept long and the one unused
for longest makes room for a new one: the actor's own, if it has more than its share.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator

from tidegate.model.actors import Actor
from tidegate.protocol.session import Session
from tidegate.protocol.session_state import SessionStates

MOST_SESSIONS = 4096
MOST_OF_ACTOR = 1024
IDLE_S = 86_400.0


class Sessions:
    """Sessions by id, in order of use."""

    def __init__(
        self,
        most: int = MOST_SESSIONS,
        idle_s: float = IDLE_S,
        *,
        most_of_actor: int = MOST_OF_ACTOR,
    ) -> None:
        self._most = most
        self._most_of_actor = most_of_actor
        self._of_actor: Counter[str] = Counter()
        self._idle_s = idle_s
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self.states = SessionStates()
        """What tools keep for clients of the stateless era, which have no session."""

    def open(self, actor: Actor) -> Session:
        """A new session for `actor`; the least recently used one ends if there are too many."""
        if self._of_actor[actor.id] >= self._most_of_actor:
            self.end(next(one for one in self._sessions.values() if one.actor.id == actor.id))
        session = Session(actor)
        self._sessions[session.id] = session
        self._of_actor[actor.id] += 1
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
            self._of_actor[session.actor.id] -= 1
            if not self._of_actor[session.actor.id]:
                del self._of_actor[session.actor.id]
            session.close()

    def actors(self) -> Iterator[Actor]:
        """Whose the sessions are; one with several comes several times."""
        yield from (session.actor for session in self._sessions.values())
        yield from self.states.actors()

    def end_of(self, ids: Collection[str]) -> None:
        """End the sessions of these actors."""
        for session in list(self._sessions.values()):
            if session.actor.id in ids:
                self.end(session)
        self.states.end_of(ids)

    def close(self) -> None:
        """End every session."""
        for session in list(self._sessions.values()):
            self.end(session)
        self.states.close()

    def _sweep(self) -> None:
        oldest_allowed = time.monotonic() - self._idle_s
        for session in list(self._sessions.values()):
            idle = session.last_active < oldest_allowed and not session.running
            if not idle and len(self._sessions) <= self._most:
                break
            self.end(session)
