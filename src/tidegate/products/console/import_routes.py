"""The routes of imports of files, below `/console/api/data`."""

from __future__ import annotations

from tidegate.edges.http.router import (
    HttpRequest,
    HttpResponse,
    Router,
    json_response,
    read_json,
)
from tidegate.identity.operators import SignedIn
from tidegate.imports.model import Reading
from tidegate.products.console.console import Guard
from tidegate.products.console.conventions import DATA
from tidegate.products.console.data_calls import Caller, Place
from tidegate.products.console.import_runs import Check, Submit
from tidegate.products.console.imports import PART_LIMIT, Imports, NewImport, Part
from tidegate.products.console.sign_in import PATH

BODY_LIMIT = 524_288


class ImportRoutes:
    """Imports on the Data page of one server."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports

    def routes(self, guard: Guard) -> Router:
        """All routes, as whole paths."""
        router = Router()
        for method, pattern, answer in (
            ("POST", "imports", self._begin),
            ("POST", "imports/{id}/part", self._add),
            ("GET", "imports/{id}", self._show),
            ("POST", "imports/{id}/read", self._read),
            ("GET", "imports/{id}/form", self._form),
            ("POST", "imports/{id}/check", self._check),
            ("POST", "imports/{id}/submit", self._submit),
            ("POST", "imports/{id}/cancel", self._cancel),
            ("POST", "imports/{id}/close", self._close),
        ):
            router.add(method, f"{PATH}/api/data/{pattern}", guard(answer))
        return router

    async def _begin(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Begin to send a file (`NewImport`): the import, as `imports/ID` gives it."""
        body = await read_json(request, NewImport, BODY_LIMIT)
        return json_response(200, await self._imports.begin(body, _caller(request, signed_in)))

    async def _add(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """The next part of the file (`Part`). With the last one the file is read."""
        body = await read_json(request, Part, PART_LIMIT)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(200, await self._imports.add(id, body, caller))

    async def _show(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """The import: {id, name, size, received, phase: receiving|reading|ready|unreadable,
        message, kind, digest, reading, is_order_sure, note, sheets, columns: [{name, kind}],
        rows: [{line, problem, values}], run}, where `run` is null or {state: checking|checked|
        invalid|running|asking|done|failed|cancelled|unknown, table, schema, source, asks,
        cannot_undo, count, done, digest, errors: [{line, column, message}], error_count, line,
        elapsed_ms, approval, change_id, call_id, code, message, hint, notes}."""
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(200, self._imports.find(id, caller).fields())

    async def _read(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Read the file in another way (`Reading`): the import."""
        body = await read_json(request, Reading, BODY_LIMIT)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(200, await self._imports.read(id, body, caller))

    async def _form(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """The form of a new table for the file in `source`, `schema`: {form}, as `form-plan` takes
        it."""
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(200, await self._imports.form(id, Place.of(request.query), caller))

    async def _check(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Begin to read all rows for a table (`Check`): the import."""
        body = await read_json(request, Check, BODY_LIMIT)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(200, await self._imports.check(id, body, caller))

    async def _submit(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Begin to add the rows that were checked (`Submit`): the import."""
        body = await read_json(request, Submit, BODY_LIMIT)
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(200, await self._imports.submit(id, body.reason, caller))

    async def _cancel(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """End what is under way: the import."""
        id, caller = request.parameters["id"], _caller(request, signed_in)
        return json_response(200, self._imports.cancel(id, caller))

    async def _close(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Let the file go."""
        self._imports.close(request.parameters["id"], _caller(request, signed_in))
        return HttpResponse(204, b"", list(DATA))


def _caller(request: HttpRequest, signed_in: SignedIn) -> Caller:
    return Caller(signed_in, request.address)
