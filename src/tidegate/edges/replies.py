"""What leaves over HTTP as a whole: a reply, a refusal, a little JSON, and the headers with it."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.edges.sse import HeaderList, Send
from tidegate.protocol.frames import error_frame
from tidegate.protocol.link import Answer

_JSON = (b"content-type", b"application/json")
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


class Refusal(Exception):
    """A request that never reaches the protocol: the answer and its HTTP status.

    The answer has no id where the request's is not known (`basic/transports`).
    """

    def __init__(
        self,
        status: int,
        code: int,
        message: str,
        headers: HeaderList | None = None,
        *,
        id: bytes | None = None,
    ) -> None:
        super().__init__(message)
        self.answer = Answer(error_frame(id, code, message), status, headers or ())


async def reply(send: Send, answer: Answer | None, headers: HeaderList) -> None:
    if answer is None:
        await send_whole(send, 202, b"", headers)
    else:
        await send_whole(send, answer.status, answer.frame, [_JSON, *headers, *answer.headers])


async def send_json(send: Send, status: int, body: Any, headers: HeaderList) -> None:
    encoded = b"" if body is None else msgspec.json.encode(body)
    await send_whole(send, status, encoded, [_JSON, *headers] if encoded else headers)


async def send_whole(send: Send, status: int, body: bytes, headers: HeaderList) -> None:
    length = (b"content-length", str(len(body)).encode())
    all_headers = headers if status == 204 else [length, *headers]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})
