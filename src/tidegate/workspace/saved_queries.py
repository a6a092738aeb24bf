"""Saved queries: texts with names that people keep, and share with a role.

A query belongs to the operator who saved it and to a source. It is there for those who may see the
source: its owner, and where it is shared, all who have that role on the source. For all others it
does not exist. The owner may change it, and an admin of the source what is shared. It is a text and
nothing more: running it is a call of the one who runs it, with his rights.

It answers what the gate has let through, for the sources that the gate says its caller may see.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, holds
from tidegate.model.requests import Call, Request
from tidegate.model.sources import Source
from tidegate.store.calls import change_state, read_state
from tidegate.store.saved_queries import (
    QueryContent,
    QueryParameter,
    QueryVersion,
    SavedQuery,
    SavedQueryStore,
)
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

MOST_TEXT = 102_400
"""Characters of a text: the gate refuses a longer statement."""
MOST_CHART = 16_384
MOST_NAME = 200
MOST_DESCRIPTION = 4_000
MOST_PARAMETERS = 100

Handler = Callable[[Call, tuple[Source, ...]], Awaitable[Any]]


class SavedQueries:
    """The saved queries in `store`. The methods that take a call are handlers of the gateway."""

    def __init__(self, store: SavedQueryStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    @property
    def handlers(self) -> Mapping[type[Request], Handler]:
        """For a gateway."""
        return {
            ListQueries: self.list_all,
            FindQuery: self.find,
            ListQueryVersions: self.list_versions,
            AddQuery: self.add,
            ChangeQuery: self.change,
            RemoveQuery: self.remove,
        }

    async def list_all(self, call: Call, sources: tuple[Source, ...]) -> QueryEntries:
        """The queries on these sources that the caller may read, by folder and name."""
        by_id = {each.id: each for each in sources}
        person = _person(call.actor)
        found = [
            each
            for each in await read_state(self._store.list, list(by_id))
            if _may_read(call.actor, each, by_id[each.source_id])
        ]
        ids = [each.id for each in found]
        ran = await read_state(self._store.last_runs, person, ids)
        tabs = await read_state(self._store.attached, person)
        entries = [
            _entry(call.actor, each, by_id[each.source_id], ran.get(each.id)) for each in found
        ]
        return QueryEntries(
            tuple(entries), {tab: held for tab, held in tabs.items() if held[0] in set(ids)}
        )

    async def find(self, call: Call, sources: tuple[Source, ...]) -> QueryText:
        """A query with its text. Raises: TidegateError QUERY_UNKNOWN, the same for one that is not
        there, one that the caller may not read, and a version that is not kept."""
        request = call.request
        assert isinstance(request, FindQuery)  # noqa: S101 - by its place in the table
        return await self._text(call, request.id, sources, request.version)

    async def list_versions(self, call: Call, sources: tuple[Source, ...]) -> QueryVersions:
        """The versions of a query. Raises: TidegateError QUERY_UNKNOWN."""
        request = call.request
        assert isinstance(request, ListQueryVersions)  # noqa: S101 - by its place in the table
        entry = await self._found(call.actor, request.id, sources)
        versions = await read_state(self._store.versions, request.id)
        return QueryVersions(entry, tuple(versions))

    async def add(self, call: Call, sources: tuple[Source, ...]) -> QueryText:
        """Save a query. Raises: TidegateError ARGUMENT_INVALID, LIMIT_BYTES."""
        request = call.request
        assert isinstance(request, AddQuery)  # noqa: S101 - by its place in the table
        if len(sources) != 1:
            raise TidegateError(Code.ARGUMENT_INVALID, "The request names no source")
        owner = _person(call.actor)
        query = SavedQuery(
            secrets.token_urlsafe(12),
            sources[0].id,
            owner,
            _name(request.name),
            _folder(request.folder),
            _description(request.description),
            request.shared_with,
            request.database,
            request.schema,
            changed_by=owner,
            changed_at=self._clock(),
        )
        check_content(request.content)
        added = await change_state(self._store.add, query, request.content)
        return await self._text(call, added.id, sources)

    async def change(self, call: Call, sources: tuple[Source, ...]) -> WrittenQuery:
        """Write a query, unless it was changed since it was read. Raises: TidegateError
        QUERY_UNKNOWN, POLICY_DENIED, ARGUMENT_INVALID, LIMIT_BYTES."""
        request = call.request
        assert isinstance(request, ChangeQuery)  # noqa: S101 - by its place in the table
        entry = await self._changeable(call.actor, request.id, sources)
        known, content = entry.query, request.content
        if request.restores is not None:
            content = (
                await self._text(call, request.id, sources, request.restores)
            ).version.content
        if content is not None:
            check_content(content)
        new = structs.replace(
            known,
            name=known.name if request.name is None else _name(request.name),
            folder=known.folder if request.folder is None else _folder(request.folder),
            description=known.description
            if request.description is None
            else _description(request.description),
            shared_with=known.shared_with if request.shared_with is None else request.shared_with,
            changed_by=_person(call.actor),
            changed_at=self._clock(),
        )
        written = await change_state(self._store.change, new, request.version, content)
        now = await self._text(call, request.id, sources)
        return WrittenQuery(now, written is not None)

    async def remove(self, call: Call, sources: tuple[Source, ...]) -> RemovedQuery:
        """Remove a query. Raises: TidegateError QUERY_UNKNOWN, POLICY_DENIED, QUERY_CHANGED."""
        request = call.request
        assert isinstance(request, RemoveQuery)  # noqa: S101 - by its place in the table
        await self._changeable(call.actor, request.id, sources)
        if not await change_state(self._store.remove, request.id, request.version):
            raise TidegateError(
                Code.QUERY_CHANGED, "The query was changed since, and is not removed."
            )
        return RemovedQuery()

    async def note_run(
        self, actor: Actor, id: str, version: int, sources: tuple[Source, ...]
    ) -> None:
        """Keep which version a person runs. Raises: TidegateError QUERY_UNKNOWN."""
        entry = await self._found(actor, id, sources)
        if 0 < version <= entry.query.version:
            await change_state(self._store.note_run, id, _person(actor), version)

    async def attach(
        self, actor: Actor, tab_id: str, id: str, version: int, sources: tuple[Source, ...]
    ) -> None:
        """Keep that a tab of the person holds a query. Raises: TidegateError QUERY_UNKNOWN."""
        await self._found(actor, id, sources)
        attach = partial(self._store.attach, tab_id, _person(actor), id, version)
        await change_state(attach)

    async def readers_check(self, id: str) -> Callable[[Actor, Source], bool]:
        """Says whether a caller may read the query, on one of his sources, as it is now."""
        query = await read_state(self._store.find, id)

        def check(actor: Actor, source: Source) -> bool:
            return (
                query is not None
                and source.id == query.source_id
                and _may_read(actor, query, source)
            )

        return check

    async def _text(
        self, call: Call, id: str, sources: tuple[Source, ...], version: int | None = None
    ) -> QueryText:
        entry = await self._found(call.actor, id, sources)
        number = entry.query.text_version if version is None else version
        found: QueryVersion | None = await read_state(self._store.version, id, number)
        if found is None:
            raise _unknown()
        return QueryText(entry, found)

    async def _found(self, actor: Actor, id: str, sources: tuple[Source, ...]) -> QueryEntry:
        query = await read_state(self._store.find, id)
        source = next((each for each in sources if query and each.id == query.source_id), None)
        if query is None or source is None or not _may_read(actor, query, source):
            raise _unknown()
        ran = await read_state(self._store.last_runs, _person(actor), [id])
        return _entry(actor, query, source, ran.get(id))

    async def _changeable(self, actor: Actor, id: str, sources: tuple[Source, ...]) -> QueryEntry:
        entry = await self._found(actor, id, sources)
        if not entry.may_change:
            raise TidegateError(
                Code.POLICY_DENIED,
                "Its owner and admins of the source change this query",
                hint="Save it under a name of your own.",
            )
        return entry


def check_content(content: QueryContent) -> None:
    """Raises: TidegateError ARGUMENT_INVALID for what is too long, or no chart."""
    if len(content.text) > MOST_TEXT:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The text has over {MOST_TEXT:,} characters, and is not kept"
        )
    if len(content.parameters) > MOST_PARAMETERS or any(map(_is_long, content.parameters)):
        raise TidegateError(Code.ARGUMENT_INVALID, "The parameters are too many or too long")
    names = [each.name for each in content.parameters]
    if len(set(names)) < len(names):
        raise TidegateError(Code.ARGUMENT_INVALID, "Two parameters have the same name")
    if len(content.chart) > MOST_CHART:
        raise TidegateError(Code.ARGUMENT_INVALID, "The chart is too large to be kept")
    if content.chart:
        try:
            chart = msgspec.json.decode(content.chart)
        except (msgspec.DecodeError, RecursionError):
            chart = None
        if not isinstance(chart, dict):
            raise TidegateError(Code.ARGUMENT_INVALID, "The chart is no JSON object")


def _is_long(parameter: QueryParameter) -> bool:
    texts = parameter.name, parameter.description, parameter.default or ""
    return not parameter.name or any(len(each) > MOST_DESCRIPTION for each in texts)


def _person(actor: Actor) -> str:
    """The name of the operator who calls. Raises: TidegateError QUERY_UNKNOWN for all others: a
    token acts for a person elsewhere, but reads no text that he has kept."""
    if actor.kind != "human" or not actor.owner:
        raise _unknown()
    return actor.owner


def _may_read(actor: Actor, query: SavedQuery, source: Source) -> bool:
    if query.owner == _person(actor):
        return True
    return query.shared_with != "" and holds(actor.roles or (), query.shared_with, source.name)


def _entry(actor: Actor, query: SavedQuery, source: Source, ran: int | None) -> QueryEntry:
    may_change = query.owner == _person(actor) or holds(actor.roles or (), "admin", source.name)
    return QueryEntry(query, source.name, may_change, ran)


def _unknown() -> TidegateError:
    return TidegateError(Code.QUERY_UNKNOWN, "There is no such query")


def _name(text: str) -> str:
    return _short(text, "name", MOST_NAME, required=True)


def _folder(text: str) -> str:
    parts = [each.strip() for each in _short(text, "folder", MOST_NAME).split("/")]
    return "/".join([each for each in parts if each])


def _description(text: str) -> str:
    return _short(text, "description", MOST_DESCRIPTION)


def _short(text: str, what: str, most: int, *, required: bool = False) -> str:
    stripped = text.strip()
    if len(stripped) > most or (required and not stripped):
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The {what} of a query has 1 to {most:,} characters"
        )
    return stripped
