"""Pairing over HTTP: `POST /v1/integrations/pair` asks, `POST /v1/integrations/exchange` fetches.

Neither takes a bearer token and neither grants: what they lead to was granted by a person at the
command line. 400 the request is not one, 403 denied or the wrong verifier, 404 no such code, 410
expired or used, 429 too often. 202 while nobody has answered yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, TypeVar

import msgspec

from tidegate.actors import Scope
from tidegate.edges.pages import Page, Serve, Visit, wrong_method
from tidegate.edges.replies import Refusal
from tidegate.edges.sse import HeaderList
from tidegate.errors import Code, GateError
from tidegate.identity.pairing import Pairer, Refused
from tidegate.store.pairings import Rights

ASK = "/v1/integrations/pair"
EXCHANGE = "/v1/integrations/exchange"
BODY_LIMIT = 1_024
ASK_AGAIN_S = 2

_DAY_S = 86_400.0
_STATUS = {"pending": 202, "denied": 403, "mismatch": 403, "unknown": 404, "gone": 410}
_SAYS = {
    "pending": "Nobody has answered the request yet.",
    "denied": "The operator denied the request.",
    "mismatch": "The verifier does not fit; the code is worthless now.",
    "unknown": "There is no such code.",
    "gone": "The code has expired or was used.",
}

Names = Annotated[list[str], msgspec.Meta(max_length=32)]
Body = TypeVar("Body", bound=msgspec.Struct)


class _Ask(msgspec.Struct, forbid_unknown_fields=True):
    client: str
    code_challenge: str
    code_challenge_method: Literal["S256"] = "S256"
    scope: Scope = Scope.READ_ONLY
    sources: Names | None = None
    tags: Names | None = None
    days: Annotated[float, msgspec.Meta(gt=0, le=36_500)] | None = None


class _Exchange(msgspec.Struct, forbid_unknown_fields=True):
    code: str
    code_verifier: str


def pages(pairer: Pairer) -> dict[str, Serve]:
    """The two pages by path."""
    # One at a time: each waits for the disk, and none is in a hurry.
    turn = asyncio.Lock()

    async def ask(visit: Visit) -> Page:
        body = await _body(visit, _Ask)
        wanted = Rights(
            body.scope,
            None if body.sources is None else frozenset(body.sources),
            None if body.tags is None else frozenset(body.tags),
            None if body.days is None else body.days * _DAY_S,
        )
        async with turn:
            asked = await asyncio.to_thread(
                pairer.ask, body.client, body.code_challenge, wanted, visit.address
            )
        return Page(
            201,
            {
                "id": asked.id,
                "code": asked.code,
                "expires_at": asked.expires_at,
                "approve_with": f"tidegate pair approve {asked.id}",
                "interval": ASK_AGAIN_S,
            },
        )

    async def exchange(visit: Visit) -> Page:
        body = await _body(visit, _Exchange)
        async with turn:
            token = await asyncio.to_thread(
                pairer.exchange, body.code, body.code_verifier, visit.address
            )
        return Page(200, {"token": token})

    return {ASK: _guarded(ask), EXCHANGE: _guarded(exchange)}


def _guarded(serve: Serve) -> Callable[[Visit], Awaitable[Page]]:
    async def guarded(visit: Visit) -> Page:
        if visit.method != "POST":
            return wrong_method(b"POST")
        try:
            page = await serve(visit)
        except Refused as refused:
            page = Page(
                _STATUS[refused.reason], {"error": refused.reason, "message": _SAYS[refused.reason]}
            )
        except GateError as error:
            page = _failed(error)
        # A token is in some of them.
        return page._replace(headers=[*page.headers, (b"cache-control", b"no-store")])

    return guarded


async def _body(visit: Visit, model: type[Body]) -> Body:
    kind = visit.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        # Also keeps a page in a browser from sending one without asking first.
        raise GateError(Code.ARGUMENT_INVALID, "Content-Type must be application/json")
    try:
        return msgspec.json.decode(await visit.read(BODY_LIMIT), type=model)
    except Refusal:
        raise GateError(
            Code.ARGUMENT_INVALID, f"The body has over {BODY_LIMIT} bytes, or was cut off"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise GateError(Code.ARGUMENT_INVALID, f"The body is not valid: {error}") from None


def _failed(error: GateError) -> Page:
    status = 400 if error.code is Code.ARGUMENT_INVALID else error.fate.http
    headers: HeaderList = []
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
    shown = error.discreet()
    return Page(
        status, {"error": error.code.value, "message": shown.message, "hint": shown.hint}, headers
    )
