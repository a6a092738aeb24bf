"""The head of a request: what its first lines say, checked beyond what the parser checks.

llhttp runs in its strict form and refuses what is ambiguous: a length twice or together with a
transfer encoding, folded headers, lone line feeds, control characters. What it lets pass and we do
not serve is refused here. Source: RFC 9112.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

Pairs = Sequence[tuple[bytes, bytes]]

MOST_BYTES = 65_536
"""Of request line and headers together."""
MOST_HEADERS = 256


class Malformed(Exception):
    """A request that cannot be answered as what it says; the connection ends with `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Head:
    """Request line and headers, names in lower case and values without blanks around them.

    `path` has its percent escapes decoded, except `%2F`: an escaped slash is data and separates
    nothing (RFC 3986, section 2.2). `raw_path` is as sent, `query` is what follows the `?`.
    `headers` has the last of what is given twice, `pairs` all. `length` is the body's, None if it
    comes in chunks. `parsed` is the application's to keep what it found out from the head alone: a
    later request with the very same head has the same `Head`.
    """

    __slots__ = (
        "chunked",
        "expects",
        "headers",
        "keeps_alive",
        "length",
        "method",
        "modern",
        "pairs",
        "parsed",
        "path",
        "query",
        "raw_path",
    )

    def __init__(
        self,
        method: str,
        raw_path: str,
        pairs: Pairs,
        *,
        query: str = "",
        modern: bool = True,
        keeps_alive: bool = True,
    ) -> None:
        """`modern`: HTTP/1.1. Raises: Malformed."""
        self.method = method
        self.path = _decoded(raw_path)
        self.raw_path = raw_path
        self.query = query
        self.pairs = pairs
        self.headers: Mapping[bytes, bytes] = dict(pairs)
        self.modern = modern
        self.keeps_alive = modern and keeps_alive
        self.chunked = b"transfer-encoding" in self.headers
        self.expects = modern and self.headers.get(b"expect", b"").lower() == b"100-continue"
        self.parsed: Any = None
        self.length = None if self.chunked else int(self.headers.get(b"content-length", b"0"))
        if self.chunked and not modern:
            raise Malformed(400)
        if self.chunked and _codings(pairs) != [b"chunked"]:
            raise Malformed(501)

    @property
    def has_body(self) -> bool:
        return self.length != 0


def read_head(method: bytes, target: bytes, raw: Pairs, version: str, *, keeps_alive: bool) -> Head:
    """What the parser has found, as a head. Raises: Malformed."""
    if version not in ("1.1", "1.0"):
        raise Malformed(505)
    if _size(target, raw) > MOST_BYTES:
        raise Malformed(431)
    if method == b"CONNECT":
        raise Malformed(501)
    pairs = [(name.lower(), value.strip(b" \t")) for name, value in raw]
    hosts = sum(name == b"host" for name, _ in pairs)
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise Malformed(400)  # RFC 9112, section 3.2
    path, query = _path_and_query(target, pairs)
    return Head(
        method.decode("ascii"),
        path,
        pairs,
        query=query,
        modern=version == "1.1",
        keeps_alive=keeps_alive,
    )


def _codings(pairs: Pairs) -> list[bytes]:
    """Of all lines: a proxy before us may have read another than the last."""
    return [value.lower() for name, value in pairs if name == b"transfer-encoding"]


def _size(target: bytes, raw: Pairs) -> int:
    return len(target) + sum([len(name) + len(value) + 4 for name, value in raw])


def _decoded(raw_path: str) -> str:
    if "%" not in raw_path:
        return raw_path
    return "/".join(unquote(part).replace("/", "%2F") for part in raw_path.split("/"))


def _path_and_query(target: bytes, pairs: Pairs) -> tuple[str, str]:
    """Both as sent."""
    text = target.decode("latin-1")
    if "#" in text:
        raise Malformed(400)
    if text.startswith("/"):
        path, _, query = text.partition("?")
    elif text == "*":
        path, query = text, ""
    else:
        # Whom the target names must be whom Host names, or we would guard one and serve the other.
        try:
            parts = urlsplit(text)
        except ValueError:
            raise Malformed(400) from None
        hosts = [value.decode("latin-1").lower() for name, value in pairs if name == b"host"]
        if parts.scheme != "http" or hosts != [parts.netloc.lower()]:
            raise Malformed(400)
        path, query = parts.path or "/", parts.query
    return path, query


_LENGTH = re.compile(rb"\r\nContent-Length:[ ]?([0-9]{1,7})\r\n", re.IGNORECASE)
_MOST_KEPT = 8_192


class Pattern:
    """A head as bytes, with room for another length: requests of one client are seldom different
    in anything else, and then need not be parsed.

    The bytes of such a request are those that the parser has accepted, except for the digits that
    are the value of the one Content-Length.
    """

    __slots__ = ("_after", "_before", "_start", "head")

    def __init__(self, before: bytes, after: bytes, head: Head) -> None:
        self._before = before
        self._after = after
        self._start = len(before)
        self.head = head

    @classmethod
    def of(cls, data: bytes, head: Head) -> Pattern | None:
        """The pattern of the head that `data` starts with; None if it is no ordinary one."""
        if head.method != "POST" or not head.keeps_alive or head.expects or head.chunked:
            return None
        end = data.find(b"\r\n\r\n", 0, _MOST_KEPT)
        if end < 0 or not data.startswith(b"POST "):
            return None
        raw = data[: end + 4]
        found = list(_LENGTH.finditer(raw))
        if len(found) != 1 or int(found[0][1]) != head.length:
            return None
        return cls(raw[: found[0].start(1)], raw[found[0].end(1) :], head)

    def body_of(self, data: bytes) -> bytes | None:
        """The body, if `data` is exactly one request with this head; else None."""
        if not data.startswith(self._before):
            return None
        end = data.find(b"\r", self._start, self._start + 8)
        digits = data[self._start : end]
        if end < 0 or not digits.isdigit() or not data.startswith(self._after, end):
            return None
        body = data[end + len(self._after) :]
        return body if len(body) == int(digits) else None
