"""The routes of saved queries, below `/console/api/queries`: what people keep, share and find.

Nothing here runs a statement. A query is opened as a tab with its text, and the person runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidegate.edges.http.router import HttpRequest, HttpResponse, json_response, read_json
from tidegate.errors import Code
from tidegate.identity.operators import SignedIn
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.policy.verdict import is_visible
from tidegate.products.console.console import Answer
from tidegate.products.console.data_calls import Caller, DataCalls, Place, decode
from tidegate.products.console.live import LiveFeed
from tidegate.products.console.sign_in import actor_of
from tidegate.products.console.tabs import DataTabs, NewTab, Written
from tidegate.store.calls import read_state
from tidegate.store.saved_queries import Audience, QueryContent, QueryParameter, QueryVersion
from tidegate.workspace.query_requests import (
    AddQuery,
    ChangeQuery,
    FindQuery,
    ListQueries,
    ListQueryVersions,
    QueryEntries,
    QueryEntry,
    QueryText,
    QueryVersions,
    RemovedQuery,
    RemoveQuery,
    WrittenQuery,
)
from tidegate.workspace.saved_queries import MOST_TEXT, SavedQueries

BODY_LIMIT = 1_000_000
"""Bytes of a body with a text, each character of which may be written with six."""

Check = Callable[[Actor, Source], bool]
"""Whether a caller may read a query on one of his sources."""
Text = Annotated[str, Meta(max_length=MOST_TEXT)]


class NewQuery(Place, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `queries`: a query to save."""

    name: str
    text: Text
    folder: str = ""
    description: str = ""
    shared_with: Audience = ""
    parameters: tuple[QueryParameter, ...] = ()
    chart: dict[str, Any] | None = None


class ChangedQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `queries/ID`: what is written over that version. With a text the parameters and
    the chart are written as well."""

    version: int
    name: str | None = None
    folder: str | None = None
    description: str | None = None
    shared_with: Audience | None = None
    text: Text | None = None
    parameters: tuple[QueryParameter, ...] = ()
    chart: dict[str, Any] | None = None


class Restored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `queries/ID/restore`: the version whose text is written over `version`."""

    version: int
    restores: int


class Versioned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `queries/ID/remove` and `queries/ID/ran`."""

    version: int


class Attached(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `queries/ID/attach`: a tab that holds the query, as of that version."""

    tab: Annotated[str, Meta(max_length=200)]
    version: int


class VersionOf(msgspec.Struct, frozen=True):
    """The fields of `queries/ID`."""

    version: int | None = None


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body without fields."""


class QueryRoutes:
    """The saved queries of the operators. `sources` gives all sources, in any thread."""

    def __init__(
        self,
        calls: DataCalls,
        saved: SavedQueries,
        tabs: DataTabs,
        feed: LiveFeed,
        sources: Callable[[], Sequence[Source]],
    ) -> None:
        self._calls = calls
        self._saved = saved
        self._tabs = tabs
        self._feed = feed
        self._sources = sources

    def routes(self) -> Iterator[tuple[str, str, Answer]]:
        """(method, path below the API's, what answers)."""
        yield "GET", "queries", self._list
        yield "POST", "queries", self._add
        yield "GET", "queries/{id}", self._find
        yield "GET", "queries/{id}/versions", self._list_versions
        yield "POST", "queries/{id}", self._change
        yield "POST", "queries/{id}/restore", self._restore
        yield "POST", "queries/{id}/remove", self._remove
        yield "POST", "queries/{id}/open", self._open
        yield "POST", "queries/{id}/attach", self._attach
        yield "POST", "queries/{id}/ran", self._note_run

    async def _list(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        found, _ = await self._calls.ask(
            _caller(request, signed_in), ListQueries(), None, QueryEntries
        )
        tabs = {tab: {"query": id, "version": at} for tab, (id, at) in found.tabs.items()}
        queries = [entry_fields(each) for each in found.queries]
        return json_response(200, {"queries": queries, "tabs": tabs})

    async def _add(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, NewQuery, BODY_LIMIT)
        wanted = AddQuery(
            body.name,
            _content(body.text, body.parameters, body.chart),
            body.folder,
            body.description,
            body.shared_with,
            body.database,
            body.schema,
        )
        caller = _caller(request, signed_in)
        found, _ = await self._calls.ask(caller, wanted, body.source, QueryText, tool="save_query")
        await self._tell(found.entry)
        return json_response(200, text_fields(found))

    async def _find(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        wanted = decode(request.query, VersionOf)
        return json_response(200, text_fields(await self._text(request, signed_in, wanted.version)))

    async def _text(
        self, request: HttpRequest, signed_in: SignedIn, version: int | None = None
    ) -> QueryText:
        wanted = FindQuery(request.parameters["id"], version)
        found, _ = await self._calls.ask(_caller(request, signed_in), wanted, None, QueryText)
        return found

    async def _list_versions(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        wanted = ListQueryVersions(request.parameters["id"])
        found, _ = await self._calls.ask(_caller(request, signed_in), wanted, None, QueryVersions)
        versions = [
            {"version": each.version, "by": each.changed_by, "at": each.changed_at}
            for each in found.versions
        ]
        return json_response(200, {**entry_fields(found.entry), "versions": versions})

    async def _change(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, ChangedQuery, BODY_LIMIT)
        content = None
        if body.text is not None:
            content = _content(body.text, body.parameters, body.chart)
        wanted = ChangeQuery(
            request.parameters["id"],
            body.version,
            body.name,
            body.folder,
            body.description,
            body.shared_with,
            content,
        )
        tool = "share_query" if body.shared_with else "change_query"
        return await self._write(request, signed_in, wanted, tool)

    async def _restore(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Restored, BODY_LIMIT)
        id = request.parameters["id"]
        wanted = ChangeQuery(id, body.version, restores=body.restores)
        return await self._write(request, signed_in, wanted, "restore_query")

    async def _write(
        self, request: HttpRequest, signed_in: SignedIn, wanted: ChangeQuery, tool: str
    ) -> HttpResponse:
        caller = _caller(request, signed_in)
        read_before = await self._saved.readers_check(wanted.id)
        done, _ = await self._calls.ask(caller, wanted, None, WrittenQuery, tool=tool)
        if done.written:
            await self._tell(done.found.entry, read_before)
            return json_response(200, text_fields(done.found))
        return json_response(
            409,
            {
                "error": Code.QUERY_CHANGED.value,
                "message": f"{done.found.version.changed_by} has changed this query since."
                if done.found.entry.query.text_version > wanted.version
                else "This query was changed since.",
                "query": text_fields(done.found),
            },
        )

    async def _remove(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Versioned, BODY_LIMIT)
        caller, id = _caller(request, signed_in), request.parameters["id"]
        entry = (await self._text(request, signed_in)).entry
        check = await self._saved.readers_check(id)
        wanted = RemoveQuery(id, body.version)
        await self._calls.ask(caller, wanted, None, RemovedQuery, tool="remove_query")
        await self._publish(entry.query.id, None, check)
        return HttpResponse(204)

    async def _open(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        """Open a query in a tab, with its text and unrun, or show the tab that holds it."""
        await read_json(request, Nothing, BODY_LIMIT)
        caller, id = _caller(request, signed_in), request.parameters["id"]
        found = await self._text(request, signed_in)
        entry, version = found.entry, found.version
        held, _ = await self._calls.ask(caller, ListQueries(), None, QueryEntries)
        open_tabs = {each["id"]: each for each in (await self._tabs.list(caller))["tabs"]}
        for tab, (query, _) in held.tabs.items():
            if query == id and tab in open_tabs:
                shown = await self._tabs.focus(tab, caller)
                return json_response(200, {"tab": shown, "query": text_fields(found)})
        place = NewTab(
            source=entry.source,
            database=entry.query.database,
            schema=entry.query.schema,
            kind="query",
            text=version.content.text,
            title=entry.query.name,
        )
        tab = await self._tabs.open(place, caller)
        if version.content.chart:
            chart = msgspec.json.decode(version.content.chart)
            _, tab = await self._tabs.write(tab["id"], Written(tab["version"], chart=chart), caller)
        await self._keep(tab["id"], id, version.version, caller)
        return json_response(200, {"tab": tab, "query": text_fields(found)})

    async def _attach(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Attached, BODY_LIMIT)
        caller = _caller(request, signed_in)
        await self._keep(body.tab, request.parameters["id"], body.version, caller)
        return HttpResponse(204)

    async def _keep(self, tab: str, id: str, version: int, caller: Caller) -> None:
        sources = tuple(self._calls.visible(caller))
        await self._saved.attach(actor_of(caller.signed_in), tab, id, version, sources)

    async def _note_run(self, request: HttpRequest, signed_in: SignedIn) -> HttpResponse:
        body = await read_json(request, Versioned, BODY_LIMIT)
        caller, id = _caller(request, signed_in), request.parameters["id"]
        sources = tuple(self._calls.visible(caller))
        await self._saved.note_run(actor_of(signed_in), id, body.version, sources)
        return HttpResponse(204)

    async def _tell(self, entry: QueryEntry, read_before: Check | None = None) -> None:
        """Tell the open pages of those who may read a query that it was changed, and of those who
        may no more that it is gone."""
        id = entry.query.id
        await self._publish(id, await self._saved.readers_check(id), read_before)

    async def _publish(self, id: str, reads: Check | None, read_before: Check | None) -> None:
        sources = await read_state(self._sources)

        def passes(signed_in: SignedIn, check: Check | None) -> bool:
            found = ((actor_of(signed_in, each.name), each) for each in sources)
            return check is not None and any(
                is_visible(actor, source) and check(actor, source) for actor, source in found
            )

        def data_of(signed_in: SignedIn) -> Any:
            if passes(signed_in, reads):
                return {"id": id, "gone": False}
            return {"id": id, "gone": True} if passes(signed_in, read_before) else None

        self._feed.publish("query", data_of)


def entry_fields(entry: QueryEntry) -> dict[str, Any]:
    """A query without its text, as JSON."""
    query = entry.query
    return {
        "id": query.id,
        "source": entry.source,
        "database": query.database,
        "schema": query.schema,
        "owner": query.owner,
        "name": query.name,
        "folder": query.folder,
        "description": query.description,
        "shared_with": query.shared_with,
        "version": query.version,
        "text_version": query.text_version,
        "text_by": query.text_by,
        "changed_by": query.changed_by,
        "changed_at": query.changed_at,
        "may_change": entry.may_change,
        "ran": entry.ran,
    }


def text_fields(found: QueryText) -> dict[str, Any]:
    """A query with the content of a version, as JSON."""
    return {**entry_fields(found.entry), "content": version_fields(found.version)}


def version_fields(version: QueryVersion) -> dict[str, Any]:
    """A version with its content, as JSON."""
    content = version.content
    return {
        "version": version.version,
        "by": version.changed_by,
        "at": version.changed_at,
        "text": content.text,
        "parameters": [msgspec.to_builtins(each) for each in content.parameters],
        "chart": msgspec.json.decode(content.chart) if content.chart else None,
    }


def _content(
    text: str, parameters: tuple[QueryParameter, ...], chart: dict[str, Any] | None
) -> QueryContent:
    written = "" if chart is None else msgspec.json.encode(chart).decode()
    return QueryContent(text, parameters, written)


def _caller(request: HttpRequest, signed_in: SignedIn) -> Caller:
    return Caller(signed_in, request.address)
