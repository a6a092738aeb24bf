"""The routes of budgets, below `/console/api/access/budgets`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from tidegate.edges.http.router import HttpRequest, HttpResponse, json_response, read_json
from tidegate.identity.operators import SignedIn
from tidegate.products.console.budget_forms import BudgetForms, RemoveBudget, SetBudget
from tidegate.products.console.console import Answer
from tidegate.store.calls import read_state

BODY_LIMIT = 16_384


class BudgetRoutes:
    """The routes, and what answers them. `hashing` is the lock of what takes a passphrase."""

    def __init__(self, forms: BudgetForms, hashing: asyncio.Lock) -> None:
        self._forms = forms
        self._hashing = hashing

    def routes(self) -> Iterator[tuple[str, str, Answer]]:
        """(method, path below the API's, what answers)."""
        yield "GET", "access/budgets", self._show
        yield "POST", "access/budgets", self._set
        yield "POST", "access/budgets/{id}/remove", self._remove

    async def _show(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return json_response(200, await read_state(self._forms.show, signed_in))

    async def _set(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, SetBudget, BODY_LIMIT)
        return json_response(
            200, await self._hashed(self._forms.set, body, signed_in, request.address)
        )

    async def _remove(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, id = await read_json(request, RemoveBudget, BODY_LIMIT), request.parameters["id"]
        await self._hashed(self._forms.remove, id, body, signed_in, request.address)
        return HttpResponse(204)

    async def _hashed(self, work: Callable[..., Any], *given: Any) -> Any:
        """What takes a passphrase: one at a time, since a hash takes 32 MB."""
        async with self._hashing:
            return await asyncio.to_thread(work, *given)
