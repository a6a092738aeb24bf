"""What an HTTP server answers beside MCP: small JSON pages, each on a path of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from tidegate.edges.sse import HeaderList


class Visit(NamedTuple):
    """A request for a page. `read(limit)` gives the body; it raises Refusal 413 beyond `limit`."""

    method: str
    headers: Mapping[bytes, bytes]
    address: str
    read: Callable[[int], Awaitable[bytes]]


class Page(NamedTuple):
    """The answer: a status and what is encoded as JSON."""

    status: int
    body: Any
    headers: HeaderList = []  # noqa: RUF012  never changed


Serve = Callable[[Visit], Awaitable[Page]]


def wrong_method(allowed: bytes) -> Page:
    """405, naming what is allowed."""
    body = {"error": "method_not_allowed", "message": f"Send {allowed.decode()}"}
    return Page(405, body, [(b"allow", allowed)])
