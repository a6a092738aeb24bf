"""A surface as a server: tools, resources, prompts and methods under one name, given as data.

`api.py` has the parts, except `SurfaceResource` (`resource.py`) and `ApprovalForm`
(`tool_context.py`). A new tool is one `SurfaceTool`; a new surface is one folder that makes one
`Surface`, and one line in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from msgspec import structs

from tidegate.errors import TidegateError
from tidegate.model.actors import Scope
from tidegate.protocol.model import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    BareMethod,
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
from tidegate.surfaces.api import (
    ArgumentShape,
    BeforeArguments,
    Completer,
    ErrorRenderer,
    MethodErrorRenderer,
    OnRejectedCall,
    OnWrongArguments,
    Shrink,
    SurfaceMethod,
    SurfacePrompt,
    SurfaceTool,
    UnknownTool,
    argument_shape,
)
from tidegate.surfaces.arguments import convert
from tidegate.surfaces.refused_calls import refusal_result
from tidegate.surfaces.resource import SurfaceResource
from tidegate.surfaces.tool_context import ApprovalForm, Gate, ToolContext


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
        stdio_settings: Settings | None = None,
        tools: Sequence[SurfaceTool],
        render_error: ErrorRenderer,
        instructions: str | None = None,
        resources: Sequence[SurfaceResource] = (),
        list_resources: Callable[[ToolContext], Awaitable[Sequence[Resource]]] | None = None,
        prompts: Sequence[SurfacePrompt] = (),
        methods: Sequence[SurfaceMethod] = (),
        render_method_error: MethodErrorRenderer | None = None,
        shape: ArgumentShape = argument_shape,
        before_arguments: BeforeArguments | None = None,
        unknown_tool: UnknownTool | None = None,
        unknown_resource: Callable[[str, Context], RpcError] | None = None,
        error_message: Callable[[TidegateError, ToolContext], str] | None = None,
        approval_form: ApprovalForm | None = None,
        shrink: Shrink | None = None,
        on_rejected_call: OnRejectedCall | None = None,
        on_wrong_arguments: OnWrongArguments | None = None,
        shows_in_results: Callable[[Context], bool] | None = None,
    ) -> None:
        self.name = name
        self.info = info
        self.instructions = instructions
        self.capabilities = capabilities
        self.settings = settings
        self.stdio_settings = stdio_settings or settings
        self.tools_by_name = {tool.name: tool for tool in tools}
        self._on_rejected_call = on_rejected_call or _record_nothing
        self._on_wrong_arguments = on_wrong_arguments
        self._shows_in_results = shows_in_results
        self._gate = gate
        self._shape = shape
        self._render_error = render_error
        self._render_method_error = render_method_error
        self._before_arguments = before_arguments
        self._unknown_tool = unknown_tool or _no_such_tool
        self._approval_form = approval_form
        self._shrink = shrink
        self._unknown_resource = unknown_resource or _no_such_resource
        self._error_message = error_message or _message_of
        self._listed: tuple[Tool, ...] | None = None
        self.readable = tuple(resources)
        self._list_resources = list_resources
        self._resources = tuple(r.listed() for r in resources if not r.templated)
        self._templates = tuple(
            r.listed_template() for r in resources if r.templated and r.announced
        )
        self.prompts_by_name = {prompt.name: prompt for prompt in prompts}
        self._prompts = tuple(prompt.listed() for prompt in prompts)
        self.methods: Mapping[str, BareMethod] = {
            method.name: partial(self._call_method, method) for method in methods
        }

    def tools(self, context: Context) -> Sequence[Tool]:
        """Every tool in its fixed order; schemas are derived at the first listing."""
        if self._listed is None:
            self._listed = tuple(tool.listed(self._shape) for tool in self.tools_by_name.values())
        return self._listed

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Convert the arguments, run the tool, show a `TidegateError` as the surface does.

        Raises: RpcError where the surface shows errors or unknown tools that way.
        """
        tool = self.tools_by_name.get(name)
        if tool is None:
            self._on_rejected_call(context, name, "there is no such tool")
            return self._unknown_tool(name, context)
        tool_context = ToolContext(
            self._gate, context, self.name, name, tool.scope, self._approval_form
        )
        try:
            if self._before_arguments is not None:
                self._before_arguments(tool, tool_context)
            fitting = await self._fitting(tool, tool_context, arguments)
            result = await tool.run(tool_context, fitting)
        except TidegateError as error:
            self._record_own_refusal(error, tool_context)
            result = self._refusal(error, tool_context)
        if self._shrink is not None:
            return _shrinkable(self._shrink, tool_context, result)
        return result

    def _refusal(self, error: TidegateError, tool_context: ToolContext) -> ToolResult:
        """The refusal of a tool's call. Raises: RpcError, for callers that get it in this form."""
        try:
            return self._render_error(error, tool_context)
        except RpcError as rendered:
            if self._shows_in_results is None or not self._shows_in_results(tool_context.context):
                raise
            return refusal_result(rendered)

    async def _fitting(
        self, tool: SurfaceTool, tool_context: ToolContext, arguments: dict[str, Any]
    ) -> Any:
        """The arguments as the tool takes them. Raises: TidegateError ARGUMENT_INVALID."""
        try:
            return convert(arguments, tool.args)
        except TidegateError as error:
            if self._on_wrong_arguments is not None:
                await self._on_wrong_arguments(tool_context, arguments, error)
            raise

    def _record_own_refusal(self, error: TidegateError, tool_context: ToolContext) -> None:
        """Record a refusal of the surface's own: what the gate refuses, it records itself."""
        if not tool_context.refused_by_gate:
            self._on_rejected_call(tool_context.context, tool_context.tool, error.message)

    async def _call_method(
        self, method: SurfaceMethod, context: Context, params: dict[str, Any]
    ) -> Mapping[str, Any]:
        """Answer a method of the surface's own. Raises: RpcError for every refusal that the surface
        does not show as a result."""
        tool_context = self._tool_context(context, method.name, method.scope)
        try:
            return await method.run(tool_context, convert(params, method.args))
        except TidegateError as error:
            self._record_own_refusal(error, tool_context)
            if self._render_method_error is not None:
                return self._render_method_error(error, tool_context)
            raise self._rpc_error(error, tool_context) from None

    def _rpc_error(self, error: TidegateError, tool_context: ToolContext) -> RpcError:
        """The error for what has no other way to refuse than a JSON-RPC error."""
        try:
            self._render_error(error, tool_context)
        except RpcError as rendered:
            return rendered
        message = self._error_message(error, tool_context)
        return RpcError(error.mapping.rpc, message, {"code": error.code.value})

    def _tool_context(self, context: Context, name: str, scope: Scope) -> ToolContext:
        return ToolContext(self._gate, context, self.name, name, scope, self._approval_form)

    async def resources(self, context: Context) -> Sequence[Resource]:
        """The resources without variables, and those that the surface lists for this caller."""
        if self._list_resources is None:
            return self._resources
        tool_context = self._tool_context(context, "resources", _READ)
        try:
            return (*self._resources, *await self._list_resources(tool_context))
        except TidegateError as error:
            self._record_own_refusal(error, tool_context)
            raise self._rpc_error(error, tool_context) from None

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
            tool_context = self._tool_context(context, f"resource:{resource.name}", _READ)
            try:
                body = await resource.read(tool_context, resource.variables(uri))
            except TidegateError as error:
                self._record_own_refusal(error, tool_context)
                raise self._rpc_error(error, tool_context) from None
            return [ResourceText(uri=uri, mime_type=resource.mime_type, text=body.decode())]
        raise self._unknown_resource(uri, context)

    def prompts(self, context: Context) -> Sequence[Prompt]:
        return self._prompts

    async def get_prompt(
        self, context: Context, name: str, arguments: Mapping[str, str]
    ) -> PromptResult:
        """Render a prompt. Raises: RpcError for an unknown one, and for wrong arguments."""
        prompt = self.prompts_by_name.get(name)
        if prompt is None:
            if not self.prompts_by_name:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: prompts/get:{name}")
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {name}")
        known = {argument.name: argument for argument in prompt.arguments}
        for argument in prompt.arguments:
            if argument.required and argument.name not in arguments:
                raise RpcError(INVALID_PARAMS, f"The prompt {name} needs {argument.name}")
        for given in arguments:
            if given not in known:
                raise RpcError(INVALID_PARAMS, f"The prompt {name} has no argument {given}")
        arguments = {
            given: value for given, value in arguments.items() if value or known[given].required
        }
        tool_context = self._tool_context(context, f"prompt:{name}", _READ)
        try:
            return await prompt.render(tool_context, arguments)
        except TidegateError as error:
            self._record_own_refusal(error, tool_context)
            raise self._rpc_error(error, tool_context) from None

    def completers(self, reference: Mapping[str, Any]) -> Mapping[str, Completer] | None:
        """The completers of a prompt or a resource template; None if it is not of this surface."""
        if reference.get("type") == "ref/prompt":
            prompt = self.prompts_by_name.get(str(reference.get("name")))
            return None if prompt is None else prompt.completers
        for resource in self.readable:
            if resource.uri == reference.get("uri"):
                return resource.completers
        return None

    async def complete(
        self,
        context: Context,
        reference: Mapping[str, Any],
        argument: str,
        value: str,
        chosen: Mapping[str, str],
    ) -> Completion:
        """Complete an argument; nothing is offered where no completer is given.

        Raises: RpcError, whatever the gateway refuses to the completer.
        """
        completer = (self.completers(reference) or {}).get(argument)
        if completer is None:
            return Completion(values=())
        tool_context = self._tool_context(context, "completion", _READ)
        try:
            return await completer(tool_context, value, chosen)
        except TidegateError as error:
            self._record_own_refusal(error, tool_context)
            raise self._rpc_error(error, tool_context) from None

    def subscribe(self, listener: Callable[[str, str | None], None]) -> Callable[[], None]:
        """Nothing here changes while the server runs, so no listener is ever called."""
        return _nothing_to_stop


_READ = Scope.READ_ONLY


def _shrinkable(shrink: Shrink, tool_context: ToolContext, result: ToolResult) -> ToolResult:
    """The result with the surface's hook, which each shorter result keeps."""

    def shorten(size: int) -> ToolResult | None:
        shorter = shrink(tool_context, result, size)
        return None if shorter is None else _shrinkable(shrink, tool_context, shorter)

    return structs.replace(result, shrink=shorten)


def _message_of(error: TidegateError, tool_context: ToolContext) -> str:
    return error.message


def _record_nothing(context: Context, tool: str, reason: str) -> None:
    return None


def _nothing_to_stop() -> None:
    return None


def _no_such_tool(name: str, context: Context) -> NoReturn:
    raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")


def _no_such_resource(uri: str, context: Context) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})
