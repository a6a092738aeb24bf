"""A surface as a server: tools, resources, prompts and methods under one name, given as data.

`api.py` has the parts, except `SurfaceResource` (`resource.py`) and `ApprovalForm`
(`tool_context.py`). A new tool is one `SurfaceTool`; a new surface is one folder that makes one
`Surface`, and one line in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import msgspec
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope, has_same_rights
from tidegate.model.requests import ReleaseResult
from tidegate.protocol.apps import MIME_TYPE, shows_apps
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
    text,
)
from tidegate.protocol.tasks import Task
from tidegate.surfaces.api import (
    ArgumentShape,
    BeforeArguments,
    Completer,
    ErrorRenderer,
    MethodErrorRenderer,
    OnRejectedCall,
    OnWrongArguments,
    Shrink,
    StillRunning,
    SurfaceMethod,
    SurfacePrompt,
    SurfaceTool,
    UnknownTool,
    argument_shape,
)
from tidegate.surfaces.arguments import convert
from tidegate.surfaces.refused_calls import refusal_result
from tidegate.surfaces.resource import SurfaceResource
from tidegate.surfaces.tool_context import ApprovalForm, EndedWork, Gate, ToolContext
from tidegate.tracing import note_tool_error


def _message_of(error: TidegateError, tool_context: ToolContext) -> str:
    return error.message


def _no_such_tool(name: str, context: Context) -> NoReturn:
    raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")


def _no_such_resource(uri: str, context: Context) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Resource not found: {uri}", {"uri": uri})


class ServerProfile(msgspec.Struct, frozen=True):
    """What a surface says of itself, and how it speaks the protocol.

    `name` is the surface's in settings, paths and the record. `info`, `capabilities` and
    `instructions` are those of the reply to `initialize`. `settings` hold for both edges, or for
    HTTP alone if there are `stdio_settings`.
    """

    name: str
    info: Info
    settings: Settings
    capabilities: Mapping[str, Any]
    instructions: str | None = None
    stdio_settings: Settings | None = None


class Primitives(msgspec.Struct, frozen=True):
    """What a surface offers: MCP's primitives of a server, and `methods` beside the protocol.

    `resources` are the same for every caller; `list_resources` gives those that only this caller
    has. Raises: TidegateError. `app` makes the page that shows results of tools with `app_args`, to
    clients that show pages.
    """

    tools: Sequence[SurfaceTool]
    resources: Sequence[SurfaceResource] = ()
    list_resources: Callable[[ToolContext], Awaitable[Sequence[Resource]]] | None = None
    prompts: Sequence[SurfacePrompt] = ()
    methods: Sequence[SurfaceMethod] = ()
    app: Callable[[], str] | None = None


class Refusals(msgspec.Struct, frozen=True):
    """How a surface shows what is refused or fails.

    `render_error` shows it of a tool's call, `render_method_error` of a method's (None: as an
    error of JSON-RPC). `error_message` is the message where `render_error` makes a result and the
    protocol takes only an error. `unknown_tool` and `unknown_resource` answer where there is none
    of that name. A caller for whom `shows_in_results` says so gets errors of tools as results.
    """

    render_error: ErrorRenderer
    render_method_error: MethodErrorRenderer | None = None
    error_message: Callable[[TidegateError, ToolContext], str] = _message_of
    unknown_tool: UnknownTool = _no_such_tool
    unknown_resource: Callable[[str, Context], RpcError] = _no_such_resource
    shows_in_results: Callable[[Context], bool] | None = None


class CallConventions(msgspec.Struct, frozen=True):
    """How a surface takes the calls of its tools.

    `shape` gives the schema of a tool's arguments. `before_arguments` runs before these are
    checked, and `on_wrong_arguments` where they do not fit. `approval_form` is how the person at
    the client is asked (None: as `elicitation` does), and `shrink` shortens a result.
    `still_running` is the reply to a call that goes on (None: the error CALL_RUNNING).
    """

    shape: ArgumentShape = argument_shape
    before_arguments: BeforeArguments | None = None
    on_wrong_arguments: OnWrongArguments | None = None
    approval_form: ApprovalForm | None = None
    shrink: Shrink | None = None
    still_running: StillRunning | None = None


_COMMON_CONVENTIONS = CallConventions()

APP = "ui://tidegate/result"
"""The address of the page, the same on every surface that has it."""


class Surface:
    """`protocol.model.Server` made from data. One object serves every client."""

    def __init__(
        self,
        gate: Gate,
        profile: ServerProfile,
        primitives: Primitives,
        refusals: Refusals,
        conventions: CallConventions = _COMMON_CONVENTIONS,
        *,
        on_rejected_call: OnRejectedCall | None = None,
    ) -> None:
        self.name = profile.name
        self.info = profile.info
        self.instructions = profile.instructions
        self.capabilities = profile.capabilities
        self.settings = profile.settings
        self.stdio_settings = profile.stdio_settings or profile.settings
        self.tools_by_name = {tool.name: tool for tool in primitives.tools}
        self._gate = gate
        self._refusals = refusals
        self._conventions = conventions
        self._on_rejected_call = on_rejected_call or _record_nothing
        self._app = primitives.app
        self._listed: dict[bool, tuple[Tool, ...]] = {}
        resources = self.readable = tuple(primitives.resources)
        self._list_resources = primitives.list_resources
        self._resources = tuple(r.listed() for r in resources if not r.templated)
        self._templates = tuple(
            r.listed_template() for r in resources if r.templated and r.announced
        )
        self.prompts_by_name = {prompt.name: prompt for prompt in primitives.prompts}
        self._prompts = tuple(prompt.listed() for prompt in primitives.prompts)
        self.methods: Mapping[str, BareMethod] = {
            method.name: partial(self._call_method, method) for method in primitives.methods
        }

    def tools(self, context: Context) -> Sequence[Tool]:
        return self.listed_tools(shows_app=self._shows_app(context))

    def listed_tools(self, *, shows_app: bool = False) -> Sequence[Tool]:
        """Every tool in its fixed order, for clients that show the surface's page or for others;
        schemas are derived at the first listing."""
        shows_app = shows_app and self._app is not None
        if shows_app not in self._listed:
            self._listed[shows_app] = tuple(
                tool.listed(self._conventions.shape, APP if shows_app else "")
                for tool in self.tools_by_name.values()
            )
        return self._listed[shows_app]

    def _shows_app(self, context: Context) -> bool:
        return self._app is not None and shows_apps(context.client_capabilities)

    async def call_tool(self, context: Context, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Convert the arguments, run the tool, show a `TidegateError` as the surface does.

        Raises: RpcError where the surface shows errors or unknown tools that way.
        """
        tool = self.tools_by_name.get(name)
        if tool is None:
            self._on_rejected_call(context, name, "there is no such tool")
            return self._refusals.unknown_tool(name, context)
        conventions = self._conventions
        tool_context = ToolContext(
            self._gate, context, self.name, name, tool.scope, conventions.approval_form
        )
        context.work = tool_context
        try:
            if conventions.before_arguments is not None:
                conventions.before_arguments(tool, tool_context)
            fitting = await self._fitting(tool, tool_context, arguments)
            result = await tool.run(tool_context, fitting)
        except TidegateError as error:
            tool_context.failed_with = error.code
            note_tool_error(error.code.value)
            self._record_own_refusal(error, tool_context)
            result = self._refusal(error, tool_context)
        if conventions.shrink is not None:
            result = _shrinkable(conventions.shrink, tool_context, result)
        if tool_context.budget:
            return _with_note(result, tool_context.budget)
        return result

    def still_running(self, context: Context, tool: str, id: str) -> ToolResult:
        """See `protocol.model.Server`. What goes on has its record: this reply needs none."""
        if self._conventions.still_running is not None:
            return self._conventions.still_running(id)
        waits = context.waits_for
        message = f"The call still runs. {waits}" if waits else "The call still runs"
        error = TidegateError(Code.CALL_RUNNING, message)
        return self._refusal(error, self._context_of(context, tool))

    def lost(self, context: Context, tool: str, words: str) -> ToolResult:
        """See `protocol.model.Server`. What had begun has its record: this reply needs none."""
        error = TidegateError(Code.RESULT_GONE, words, hint="")  # the words say what to do
        return self._refusal(error, self._context_of(context, tool))

    def _context_of(self, context: Context, tool: str) -> ToolContext:
        scope = self.tools_by_name[tool].scope if tool in self.tools_by_name else _READ
        return self._tool_context(context, tool, scope)

    async def release(
        self, context: Context, task: Task, outcome: ToolResult | RpcError
    ) -> ToolResult:
        """See `protocol.model.Server`."""
        work = task.work
        if not isinstance(work, EndedWork):
            return _shown_outcome(outcome)
        tool_context = self._tool_context(context, work.tool, work.scope)
        try:
            if not has_same_rights(context.actor, task.actor):
                raise TidegateError(Code.RESULT_GONE, "The rights of this caller were changed")
            await tool_context.handle(ReleaseResult(work.basis), None, type(None))
        except TidegateError as error:
            if work.changed:
                error.message = f"{error.message}. The change itself took effect"
                error.hint = "Do not send it again."
            return self._refusal(error, tool_context)
        return _shown_outcome(outcome)

    def _refusal(self, error: TidegateError, tool_context: ToolContext) -> ToolResult:
        """The refusal of a tool's call. Raises: RpcError, for callers that get it in this form."""
        try:
            return self._refusals.render_error(error, tool_context)
        except RpcError as rendered:
            shows_in_results = self._refusals.shows_in_results
            if shows_in_results is None or not shows_in_results(tool_context.context):
                raise
            return refusal_result(rendered, named=self._shows_app(tool_context.context))

    async def _fitting(
        self, tool: SurfaceTool, tool_context: ToolContext, arguments: dict[str, Any]
    ) -> Any:
        """The arguments as the tool takes them. Raises: TidegateError ARGUMENT_INVALID."""
        args = tool.args
        if tool.app_args is not None and self._shows_app(tool_context.context):
            args = tool.app_args
        try:
            return convert(arguments, args)
        except TidegateError as error:
            if self._conventions.on_wrong_arguments is not None:
                await self._conventions.on_wrong_arguments(tool_context, arguments, error)
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
            if self._refusals.render_method_error is not None:
                return self._refusals.render_method_error(error, tool_context)
            raise self._rpc_error(error, tool_context) from None

    def _rpc_error(self, error: TidegateError, tool_context: ToolContext) -> RpcError:
        """The error for what has no other way to refuse than a JSON-RPC error."""
        try:
            self._refusals.render_error(error, tool_context)
        except RpcError as rendered:
            return rendered
        message = self._refusals.error_message(error, tool_context)
        return RpcError(error.mapping.rpc, message, {"code": error.code.value})

    def _tool_context(self, context: Context, name: str, scope: Scope) -> ToolContext:
        form = self._conventions.approval_form
        return ToolContext(self._gate, context, self.name, name, scope, form)

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

    def has_resource(self, context: Context, uri: str) -> bool:
        """Whether this client can read something at that address."""
        if uri == APP and self._shows_app(context):
            return True
        return any(resource.matches(uri) for resource in self.readable)

    async def read_resource(self, context: Context, uri: str) -> Sequence[ResourceText]:
        """Read the first resource whose URI or template matches.

        Raises: RpcError, also for what a tool would return as an error result: the protocol has
        no other way to refuse here.
        """
        if self._app is not None and uri == APP and self._shows_app(context):
            shown = {"ui": {"prefersBorder": True}}
            return [ResourceText(uri=uri, mime_type=MIME_TYPE, text=self._app(), meta=shown)]
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
        raise self._refusals.unknown_resource(uri, context)

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


def _with_note(result: ToolResult, note: str) -> ToolResult:
    """The result, with a block for what is left of budgets if the tool does not say it itself."""
    shrink = result.shrink

    def shorten(size: int) -> ToolResult | None:
        shorter = None if shrink is None else shrink(size)
        return None if shorter is None else _with_note(shorter, note)

    content = result.content
    if content is None:
        content = (text((result.body or b"").decode()),)
    if not any(note in block.get("text", "") for block in content):
        result = structs.replace(result, content=(*content, text(f"{note}.")))
    return structs.replace(result, shrink=None if shrink is None else shorten)


def _shown_outcome(outcome: ToolResult | RpcError) -> ToolResult:
    """Raises: RpcError, each time another one: it would gather the frames of all that raise it."""
    if isinstance(outcome, RpcError):
        raise outcome.copied()
    return outcome


def _record_nothing(context: Context, tool: str, reason: str) -> None:
    return None


def _nothing_to_stop() -> None:
    return None
