"""Forwarding of messages between a host on stdio and a server on HTTP.

Every request gets a response. A request that the server did not process is sent again, once. A
request that it may have processed is sent again only if that is safe; otherwise the response says
that the outcome is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tidegate.bridge.bridge_session import BridgeSession
from tidegate.bridge.http_client import Answer, NotSent, WireError
from tidegate.bridge.messages import Frame, error_of, id_of, on_one_line, read, refusal
from tidegate.edges.line_io import Lines
from tidegate.errors import Code, TidegateError
from tidegate.protocol.jsonrpc import NO_ID, error_frame, request_frame
from tidegate.protocol.model import INVALID_REQUEST, PARSE_ERROR

GRACE_S = 10.0
PING_S = 300.0
MIN_STREAM_S = 1.0

_SESSION_LOST = frozenset({401, 404, 429})
_STREAMING_METHOD = "subscriptions/listen"


class _NotProcessed(Exception):
    """The server did not process the message. `status` is 401 or 429 if it does not accept the
    token, 404 if it no longer knows the session, None if it could not be reached."""

    def __init__(self, status: int | None) -> None:
        super().__init__()
        self.status = status


class Relay(Lines):
    """Forwards messages between the lines of a host and `session`; `write` sends to the host."""

    def __init__(self, session: BridgeSession, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._session = session
        self._write = write
        self._queue: asyncio.Queue[Frame] = asyncio.Queue()
        self._running: dict[asyncio.Task[None], Frame] = {}
        self._cancelled: set[bytes] = set()
        self._listener: asyncio.Task[None] | None = None
        session.on_renewal = self._listen

    # From the host

    def on_line(self, line: bytes) -> None:
        frame = read(line)
        if frame is None:
            text = "Parse error: not valid JSON"
            self._write_message(error_frame(self._no_id(), PARSE_ERROR, text))
        else:
            self._queue.put_nowait(frame)

    def on_oversized_line(self) -> None:
        text = f"Invalid Request: a message must be at most {self.line_limit} bytes"
        self._write_message(error_frame(self._no_id(), INVALID_REQUEST, text))

    def _no_id(self) -> bytes | None:
        """The id of an error that answers no known request, in the session's revision."""
        return NO_ID if (self._session.revision or "") < "2025-11-25" else None

    async def run(self) -> None:
        """Send messages to the server in order, until cancelled."""
        while True:
            frame = await self._queue.get()
            if frame.cancels is not None:
                self._cancel(frame.cancels)
            task = asyncio.ensure_future(self._process(frame))
            self._running[task] = frame
            task.add_done_callback(self._running.pop)
            if not frame.expects_response or frame.method == "initialize":
                # Later messages must not arrive before this one.
                await asyncio.wait({task})
            self._queue.task_done()

    async def send_pings(self, ping_s: float = PING_S) -> None:
        """Ping the server every `ping_s` to keep the session alive, until cancelled."""
        count = 0
        while True:
            await asyncio.sleep(ping_s)
            if self._session.session_id is not None:
                count += 1
                ping = Frame(request_frame(f"tidegate-bridge-{count}", "ping", {}))
                with suppress(WireError, TidegateError):  # the next call reports the problem
                    await (await self._session.post(ping)).body()

    async def finish(self, abort: asyncio.Future[Any], grace_s: float = GRACE_S) -> None:
        """Finish the received messages within `grace_s`, or until `abort` is done, and end the
        session."""
        drained = asyncio.ensure_future(self._drain())
        await asyncio.wait({drained, abort}, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        tasks = [*self._running, *([self._listener] if self._listener is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._session.close()

    async def _drain(self) -> None:
        await self._queue.join()
        while waiting := [
            t for t, frame in self._running.items() if frame.method != _STREAMING_METHOD
        ]:
            await asyncio.wait(waiting)

    def _cancel(self, id: bytes) -> None:
        """Stop a request that the host cancelled."""
        for task, frame in self._running.items():
            if frame.id == id and frame.method is not None:
                if frame.revision is not None:
                    task.cancel()  # in the stateless era, closing the connection cancels it
                else:
                    self._cancelled.add(id)

    async def _process(self, frame: Frame) -> None:
        try:
            if frame.cancels is not None and self._session.session_id is None:
                return
            await self._send(frame)
        except TidegateError as error:
            self._write_error(frame, error)
        except Exception as error:  # noqa: BLE001  the host must get a response
            what = f"Internal error of the bridge: {type(error).__name__}: {error}"
            self._write_error(frame, TidegateError(Code.INTERNAL, what))
        finally:
            if frame.id is not None:
                self._cancelled.discard(frame.id)

    async def _send(self, frame: Frame) -> None:
        """Send a message, and once more if that is safe after a failure."""
        await self._session.connect()
        generation = self._session.generation
        try:
            await self._send_once(frame)
        except _NotProcessed as error:
            await self._session.renew(generation, error.status)
        except WireError:
            if not frame.expects_response:
                return
            if not frame.is_repeatable:
                raise _outcome_unknown(frame) from None
            await self._session.renew(generation)
        else:
            return
        try:
            await self._send_once(frame, last=True)
        except (WireError, _NotProcessed):
            if frame.expects_response:
                lost = TidegateError(
                    Code.BRIDGE_NO_SERVER, "The connection to the server was lost twice"
                )
                raise (lost if frame.is_repeatable else _outcome_unknown(frame)) from None

    async def _send_once(self, frame: Frame, *, last: bool = False) -> None:
        """Send a message and forward everything that the server returns.

        Raises: _NeverRan, WireError, TidegateError.
        """
        try:
            answer = await self._session.post(frame)
        except NotSent:
            raise _NotProcessed(None) from None
        try:
            if answer.is_stream:
                await self._forward_stream(frame, answer)
                body = b""
            else:
                body = await answer.body()
                if (
                    not last
                    and answer.status in _SESSION_LOST
                    and self._is_session_lost(frame, answer, body)
                ):
                    raise _NotProcessed(answer.status)
                self._forward_body(frame, answer, body)
        finally:
            answer.close()
        if frame.method == "initialize" and frame.expects_response and body:
            self._session.note_initialize(frame, body, answer.headers.get("mcp-session-id"))
        elif frame.method == "notifications/initialized":
            self._session.note_initialized()
            self._listen()
        elif answer.status == 200:
            self._session.note_answer(frame, body)
            self._listen()

    def _is_session_lost(self, frame: Frame, answer: Answer, body: bytes) -> bool:
        """Whether the server no longer accepts the token or no longer knows the session."""
        if answer.status == 401:
            return True
        if answer.status == 429:
            # After wrong tokens from this address a token of the server before gets 429, not 401.
            return self._session.is_outdated
        error = error_of(body)
        return frame.revision is None and error is not None and error[0] == -32001

    def _forward_body(self, frame: Frame, answer: Answer, body: bytes) -> None:
        if not body.strip():
            if frame.expects_response and frame.id not in self._cancelled:
                raise _outcome_unknown(frame)
            return
        if frame.method is not None and frame.id is None:
            return  # a notification gets no response, also not an error
        if frame.method is None or id_of(body) == frame.id:
            self._write_message(body)
            return
        # The error has no id because the server could not read one; the bridge knows it.
        code, message, data = error_of(body) or (-32603, f"HTTP status {answer.status}", None)
        self._write_message(error_frame(frame.id, code, message, data))

    async def _forward_stream(self, frame: Frame, answer: Answer) -> None:
        """Forward each message of the stream; resume a stream that ended before the response."""
        last_event: str | None = None
        while True:
            retry_s = 0.0
            async for event in answer.events():
                last_event = event.id or last_event
                retry_s = event.retry_s if event.retry_s is not None else retry_s
                if not event.data.strip():
                    continue
                if frame.id is not None and id_of(event.data) == frame.id:
                    self._write_message(event.data)
                    return
                self._write_message(event.data)
            if frame.ids is not None or frame.id in self._cancelled:
                return
            if last_event is None or frame.revision is not None:
                raise WireError("the stream ended before the answer")
            await asyncio.sleep(min(retry_s, self._session.patience_s))
            answer = await self._session.get(last_event)
            if answer.status != 200 or not answer.is_stream:
                answer.close()
                raise WireError("the stream cannot be resumed")

    # To the host

    def _write_error(self, frame: Frame, error: TidegateError) -> None:
        if frame.ids is not None:
            errors = [refusal(id, error) for id in frame.ids]
            if errors:
                self._write_message(b"[" + b",".join(errors) + b"]")
        elif frame.expects_response:
            self._write_message(refusal(frame.id, error))

    def _write_message(self, message: bytes) -> None:
        self._write(on_one_line(message) + b"\n")

    # The server's own messages

    def _listen(self) -> None:
        """Open the session's stream unless it is open."""
        if self._session.session_id is not None and (
            self._listener is None or self._listener.done()
        ):
            self._listener = asyncio.ensure_future(self._receive())

    async def _receive(self) -> None:
        """Forward the messages of the session's stream, and reopen it when it ends. A stream that
        ended within `MIN_STREAM_S` is reopened after the next call only."""
        clock = asyncio.get_running_loop().time
        while self._session.session_id is not None:
            started_at = clock()
            try:
                answer = await self._session.get()
                if answer.status != 200 or not answer.is_stream:
                    answer.close()
                    return
                async for event in answer.events():
                    if event.data.strip():
                        self._write_message(event.data)
            except (WireError, TidegateError):
                return
            if clock() - started_at < MIN_STREAM_S:
                return


def _outcome_unknown(frame: Frame) -> TidegateError:
    what = f"`{frame.name or frame.method}`" if frame.ids is None else "the batch"
    return TidegateError(
        Code.BRIDGE_OUTCOME,
        f"The connection to the server was lost during {what}. Whether it ran is unknown, so it "
        "was not sent again",
    )
