"""The routes of sources, below `/console/api/sources`."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.edges.http.router import HttpRequest, HttpResponse, json_response, read_json
from tidegate.identity.operators import SignedIn
from tidegate.products.console.admins import check_admin
from tidegate.products.console.console import Answer
from tidegate.products.console.source_drafts import SourceDraft
from tidegate.products.console.source_edits import (
    Remove,
    Rename,
    SourceEdit,
    SourceEdits,
    TrySource,
)
from tidegate.products.console.source_list import SourceList
from tidegate.store.calls import read_state

BODY_LIMIT = 262_144
"""A source may have many masks."""


class SourceRoutes:
    """The routes, and what answers them."""

    def __init__(self, listing: SourceList, edits: SourceEdits) -> None:
        self._listing = listing
        self._edits = edits

    def routes(self) -> Iterator[tuple[str, str, Answer]]:
        """(method, path below the API's, what answers)."""
        yield "GET", "sources", self._show
        yield "POST", "sources", self._add
        yield "POST", "sources/preview", self._preview
        yield "POST", "sources/try", self._try
        yield "POST", "sources/change", self._change
        yield "POST", "sources/{name}/rename", self._rename
        yield "POST", "sources/{name}/remove", self._remove

    async def _show(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        return json_response(200, await read_state(self._listing.show, signed_in))

    async def _add(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        check_admin(signed_in)
        body = await read_json(request, SourceEdit, BODY_LIMIT)
        return json_response(201, await self._edits.add(body, signed_in, request.address))

    async def _preview(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        check_admin(signed_in)
        body = await read_json(request, SourceDraft, BODY_LIMIT)
        return json_response(200, await self._edits.preview(body, signed_in))

    async def _try(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        check_admin(signed_in)
        body = await read_json(request, TrySource, BODY_LIMIT)
        return json_response(200, await self._edits.try_source(body, signed_in, request.address))

    async def _change(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        check_admin(signed_in)
        body = await read_json(request, SourceEdit, BODY_LIMIT)
        return json_response(200, await self._edits.change(body, signed_in, request.address))

    async def _rename(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Rename, BODY_LIMIT)
        name = request.parameters["name"]
        return json_response(200, await self._edits.rename(name, body, signed_in, request.address))

    async def _remove(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Remove, BODY_LIMIT)
        name = request.parameters["name"]
        return json_response(200, await self._edits.remove(name, body, signed_in, request.address))
