"""The head of a request: what its first lines say, checked beyond what the parser checks.

llhttp runs in its strict form and refuses what is ambiguous: a length twice or together with a
transfer encoding, folded headers, lone line feeds, control characters. What it lets pass and we do
not serve is refused here. Source: RFC 9112.
"""

from __future__ import annotations

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
