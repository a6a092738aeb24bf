"""Streams that a client may leave and come back to (2025-11-25, `basic/transports`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tidegate.edges.http.active_request import ActiveRequest
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.sse import EventStream
from tidegate.protocol.session import Session, Stream
from tidegate.protocol.transport import Answer

MOST_STREAMS = 64
KEEP_ALIVES = 2.5
"""How long a client that lost a stream may stay away before its call is cancelled, and how long the
end of a stream is kept for it, as a proxy may have lost what we have sent: in times between two
keep-alives."""
MOST_FINISHED = 4
MOST_KEPT_BYTES = 1024 * 1024
"""What the streams of one session that are finished may hold, each."""
SESSION_NOT_FOUND = -32001

_NUMBER = re.compile("[0-9]{1,18}")
_PLACE = re.compile("([0-9a-f]{0,32})-([0-9]{1,4})-")


class StreamPlace(NamedTuple):
    """The process that has the events of a stream: the id of its gate, empty where gates do not
    share the state, and its number among the workers of that gate, 0 if it has none."""

    gate: str = ""
    worker: int = 0

    @property
    def prefix(self) -> str:
        """What ids of streams of this process begin with."""
        return f"{self.gate}-{self.worker}-" if self != _ALONE else ""


_ALONE = StreamPlace()


def place_of(last_seen: bytes) -> StreamPlace:
    """Where the stream is that an event's id is from, as far as it says so."""
    found = _PLACE.match(last_seen.decode("latin-1"))
    return _ALONE if found is None else StreamPlace(found[1], int(found[2]))


def misdirected(place: StreamPlace) -> HttpRefusal:
    """The refusal of a client that has come back to another gate. By that status it knows that its
    session goes on, and that the same request may be answered over another connection."""
    return HttpRefusal(
        421,
        f"The events of this stream are kept by the gate {place.gate}, and this is another one."
        " Try again, or send the call again",
        headers=[(b"retry-after", b"1")],
    )


def closer_of(
    events: EventStream, session: Session | None, call: ActiveRequest
) -> Callable[[int | None], Awaitable[None]]:
    async def close(retry_ms: int | None) -> None:
        """End the response; what follows waits in the session for the client to come back."""
        if session is None or events.stream is None:
            return
        _keep(session, events.stream)
        events.start()
        if retry_ms is not None:
            events.put(f"retry: {retry_ms}\n\n".encode())
        call.detached = True
        events.stop()

    return close


def _keep(session: Session, stream: Stream) -> None:
    session.streams[stream.id] = stream
    while len(session.streams) > MOST_STREAMS:
        del session.streams[next(iter(session.streams))]


class LostStream:
    """Keeps a call and its stream alive while their client is away: losing a connection is not
    cancelling (2025-11-25, `basic/transports`). The client that comes back gets what followed, also
    where the loss of its first connection has not been seen here: a network may end without a word,
    and a proxy may hold on to its own connection."""

    def __init__(
        self, session: Session, events: EventStream, call: ActiveRequest, resume_s: float
    ) -> None:
        self._session = session
        self._events = events
        self._call = call
        self._resume_s = resume_s
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The response has begun: its client knows an event's id to come back with."""
        self._call.watch()
        if self._events.stream is not None:
            self._events.stream.returner = self
            _keep(self._session, self._events.stream)

    def lose(self) -> None:
        """The client's connection is gone."""
        stream = self._events.stream
        if stream is None or not self._events.started:
            self._call.cancel("the client disconnected")  # it has no event's id to come back with
            return
        self._events.lose()
        _keep(self._session, stream)  # newer streams may have displaced it
        self.leave()

    def leave(self) -> None:
        """Cancel the call, unless the client comes back in time."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._resume_s, self._call.cancel, "the client disconnected")

    def come_back(self) -> None:
        """The client has come back: what follows is sent on its new connection only."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._events.closed:
            self._call.detached = True
            self._events.stop()


def _keep_finished(session: Session, stream: Stream, resume_s: float) -> None:
    """Keep a stream that has ended for a client that may not have received its end."""
    if stream.size > MOST_KEPT_BYTES:
        session.streams.pop(stream.id, None)
        return
    _keep(session, stream)
    finished = [id for id, each in session.streams.items() if each.finished]
    for id in finished[:-MOST_FINISHED]:
        del session.streams[id]
    loop = asyncio.get_running_loop()
    loop.call_later(resume_s, session.streams.pop, stream.id, None)


def replay(session: Session, last_seen: bytes, events: EventStream) -> None:
    id, _, count = last_seen.decode("latin-1").partition(".")
    stream = session.streams.get(id)
    if stream is None or _NUMBER.fullmatch(count) is None:
        raise HttpRefusal(404, "No events are kept for this Last-Event-ID", SESSION_NOT_FOUND)
    if stream.returner is not None:
        stream.returner.come_back()
    events.start()
    for event_id, message in stream.after(int(count)):
        events.send_event(event_id, message)
    if stream.finished:
        events.stop()
        return
    if stream.sink is not None:
        stream.sink.stop()  # an earlier return of the same client: one connection has the rest
    stream.sink = events

    def leave() -> None:
        events.lose()
        if stream.sink is events:
            stream.sink = None
            if stream.returner is not None and not stream.finished:
                stream.returner.leave()

    events.request.when_gone(leave)


def finish(
    events: EventStream,
    answer: Answer | None,
    session: Session | None,
    resume_s: float,
) -> None:
    if answer is not None:
        events.send(answer.frame)
    stream = events.stream
    if stream is not None:
        stream.finish()
        if stream.returner is not None:
            stream.returner.come_back()
        if session is not None:
            _keep_finished(session, stream, resume_s)
    events.stop()
