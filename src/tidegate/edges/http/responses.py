"""Whole responses over HTTP: protocol replies, refusals, and the headers that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.edges.http.sse import HeaderList
from tidegate.edges.http1.request import IncomingRequest, block_of
from tidegate.protocol.model import INVALID_REQUEST
from tidegate.protocol.transport import Answer

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


class HttpRefusal(Exception):
    """A request that is refused before it reaches a kernel or a handler.

    `status` is the HTTP status and `code` the JSON-RPC code of the same refusal; the conventions of
    the endpoint render one of them, or `name`, an error code of ours. `id` is the request's
    JSON-RPC id, where it is known (`basic/transports`), and `data` what programs may read of the
    refusal, `code` first. With `close` the connection ends after the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: int = INVALID_REQUEST,
        *,
        headers: HeaderList | None = None,
        id: bytes | None = None,
        close: bool = False,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers: HeaderList = headers or []
        self.id = id
        self.close = close
        self.data = data
        self.name = ""


def reply(
    request: IncomingRequest, answer: Answer | None, block: bytes, *, close: bool = False
) -> None:
    """Answer with a frame of the protocol; `block` are headers in addition to its own."""
    if answer is None:
        request.respond(202, block)
        return
    if answer.headers:
        block += block_of(answer.headers)
    request.respond(answer.status, _JSON + block, answer.frame, close=close)
