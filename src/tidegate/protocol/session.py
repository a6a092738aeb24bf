"""The handshake era's session: what was negotiated, what is running, what may be resumed.

One per stdio process or per `Mcp-Session-Id`. It holds no transport: an edge gives it an outlet
for messages that belong to no request, and takes it away when the stream ends.
"""

from __future__ import annotations

import asyncio
import os
import time
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.protocol.jsonrpc import notification_frame, request_frame
from tidegate.protocol.model import LOG_LEVELS, Info, LogLevel
from tidegate.protocol.revisions import Revision
from tidegate.protocol.session_links import Kind, SessionMessage
from tidegate.protocol.session_state import SessionState

KEPT_MESSAGES = 256


class MessageSender(Protocol):
    """Where messages to the client go; sending never blocks and never raises.

    Nothing arrives where `open` is False: the client takes no messages in addition to the reply.
    """

    @property
    def open(self) -> bool: ...
    def send(self, message: bytes) -> None: ...
    def stop(self) -> None:
        """No more messages will come."""
        ...


class EventSink(Protocol):
    """A stream of numbered events to a client that has come back."""

    def send_event(self, event_id: str | None, message: bytes) -> None: ...

    def stop(self) -> None: ...


class Returner(Protocol):
    """Waits for a client that lost a stream."""

    def leave(self) -> None: ...
    def come_back(self) -> None: ...


class Session:
    """State of one client between `initialize` and the end."""

    def __init__(self, actor: Actor) -> None:
        self.id = urlsafe_b64encode(os.urandom(24)).decode()
        self.actor = actor
        self.revision: Revision | None = None
        self.client = Info("unknown", "0")
        self.capabilities: Mapping[str, Any] = {}
        self.ready = False
        self.stateless = False
        """Whether this client has sent a request of the stateless era (stdio only)."""
        self.log_level: LogLevel = "info"
        self.subscribed: set[str] = set()
        self.sender: MessageSender | None = None
        self.running: dict[bytes, Cancellation] = {}
        self.streams: dict[str, Stream] = {}
        self.last_active = time.monotonic()
        self.unsubscribe: Callable[[], None] | None = None
        self.note_end: Callable[[], None] | None = None
        """Called once, when it has ended."""
        self.state = SessionState()
        self.tell_others: Callable[[Kind, bytes, bytes], None] = _tell_no_one
        """Gives other processes what this one has nothing to do with: kind, id and content."""
        self.is_shared = False
        """Whether there may be other processes that serve it."""
        self.ask_prefix = "tidegate-"
        """Of the ids of our requests, which no two processes have."""
        self._asked: dict[bytes, asyncio.Future[Mapping[str, Any]]] = {}
        self._next_ask = 0
        self._unsent: deque[bytes] = deque(maxlen=KEPT_MESSAGES)

    def send(self, message: bytes) -> None:
        """Send what belongs to no request; kept for the next stream if none is open."""
        if self.sender is not None:
            self.sender.send(message)
        else:
            self._unsent.append(message)

    def attach(self, sender: MessageSender) -> None:
        """Make `sender` the stream for messages that belong to no request."""
        self.sender = sender
        while self._unsent:
            sender.send(self._unsent.popleft())

    def detach(self, sender: MessageSender) -> None:
        if self.sender is sender:
            self.sender = None

    async def request(
        self,
        sender: MessageSender,
        method: str,
        params: Mapping[str, Any],
        cancellation: Cancellation,
    ) -> Mapping[str, Any]:
        """Ask the client and wait. Raises: AskFailed if it answers with an error or goes."""
        if not sender.open:
            raise AskFailed("it takes no event stream to be asked on")
        self._next_ask += 1
        id = f"{self.ask_prefix}{self._next_ask}"
        key = f'"{id}"'.encode()
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[key] = answer

        def give_up() -> None:
            if not answer.done():
                answer.set_exception(AskFailed("the call was cancelled"))

        cancellation.listen(give_up)
        try:
            sender.send(request_frame(id, method, params))
            return await answer
        except asyncio.CancelledError:
            if sender.open:  # its form can be closed: no answer to it counts any more
                gone = {"requestId": id, "reason": "No one waits for the answer any more."}
                sender.send(notification_frame("notifications/cancelled", gone))
            raise
        finally:
            cancellation.forget(give_up)
            del self._asked[key]

    def accept(self, id: bytes, result: Mapping[str, Any] | None, error: str | None) -> bool:
        """Take the client's answer to a request of ours; False if none is waiting for it."""
        answer = self._asked.get(id)
        if answer is None or answer.done():
            return False
        if result is not None:
            answer.set_result(result)
        else:
            answer.set_exception(AskFailed(error or "the client answered with an error"))
        return True

    def cancel(self, id: bytes, reason: str) -> bool:
        """Cancel a request of the client; False if it is not under way here."""
        cancellation = self.running.pop(id, None)
        if cancellation is None:
            return False
        cancellation.cancel(reason)
        return True

    def set_level(self, level: str | None) -> None:
        """What the client wants to be logged, if it is a level."""
        for each in LOG_LEVELS:
            if each == level:
                self.log_level = each

    def take(self, message: SessionMessage) -> None:
        """Another process got this from the client, or has this for it."""
        if message.kind == "cancel":
            self.cancel(message.id, message.body.decode("utf-8", "replace"))
        elif message.kind == "answer":
            with suppress(msgspec.DecodeError):
                result = msgspec.json.decode(message.body, type=dict[str, Any])
                self.accept(message.id, result, None)
        elif message.kind == "failed":
            self.accept(message.id, None, message.body.decode("utf-8", "replace"))
        elif message.kind == "level":
            self.set_level(message.body.decode("utf-8", "replace"))
        elif message.kind == "event" and self.sender is not None:
            self.sender.send(message.body)

    def close(self, reason: str = "the session has ended") -> None:
        """Cancel what runs and what waits, and end the stream."""
        for cancellation in list(self.running.values()):
            cancellation.cancel(reason)
        for answer in list(self._asked.values()):
            if not answer.done():
                answer.set_exception(AskFailed(reason))
        if self.unsubscribe is not None:
            self.unsubscribe()
            self.unsubscribe = None
        if self.sender is not None:
            self.sender.stop()
        self.state.close()
        if self.note_end is not None:
            self.note_end()
            self.note_end = None


def _tell_no_one(kind: Kind, id: bytes, body: bytes) -> None:
    """There is no other process."""


class AskFailed(Exception):
    """The client did not answer a question."""


class Stream:
    """One resumable response stream: numbered events, kept until the session forgets them.

    Event ids are `stream.number`; a client that comes back with `Last-Event-ID` gets what
    followed (2025-11-25, `basic/transports#resumability`).
    """

    def __init__(self, place: str = "") -> None:
        """`place` begins the id, and says which process has the events."""
        self.id = place + os.urandom(6).hex()
        self.sink: EventSink | None = None
        self.returner: Returner | None = None
        self.finished = False
        self.size = 0
        """Bytes of the messages so far."""
        self._events: deque[tuple[int, bytes]] = deque(maxlen=KEPT_MESSAGES)
        self._count = 0

    def event_id(self) -> str:
        return f"{self.id}.{self._count}"

    def add(self, message: bytes) -> str:
        """Keep a message and return its event id; a client that has come back gets it."""
        self._count += 1
        self.size += len(message)
        self._events.append((self._count, message))
        event_id = self.event_id()
        if self.sink is not None:
            self.sink.send_event(event_id, message)
        return event_id

    def finish(self) -> None:
        """No more events will come."""
        self.finished = True
        if self.sink is not None:
            self.sink.stop()

    def after(self, count: int) -> list[tuple[str, bytes]]:
        """Events later than number `count`, oldest first."""
        return [(f"{self.id}.{n}", message) for n, message in self._events if n > count]
