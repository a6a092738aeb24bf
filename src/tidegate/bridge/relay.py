"""The bridge itself: carries messages between a host on stdio and the server on HTTP.

Whatever the host asks is answered. What surely did not run is sent again, once; what may have run
never is, unless it changes nothing: the host is told that nobody knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tidegate.bridge.http_client import Answer, NotSent, WireError
from tidegate.bridge.messages import Frame, error_of, flat, id_of, read, refusal
from tidegate.bridge.server_session import ServerSession
from tidegate.edges.line_io import Lines
from tidegate.errors import Code, TidegateError
from tidegate.protocol.jsonrpc import NO_ID, error_frame, request_frame
from tidegate.protocol.model import INVALID_REQUEST, PARSE_ERROR

GRACE_S = 10.0
QUIET_S = 300.0
SHORT_S = 1.0

_GONE = frozenset({401, 404})
_ENDLESS = "subscriptions/listen"


class _NeverRan(Exception):
    """The server did not take the message. `status`: it knows our token (401) or our session
    (404) no more."""

    def __init__(self, status: int | None) -> None:
        super().__init__()
        self.status = status


class Relay(Lines):
    """Between the lines of a host and `line`; `write` takes what goes to the host."""

    def __init__(self, line: ServerSession, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._line = line
        self._write = write
        self._queue: asyncio.Queue[Frame] = asyncio.Queue()
        self._running: dict[asyncio.Task[None], Frame] = {}
        self._withdrawn: set[bytes] = set()
        self._listener: asyncio.Task[None] | None = None
        line.on_renewal = self._listen

    # From the host

    def take_line(self, line: bytes) -> None:
        frame = read(line)
        if frame is None:
            text = "Parse error: not valid JSON"
            self._tell(error_frame(self._no_id(), PARSE_ERROR, text))
        else:
            self._queue.put_nowait(frame)

    def refuse_line(self) -> None:
        text = f"Invalid Request: a message must be at most {self.line_limit} bytes"
        self._tell(error_frame(self._no_id(), INVALID_REQUEST, text))

    def _no_id(self) -> bytes | None:
        """How this conversation says that an error answers no request that can be named."""
        return NO_ID if (self._line.revision or "") < "2025-11-25" else None

    async def carry(self) -> None:
        """Carry messages to the server, in their order, until cancelled."""
        while True:
            frame = await self._queue.get()
            if frame.withdraws is not None:
                self._withdraw(frame.withdraws)
            task = asyncio.ensure_future(self._carry(frame))
            self._running[task] = frame
            task.add_done_callback(self._running.pop)
            if not frame.is_asking or frame.method == "initialize":
                # What comes after it must not overtake it.
                await asyncio.wait({task})
            self._queue.task_done()

    async def keep_awake(self, quiet_s: float = QUIET_S) -> None:
        """Let the server know now and then that the session is still wanted, until cancelled."""
        count = 0
        while True:
            await asyncio.sleep(quiet_s)
            if self._line.session is not None:
                count += 1
                ping = Frame(request_frame(f"tidegate-bridge-{count}", "ping", {}))
                with suppress(
                    WireError, TidegateError
                ):  # the next call finds out what is the matter
                    await (await self._line.post(ping)).body()

    async def finish(self, hurry: asyncio.Future[Any], grace_s: float = GRACE_S) -> None:
        """Carry what the host has sent, give it `grace_s` to be answered, less once `hurry` is
        done, and end the session."""
        drained = asyncio.ensure_future(self._drain())
        await asyncio.wait({drained, hurry}, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()
        tasks = [*self._running, *([self._listener] if self._listener is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._line.leave()

    async def _drain(self) -> None:
        await self._queue.join()
        while waiting := [t for t, frame in self._running.items() if frame.method != _ENDLESS]:
            await asyncio.wait(waiting)

    def _withdraw(self, id: bytes) -> None:
        """The host waits for this request no more."""
        for task, frame in self._running.items():
            if frame.id == id and frame.method is not None:
                if frame.revision is not None:
                    task.cancel()  # in the stateless era the end of the connection says it
                else:
                    self._withdrawn.add(id)

    async def _carry(self, frame: Frame) -> None:
        try:
            if frame.withdraws is not None and self._line.session is None:
                return
            await self._send(frame)
        except TidegateError as error:
            self._refuse(frame, error)
        except Exception as error:  # noqa: BLE001  the host must not wait for ever
            what = f"A fault of the bridge: {type(error).__name__}: {error}"
            self._refuse(frame, TidegateError(Code.INTERNAL, what))
        finally:
            if frame.id is not None:
                self._withdrawn.discard(frame.id)

    async def _send(self, frame: Frame) -> None:
        """Send a message, and once more if the first time it surely did not run."""
        await self._line.connect()
        seen = self._line.generation
        try:
            await self._exchange(frame)
        except _NeverRan as error:
            await self._line.renew(seen, error.status)
        except WireError:
            if not frame.is_asking:
                return
            if not frame.is_repeatable:
                raise _unknown(frame) from None
            await self._line.renew(seen)
        else:
            return
        try:
            await self._exchange(frame, last=True)
        except (WireError, _NeverRan):
            if frame.is_asking:
                lost = TidegateError(Code.BRIDGE_NO_SERVER, "The server was lost again")
                raise (lost if frame.is_repeatable else _unknown(frame)) from None

    async def _exchange(self, frame: Frame, *, last: bool = False) -> None:
        """Send a message and give the host all that comes back.

        Raises: _NeverRan, WireError, TidegateError.
        """
        try:
            answer = await self._line.post(frame)
        except NotSent:
            raise _NeverRan(None) from None
        try:
            if answer.is_stream:
                await self._take_stream(frame, answer)
                body = b""
            else:
                body = await answer.body()
                if not last and answer.status in _GONE and self._is_gone(frame, answer, body):
                    raise _NeverRan(answer.status)
                self._take_body(frame, answer, body)
        finally:
            answer.close()
        if frame.method == "initialize" and frame.is_asking and body:
            self._line.note_opening(frame, body, answer.headers.get("mcp-session-id"))
        elif frame.method == "notifications/initialized":
            self._line.note_ready()
            self._listen()
        elif answer.status == 200:
            self._line.note_answer(frame, body)
            self._listen()

    def _is_gone(self, frame: Frame, answer: Answer, body: bytes) -> bool:
        """Whether the server knows our token or our session no more."""
        if answer.status == 401:
            return True
        error = error_of(body)
        return frame.revision is None and error is not None and error[0] == -32001

    def _take_body(self, frame: Frame, answer: Answer, body: bytes) -> None:
        if not body.strip():
            if frame.is_asking and frame.id not in self._withdrawn:
                raise _unknown(frame)
            return
        if frame.method is not None and frame.id is None:
            return  # what is wrong with a notification is told to nobody
        if frame.method is None or id_of(body) == frame.id:
            self._tell(body)
            return
        # The server could not say whose answer it is; we can.
        code, message, data = error_of(body) or (-32603, f"HTTP status {answer.status}", None)
        self._tell(error_frame(frame.id, code, message, data))

    async def _take_stream(self, frame: Frame, answer: Answer) -> None:
        """Give the host each message of the stream; come back to one that the server left."""
        last_event: str | None = None
        while True:
            retry_s = 0.0
            async for event in answer.events():
                last_event = event.id or last_event
                retry_s = event.retry_s if event.retry_s is not None else retry_s
                if not event.data.strip():
                    continue
                if frame.id is not None and id_of(event.data) == frame.id:
                    self._tell(event.data)
                    return
                self._tell(event.data)
            if frame.ids is not None or frame.id in self._withdrawn:
                return
            if last_event is None or frame.revision is not None:
                raise WireError("the stream ended before the answer")
            await asyncio.sleep(min(retry_s, self._line.patience_s))
            answer = await self._line.get(last_event)
            if answer.status != 200 or not answer.is_stream:
                answer.close()
                raise WireError("the stream cannot be taken up again")

    # To the host

    def _refuse(self, frame: Frame, error: TidegateError) -> None:
        if frame.ids is not None:
            errors = [refusal(id, error) for id in frame.ids]
            if errors:
                self._tell(b"[" + b",".join(errors) + b"]")
        elif frame.is_asking:
            self._tell(refusal(frame.id, error))

    def _tell(self, message: bytes) -> None:
        self._write(flat(message) + b"\n")

    # What the server says by itself

    def _listen(self) -> None:
        """Open the session's stream, if it is not open."""
        if self._line.session is not None and (self._listener is None or self._listener.done()):
            self._listener = asyncio.ensure_future(self._hear())

    async def _hear(self) -> None:
        """Give the host what the server says on the session's stream. A stream that ends soon
        after it began is left until the next call."""
        clock = asyncio.get_running_loop().time
        while self._line.session is not None:
            began = clock()
            try:
                answer = await self._line.get()
                if answer.status != 200 or not answer.is_stream:
                    answer.close()
                    return
                async for event in answer.events():
                    if event.data.strip():
                        self._tell(event.data)
            except (WireError, TidegateError):
                return
            if clock() - began < SHORT_S:
                return


def _unknown(frame: Frame) -> TidegateError:
    what = f"`{frame.name or frame.method}`" if frame.ids is None else "the batch"
    return TidegateError(
        Code.BRIDGE_OUTCOME,
        f"The server was lost while it answered {what}: whether it ran is not known, so it was "
        "not sent again",
    )
