"""`open_database`, `open_kv` and the two for indexes, and their closing."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import msgspec

from tidegate.config.sources import SOURCE_NAME
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.requests import ListSources
from tidegate.model.results import Document, Limits
from tidegate.products.datalog.language.json_values import plain_text
from tidegate.products.datalog.requests import (
    DatalogOperation,
    DatalogRequest,
    DatalogTarget,
    OpenDatalog,
    OpenedDatalog,
    TargetKind,
)
from tidegate.products.datalog.surface.argument_texts import without_nulls
from tidegate.products.datalog.surface.errors import invalid
from tidegate.products.datalog.surface.handles import ARGUMENT, Handle, HandleTable
from tidegate.surfaces.tool_context import ToolContext

Arguments = Mapping[str, Any]

REMOTE = "dtlv://"
_SECRET = re.compile(r"(?<=://)([^/@]*?):[^/@]*@")


class _Place(NamedTuple):
    """Where the caller wants to go: the name of a saved source, or a URL."""

    source: str | None
    url: str
    shown: str
    remote: bool


class Opener:
    """Opens and closes what callers hold ids of."""

    def __init__(self, handles: HandleTable, limits: Limits) -> None:
        self._handles = handles
        self._limits = limits

    async def open_database(self, context: ToolContext, given: Arguments) -> Mapping[str, Any]:
        """Open a Datalog database. Raises: TidegateError."""
        create = given.get("create") is True
        changes = create or given.get("schema") is not None or bool(given.get("opts"))
        target = DatalogTarget("database", _options(given, "opts"), _options(given, "clientOpts"))
        place = await self._place(context, given)
        _check_may(context, changes)
        arguments = {"schema": given["schema"]} if given.get("schema") is not None else {}
        handle = await self._opened(context, place, target, arguments, create=changes)
        return {
            "database": handle.id,
            "created": create,
            "target": place.shown,
            "remote": place.remote,
        }

    async def open_kv(self, context: ToolContext, given: Arguments) -> Mapping[str, Any]:
        """Open a key-value store; with writes on an absent one is made. Raises: TidegateError."""
        target = DatalogTarget("kv", _options(given, "opts"), _options(given, "clientOpts"))
        place = await self._place(context, given)
        _check_may(context, bool(target.options))
        create = True if target.options else None
        handle = await self._opened(context, place, target, {}, create=create)
        return {"kv": handle.id, "target": place.shown, "remote": place.remote}

    async def open_index(
        self, context: ToolContext, given: Arguments, kind: TargetKind
    ) -> Mapping[str, Any]:
        """Open an index in a store; with writes on an absent one is made. Raises: TidegateError."""
        store = await self._handles.find(context, "kv", text_of(given, "kv"))
        target = DatalogTarget(kind, _options(given, "opts"), store.target.client)
        key = (kind, store.id, msgspec.json.encode(target))
        handle = self._handles.same(context, key)
        if handle is None:
            self._handles.check_room(context)
            handle = Handle(
                context, target, store.source, key, temporary=store.temporary, within=store
            )
            await self._ask_to_open(context, handle, target, {}, None)
            await self._handles.add(handle)
        return {ARGUMENT[kind]: handle.id, "kv": store.id}

    async def close(
        self, context: ToolContext, given: Arguments, kind: TargetKind
    ) -> Mapping[str, Any]:
        """Close an id and those within it. Raises: TidegateError."""
        handle = await self._handles.find(context, kind, text_of(given, ARGUMENT[kind]))
        await self._handles.close(handle)
        return {ARGUMENT[kind]: handle.id, "closed": True}

    async def _place(self, context: ToolContext, given: Arguments) -> _Place:
        if ("dir" in given) == ("uri" in given):
            raise invalid("dir|uri", "Exactly one of dir or uri must be provided.")
        if "uri" in given:
            uri = text_of(given, "uri")
            if not uri.startswith(REMOTE):
                raise invalid("uri", "uri must begin with dtlv://.")
            return _Place(None, uri, _SECRET.sub(r"\1@", uri), True)
        directory = text_of(given, "dir")
        if "://" in directory or "\0" in directory or not directory.strip():
            raise invalid("dir", "dir must be the path of a directory, or the name of a source.")
        if SOURCE_NAME.fullmatch(directory):
            for entry in await context.sources(ListSources(keys=(directory,))):
                source = entry.source
                if source.engine != "datalevin":
                    raise invalid("dir", f"The source {source.name} is no Datalog source.")
                remote = source.url.startswith(REMOTE)
                return _Place(source.name, source.url, source.name, remote)
        return _Place(None, f"datalevin://{quote(directory)}", directory, False)

    async def _opened(
        self,
        context: ToolContext,
        place: _Place,
        target: DatalogTarget,
        arguments: dict[str, Any],
        *,
        create: bool | None,
    ) -> Handle:
        key = (target.kind, place.source or place.url, msgspec.json.encode(target))
        known = self._handles.same(context, key)
        if known is not None and not arguments:
            return known
        self._handles.check_room(context)
        name, temporary = place.source, False
        if known is not None:
            name, temporary = known.source, known.temporary
        elif name is None:
            name, temporary = await self._source(context, place.url), True
        handle = Handle(context, _kept(target), name, key, temporary=temporary)
        try:
            await self._ask_to_open(context, handle, target, arguments, create)
        except BaseException:
            if known is None and temporary:
                await self._handles.close(handle)
            raise
        if known is not None:
            return known
        await self._handles.add(handle)
        return handle

    async def _source(self, context: ToolContext, url: str) -> str:
        """The source of the session for a URL, opened now if it has none."""
        for each in self._handles.own(context):
            if each.temporary and each.key[1] == url:
                return each.source
        request = OpenDatalog(f"datalog-{uuid.uuid4()}", url)
        return (await context.handle(request, None, OpenedDatalog)).source.name

    async def _ask_to_open(
        self,
        context: ToolContext,
        handle: Handle,
        target: DatalogTarget,
        arguments: dict[str, Any],
        create: bool | None,
    ) -> None:
        """Open what an id names, with the options of `target`. With `create` None it is made
        where it is absent and the caller may write. Raises: TidegateError."""
        kind = handle.target.kind
        request = DatalogRequest(
            operation=DatalogOperation(f"open_{kind}"),
            target=target,
            arguments=arguments,
            create=create is True,
            text=f"open {kind}",
            limits=self._limits,
        )
        try:
            await context.handle(request, handle.source, Document)
        except TidegateError as error:
            may = create is None and context.actor.scope.covers(Scope.READ_WRITE)
            if not may or "absent" not in error.details:
                raise
            made = msgspec.structs.replace(request, create=True, text=f"create {kind}")
            await context.handle(made, handle.source, Document)


def _check_may(context: ToolContext, changes: bool) -> None:
    """Raises: TidegateError POLICY_READ_ONLY for arguments that change what is opened, while writes
    are off."""
    if changes and not context.actor.scope.covers(Scope.READ_WRITE):
        raise TidegateError(
            Code.POLICY_READ_ONLY,
            "Write tools are disabled for this session, and `create`, `schema` and `opts` change"
            " what is opened.",
            hint="Open it without them.",
        )


def _kept(target: DatalogTarget) -> DatalogTarget:
    """What calls of an open id name: a database keeps its options itself."""
    if target.kind != "database":
        return target
    return msgspec.structs.replace(target, options={})


def text_of(given: Arguments, name: str) -> str:
    """A text argument. Raises: TidegateError ARGUMENT_INVALID."""
    found = plain_text(given.get(name))
    if not isinstance(found, str):
        raise invalid(name, f"{name} must be a string.")
    return found


def _options(given: Arguments, name: str) -> dict[str, Any]:
    """Options, with names that begin with a colon. Raises: TidegateError ARGUMENT_INVALID."""
    options = given.get(name)
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise invalid(name, f"{name} must be an object.")
    fields = without_nulls(cast("dict[str, Any]", options))
    return {key if key.startswith(":") else f":{key}": value for key, value in fields.items()}
