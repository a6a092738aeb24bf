"""The routes of edits, below `/console/api/data`: whether a table can be edited, what is staged in
a tab, and its submission.

A `Cell` of these routes is null, `{"text": …}` (with a `class` on SQLite), `{"hex": …}` or
`{"default": true}`. What the grid shows of a row stays as in `data_rows.py`.
"""

from __future__ import annotations

from typing import Any

from tidegate.edges.http.router import (
    HttpRequest,
    HttpResponse,
    Router,
    json_response,
    read_json,
)
from tidegate.identity.operators import SignedIn
from tidegate.products.console.console import Guard
from tidegate.products.console.data_calls import Caller
from tidegate.products.console.edit_columns import EditColumns
from tidegate.products.console.edit_submissions import Submissions, Submit
from tidegate.products.console.sign_in import PATH
from tidegate.products.console.staged_edits import PutEdits, StagedEdits

BODY_LIMIT = 8_388_608
"""Bytes of a body with edits: what is staged may take half of that, and JSON escapes it."""


class EditRoutes:
    """Edits of rows on the Data page of one server."""

    def __init__(self, columns: EditColumns, edits: StagedEdits, submissions: Submissions) -> None:
        self._columns = columns
        self._edits = edits
        self._submissions = submissions

    def routes(self, guard: Guard) -> Router:
        """All routes, as whole paths."""
        router = Router()
        for method, pattern, answer in (
            ("GET", "edits/columns", self._describe),
            ("GET", "runs/{id}/edits", self._describe_result),
            ("GET", "tabs/{id}/edits", self._list),
            ("POST", "tabs/{id}/edits", self._put),
            ("GET", "tabs/{id}/edits/sql", self._statement),
            ("POST", "tabs/{id}/edits/submit", self._submit),
            ("GET", "tabs/{id}/edits/result", self._result),
            ("POST", "tabs/{id}/edits/cancel", self._cancel),
        ):
            router.add(method, f"{PATH}/api/data/{pattern}", guard(answer))
        return router

    async def _describe(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Whether the table `source`, `database`, `schema`, `table` can be edited, and what its
        columns take: {table, editable, reason, refused: {insert|update|delete: why}, asks, undo,
        most_rows, key, columns: [{name, type, editor, nullable, default, has_default, key,
        editable, insertable, reason, masked, values, length, classes, references}]}."""
        return _json(await self._columns.of_table(request.query, _caller(request, signed_in)))

    async def _describe_result(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """The same for the result of a run, with `result`: [{column}] for each of its columns, null
        for one that is none of the table."""
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return _json(await self._columns.of_result(id, caller))

    async def _list(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """What is staged: {version, table, rows: [{id, kind, key, before, cells}], counts,
        result}. `before` and `cells` are cells by the names of columns."""
        id, caller = request.parameters["id"], _caller(request, signed_in)
        listed = await self._edits.list(id, caller)
        return _json({**listed, "result": await self._submissions.result(id, caller)})

    async def _put(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Stage edits over a version (`PutEdits`): {version, rows, counts, problems: [{id, problem:
        changed|gone|invalid, message, column, now}]}; 409 with what is staged now, if that is of
        another version."""
        body = await read_json(request, PutEdits, BODY_LIMIT)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        await self._submissions.check_idle(id, caller)
        return json_response(*(await self._edits.put(id, body, caller)))

    async def _statement(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """What is staged, as SQL: {text, spans, statements, shown, verdict, why}."""
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return _json(await self._submissions.statement(id, caller))

    async def _submit(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Begin to make what is staged (`Submit`): the submission, as `result` gives it."""
        body = await read_json(request, Submit, BODY_LIMIT)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(*(await self._submissions.submit(id, body, caller)))

    async def _result(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """The last submission of the tab, or null: {id, tab, state: running|asking|done|conflict|
        failed|cancelled|unknown, started_at, ended_at, elapsed_ms, counts, approval, change_id,
        call_id, code, message, hint, columns, rows: [{id, kind, was, key, row}], conflicts: [{id,
        problem: changed|gone|exists, columns: [{name, before, theirs, yours}], theirs}],
        conflict_count, notes}. `was` is the key by which a row was staged."""
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return _json(await self._submissions.result(id, caller))

    async def _cancel(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """End the submission that is under way; it is answered as by `result`."""
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return _json(await self._submissions.cancel(id, caller))


def _caller(request: HttpRequest, signed_in: SignedIn) -> Caller:
    return Caller(signed_in, request.address)


def _json(value: Any) -> HttpResponse:
    return json_response(200, value)
