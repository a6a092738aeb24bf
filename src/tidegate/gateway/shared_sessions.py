"""What the processes of a gate, and gates on one state, tell each other of sessions."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from tidegate.errors import TidegateError
from tidegate.protocol.session_links import SessionLinks
from tidegate.siblings import Siblings
from tidegate.store.api import State
from tidegate.store.calls import change_state, read_state
from tidegate.store.messages import Mailbox

_TOPIC = "sessions"
_ENDED_S = 3_600.0
"""How long the state keeps that a session was ended: a process that starts later, or sees the
session for the first time, refuses it for so long."""


class SharedSessions:
    """Connects `links` with the other workers, with other gates by messages, and with the state,
    which keeps what has ended for processes that start later. Used on the event loop."""

    def __init__(self, state: State, siblings: Siblings, mailbox: Mailbox) -> None:
        self._state = state
        self._siblings = siblings
        self._mailbox = mailbox
        self._key = b""
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
        """Tell the other workers at once, and other gates on the state by a message: not of
        events, of which there are many."""
        self._siblings.tell(_TOPIC, body)
        if kind == "event":
            return
        sending = asyncio.ensure_future(self._send(body))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def _send(self, body: bytes) -> None:
        with suppress(TidegateError):  # no other gate can see the state, either
            await self._mailbox.send(_TOPIC, body)

    async def _keep_ended(self, digest: bytes) -> None:
        until = self._state.now() + _ENDED_S
        await change_state(self._state.shared.lock, f"{_TOPIC} {digest.hex()}", until)

    async def _was_ended(self, digest: bytes) -> bool:
        key = f"{_TOPIC} {digest.hex()}"
        return await read_state(self._state.shared.locked_until, key, self._state.now()) is not None
