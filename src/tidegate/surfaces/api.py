"""What a surface is made of: tools, prompts and methods of its own, given as data, and its hooks.

A surface decides how one product's document looks. It decides nothing about permission: every
request goes through the gateway. `surface.py` makes a server of these parts; `registry.py` names
the surfaces that exist.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from tidegate.errors import TidegateError
from tidegate.model.actors import Scope
from tidegate.protocol.model import (
    Annotations,
    Completion,
    Context,
    Prompt,
    PromptArgument,
    PromptResult,
    Tool,
    ToolResult,
)
from tidegate.surfaces.schema import schema_of
from tidegate.surfaces.tool_context import ToolContext

OnRejectedCall = Callable[[Context, str, str], None]
"""Records a call that never reached the gateway: the request's context, the name of the tool or
method, and why the call was rejected. The server's audit log is the usual one."""

ErrorRenderer = Callable[[TidegateError, ToolContext], ToolResult]
"""Shows a refusal or failure: returns a `ToolResult` with `is_error`, or raises RpcError. It never
returns a result that looks like success."""

MethodErrorRenderer = Callable[[TidegateError, ToolContext], Mapping[str, Any]]
"""Shows a refusal or failure of a method (`SurfaceMethod`) as the fields of its result, or raises
RpcError."""

OnWrongArguments = Callable[[ToolContext, Mapping[str, Any], TidegateError], Awaitable[None]]
"""Records a call whose arguments its tool does not take, before its reply. Raises: TidegateError,
which is then the answer."""

BeforeArguments = Callable[["SurfaceTool", ToolContext], None]
"""Runs before a tool's arguments are checked. Raises: TidegateError to refuse the call."""

UnknownTool = Callable[[str, Context], ToolResult]
"""The answer to a call of a tool that does not exist: a `ToolResult` with `is_error`, or it raises
RpcError."""

Shrink = Callable[[ToolContext, ToolResult, int], ToolResult | None]
"""Gets a result and the size in bytes of the JSON-RPC reply that would carry it. Returns a shorter
result, or None if this one may be sent. It is asked again about each shorter result."""

StillRunning = Callable[[str], ToolResult]
"""The reply to a call that goes on, which the given id resumes (`surfaces.long_calls`)."""

Completer = Callable[[ToolContext, str, Mapping[str, str]], Awaitable[Completion]]
"""Completes one argument: gets what was typed so far and the other arguments' values."""

ArgumentShape = Callable[[type[msgspec.Struct]], Mapping[str, Any]]


def argument_shape(args: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The schema of an argument struct as surfaces show it unless they say otherwise."""
    return schema_of(args, nullable=False)


class SurfaceTool(msgspec.Struct, frozen=True):
    """A tool as data. Schemas are derived from `args` and `output` where none is given.

    `run` gets the tool context and the converted arguments. `scope` is the scope that every call
    of the tool needs; the gateway enforces it.
    """

    name: str
    description: str
    args: type[msgspec.Struct]
    run: Callable[[ToolContext, Any], Awaitable[ToolResult]]
    title: str | None = None
    scope: Scope = Scope.READ_ONLY
    annotations: Annotations | None = None
    output: type[msgspec.Struct] | None = None
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    app_args: type[msgspec.Struct] | None = None
    """The arguments from a client that shows pages; there, results are shown by the surface's
    page. None: the tool is the same for every client."""

    def listed(self, shape: ArgumentShape, app: str = "") -> Tool:
        """The tool as the protocol lists it; `shape` writes the schema of its arguments. `app` is
        the address of the surface's page, for a client that shows it."""
        output_schema = self.output_schema
        if output_schema is None and self.output is not None:
            output_schema = schema_of(self.output)
        if app and self.app_args is not None:
            return Tool(
                name=self.name,
                title=self.title,
                description=self.description,
                input_schema=shape(self.app_args),
                output_schema=output_schema,
                annotations=self.annotations,
                app=app,
            )
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.input_schema or shape(self.args),
            output_schema=output_schema,
            annotations=self.annotations,
        )


class SurfacePrompt(msgspec.Struct, frozen=True):
    """A prompt as data. `render` gets the arguments, of which the required ones are present and
    none is unknown. `completers` complete arguments, by name."""

    name: str
    render: Callable[[ToolContext, Mapping[str, str]], Awaitable[PromptResult]]
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    completers: Mapping[str, Completer] = {}

    def listed(self) -> Prompt:
        """The prompt as the protocol lists it."""
        return Prompt(self.name, self.title, self.description, self.arguments)


class SurfaceMethod(msgspec.Struct, frozen=True):
    """A JSON-RPC method that is not part of MCP, as data.

    `run` gets the converted params and returns a struct or a mapping, whose fields are the
    result's. `scope` is the scope that every call of the method needs; the gateway enforces it on
    each request that the method sends. A name of MCP keeps its own meaning.
    """

    name: str
    args: type[msgspec.Struct]
    run: Callable[[ToolContext, Any], Awaitable[Any]]
    scope: Scope = Scope.READ_ONLY
