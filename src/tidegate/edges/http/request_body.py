"""The body of a request: of one that is served, and of one that is refused.

A refusal names its request by the JSON-RPC id, which is in the body. A request is refused by its
head, and its body may come after that. Without the id the Python SDK 2.x shows none of our words,
so the refusal waits for a body that is small and comes soon. A caller that is refused has shown no
right to anything: how much is read, for how long, and how many wait at the same time is bounded,
and beyond the bounds a refusal is given at once, without the id.
"""

from __future__ import annotations

import asyncio

from tidegate.edges.http.responses import HttpRefusal
from tidegate.edges.http1.reader import MOST_AHEAD
from tidegate.edges.http1.request import CutOff, IncomingRequest, TooLarge
from tidegate.errors import ERRORS, Code
from tidegate.protocol.jsonrpc import id_of_request
from tidegate.protocol.model import PARSE_ERROR

MOST_WAITING = 256
WAIT_S = 0.5
_TOO_LARGE = {"code": Code.LIMIT_BYTES.value}


async def read_body(request: IncomingRequest, limit: int) -> bytes:
    """Raises: HttpRefusal 413 beyond `limit` bytes, 400 if not all of it comes."""
    try:
        return await request.read(limit)
    except TooLarge:
        text, code = f"Payload too large: the limit is {limit} bytes", ERRORS[Code.LIMIT_BYTES].rpc
        raise HttpRefusal(413, text, code, close=True, data=_TOO_LARGE) from None
    except CutOff:
        raise HttpRefusal(400, "The request was cut off", PARSE_ERROR, close=True) from None


class RefusedRequests:
    """The requests of one server that are refused."""

    def __init__(self) -> None:
        self._waiting = 0

    async def id_of(self, request: IncomingRequest) -> bytes | None:
        """The id that the body names; None if there is none, or not soon."""
        if request.head.method != "POST":
            return None
        body = request.body
        if body is None:
            body = await self._wait_for_body(request)
        if body is None or len(body) > MOST_AHEAD:
            return None
        return id_of_request(body)

    async def _wait_for_body(self, request: IncomingRequest) -> bytes | None:
        """The body, if it is no larger than what a connection reads ahead for any request: all who
        wait hold 16 MB at most. A client that asks whether to send its body is answered at once."""
        head = request.head
        if head.expects or head.length is None or head.length > MOST_AHEAD:
            return None
        if self._waiting >= MOST_WAITING:
            return None
        self._waiting += 1
        try:
            async with asyncio.timeout(WAIT_S):
                return await request.read(MOST_AHEAD)
        except (TimeoutError, TooLarge, CutOff):
            return None
        finally:
            self._waiting -= 1
