"""A reply that is sent in parts of one JSON response, no faster than its client reads."""

from __future__ import annotations

import asyncio

from tidegate.edges.http.active_request import ActiveRequest
from tidegate.edges.http.sse import EventStream
from tidegate.edges.http1.request import IncomingRequest, block_of
from tidegate.errors import Code, TidegateError

STALL_S = 30.0
"""How long a client may read nothing before its call is cancelled."""

_JSON = block_of([(b"content-type", b"application/json")])


class JsonBody:
    """The body of a response (`protocol.text_stream.ReplyBody`). `events` is the other way to
    answer the same request, and is closed when this one begins."""

    def __init__(
        self,
        request: IncomingRequest,
        block: bytes,
        events: EventStream,
        call: ActiveRequest,
        stall_s: float = STALL_S,
    ) -> None:
        self._request = request
        self._block = block
        self._events = events
        self._call = call
        self._stall_s = stall_s
        self.started = False

    @property
    def usable(self) -> bool:
        return not self._request.begun

    async def write(self, part: bytes) -> None:
        request = self._request
        if not self.started:
            self.started = True
            self._events.open = False
            request.start(_JSON + self._block)
            self._call.watch()
        request.push(part)
        call = self._call
        # A call that was cancelled, by a revoked token for one, does not wait for its client.
        call.listen(request.abort)
        try:
            async with asyncio.timeout(self._stall_s):
                await request.room()
        except TimeoutError:
            request.abort()
        finally:
            call.forget(request.abort)
        if request.gone:
            message = call.reason or "The client stopped reading the result"
            raise TidegateError(Code.CALL_CANCELLED, message)

    def finish(self, last: bytes) -> None:
        """Send the last part and end the response; without one the response is cut off."""
        if last:
            self._request.push(last)
            self._request.finish()
        else:
            self._request.abort()
