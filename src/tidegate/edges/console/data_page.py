"""The routes of the Data page, below `/console/api/data`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tidegate.edges.console.data_calls import Caller, DataCalls
from tidegate.edges.console.data_rows import CellOf, DataRows, Narrowed, Rows
from tidegate.edges.console.data_table import DataTables
from tidegate.edges.console.data_tree import DataTree
from tidegate.edges.console.sign_in import PATH
from tidegate.edges.console.tabs import DataTabs, NewTab, Written
from tidegate.edges.http.router import (
    HttpRequest,
    HttpResponse,
    HttpStream,
    Router,
    json_response,
    read_json,
)
from tidegate.identity.operators import SignedIn

Answer = Callable[[HttpRequest, SignedIn], Awaitable[HttpResponse | HttpStream]]
Guard = Callable[[Answer], Callable[[HttpRequest], Awaitable[HttpResponse | HttpStream]]]
"""Makes a handler of an answer: it checks where a request comes from, and who is signed in."""
BODY_LIMIT = 262_144
TEXT_LIMIT = 1_600_000
"""Bytes of a body with the text of a tab, each character of which may be written with six."""


class DataPage:
    """The Data page of one server."""

    def __init__(self, calls: DataCalls, tabs: DataTabs) -> None:
        self._tree = DataTree(calls)
        self._tables = DataTables(calls)
        self._rows = DataRows(calls)
        self._tabs = tabs

    def routes(self, guard: Guard) -> Router:
        """All routes, as whole paths."""
        router = Router()
        for method, pattern, answer in (
            ("GET", "sources", self._sources),
            ("GET", "schemas", self._schemas),
            ("GET", "tables", self._list),
            ("GET", "search", self._search),
            ("GET", "table", self._table),
            ("POST", "rows", self._page),
            ("POST", "count", self._count),
            ("POST", "cell", self._cell),
            ("GET", "tabs", self._list_tabs),
            ("POST", "tabs", self._open_tab),
            ("POST", "tabs/reopen", self._reopen_tab),
            ("POST", "tabs/{id}", self._write_tab),
            ("POST", "tabs/{id}/focus", self._focus_tab),
            ("POST", "tabs/{id}/close", self._close_tab),
        ):
            router.add(method, f"{PATH}/api/data/{pattern}", guard(answer))
        return router

    # The tree

    async def _sources(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._tree.sources(_caller(request, signed_in)))

    async def _schemas(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._tree.schemas(request.query, _caller(request, signed_in)))

    async def _list(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._tree.tables(request.query, _caller(request, signed_in)))

    async def _search(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._tree.search(request.query, _caller(request, signed_in)))

    # A table

    async def _table(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._tables.describe(request.query, _caller(request, signed_in)))

    async def _page(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Rows, BODY_LIMIT)
        return _json(await self._rows.page(body, _caller(request, signed_in)))

    async def _count(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Narrowed, BODY_LIMIT)
        return _json(await self._rows.count(body, _caller(request, signed_in)))

    async def _cell(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, CellOf, BODY_LIMIT)
        return _json(await self._rows.cell(body, _caller(request, signed_in)))

    # Tabs

    async def _list_tabs(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._tabs.list(_caller(request, signed_in)))

    async def _open_tab(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, NewTab, TEXT_LIMIT)
        return _json(await self._tabs.open(body, _caller(request, signed_in)))

    async def _reopen_tab(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._tabs.reopen(_caller(request, signed_in)))

    async def _write_tab(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Written, TEXT_LIMIT)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(*(await self._tabs.write(id, body, caller)))

    async def _focus_tab(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        caller = _caller(request, signed_in)
        return _json(await self._tabs.focus(request.parameters["id"], caller))

    async def _close_tab(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        await self._tabs.close(request.parameters["id"], _caller(request, signed_in))
        return HttpResponse(204)


def _caller(request: HttpRequest, signed_in: SignedIn) -> Caller:
    return Caller(signed_in, request.address)


def _json(value: Any) -> HttpResponse:
    return json_response(200, value)
