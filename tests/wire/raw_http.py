"""HTTP/1.1 as it is on the wire: exactly the headers given, events read as they come."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from support.eventually import PATIENCE_S


class Event(NamedTuple):
    """One server-sent event."""

    data: str
    id: str | None
    retry: int | None


class Response:
    """An HTTP response that is read as it comes."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}

    @property
    def streams(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def events(self) -> Iterator[Event]:
        """Server-sent events until the stream ends."""
        data: list[str] = []
        id: str | None = None
        retry: int | None = None
        while line := self._response.readline():
            text = line.decode().rstrip("\r\n")
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name == "id":
                id = value
            elif name == "retry":
                retry = int(value)
            elif text == "" and (data or id is not None or retry is not None):
                yield Event("\n".join(data), id, retry)
                data, id, retry = [], None, None

    def messages(self) -> Iterator[Any]:
        """JSON messages: of the events, or the one body."""
        if self.streams:
            for event in self.events():
                if event.data:
                    yield json.loads(event.data)
            return
        body = self.read()
        if body:
            yield json.loads(body)

    def read(self) -> bytes:
        return self._response.read()

    def close(self) -> None:
        """Leave, whatever is still to come."""
        self._response.close()
        self._connection.close()


def http_request(
    port: int,
    method: str = "POST",
    path: str = "/mcp",
    body: bytes | Iterator[bytes] | None = None,
    headers: Sequence[tuple[str, str]] | Mapping[str, str] = (),
    *,
    host: str | None = None,
) -> Response:
    """Send one request with exactly these headers (beside Host and the body's length)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        _send(connection, method, path, body, {"Host": host or f"127.0.0.1:{port}"}, headers)
        return Response(connection)
    except BaseException:
        connection.close()
        raise


def _send(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | Iterator[bytes] | None,
    host: Mapping[str, str],
    headers: Sequence[tuple[str, str]] | Mapping[str, str],
) -> None:
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    for name, value in (*host.items(), *pairs):
        connection.putheader(name, value)
    if isinstance(body, bytes):
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
    elif body is None:
        connection.endheaders()
    else:
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        try:
            for chunk in body:
                connection.send(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            connection.send(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all of it was sent: the answer says why
