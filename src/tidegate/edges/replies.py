"""What leaves over HTTP as a whole: a reply, a refusal, a little JSON, and the headers with it."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.edges.http1.request import Request
from tidegate.edges.http1.response import block_of
from tidegate.edges.sse import HeaderList
from tidegate.protocol.frames import error_frame
from tidegate.protocol.link import Answer

EXPOSED = b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"

PREFLIGHT: HeaderList = [
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, "
        b"MCP-Protocol-Version, Mcp-Method, Mcp-Name",
    ),
    (b"access-control-max-age", b"600"),
]

_JSON = block_of([(b"content-type", b"application/json")])


class Refusal(Exception):
    """A request that never reaches the protocol: the answer and its HTTP status.

    The answer has no id where the request's is not known (`basic/transports`). `close`: the
    connection ends with it.
    """

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        headers: HeaderList | None = None,
        *,
        id: bytes | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(message)
        self.answer = Answer(error_frame(id, code, message), status, headers or ())
        self.close = close


def reply(request: Request, answer: Answer | None, block: bytes, *, close: bool = False) -> None:
    """Answer with a frame of the protocol; `block` are headers beside its own."""
    if answer is None:
        request.respond(202, block)
        return
    if answer.headers:
        block += block_of(answer.headers)
    request.respond(answer.status, _JSON + block, answer.frame, close=close)


def send_json(request: Request, status: int, body: Any, headers: HeaderList) -> None:
    """Answer with a value as JSON; None is no body."""
    block = block_of(headers)
    if body is None:
        request.respond(status, block)
    else:
        request.respond(status, _JSON + block, msgspec.json.encode(body))
