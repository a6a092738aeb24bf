"""The sessions of the handshake era over HTTP: found by id, bound to their actor, bounded.

Clients do not all come back after a lost session, so sessions are kept long and the one unused
for longest makes room for a new one: the actor's own, if it has more than its share. With ids that
say what was agreed on (`session_ids`) a session that made room comes back with its client, as does
one that began in another process; only one that was ended is gone.
"""

from __future__ import annotations

import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator

from tidegate.model.actors import Actor
from tidegate.protocol.session import Session
from tidegate.protocol.session_ids import Agreed, SessionIds
from tidegate.protocol.session_links import Kind, SessionMessage, digest_of, state_id_of
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
            ids.links.link(self)
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
        session.ready = True  # the client may tell another process that it is
        session.state.id = state_id_of(session.id)
        self._sessions[session.id] = session
        self._link(session)

    def _link(self, session: Session) -> None:
        """Have the session tell other processes what it has nothing to do with."""
        digest = digest_of(session.id)
        self._by_digest[digest] = session
        if self._ids is not None:
            links = self._ids.links

            def tell(kind: Kind, id: bytes, body: bytes) -> None:
                links.send(kind, digest, id, body)

            session.tell_others, session.is_shared = tell, True
            session.ask_prefix = f"tidegate-{os.urandom(3).hex()}-"

    def _keep(self, session: Session) -> None:
        actor = session.actor
        if self._of_actor[actor.id] >= self._most_of_actor:
            self._drop(next(one for one in self._sessions.values() if one.actor.id == actor.id))
        self._sessions[session.id] = session
        self._of_actor[actor.id] += 1
        self._sweep()

    def find(self, id: str, actor: Actor) -> Session | None:
        """The actor's own session that is here, or None: another's is as unknown as one that never
        was."""
        session = self._sessions.get(id)
        if session is None or session.actor.id != actor.id:
            return None
        session.last_active = time.monotonic()
        self._sessions.move_to_end(id)
        return session

    async def bring(self, id: str, actor: Actor) -> Session | None:
        """The actor's own session that began elsewhere, or had made room here; None as for `find`.
        Raises: TidegateError STATE_FAILED if it cannot be known whether it was ended."""
        ids = self._ids
        agreed = None if ids is None else ids.read(id, actor.id)
        if ids is None or agreed is None or await ids.links.was_kept(digest_of(id)):
            return None
        if ids.links.has_ended(digest_of(id)):
            return None
        return self.find(id, actor) or self._restore(id, actor, agreed)

    def _restore(self, id: str, actor: Actor, agreed: Agreed) -> Session:
        session = Session(actor)
        session.id = id
        session.state.id = state_id_of(id)
        session.ready = True
        self.restore(session, agreed)
        self._keep(session)
        self._link(session)
        if self._ids is not None:
            session.set_level(self._ids.links.level_of(digest_of(id)))
        return session

    async def end_kept(self, session: Session) -> None:
        """End a session in every process, also in those that start later. Raises: TidegateError
        STATE_FAILED, and then it has not ended."""
        if self._ids is not None:
            await self._ids.links.keep_ended(digest_of(session.id))
        self.end(session)

    def end(self, session: Session) -> None:
        """End a session in every process that runs."""
        if self._ids is not None:
            self._ids.links.send("ended", digest_of(session.id))
        self._drop(session)

    def take(self, message: SessionMessage) -> None:
        """Do what another process says of a session (`session_links.LinkedSessions`)."""
        session = self._by_digest.get(message.digest)
        if session is None:
            return
        if message.kind == "ended":
            self._drop(session)
        else:
            session.take(message)

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
