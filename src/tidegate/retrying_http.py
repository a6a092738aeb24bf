"""Calls a model provider's HTTP API by the rule of `http_client`: JSON out, JSON in; retried.

A request runs on the event loop and ends with its task, so a caller that goes away costs nothing
more. No error text holds a key: what a provider says is shown in part, without anything that looks
like one.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.http_client.client import HttpClient
from tidegate.http_client.rules import ClientRules, HttpRequest, HttpResponse

MOST_BYTES = 16_777_216
_MOST_DETAILS = 200
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_FIRST_PAUSE_S = 0.5
_WORD = re.compile(r"[\w-]{4,}")
_TOKEN = re.compile(r"[A-Za-z0-9_\-+/=.]{16,}")

Sleep = Callable[[float], Awaitable[None]]


class Endpoint(NamedTuple):
    """Where a provider is and how it is called. `name` is what errors call it. `secrets` are never
    shown. `timeout_s` is for one attempt, reading included."""

    name: str
    base_url: str
    headers: Mapping[str, str] = {}
    secrets: tuple[str, ...] = ()
    timeout_s: float = 60.0
    retries: int = 3
    max_bytes: int = MOST_BYTES

    @property
    def host(self) -> str:
        """The host and port as written in the address."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]


async def post_json(
    endpoint: Endpoint, path: str, payload: Mapping[str, Any], *, sleep: Sleep = asyncio.sleep
) -> Any:
    """POST `payload` to `path` below the provider's address; the parsed JSON of its answer.

    Tries again after a failure that may pass, `retries` times, and waits as long as `Retry-After`
    says, if that is no longer than one attempt may take.
    Raises: TidegateError PROVIDER_UNREACHABLE, PROVIDER_TIMEOUT, PROVIDER_CUT_OFF,
    PROVIDER_TOO_LARGE, PROVIDER_REPLY, PROVIDER_RATE, PROVIDER_REFUSED, PROVIDER_FAILED.
    """
    body = msgspec.json.encode(payload)
    for attempt in range(endpoint.retries + 1):
        wait_s = _FIRST_PAUSE_S * 2**attempt * (1 + random.random() / 4)
        try:
            response = await _attempt(endpoint, path, body)
        except TidegateError as error:
            if attempt == endpoint.retries or error.code not in _PASSING:
                raise
        else:
            if response.status == 200:
                return _parsed(endpoint, response)
            failure = _failure(endpoint, response)
            named = failure.retry_after_s
            if attempt == endpoint.retries or response.status not in _RETRIED:
                raise failure
            if named is not None:
                if named > endpoint.timeout_s:
                    raise failure
                wait_s = named
        await sleep(wait_s)
    raise AssertionError("the last attempt returns or raises")


_PASSING = (Code.PROVIDER_UNREACHABLE, Code.PROVIDER_CUT_OFF)
"""What may pass within seconds. A timeout is not repeated: it has cost a whole attempt."""


async def _attempt(endpoint: Endpoint, path: str, body: bytes) -> HttpResponse:
    """One request. Raises: RequestFailed."""
    rules = ClientRules(max_bytes=endpoint.max_bytes, total_s=endpoint.timeout_s)
    request = HttpRequest(
        url=endpoint.base_url.rstrip("/") + path,
        verb="POST",
        headers=(("Content-Type", "application/json"), ("Accept", "application/json")),
        credentials=tuple(endpoint.headers.items()),
        body=body,
        name=endpoint.name,
        networks=None,  # the operator names the host
    )
    return await HttpClient(rules).send(request)


def _parsed(endpoint: Endpoint, response: HttpResponse) -> Any:
    try:
        return msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        kind = response.headers.get("content-type", "text of no stated type").partition(";")[0]
        raise TidegateError(
            Code.PROVIDER_REPLY,
            f"{endpoint.name} at {endpoint.host} answered with {kind[:60]}, not with JSON",
        ) from None


def _failure(endpoint: Endpoint, response: HttpResponse) -> TidegateError:
    status = response.status
    details = _details(endpoint, response)
    text = f"{endpoint.name} answered with HTTP status {status}{details}"
    after = retry_after(response.headers.get("retry-after"))
    hint = None if after is None else f"Retry in {after:,.0f} s, as the provider asks."
    if status == 429:
        return TidegateError(Code.PROVIDER_RATE, text, hint=hint, retry_after_s=after)
    if status in (401, 403):
        return TidegateError(Code.PROVIDER_REFUSED, text)
    return TidegateError(Code.PROVIDER_FAILED, text, hint=hint, retry_after_s=after)


def _details(endpoint: Endpoint, response: HttpResponse) -> str:
    """What a JSON error says, shortened, without what may be a key. An HTML page says nothing."""
    try:
        document = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    found: Any = document
    for name in ("error", "message"):
        if isinstance(found, dict):
            found = found.get(name, found)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - parsed text has no type
    if isinstance(found, dict):
        found = found.get("detail")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - parsed text has no type
    if not isinstance(found, str) or not found.strip():
        return ""
    for secret in endpoint.secrets:
        found = found.replace(secret, "***") if secret else found
    # Providers quote the beginning or the end of a key.
    found = _WORD.sub(
        lambda word: "***" if any(word[0] in secret for secret in endpoint.secrets) else word[0],
        found,
    )
    found = _TOKEN.sub("***", " ".join(found.split()))
    return f": {found[:_MOST_DETAILS]}"


def retry_after(value: str | None) -> float | None:
    """Seconds from now, of either form of the header (RFC 9110, section 10.2.3)."""
    if value is None:
        return None
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
