"""A surface: a catalogue of tools and resources under one name, given as data.

A surface decides how a product's document looks: names, arguments, shapes, errors. It decides
nothing about permission. A new tool is one `SurfaceTool`; a new surface is one `Surface`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidegate.actors import Scope
from tidegate.errors import GateError
from tidegate.protocol.model import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
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
from tidegate.surfaces.arguments import convert
from tidegate.surfaces.resource import SurfaceResource
from tidegate.surfaces.tool import ArgumentShape, SurfaceTool, argument_shape
from tidegate.surfaces.turn import Gate, Turn

TurnedAway = Callable[[Context, str, str], None]
"""Told of a tool and the reason when a call is refused before there is one for the gate."""

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
        unknown_resource: Callable[[str, Context], RpcError] | None = None,
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
        raise self._unknown_resource(uri, context)

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


def _no_such_resource(uri: str, context: Context) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
