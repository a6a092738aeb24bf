"""The routes of Access, below `/console/api/access`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tidegate.edges.http.router import HttpRequest, HttpResponse, json_response, read_json
from tidegate.identity.operators import SignedIn
from tidegate.products.console.access import Access
from tidegate.products.console.access_matrix import AccessMatrix, Ask, Preview
from tidegate.products.console.console import Answer
from tidegate.products.console.operator_accounts import (
    ChangeRoles,
    Confirmed,
    FirstPassphrase,
    Invite,
    OperatorAccounts,
)
from tidegate.products.console.pairing_requests import Approve, PairingRequests
from tidegate.products.console.token_forms import ChangeToken, MakeToken, TokenForms
from tidegate.store.calls import change_state, read_state

BODY_LIMIT = 262_144
"""A token may name many sources, and a statement may be long."""


class AccessRoutes:
    """The routes, and what answers them. `hashing` is the lock of what takes a passphrase."""

    def __init__(
        self,
        access: Access,
        matrix: AccessMatrix,
        forms: TokenForms,
        pairings: PairingRequests,
        accounts: OperatorAccounts,
        hashing: asyncio.Lock,
    ) -> None:
        self._access = access
        self._matrix = matrix
        self._forms = forms
        self._pairings = pairings
        self._accounts = accounts
        self._hashing = hashing

    def routes(self) -> Iterator[tuple[str, str, Answer]]:
        """(method, path below the API's, what answers)."""
        yield "GET", "access", self._show
        yield "GET", "access/choices", partial(self._get, self._matrix.choices)
        yield "GET", "access/matrix", partial(self._get, self._matrix.show)
        yield "GET", "access/cell", partial(self._get, self._matrix.cell)
        yield "POST", "access/ask", self._ask
        yield "POST", "access/preview", self._preview
        yield "POST", "access/sessions/{id}/end", self._end_session
        yield "POST", "access/tokens", self._make_token
        yield "POST", "access/tokens/{id}/change", self._change_token
        yield "POST", "access/tokens/{id}/revoke", self._revoke_token
        yield "POST", "access/pairings/{id}/approve", self._approve
        yield "POST", "access/pairings/{id}/deny", self._deny
        yield "POST", "access/operators", self._invite
        yield "POST", "access/operators/{name}/link", self._invite_again
        yield "POST", "access/operators/{name}/roles", self._set_roles
        yield "POST", "access/operators/{name}/remove", self._remove
        yield "POST", "access/passphrase", self._set_passphrase

    async def _show(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return json_response(200, await read_state(self._access.show, signed_in))

    async def _get(
        self, answer: Callable[..., dict[str, Any]], request: HttpRequest, signed_in: SignedIn
    ) -> HttpResponse:
        return json_response(200, await read_state(answer, request.query, signed_in))

    async def _ask(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Ask, BODY_LIMIT)
        return json_response(200, await self._matrix.ask(body, signed_in, request.address))

    async def _preview(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Preview, BODY_LIMIT)
        return json_response(200, await self._matrix.preview(body, signed_in, request.address))

    async def _end_session(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        id = request.parameters["id"]
        await change_state(self._access.end_session, id, signed_in)
        return HttpResponse(204)

    # Tokens

    async def _make_token(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, MakeToken, BODY_LIMIT)
        made = await self._hashed(self._forms.make, body, signed_in, request.address)
        return json_response(201, made)

    async def _change_token(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, id = await read_json(request, ChangeToken, BODY_LIMIT), request.parameters["id"]
        changed = await self._hashed(self._forms.change, id, body, signed_in, request.address)
        return json_response(200, changed)

    async def _revoke_token(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        id = request.parameters["id"]
        await change_state(self._forms.revoke, id, signed_in, request.address)
        return HttpResponse(204)

    # Requests for a token

    async def _approve(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, id = await read_json(request, Approve, BODY_LIMIT), request.parameters["id"]
        await self._hashed(self._pairings.approve, id, body, signed_in, request.address)
        return HttpResponse(204)

    async def _deny(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        id = request.parameters["id"]
        await change_state(self._pairings.deny, id, signed_in, request.address)
        return HttpResponse(204)

    # Operators

    async def _invite(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Invite, BODY_LIMIT)
        made = await self._hashed(self._accounts.invite, body, signed_in, request.address)
        return json_response(201, made)

    async def _invite_again(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, name = await read_json(request, Confirmed, BODY_LIMIT), request.parameters["name"]
        again = self._accounts.invite_again
        return json_response(201, await self._hashed(again, name, body, signed_in, request.address))

    async def _set_roles(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, name = await read_json(request, ChangeRoles, BODY_LIMIT), request.parameters["name"]
        await self._hashed(self._accounts.set_roles, name, body, signed_in, request.address)
        return HttpResponse(204)

    async def _remove(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, name = await read_json(request, Confirmed, BODY_LIMIT), request.parameters["name"]
        await self._hashed(self._accounts.remove, name, body, signed_in, request.address)
        return HttpResponse(204)

    async def _set_passphrase(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, FirstPassphrase, BODY_LIMIT)
        await self._hashed(self._accounts.set_first_passphrase, body, signed_in)
        return HttpResponse(204)

    async def _hashed(self, work: Callable[..., Any], *given: Any) -> Any:
        """What takes a passphrase: one at a time, since a hash takes 32 MB."""
        async with self._hashing:
            return await asyncio.to_thread(work, *given)
