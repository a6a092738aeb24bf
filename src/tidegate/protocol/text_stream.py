"""The text of a tool's result, sent while the tool still produces it.

Only for endpoints whose document allows it: the reply is one JSON-RPC message all the same, and its
bytes together are one JSON document, whatever happens on the way.
"""

from __future__ import annotations

from typing import Protocol

from tidegate.protocol.jsonrpc import quote


class ReplyBody(Protocol):
    """The body of an HTTP response that a transport sends in parts."""

    @property
    def usable(self) -> bool:
        """Whether the reply can still begin here: nothing else was sent before it."""
        ...

    async def write(self, part: bytes) -> None:
        """Send a part and wait until the client has room for more. The first one begins the
        response. Raises: TidegateError CALL_CANCELLED if the client has gone or reads nothing."""
        ...


class TextStream:
    """Writes a `CallToolResult` with one text block, piece by piece."""

    def __init__(self, body: ReplyBody, id: bytes) -> None:
        self._body = body
        self._id = id
        self.started = False

    async def write(self, text: bytes) -> None:
        """Send a piece of the text: whole characters of UTF-8. Raises: as `ReplyBody.write`."""
        part = quote(text)[1:-1]
        if not self.started:
            self.started = True
            head = b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"'
            part = head % self._id + part
        await self._body.write(part)

    def end(self, text: bytes, *, is_error: bool) -> bytes:
        """The rest of the reply, with the last piece of the text."""
        error = b',"isError":true' if is_error else b""
        return b'%b"}]%b}}' % (quote(text)[1:-1], error)
