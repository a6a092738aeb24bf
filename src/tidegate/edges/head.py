"""Bounds the head of a request, which the parser that uvicorn prefers does not.

Without it anybody who can connect, with a token or without, could fill the memory with headers
that never end, and hold up everybody with one that grows.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BYTES = 65_536
"""Of request line and headers together, counted by what arrives at once."""

_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A head that is too long is answered with 431 and the connection closed."""

    _in_head = True
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_BYTES and not self.transport.is_closing():
                self.transport.write(_REFUSAL)
                self.transport.close()

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what follows a chunked body is of no use to us
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()
