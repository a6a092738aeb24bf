"""What the processes of a gate, and gates on one state, tell each other of sessions."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from tidegate.errors import TidegateError
from tidegate.protocol.session_links import SessionLinks, SessionMessage
from tidegate.siblings import Siblings
from tidegate.store.api import State
from tidegate.store.calls import change_state, read_state
from tidegate.store.messages import Mailbox
from tidegate.typed_values import decode_msgpack

_TOPIC = "sessions"
EVENT_S = 0.25
"""Between two events of a session that a process sends to other gates: each is a write to the
state, and progress may be left out."""
MOST_SESSIONS = 1_000
_MOST_SENDING = 64
"""Messages on their way, beyond which events are left out."""
_ENDED_S = 3_600.0
"""How long the state keeps that a session was ended: a process that starts later, or sees the
session for the first time, refuses it for so long."""


class SharedSessions:
    """Connects `links` with the other workers, with other gates by messages, and with the state,
    which keeps what has ended for processes that start later. Used on the event loop."""

    def __init__(
        self, state: State, siblings: Siblings, mailbox: Mailbox, *, reaches_gates: bool = False
    ) -> None:
        """`reaches_gates`: there may be gates that share no parent with this process."""
        self._state = state
        self._siblings = siblings
        self._mailbox = mailbox
        self._key = b""
        self._reaches_gates = reaches_gates
        self._events_at: dict[bytes, float] = {}
        self._sending: set[asyncio.Future[None]] = set()
        self.links = SessionLinks()
        self.links.tell = self._tell
        self.links.keep_ended = self._keep_ended
        self.links.was_kept = self._was_ended
        siblings.listen(_TOPIC, self.links.take)
        mailbox.handle(_TOPIC, lambda sender, body: self.links.take(body))

    def read_key(self) -> None:
        """Read the key of the ids of sessions, the same in all processes on the state. Raises:
        TidegateError STATE_FAILED."""
        self._key = self._state.shared.secret(_TOPIC)

    def key(self) -> bytes:
        """The key; one of this process where no server has read it."""
        if not self._key:
            self._key = os.urandom(32)
        return self._key

    def _tell(self, kind: str, body: bytes) -> None:
        """Tell the other workers at once, and other gates on the state by a message: of events,
        which are progress, as many as someone can follow."""
        self._siblings.tell(_TOPIC, body)
        if kind == "event" and not self._may_send_event(body):
            return
        sending = asyncio.ensure_future(self._send(body))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    def _may_send_event(self, body: bytes) -> bool:
        """Whether one event more of this session may go through the state now."""
        if not self._reaches_gates or len(self._sending) >= _MOST_SENDING:
            return False
        digest = decode_msgpack(body, SessionMessage).digest
        now = asyncio.get_running_loop().time()
        if now - self._events_at.get(digest, float("-inf")) < EVENT_S:
            return False
        self._events_at.pop(digest, None)
        self._events_at[digest] = now
        while len(self._events_at) > MOST_SESSIONS:
            del self._events_at[next(iter(self._events_at))]
        return True

    async def _send(self, body: bytes) -> None:
        with suppress(TidegateError):  # no other gate can see the state, either
            await self._mailbox.send(_TOPIC, body)

    async def _keep_ended(self, digest: bytes) -> None:
        until = self._state.now() + _ENDED_S
        await change_state(self._state.shared.lock, f"{_TOPIC} {digest.hex()}", until)

    async def _was_ended(self, digest: bytes) -> bool:
        key = f"{_TOPIC} {digest.hex()}"
        return await read_state(self._state.shared.locked_until, key, self._state.now()) is not None
