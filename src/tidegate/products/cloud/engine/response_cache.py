"""Replies of providers to reads, kept for some seconds, for the caller and the login they were for.

What is kept is all replies of one list, so that a list is never put together of two times. A change
at a provider drops what is kept of it, before it is sent and when it has ended: what was asked for
meanwhile is not kept.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from tidegate.http_client.rules import HttpResponse
from tidegate.products.cloud.http.requests import ApiRequest
from tidegate.products.cloud.login.credentials import AuthorizedRequest

_OVERHEAD: Final = 1_024
"""About what an entry takes besides its replies."""

Replies = Sequence[tuple[ApiRequest, HttpResponse]]
"""Each page's request and reply; none where there is nothing (HTTP status 404)."""


class CacheKey(NamedTuple):
    """What must be the same for a reply to be given again: the caller, with which account and
    secret, and for what."""

    actor: str
    account: str
    login: bytes
    method: str
    verb: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None


class CachedReplies(NamedTuple):
    """Replies that are kept; `at` is when the first of them was asked for."""

    provider: str
    replies: Replies
    at: float
    size: int


def login_digest(request: AuthorizedRequest) -> bytes:
    """A digest of the secrets of a request's credential; a changed one has another."""
    digest = sha256()
    for secret in request.secrets:
        digest.update(sha256(secret.encode()).digest())
    return digest.digest()


class ResponseCache:
    """The replies that one source keeps, the latest used of them within `most_bytes`. Belongs to
    one event loop. `clock` gives seconds."""

    def __init__(
        self, lifetime_s: float, most_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lifetime_s = lifetime_s
        self._most_bytes = most_bytes
        self._clock = clock
        self._kept: OrderedDict[CacheKey, CachedReplies] = OrderedDict()
        self._size = 0
        self._drops: dict[str, int] = {}

    def find(self, key: CacheKey) -> tuple[Replies, float] | None:
        """The replies to this request, and how many seconds old they are; None if none are kept."""
        known = self._kept.get(key)
        if known is None:
            return None
        age_s = self._clock() - known.at
        if age_s >= self._lifetime_s:
            self._forget(key)
            return None
        self._kept.move_to_end(key)
        return known.replies, age_s

    def begin(self, provider: str) -> tuple[float, int]:
        """A mark for `keep`, taken before the first request is sent."""
        return self._clock(), self._drops.get(provider, 0)

    def keep(self, key: CacheKey, provider: str, mark: tuple[float, int], replies: Replies) -> None:
        """Keep all replies of a list, unless the provider was changed since the mark."""
        at, drops = mark
        if drops != self._drops.get(provider, 0):
            return
        self._forget(key)
        size = _OVERHEAD + sum(
            len(response.body) + len(request.url) + _OVERHEAD for request, response in replies
        )
        if size > self._most_bytes:
            return
        self._kept[key] = CachedReplies(provider, replies, at, size)
        self._size += size
        while self._size > self._most_bytes:
            self._forget(next(iter(self._kept)))

    def drop(self, provider: str) -> None:
        """Forget what is kept of a provider: it is changed."""
        self._drops[provider] = self._drops.get(provider, 0) + 1
        for key in [key for key, kept in self._kept.items() if kept.provider == provider]:
            self._forget(key)

    def _forget(self, key: CacheKey) -> None:
        known = self._kept.pop(key, None)
        if known is not None:
            self._size -= known.size
