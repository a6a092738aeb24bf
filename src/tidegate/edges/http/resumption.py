"""Streams that a client may leave and come back to (2025-11-25, `basic/transports`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tidegate.edges.http.active_request import ActiveRequest
from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http.sse import EventStream
from tidegate.protocol.session import Session, Stream
from tidegate.protocol.transport import Answer

MOST_STREAMS = 64
SESSION_NOT_FOUND = -32001


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


def replay(session: Session, last_seen: bytes, events: EventStream) -> None:
    id, _, count = last_seen.decode("latin-1").partition(".")
    stream = session.streams.get(id)
    if stream is None or not count.isdigit():
        raise HttpRefusal(404, "No events are kept for this Last-Event-ID", SESSION_NOT_FOUND)
    events.start()
    for event_id, message in stream.after(int(count)):
        events.send_event(event_id, message)
    if stream.finished:
        events.stop()
    else:
        stream.sink = events


def finish(events: EventStream, answer: Answer | None, session: Session | None) -> None:
    if answer is not None:
        events.send(answer.frame)
    if events.stream is not None:
        events.stream.finish()
    events.stop()
