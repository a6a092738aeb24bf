"""What every surface is made of: a catalogue of tools and resources, given as data.

A surface decides how a product's document looks: names, arguments, shapes, errors. It decides
nothing about permission: all that a tool can make is a `Call`, and `Turn.handle` is the only way
from a tool to the gate. A new tool is one `SurfaceTool`; a new surface is one `Surface`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from tidegate.actors import Actor, Scope
from tidegate.calls import Call, ListSources, Progress, Query, Request
from tidegate.errors import Code, GateError
from tidegate.protocol.model import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Annotations,
    Completion,
    Context,
    Info,
    Prompt,
    PromptResult,
    Resource,
    ResourceTemplate,
    ResourceText,
    RpcError,
    Settings,
    Tool,
    ToolResult,
)
from tidegate.replies import Payload, Reply, SourceEntry
from tidegate.surfaces.arguments import convert
from tidegate.surfaces.schema import schema_of

if TYPE_CHECKING:  # a name alone: what needs no approval does not pay for it
    from tidegate.approvals.approvals import ApprovalNeeded

PayloadT = TypeVar("PayloadT", bound=Payload)
TurnedAway = Callable[[Context, str, str], None]
"""Told of a tool and the reason when a call is refused before there is one for the gate."""


class Gate(Protocol):
    """The one door to every source; `gateway.Gateway` in a running server."""

    async def handle(self, call: Call) -> Reply:
        """Judge, decide, record, run. Raises: GateError."""
        ...

    async def settle(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        """Take a person's answer to the question that `handle` raised. Raises: GateError."""
        ...


class Turn:
    """One call of one tool (or one reading of a resource): what its code may know and do."""

    __slots__ = ("_context", "_gate", "_progress", "_surface", "scope", "tool")

    def __init__(self, gate: Gate, context: Context, surface: str, tool: str, scope: Scope) -> None:
        self._gate = gate
        self._context = context
        self._surface = surface
        self.scope = scope
        self._progress: Progress | None = self._report if context.wants_progress else None
        self.tool = tool

    @property
    def actor(self) -> Actor:
        return self._context.actor

    @property
    def client(self) -> Info:
        return self._context.client

    async def handle(
        self,
        request: Request,
        source: str | None,
        expected: type[PayloadT],
        *,
        confirmed: bool = False,
        reads_only: bool = False,
        quiet: bool = False,
    ) -> PayloadT:
        """Send `request` through the gate; the reply's payload must be `expected`.

        `source` is a source's name or id; None stands for the one source that the actor may see.
        Only a `Query` reports progress: a tool may read metadata several times, and progress
        must not go back. Nor does a `quiet` one, of a tool that sends several. `confirmed`: the
        caller typed the phrase of confirmation; `reads_only`: the tool is for statements that
        read, whatever the caller may do elsewhere.
        Raises: GateError, whatever the gate refuses or the database says.
        """
        call = self._call(request, source, confirmed, reads_only, quiet)
        try:
            reply = await self._gate.handle(call)
        except GateError as error:
            if error.code is not Code.APPROVAL_NEEDED:
                raise
            from tidegate.surfaces.asking import ask

            reply = await ask(self._gate, self._context, call, error)
        payload = reply.payload
        if not isinstance(payload, expected):
            raise GateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}")
        return payload

    async def sources(self) -> tuple[SourceEntry, ...]:
        """The sources that the actor may see, with where their connections stand."""
        payload = (await self._gate.handle(self._call(ListSources(), None))).payload
        if not isinstance(payload, tuple):
            raise GateError(Code.INTERNAL, f"The gate answered {type(payload).__name__}")
        return payload

    def _call(
        self,
        request: Request,
        source: str | None,
        confirmed: bool = False,
        reads_only: bool = False,
        quiet: bool = False,
    ) -> Call:
        context = self._context
        client = context.client
        return Call(
            actor=context.actor,
            surface=self._surface,
            tool=self.tool,
            request=request,
            source=source,
            scope=self.scope,
            client=f"{client.name}/{client.version}",
            cancellation=context.cancellation,
            progress=self._progress if isinstance(request, Query) and not quiet else None,
            confirmed=confirmed,
            reads_only=reads_only,
            can_ask=_can_ask(context),
        )

    def _report(self, share: float, stage: str) -> None:
        self._context.progress(share, 1.0, stage)


def _can_ask(context: Context) -> bool:
    """Whether the client shows forms: `elicitation` without a word has always meant them."""
    declared = context.client_capabilities.get("elicitation")
    if declared is None or context.revision < "2025-06-18":
        return False
    return not declared or "form" in declared


ArgumentShape = Callable[[type[msgspec.Struct]], Mapping[str, Any]]


def argument_shape(args: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The schema of an argument struct as surfaces show it unless they say otherwise."""
    return schema_of(args, nullable=False)


class SurfaceTool(msgspec.Struct, frozen=True):
    """A tool as data. Schemas are derived from `args` and `output` where none is given.

    `run` gets the turn and the converted arguments. `scope` is what the tool demands whatever its
    arguments are; the gate holds it.
    """

    name: str
    description: str
    args: type[msgspec.Struct]
    run: Callable[[Turn, Any], Awaitable[ToolResult]]
    title: str | None = None
    scope: Scope = Scope.READ_ONLY
    annotations: Annotations | None = None
    output: type[msgspec.Struct] | None = None
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None

    def listed(self, shape: ArgumentShape) -> Tool:
        """The tool as the protocol lists it; `shape` writes the schema of its arguments."""
        output_schema = self.output_schema
        if output_schema is None and self.output is not None:
            output_schema = schema_of(self.output)
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.input_schema or shape(self.args),
            output_schema=output_schema,
            annotations=self.annotations,
        )


class SurfaceResource(msgspec.Struct, frozen=True):
    """A resource, or a family of them if `uri` has `{variables}`; `read` returns JSON.

    `read` gets the turn and the values of the variables. A variable stands for one path segment.
    """

    uri: str
    name: str
    read: Callable[[Turn, Mapping[str, str]], Awaitable[bytes]]
    title: str | None = None
    description: str | None = None
    mime_type: str = "application/json"

    @property
    def templated(self) -> bool:
        return "{" in self.uri

    def listed(self) -> Resource:
        return Resource(
            uri=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
        )

    def listed_template(self) -> ResourceTemplate:
        return ResourceTemplate(
            uri_template=self.uri,
            name=self.name,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
        )

    def matches(self, uri: str) -> bool:
        """Whether the URI is this resource, or one of this family."""
        return self._match(uri) is not None

    def variables(self, uri: str) -> dict[str, str]:
        """The values of the variables in a URI that matches.

        `{?a,b}` at the end of a template stands for a query (RFC 6570); of its parameters those
        that the URI has are among the values. Raises: GateError ARGUMENT_INVALID for others.
        """
        match = self._match(uri)
        values = {} if match is None else match.groupdict()
        _, _, named = self.uri.partition("{?")
        if named:
            values |= _parameters(uri.partition("?")[2], named.rstrip("}").split(","))
        return values

    def _match(self, uri: str) -> re.Match[str] | None:
        path, _, named = self.uri.partition("{?")
        pieces = re.split(r"\{(\w+)\}", path)
        for place, piece in enumerate(pieces):
            pieces[place] = f"(?P<{piece}>[^/?#]+)" if place % 2 else re.escape(piece)
        return re.fullmatch("".join(pieces), uri.partition("?")[0] if named else uri)


def _parameters(query: str, known: Sequence[str]) -> dict[str, str]:
    """The parameters of a URI's query. Raises: GateError ARGUMENT_INVALID for unknown ones."""
    from urllib.parse import parse_qsl  # only such resources need it

    values = dict(parse_qsl(query, keep_blank_values=True))
    for name in values:
        if name not in known:
            raise GateError(
                Code.ARGUMENT_INVALID,
                f"The resource has no parameter {name[:40]!r}",
                hint=f"Parameters: {', '.join(known)}.",
            )
    return values


ErrorRenderer = Callable[[GateError, Turn], ToolResult]
"""How a surface shows a refusal or failure: a `ToolResult` with `is_error`, or it raises
RpcError. It never returns a result that looks like success."""


class Surface:
    """`protocol.model.Server` made from data. One object serves every client."""

    def __init__(
        self,
        gate: Gate,
        *,
        name: str,
        info: Info,
        settings: Settings,
        capabilities: Mapping[str, Any],
        tools: Sequence[SurfaceTool],
        render_error: ErrorRenderer,
        instructions: str | None = None,
        resources: Sequence[SurfaceResource] = (),
        shape: ArgumentShape = argument_shape,
        unknown_tool: Callable[[str], RpcError] | None = None,
        unknown_resource: Callable[[str, Info], RpcError] | None = None,
    ) -> None:
        self.name = name
        self.info = info
        self.instructions = instructions
        self.capabilities = capabilities
        self.settings = settings
        self.catalogue = {tool.name: tool for tool in tools}
        self.turned_away: TurnedAway = _nobody_to_tell
        self._gate = gate
        self._shape = shape
        self._render_error = render_error
        self._unknown_tool = unknown_tool or _no_such_tool
        self._unknown_resource = unknown_resource or _no_such_resource
        self._listed: tuple[Tool, ...] | None = None
        self.readable = tuple(resources)
        self._resources = tuple(r.listed() for r in resources if not r.templated)
        self._templates = tuple(r.listed_template() for r in resources if r.templated)

    def tools(self, context: Context) -> Sequence[Tool]:
        """Every tool in its fixed order; schemas are derived at the first listing."""
        if self._listed is None:
            self._listed = tuple(tool.listed(self._shape) for tool in self.catalogue.values())
        return self._listed

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Convert the arguments, run the tool, show a `GateError` as the surface does.

        Raises: RpcError for an unknown tool, and where the surface shows errors that way.
        """
        tool = self.catalogue.get(name)
        if tool is None:
            self.turned_away(context, name, "there is no such tool")
            raise self._unknown_tool(name)
        turn = Turn(self._gate, context, self.name, name, tool.scope)
        try:
            try:
                fitting = convert(arguments, tool.args)
            except GateError as error:
                self.turned_away(context, name, error.message)
                raise
            return await tool.run(turn, fitting)
        except GateError as error:
            return self._render_error(error, turn)

    def resources(self, context: Context) -> Sequence[Resource]:
        return self._resources

    def resource_templates(self, context: Context) -> Sequence[ResourceTemplate]:
        return self._templates

    async def read_resource(self, context: Context, uri: str) -> Sequence[ResourceText]:
        """Read the first resource whose URI or template matches.

        Raises: RpcError, also for what a tool would return as an error result: the protocol has
        no other way to refuse here.
        """
        for resource in self.readable:
            if not resource.matches(uri):
                continue
            turn = Turn(self._gate, context, self.name, f"resource:{resource.name}", _READ)
            try:
                body = await resource.read(turn, resource.variables(uri))
            except GateError as error:
                self._render_error(error, turn)
                raise RpcError(error.fate.rpc, error.message) from None
            return [ResourceText(uri=uri, mime_type=resource.mime_type, text=body.decode())]
        raise self._unknown_resource(uri, context.client)

    def prompts(self, context: Context) -> Sequence[Prompt]:
        return ()

    async def get_prompt(
        self, context: Context, name: str, arguments: Mapping[str, str]
    ) -> PromptResult:
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: prompts/get:{name}")

    async def complete(
        self,
        context: Context,
        reference: Mapping[str, Any],
        argument: str,
        value: str,
        chosen: Mapping[str, str],
    ) -> Completion:
        return Completion(values=())

    def subscribe(self, listener: Callable[[str, str | None], None]) -> Callable[[], None]:
        """Nothing here changes while the server runs, so no listener is ever called."""
        return _nothing_to_stop


_READ = Scope.READ_ONLY


def _nobody_to_tell(context: Context, tool: str, reason: str) -> None:
    return None


def _nothing_to_stop() -> None:
    return None


def _no_such_tool(name: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Unknown tool: {name}")


def _no_such_resource(uri: str, client: Info) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
