"""The text of a tool's result, sent while the tool still produces it.

Only for endpoints whose document allows it: the reply is one JSON-RPC message all the same, and its
bytes together are one JSON document, whatever happens on the way.
"""

from __future__ import annotations

from typing import Protocol

from tidegate.errors import Code, TidegateError
from tidegate.protocol.jsonrpc import quote

MOST_KEPT_BYTES = 16_777_216


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
        self._kept: list[bytes] | None = None
        self._size = 0
        self.started = False

    async def write(self, text: bytes) -> None:
        """Send a piece of the text: whole characters of UTF-8. Raises: as `ReplyBody.write`, and
        LIMIT_BYTES for a text that is kept and too long for that."""
        if self._kept is not None:
            self._size += len(text)
            if self._size > MOST_KEPT_BYTES:
                message = "The result is too large to wait for its client"
                raise TidegateError(Code.LIMIT_BYTES, message)
            self.started = True
            self._kept.append(text)
            return
        part = quote(text)[1:-1]
        if not self.started:
            self.started = True
            head = b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"'
            part = head % self._id + part
        await self._body.write(part)

    def keep(self) -> None:
        """Keep the text from now on: its client got another reply, and comes back for it."""
        self._kept = []

    def kept(self) -> bytes:
        """The text that was kept."""
        return b"".join(self._kept or ())

    def end(self, text: bytes, *, is_error: bool) -> bytes:
        """The rest of the reply, with the last piece of the text."""
        error = b',"isError":true' if is_error else b""
        return b'%b"}]%b}}' % (quote(text)[1:-1], error)
