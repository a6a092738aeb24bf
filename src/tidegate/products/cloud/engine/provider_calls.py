"""Calls methods of providers: signed, tried again where that is safe, page after page."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from tidegate.config.addresses import HttpUrl
from tidegate.errors import Code, TidegateError
from tidegate.http_client.client import HttpClient
from tidegate.http_client.rules import ClientRules, HttpRequest, HttpResponse, RequestFailed
from tidegate.products.cloud.documents.accounts import account_of
from tidegate.products.cloud.documents.document_catalog import Found
from tidegate.products.cloud.documents.hosts import HostRules, redirected
from tidegate.products.cloud.documents.model import Method
from tidegate.products.cloud.engine.call_limits import CallCounts, CallRates
from tidegate.products.cloud.engine.options import CloudOptions
from tidegate.products.cloud.engine.response_cache import CacheKey, ResponseCache, login_digest
from tidegate.products.cloud.http.paging import find_following, is_same_list
from tidegate.products.cloud.http.requests import ApiRequest, build_request, signing_region
from tidegate.products.cloud.http.responses import ApiPage, read_page
from tidegate.products.cloud.language.descriptions import columns_of
from tidegate.products.cloud.login.credentials import AuthorizedRequest, Credentials, CredentialUse
from tidegate.retrying_http import retry_after
from tidegate.secrets.redaction import mask_shapes
from tidegate.typed_values import json_decoder

READS: Final = frozenset({"GET", "HEAD"})
MOST_REPLY_BYTES: Final = 268_435_456
_MOST_IDLE: Final = 32
_THIS_MACHINE: Final = ("127.0.0.0/8", "::1/128")
_FINAL: Final = frozenset({Code.PROVIDER_TOO_LARGE, Code.HOST_REFUSED})
"""Failures that another attempt would have again."""
_ATTEMPTS: Final = 3
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 10.0
_RETRIED: Final = frozenset({408, 429, 502, 503, 504})
_XML_ERROR: Final = re.compile(r"<(?:Code|Message)>([^<]*)</(?:Code|Message)>")
_QUOTED: Final = 300
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+")
_LOGIN_PIECES: Final = re.compile(r"[A-Za-z0-9_\-+/=.~]{16,}")
_SHORTEST_SECRET: Final = 4
_NAMED: Final = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;",
    " ": r"\+", "\n": r"\\+n", "\r": r"\\+r", "\t": r"\\+t",
}  # fmt: skip
"""Spellings of characters by a name of their own, as patterns."""


class _GraphqlReply(msgspec.Struct):
    errors: Any = None


_GRAPHQL_REPLY: Final = json_decoder(_GraphqlReply)


class ReplyPage(NamedTuple):
    """One page of a list, as it came. `following` asks for the next; None: it was the last, or with
    `says_more` the next cannot be asked for."""

    page: ApiPage
    response: HttpResponse
    following: ApiRequest | None
    says_more: bool = False
    is_counted: bool = True
    """Whether numbers alone say what follows."""
    is_guessed: bool = False
    """Whether what follows may be this page again."""


class ProviderCalls:
    """Sends the requests of one source. Requests of all its statements to one provider share the
    bound on what is under way at once."""

    def __init__(self, options: CloudOptions) -> None:
        self._client = HttpClient(
            ClientRules(
                max_bytes=MOST_REPLY_BYTES,
                total_s=options.request_timeout_s,
                ca_file=options.settings.ca_file,
                ca_setting="cloud.ca_file",
                networks_setting="cloud.private_hosts",
                max_idle=_MOST_IDLE,
            )
        )
        self._hosts = HostRules(options.settings)
        self._credentials = Credentials(options.settings, self._exchange)
        self._options = options
        self.rates = CallRates(options.max_calls_per_minute)
        self._cache: ResponseCache | None = None
        if options.cache_seconds:
            self._cache = ResponseCache(options.cache_seconds, options.cache_bytes)
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._quiet_until: dict[str, float] = {}

    async def pages(
        self,
        found: Found,
        method: Method,
        values: Mapping[str, Any],
        counts: CallCounts,
        cached_for: str = "",
    ) -> AsyncIterator[ReplyPage]:
        """The pages that a method gives, for as long as the caller asks for them. A status of 404
        for the first is no page at all. `cached_for` is the actor for whom replies may come from
        the cache and be kept there; empty: neither.

        Raises: TidegateError: as `build_request`, `send`, `read_page`.
        """
        request: ApiRequest | None = build_request(method, found.document.schemas, values)
        cache = self._cache if cached_for else None
        if cache is None:
            async for page in self._sent_pages(found, method, request, values, counts):
                yield page
            return
        provider = found.provider.name
        key = await self._cache_key(found, method, request, values, cached_for)
        known = cache.find(key)
        if known is not None:
            replies, age_s = known
            counts.add_hit(age_s)
            before: ReplyPage | None = None
            for asked, response in replies:
                before = await self._parsed(found, method, asked, response, before)
                yield before
            return
        mark = cache.begin(provider)
        kept: list[tuple[ApiRequest, HttpResponse]] = []
        asked = request
        async for page in self._sent_pages(found, method, request, values, counts):
            kept.append((asked, page.response))
            if page.following is None:  # the caller takes no further page then
                cache.keep(key, provider, mark, kept)
            else:
                asked = page.following
            yield page
        if not kept:
            cache.keep(key, provider, mark, kept)

    async def _sent_pages(
        self,
        found: Found,
        method: Method,
        request: ApiRequest | None,
        values: Mapping[str, Any],
        counts: CallCounts,
    ) -> AsyncIterator[ReplyPage]:
        asked: set[ApiRequest] = set()
        read: ReplyPage | None = None
        while request is not None:
            if request in asked:
                raise TidegateError(
                    Code.PROVIDER_REPLY,
                    f"{urlsplit(request.url).hostname} names a page that it has given before as the"
                    " next one, without end.",
                )
            response = await self.send(found, method, request, values, counts)
            if response.status == 404 and not asked:
                return
            asked.add(request)
            check_status(found, method, response)
            read = await self._parsed(found, method, request, response, read)
            counts.add_page()
            yield read
            request = read.following

    async def _cache_key(
        self,
        found: Found,
        method: Method,
        request: ApiRequest,
        values: Mapping[str, Any],
        actor: str,
    ) -> CacheKey:
        """What the replies to the request are kept under. The host is checked before the login is
        read, as before sending."""
        self._hosts.check(request.url, method.server, found.provider.name)
        use = _use(found, method, values)
        authorized = await self._credentials.authorize(request, use)
        return CacheKey(
            *(actor, use.account, login_digest(authorized), f"{found.path}.{method.name}"),
            *(request.verb, request.url, tuple(request.headers), request.body),
        )

    def drop_cached(self, provider: str) -> None:
        """Forget the replies of a provider that is changed."""
        if self._cache is not None:
            self._cache.drop(provider)

    async def send(
        self,
        found: Found,
        method: Method,
        request: ApiRequest,
        values: Mapping[str, Any],
        counts: CallCounts,
        *,
        tries_again: bool = True,
    ) -> HttpResponse:
        """The reply, whatever its status. GET and HEAD are tried again where that may help, unless
        `tries_again` is false.

        Raises: TidegateError PROVIDER_UNREACHABLE, PROVIDER_TIMEOUT, PROVIDER_CUT_OFF,
        PROVIDER_REPLY, LIMIT_RATE, HOST_REFUSED; as `Credentials.authorize`.
        """
        rules = _NO_RETRIES
        if tries_again and request.verb in READS:
            rules = _RetryRules.of(method)
        request = _accepting(request, method)
        provider = found.provider.name
        url = self._hosts.check(request.url, method.server, provider)
        use = _use(found, method, values)
        turns = self._turns.setdefault(provider, asyncio.Semaphore(self._options.concurrency))
        for attempt in range(rules.attempts):
            is_last = attempt == rules.attempts - 1
            pause_s = min(rules.first_s * 2**attempt, rules.longest_s) * (1 + random.random() / 4)
            counts.take()
            async with turns:
                await self._keep_quiet(provider)
                authorized = await self._credentials.authorize(request, use)
                try:
                    response = await self._send_once(request.url, url, authorized, provider)
                except RequestFailed as failure:
                    if is_last or failure.code in _FINAL:
                        raise
                else:
                    response = self._checked(found, method, use, authorized, response)
                    if is_last or response.status not in rules.statuses:
                        return response
                    named = retry_after(response.headers.get("retry-after"))
                    if named is not None:
                        if named > rules.longest_s:
                            return response
                        pause_s = named
                        self._quiet_until[provider] = time.monotonic() + named
            counts.retries += 1
            await asyncio.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def _checked(
        self,
        found: Found,
        method: Method,
        use: CredentialUse,
        authorized: AuthorizedRequest,
        response: HttpResponse,
    ) -> HttpResponse:
        """The reply; one that reports an error has no secrets of the login in it.

        Raises: TidegateError if the login is refused.
        """
        if not 200 <= response.status < 300 or _has_errors(method, response.body):
            response = _discreet(response, authorized)
        if response.status in (401, 403):
            refusal = self._credentials.refused(use, authorized, response.status)
            raise _login_refused(found, method, response, refusal)
        return response

    async def _parsed(
        self,
        found: Found,
        method: Method,
        request: ApiRequest,
        response: HttpResponse,
        before: ReplyPage | None,
    ) -> ReplyPage:
        """The page of a reply; `before` is the one that named it."""
        if len(response.body) < 16_384:
            return self._parse(found, method, request, response, before)
        return await asyncio.to_thread(self._parse, found, method, request, response, before)

    def _parse(
        self,
        found: Found,
        method: Method,
        request: ApiRequest,
        response: HttpResponse,
        before: ReplyPage | None,
    ) -> ReplyPage:
        page = read_page(
            method,
            found.document.schemas,
            response.body,
            urlsplit(request.url).hostname or "",
            renames=found.provider.renames_columns,
            columns=columns_of(found, method),
        )
        repeats = before is not None and before.is_guessed
        if before and repeats and is_same_list(method, page.body, before.page.body):
            page = page._replace(rows=iter(()))
        following = find_following(
            *(method, request, response.headers, page.body, self._hosts.restore),
            is_first=before is None,
            is_counted=before is None or before.is_counted,
        )
        return ReplyPage(page, response, *following)

    async def _keep_quiet(self, provider: str) -> None:
        """Wait for as long as the provider has asked all of us to."""
        wait_s = self._quiet_until.get(provider, 0.0) - time.monotonic()
        if wait_s > 0:
            await asyncio.sleep(wait_s)

    async def _exchange(self, request: ApiRequest) -> tuple[int, bytes]:
        """Send a request for a token (`credentials.Exchange`)."""
        url = self._hosts.check_token_url(request.url)
        response = await self._send_once(request.url, url, request)
        return response.status, response.body

    async def _send_once(
        self, named: str, url: HttpUrl, request: ApiRequest, provider: str = ""
    ) -> HttpResponse:
        """The reply to an authorized request whose URL was `named` before, and checked: to itself,
        or to where `cloud.endpoints` maps it. Raises: RequestFailed."""
        destination = self._hosts.destination(named)
        networks = _THIS_MACHINE if destination.is_mapped else self._hosts.networks(url, provider)
        response = await self._client.send(
            HttpRequest(
                url=_moved(request.url, named, destination.url),
                verb=request.verb,
                headers=request.headers,
                body=request.body,
                host=destination.host_header,
                name=url.host if destination.is_mapped else "",
                networks=networks,
            )
        )
        return response._replace(url=request.url.partition("?")[0])

    async def close(self) -> None:
        await self._client.close()


def _use(found: Found, method: Method, values: Mapping[str, Any]) -> CredentialUse:
    """Whose login a request of the method has."""
    return CredentialUse(
        found.provider,
        account_of(method, values),
        service=method.service_name or found.document.signing_name or found.service.name,
        region=signing_region(method, values),
    )


def _accepting(request: ApiRequest, method: Method) -> ApiRequest:
    """The request that asks for the media type which the document's rows are in. A server that has
    several forms of a reply chooses by it (RFC 9110, section 12.5.1)."""
    wanted = method.response.media_type
    if not _MEDIA_TYPE.fullmatch(wanted) or any(
        name.lower() == "accept" for name, _ in request.headers
    ):
        return request
    accept = ("Accept", f"{wanted}, */*;q=0.1")
    return msgspec.structs.replace(request, headers=(*request.headers, accept))


def _moved(authorized: str, url: str, destination: str) -> str:
    """The destination of a request whose login is in its query."""
    return destination + authorized[len(url) :] if authorized.startswith(url) else destination


class _RetryRules(NamedTuple):
    attempts: int
    first_s: float
    longest_s: float
    statuses: frozenset[int]

    @classmethod
    def of(cls, method: Method) -> _RetryRules:
        """The document's, where it has some that can be read; else StackQL's defaults."""
        settings = method.settings.retry or {}

        def number(key: str, default: float) -> float:
            value = settings.get(key)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return default
            return float(value) if 0 <= value <= 60_000 else default

        codes = settings.get("statusCodes")
        named = codes if isinstance(codes, list) else []  # pyright: ignore[reportUnknownVariableType]
        statuses = frozenset([each for each in named if isinstance(each, int)])  # pyright: ignore[reportUnknownVariableType]
        return cls(
            max(1, min(10, int(number("maxAttempts", _ATTEMPTS)))),
            number("initialBackoffMs", _FIRST_PAUSE_S * 1000) / 1000,
            number("maxBackoffMs", _LONGEST_PAUSE_S * 1000) / 1000,
            statuses or _RETRIED,
        )


_NO_RETRIES: Final = _RetryRules(1, 0.0, 0.0, frozenset())


def check_status(found: Found, method: Method, response: HttpResponse) -> None:
    """Raises: TidegateError with `http_status` and `retryable` for what is no success."""
    status = response.status
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise redirected(response.url, status, response.headers.get("location"))
    is_retryable = status in (408, 429) or status >= 500
    codes = {401: Code.PROVIDER_REFUSED, 403: Code.PROVIDER_REFUSED, 429: Code.PROVIDER_RATE}
    wait_s = retry_after(response.headers.get("retry-after"))
    when = "in a moment" if wait_s is None else f"in {wait_s:,.0f} s, as the provider asks"
    raise TidegateError(
        codes.get(status, Code.PROVIDER_FAILED),
        f"{found.path}.{method.name} was answered with HTTP status {status}{_ending(response)}",
        hint=f"Retry {when}." if is_retryable else "Correct the request or its credential.",
        retry_after_s=wait_s,
        details={"http_status": status, "retryable": is_retryable, "provider": found.provider.name},
    )


def _ending(response: HttpResponse) -> str:
    """The end of a sentence on a failure: what the provider says of it, in short and without
    secrets."""
    text = " ".join(response.body[:4_096].decode("utf-8", "replace").split())
    if text[:1] == "<" and (parts := _XML_ERROR.findall(text)):
        text = ": ".join(part for part in parts[:2])
    if not text or (text[:1] == "<" and "html" in text[:200].lower()):
        return "."
    return f": {mask_shapes(text)[:_QUOTED]}"


def _login_refused(
    found: Found, method: Method, response: HttpResponse, refusal: TidegateError
) -> TidegateError:
    """The error of a request that was refused: what the provider says, and whose login it was."""
    ending = _ending(response).removesuffix(".")
    text = f"{found.path}.{method.name} was answered with HTTP status {response.status}{ending}."
    details = {"http_status": response.status, "retryable": False, "provider": found.provider.name}
    return TidegateError(
        refusal.code, f"{text} {refusal.message}", hint=refusal.hint, details=details
    )


def _has_errors(method: Method, body: bytes) -> bool:
    """Whether the reply to a GraphQL method says what went wrong, with whatever status."""
    if method.graphql is None or b'"errors"' not in body:
        return False
    try:
        return bool(_GRAPHQL_REPLY.decode(body).errors)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # It is no GraphQL, and becomes an error without its text.
        return True


def _discreet(response: HttpResponse, authorized: AuthorizedRequest) -> HttpResponse:
    """The reply of a failure without what is secret in the request, which providers may quote."""
    body = response.body.decode("utf-8", "replace")
    for secret in authorized.secrets:
        if len(secret) >= _SHORTEST_SECRET:
            body = _spellings(secret).sub("***", body)
    for piece in _LOGIN_PIECES.findall(dict(authorized.headers).get("Authorization", "")):
        body = body.replace(piece, "***")
    return response._replace(body=body.encode())


@lru_cache(256)
def _spellings(secret: str) -> re.Pattern[str]:
    """Matches a secret as it is, and as URLs, forms, JSON and XML spell it, which escape what
    is no letter or digit, some of them more than others do."""
    return re.compile("".join(map(_spelling, secret)))


def _spelling(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    code, units = ord(character), character.encode("utf-16-be", "surrogatepass").hex()
    found = [
        rf"\\*{re.escape(character)}",
        "".join(f"%(?:25)*{each:02x}" for each in character.encode("utf-8", "surrogatepass")),
        "".join(rf"\\+u{units[at : at + 4]}" for at in range(0, len(units), 4)),
        f"&(?:amp;)*#(?:0*{code}|x0*{code:x});",
    ]
    if character in _NAMED:
        found.append(_NAMED[character])
    return f"(?i:{'|'.join(found)})"
