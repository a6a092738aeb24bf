"""The sessions of the handshake era over HTTP: found by id, bound to their actor, bounded.

Clients do not all come back after a lost session, so sessions are kept long and the one unused
for longest makes room for a new one: the actor's own, if it has more than its share. With ids that
say what was agreed on (`session_ids`) a session that made room comes back with its client, as does
one that began in another process; only one that was ended is gone.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator

from tidegate.model.actors import Actor
from tidegate.protocol.session import Session
from tidegate.protocol.session_ids import Agreed, SessionIds, digest_of
from tidegate.protocol.session_state import SessionStates

MOST_SESSIONS = 4096
MOST_OF_ACTOR = 1024
IDLE_S = 86_400.0

Restore = Callable[[Session, Agreed], None]
"""Makes of a new session the one that an id tells of."""


def _restore_nothing(session: Session, agreed: Agreed) -> None:
    """For sessions of one process."""


class Sessions:
    """Sessions by id, in order of use."""

    def __init__(
        self,
        most: int = MOST_SESSIONS,
        idle_s: float = IDLE_S,
        *,
        most_of_actor: int = MOST_OF_ACTOR,
        ids: SessionIds | None = None,
    ) -> None:
        """With `ids` a session is known by what its id says, too."""
        self._ids = ids
        self._by_digest: dict[bytes, Session] = {}
        self.restore: Restore = _restore_nothing
        if ids is not None:
            ids.ended.follow(self._note_ended)
        self._most = most
        self._most_of_actor = most_of_actor
        self._of_actor: Counter[str] = Counter()
        self._idle_s = idle_s
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self.states = SessionStates()
        """What tools keep for clients of the stateless era, which have no session."""

    def open(self, actor: Actor) -> Session:
        """A new session for `actor`; the least recently used one ends if there are too many."""
        session = Session(actor)
        self._keep(session)
        return session

    def name(self, session: Session) -> None:
        """Give a session, whose client has agreed on everything, the id that it keeps."""
        if self._ids is None or session.revision is None or session.id not in self._sessions:
            return
        del self._sessions[session.id]
        session.id = self._ids.make(
            session.actor.id, session.revision.name, session.client, session.capabilities
        )
        self._sessions[session.id] = self._by_digest[digest_of(session.id)] = session

    def _keep(self, session: Session) -> None:
        actor = session.actor
        if self._of_actor[actor.id] >= self._most_of_actor:
            self._drop(next(one for one in self._sessions.values() if one.actor.id == actor.id))
        self._sessions[session.id] = session
        self._of_actor[actor.id] += 1
        self._sweep()

    def find(self, id: str, actor: Actor) -> Session | None:
        """The actor's own session, or None: another's is as unknown as one that never was."""
        session = self._sessions.get(id) or self._return(id, actor)
        if session is None or session.actor.id != actor.id:
            return None
        session.last_active = time.monotonic()
        self._sessions.move_to_end(id)
        return session

    def _return(self, id: str, actor: Actor) -> Session | None:
        """A session that began elsewhere, or that had made room here."""
        agreed = None if self._ids is None else self._ids.read(id, actor.id)
        if agreed is None:
            return None
        session = Session(actor)
        session.id = id
        session.ready = True
        self.restore(session, agreed)
        self._keep(session)
        self._by_digest[digest_of(id)] = session
        return session

    def end(self, session: Session) -> None:
        """End a session in every process."""
        if self._ids is not None:
            self._ids.ended.end(digest_of(session.id))
        self._drop(session)

    def _note_ended(self, digest: bytes) -> None:
        """A session was ended, here or by another process."""
        session = self._by_digest.get(digest)
        if session is not None:
            self._drop(session)

    def _drop(self, session: Session) -> None:
        """Close a session. With an id that says what was agreed on it can come back."""
        if self._sessions.pop(session.id, None) is not None:
            self._by_digest.pop(digest_of(session.id), None)
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
            self._drop(session)
        self.states.close()

    def _sweep(self) -> None:
        oldest_allowed = time.monotonic() - self._idle_s
        for session in list(self._sessions.values()):
            idle = session.last_active < oldest_allowed and not session.running
            if not idle and len(self._sessions) <= self._most:
                break
            self._drop(session)
