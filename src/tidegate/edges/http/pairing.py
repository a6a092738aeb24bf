"""Pairing over HTTP: `POST /v1/integrations/pair` asks for a token, `POST
/v1/integrations/exchange` fetches it.

Neither takes a bearer token and neither grants anything: a person grants at the command line.
Statuses: 202 waiting for the operator, 400 malformed, 403 denied or wrong verifier, 404 unknown
code, 410 expired or used, 429 too many requests.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, TypeVar

import msgspec

from tidegate.edges.http.router import (
    HttpRequest,
    HttpResponse,
    Router,
    WholeHandler,
    json_response,
    read_json,
)
from tidegate.edges.http.sse import HeaderList
from tidegate.errors import Code, TidegateError
from tidegate.identity.pairing import PairingService, Refused
from tidegate.model.actors import Scope
from tidegate.store.calls import change_state
from tidegate.store.records import TokenRights

ASK = "/v1/integrations/pair"
EXCHANGE = "/v1/integrations/exchange"
BODY_LIMIT = 1_024
ASK_AGAIN_S = 2

_DAY_S = 86_400.0
_STATUS = {"pending": 202, "denied": 403, "mismatch": 403, "unknown": 404, "gone": 410}
_SAYS = {
    "pending": "The operator has not answered the request yet.",
    "denied": "The operator denied the request.",
    "mismatch": "The verifier does not match; the code is no longer valid.",
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


def pairing_routes(pairing_service: PairingService) -> Router:
    """The two routes."""
    # One at a time: each waits for the disk, and neither is urgent.
    turn = asyncio.Lock()

    async def ask(request: HttpRequest) -> HttpResponse:
        body = await _body(request, _Ask)
        wanted = TokenRights(
            body.scope,
            None if body.sources is None else frozenset(body.sources),
            None if body.tags is None else frozenset(body.tags),
            None if body.days is None else body.days * _DAY_S,
        )
        async with turn:
            asked = await change_state(
                pairing_service.ask, body.client, body.code_challenge, wanted, request.address
            )
        return json_response(
            201,
            {
                "id": asked.id,
                "code": asked.code,
                "expires_at": asked.expires_at,
                "approve_with": f"tidegate pair approve {asked.id}",
                "interval": ASK_AGAIN_S,
            },
        )

    async def exchange(request: HttpRequest) -> HttpResponse:
        body = await _body(request, _Exchange)
        async with turn:
            token = await change_state(
                pairing_service.exchange, body.code, body.code_verifier, request.address
            )
        return json_response(200, {"token": token})

    router = Router()
    router.add("POST", ASK, _with_errors(ask))
    router.add("POST", EXCHANGE, _with_errors(exchange))
    return router


def _with_errors(serve: WholeHandler) -> WholeHandler:
    """`serve`, with its errors as responses; no response may be cached, since some hold a
    token."""

    async def answer(request: HttpRequest) -> HttpResponse:
        try:
            response = await serve(request)
        except Refused as refused:
            response = json_response(
                _STATUS[refused.reason], {"error": refused.reason, "message": _SAYS[refused.reason]}
            )
        except TidegateError as error:
            response = _failed(error)
        return response._replace(headers=[*response.headers, (b"cache-control", b"no-store")])

    return answer


async def _body(request: HttpRequest, model: type[Body]) -> Body:
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        # Another type would let a page in a browser send this without a preflight.
        raise TidegateError(Code.ARGUMENT_INVALID, "Content-Type must be application/json")
    return await read_json(request, model, BODY_LIMIT)


def _failed(error: TidegateError) -> HttpResponse:
    status = 400 if error.code is Code.ARGUMENT_INVALID else error.mapping.http
    headers: HeaderList = []
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
    shown = error.without_secrets()
    return json_response(
        status, {"error": error.code.value, "message": shown.message, "hint": shown.hint}, headers
    )
