"""The routes of the Data page, below `/console/api/data`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidegate.edges.http.router import (
    HttpRequest,
    HttpResponse,
    HttpStream,
    Router,
    json_response,
    read_json,
)
from tidegate.identity.operators import SignedIn
from tidegate.products.console.blocks import BlockStep, DataBlocks, NewBlock
from tidegate.products.console.charts import ChartOfRun, RunCharts
from tidegate.products.console.column_figures import ColumnFigures, ColumnsOf
from tidegate.products.console.console import Guard
from tidegate.products.console.conventions import DATA
from tidegate.products.console.data_calls import Caller, DataCalls, decode
from tidegate.products.console.data_export import DataExports, read_ticket
from tidegate.products.console.data_history import DataHistory
from tidegate.products.console.data_rows import MOST_ROWS, CellOf, DataRows, Narrowed, Rows
from tidegate.products.console.data_table import DataTables
from tidegate.products.console.data_tree import DataTree
from tidegate.products.console.diagrams import DataDiagrams, DiagramOf
from tidegate.products.console.runs import NewRun, Runs
from tidegate.products.console.server_panels import CancelOf, ServerPanels
from tidegate.products.console.sign_in import PATH, actor_of
from tidegate.products.console.statements import Explained, Statements, Text, TextAt
from tidegate.products.console.table_forms import Planned, TableForms
from tidegate.products.console.tabs import DataTabs, NewTab, Written

BODY_LIMIT = 262_144
TEXT_LIMIT = 1_600_000
"""Bytes of a body with the text of a tab, each character of which may be written with six."""


class RowsOf(msgspec.Struct, frozen=True):
    """The fields of `runs/ID/rows`."""

    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST_ROWS)] = 200


class CellAt(msgspec.Struct, frozen=True):
    """The fields of `runs/ID/cell`."""

    row: Annotated[int, Meta(ge=0)]
    column: Annotated[int, Meta(ge=0)]


class DataPage:
    """The Data page of one server."""

    def __init__(self, calls: DataCalls, tabs: DataTabs, runs: Runs, exports: DataExports) -> None:
        self._tree = DataTree(calls)
        self._tables = DataTables(calls)
        self._diagrams = DataDiagrams(calls)
        self._forms = TableForms(calls)
        self._servers = ServerPanels(calls)
        self._blocks = DataBlocks(calls)
        self._rows = DataRows(calls)
        self._figures = ColumnFigures(calls)
        self._tabs = tabs
        self._runs = runs
        self._charts = RunCharts(runs)
        self._statements = Statements(calls)
        self._history = DataHistory(calls)
        self._exports = exports

    def routes(self, guard: Guard, guard_download: Guard) -> Router:
        """All routes, as whole paths."""
        router = Router()
        for method, pattern, answer in (
            ("GET", "sources", self._sources),
            ("GET", "schemas", self._schemas),
            ("GET", "tables", self._list),
            ("GET", "search", self._search),
            ("GET", "table", self._table),
            ("POST", "diagram", self._diagram),
            ("GET", "form", self._form),
            ("POST", "form-plan", self._plan_form),
            ("GET", "server", self._server),
            ("POST", "server/cancel", self._cancel_session),
            ("POST", "rows", self._page),
            ("POST", "count", self._count),
            ("POST", "columns", self._count_columns),
            ("POST", "cell", self._cell),
            ("GET", "tabs", self._list_tabs),
            ("POST", "tabs", self._open_tab),
            ("POST", "tabs/reopen", self._reopen_tab),
            ("POST", "tabs/{id}", self._write_tab),
            ("POST", "tabs/{id}/focus", self._focus_tab),
            ("POST", "tabs/{id}/close", self._close_tab),
            ("POST", "judge", self._judge),
            ("POST", "complete", self._complete),
            ("POST", "format", self._format),
            ("POST", "explain", self._explain),
            ("GET", "runs", self._list_runs),
            ("POST", "runs", self._begin_run),
            ("GET", "runs/{id}", self._run),
            ("GET", "runs/{id}/rows", self._run_rows),
            ("GET", "runs/{id}/cell", self._run_cell),
            ("POST", "runs/{id}/chart", self._chart_run),
            ("POST", "runs/{id}/cancel", self._cancel_run),
            ("POST", "runs/{id}/close", self._close_run),
            ("POST", "blocks", self._begin_block),
            ("POST", "blocks/{id}", self._step_block),
            ("POST", "export-ticket", self._give_ticket),
            ("GET", "history", self._find_history),
        ):
            router.add(method, f"{PATH}/api/data/{pattern}", guard(answer))
        router.add("GET", f"{PATH}/api/data/export", guard_download(self._export))
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

    async def _diagram(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, DiagramOf, BODY_LIMIT)
        return _json(await self._diagrams.read(body, _caller(request, signed_in)))

    async def _form(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._forms.form(request.query, _caller(request, signed_in)))

    async def _plan_form(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Planned, BODY_LIMIT)
        return _json(await self._forms.plan(body, _caller(request, signed_in)))

    async def _server(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._servers.read(request.query, _caller(request, signed_in)))

    async def _cancel_session(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, CancelOf, BODY_LIMIT)
        return _json(await self._servers.cancel(body, _caller(request, signed_in)))

    async def _page(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Rows, BODY_LIMIT)
        return _json(await self._rows.page(body, _caller(request, signed_in)))

    async def _count(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Narrowed, BODY_LIMIT)
        return _json(await self._rows.count(body, _caller(request, signed_in)))

    async def _count_columns(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, ColumnsOf, BODY_LIMIT)
        figures = await self._figures.read(body, _caller(request, signed_in))
        return HttpResponse(200, figures, [(b"content-type", b"application/json")])

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

    # Statements

    async def _judge(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Text, TEXT_LIMIT)
        return _json(await self._statements.judge(body, _caller(request, signed_in)))

    async def _complete(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, TextAt, TEXT_LIMIT)
        return _json(await self._statements.complete(body, _caller(request, signed_in)))

    async def _format(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Text, TEXT_LIMIT)
        return _json(await self._statements.format(body, _caller(request, signed_in)))

    async def _explain(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Explained, TEXT_LIMIT)
        return _json(await self._statements.explain(body, _caller(request, signed_in)))

    async def _list_runs(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(self._runs.list(request.query.get("tab", ""), signed_in))

    async def _begin_run(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, NewRun, TEXT_LIMIT)
        return _json(await self._runs.begin(body, _caller(request, signed_in)))

    async def _run(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(self._runs.find(request.parameters["id"], signed_in).fields())

    async def _run_rows(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        wanted = decode(request.query, RowsOf)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        rows = await self._runs.rows(id, wanted.offset, wanted.limit, caller)
        return HttpResponse(200, rows, [(b"content-type", b"application/json")])

    async def _run_cell(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        wanted = decode(request.query, CellAt)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return _json(await self._runs.cell(id, wanted.row, wanted.column, caller))

    async def _chart_run(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, ChartOfRun, BODY_LIMIT)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        chart = await self._charts.compute(id, body, caller)
        return HttpResponse(200, chart, [(b"content-type", b"application/json")])

    async def _cancel_run(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(self._runs.cancel(request.parameters["id"], signed_in))

    async def _close_run(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        self._runs.close(request.parameters["id"], signed_in)
        return HttpResponse(204)

    async def _begin_block(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, NewBlock, BODY_LIMIT)
        return _json(await self._blocks.begin(body, _caller(request, signed_in)))

    async def _step_block(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body, id = await read_json(request, BlockStep, BODY_LIMIT), request.parameters["id"]
        return _json(await self._blocks.step(id, body, _caller(request, signed_in)))

    # Downloads, and what was run before

    async def _give_ticket(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        wanted = read_ticket(await request.read(BODY_LIMIT))
        leaving = request.leaving(actor_of(signed_in))
        return _json(await self._exports.make(wanted, _caller(request, signed_in), leaving))

    async def _export(self, request: HttpRequest, signed_in: SignedIn) -> HttpStream:
        return await self._exports.downloads.take(request, signed_in, DATA)

    async def _find_history(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return _json(await self._history.find(request.query, _caller(request, signed_in)))


def _caller(request: HttpRequest, signed_in: SignedIn) -> Caller:
    return Caller(signed_in, request.address)


def _json(value: Any) -> HttpResponse:
    return json_response(200, value)
