"""What the kernel does for each method, whatever the revision.

A handler takes the request and its parameters and returns the result as JSON bytes. Who may call
what and when is `kernel.py`'s business.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import structs

from tidegate.protocol import params as p
from tidegate.protocol import render
from tidegate.protocol.jsonrpc import encode, result_frame
from tidegate.protocol.long_calls import EXTENSION
from tidegate.protocol.model import INVALID_PARAMS, LOG_LEVELS, BareMethod, RpcError, ToolResult
from tidegate.protocol.request import McpRequest
from tidegate.protocol.revisions import MODERN, Revision
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.subscriptions import listen
from tidegate.protocol.task_methods import cancel_task, get_task, update_task
from tidegate.tracing import note_tool_error

MOST_FORMS = 16
"""Forms of one result that are tried, each of which its server calls shorter than the one before:
what it leaves out may weigh less than the record of it."""

Handler = Callable[[ServedServer, McpRequest, Any], Awaitable[bytes]]


class Method(msgspec.Struct, frozen=True):
    """A method: its parameters, its handler, the eras that have it, the capability it needs."""

    params: type[p.Params]
    handle: Handler
    era: Literal["both", "handshake", "modern"] = "both"
    capability: str | None = None


def _result(served: ServedServer, request: McpRequest, fields: Mapping[str, Any]) -> bytes:
    if request.wire.modern:
        return render.modern_result(fields, served.server_meta)
    return encode(fields)


def _cacheable(served: ServedServer, request: McpRequest, fields: dict[str, Any]) -> bytes:
    if request.wire.modern:
        fields["ttlMs"] = served.settings.list_ttl_ms
        fields["cacheScope"] = served.settings.list_scope
    return _result(served, request, fields)


async def discover(served: ServedServer, request: McpRequest, params: p.Params) -> bytes:
    own = served.capabilities_for(request.client_capabilities)
    capabilities = render.capabilities(own, request.wire)
    if served.long_calls is not None:
        capabilities["extensions"] = {**capabilities.get("extensions", {}), EXTENSION: {}}
    fields: dict[str, Any] = {
        "supportedVersions": [v for v in served.settings.revisions.accepted if v in MODERN],
        "capabilities": capabilities,
    }
    if served.server.instructions is not None:
        fields["instructions"] = served.server.instructions
    return _cacheable(served, request, fields)


async def ping(served: ServedServer, request: McpRequest, params: p.Params) -> bytes:
    return b"{}"


def _page(
    served: ServedServer,
    request: McpRequest,
    params: p.Page,
    key: str,
    items: Sequence[Any],
    show: Callable[[Any, Revision], Any],
) -> bytes:
    """One page of a list, encoded once for as long as the server returns the same list."""
    offset = _read_cursor(params.cursor, len(items))
    place = (key, request.revision, offset)
    kept = served.lists.get(place)
    if kept is not None and kept[0] is items:
        return kept[1]
    end = offset + served.settings.page_size
    fields: dict[str, Any] = {key: [show(item, request.wire) for item in items[offset:end]]}
    if end < len(items):
        fields["nextCursor"] = urlsafe_b64encode(f"from:{end}".encode()).decode()
    result = _cacheable(served, request, fields)
    if len(served.lists) > 64:
        served.lists.clear()
    served.lists[place] = (items, result)
    return result


def _read_cursor(cursor: str | None, length: int) -> int:
    if not cursor:
        return 0
    try:
        word, _, digits = urlsafe_b64decode(cursor.encode("ascii")).decode("ascii").partition(":")
        offset = int(digits)
    except ValueError:
        offset = word = None
    if word != "from" or offset is None or not 0 < offset < length:
        raise RpcError(INVALID_PARAMS, "Invalid params: unknown cursor; list from the start")
    return offset


async def list_tools(served: ServedServer, request: McpRequest, params: p.Page) -> bytes:
    items = served.server.tools(request)
    return _page(served, request, params, "tools", items, render.tool)


async def list_resources(served: ServedServer, request: McpRequest, params: p.Page) -> bytes:
    items = await served.server.resources(request)
    return _page(served, request, params, "resources", items, render.resource)


async def list_templates(served: ServedServer, request: McpRequest, params: p.Page) -> bytes:
    items = served.server.resource_templates(request)
    return _page(served, request, params, "resourceTemplates", items, render.resource_template)


async def list_prompts(served: ServedServer, request: McpRequest, params: p.Page) -> bytes:
    items = served.server.prompts(request)
    return _page(served, request, params, "prompts", items, render.prompt)


async def call_tool(served: ServedServer, request: McpRequest, params: p.CallTool) -> bytes:
    calls = served.long_calls
    if calls is None:
        try:
            result = await served.server.call_tool(request, params.name, params.given)
        finally:
            request.work = None  # it leads back here: a cycle for each call
        if result.is_error:
            note_tool_error()
        return _rendered(served, request, result)
    request.called, request.calls = params, calls
    if calls.same and (same := calls.find_same(request)) is not None:
        return _rendered(served, request, await calls.join(request, same))
    if calls.tasks.elsewhere and (known := await calls.join_elsewhere(request)) is not None:
        return _rendered(served, request, known)
    calls.open[request] = calls.checks
    if not calls.checking:
        calls.check_later()
    try:
        result = await served.server.call_tool(request, params.name, params.given)
    except BaseException as error:
        if request.task is None:
            raise
        calls.settle(request, error)
        if isinstance(error, Exception):
            return b""
        raise
    finally:
        calls.open.pop(request, None)
        request.work = None
    if result.is_error:
        note_tool_error()
    if request.task is not None:
        calls.settle(request, _waiting(served, request, result))
        return b""
    return _rendered(served, request, result)


def _rendered(served: ServedServer, request: McpRequest, result: ToolResult) -> bytes:
    if request.stream is not None and request.stream.started:
        return request.stream.end(_text_of(result), is_error=result.is_error)
    shown = render.tool_result(result, request.wire, served.server_meta)
    if result.shrink is None:
        return shown
    return _shortened(result, served, request, shown)[1]


def _waiting(served: ServedServer, request: McpRequest, result: ToolResult) -> ToolResult:
    """The result of a call as it waits for its client: whole, and within its size. It holds on to
    nothing of the call."""
    if request.stream is not None and request.stream.started:
        whole = request.stream.kept() + _text_of(result)
        block = {"type": "text", "text": whole.decode()}
        return ToolResult([block], structured=False, is_error=result.is_error)
    if result.shrink is None:
        return result
    shown = render.tool_result(result, request.wire, served.server_meta)
    return structs.replace(_shortened(result, served, request, shown)[0], shrink=None)


def _text_of(result: ToolResult) -> bytes:
    """The text of a result whose beginning was sent before. An error is shown on a separate
    line."""
    reply = result.body or b""
    if result.content is not None:
        reply = "".join([str(block.get("text", "")) for block in result.content]).encode()
    return b"\n\n" + reply if result.is_error else reply


def _shortened(
    result: ToolResult, served: ServedServer, request: McpRequest, shown: bytes
) -> tuple[ToolResult, bytes]:
    """The result within the size that its `shrink` allows, and the bytes that would be sent."""
    for _ in range(MOST_FORMS):
        size = len(result_frame(request.id, shown))
        if result.shrink is None or (shorter := result.shrink(size)) is None:
            break
        result = shorter
        shown = render.tool_result(result, request.wire, served.server_meta)
    return result, shown


def bare(method: BareMethod) -> Method:
    """The kernel's entry for a server's own method, in every era."""

    async def handle(served: ServedServer, request: McpRequest, params: p.BareParams) -> bytes:
        return _result(served, request, await method(request, params.fields))

    return Method(p.BareParams, handle)


async def read_resource(served: ServedServer, request: McpRequest, params: p.ReadResource) -> bytes:
    contents = await served.server.read_resource(request, params.uri)
    return _cacheable(served, request, {"contents": render.resource_contents(contents)})


async def get_prompt(served: ServedServer, request: McpRequest, params: p.GetPrompt) -> bytes:
    arguments = params.arguments or {}
    given = {name: value for name, value in arguments.items() if value is not None}
    result = await served.server.get_prompt(request, params.name, given)
    return _result(served, request, render.prompt_result(result, request.wire))


async def complete(served: ServedServer, request: McpRequest, params: p.Complete) -> bytes:
    if params.ref.get("type") not in ("ref/prompt", "ref/resource"):
        raise RpcError(INVALID_PARAMS, "Invalid params: ref must be ref/prompt or ref/resource")
    chosen = params.context.arguments if params.context is not None else {}
    value = await served.server.complete(
        request, params.ref, params.argument.name, params.argument.value, chosen
    )
    return _result(served, request, render.completion(value))


async def set_level(served: ServedServer, request: McpRequest, params: p.SetLevel) -> bytes:
    level = params.level.lower()
    if level not in LOG_LEVELS:
        raise RpcError(
            INVALID_PARAMS, f"Invalid params: unknown level; use {', '.join(LOG_LEVELS)}"
        )
    if request.session is not None:
        request.session.log_level = level
        request.session.tell_others("level", b"", level.encode())
    return b"{}"


async def subscribe(served: ServedServer, request: McpRequest, params: p.Uri) -> bytes:
    if request.session is not None:
        request.session.subscribed.add(params.uri)
    return b"{}"


async def unsubscribe(served: ServedServer, request: McpRequest, params: p.Uri) -> bytes:
    if request.session is not None:
        request.session.subscribed.discard(params.uri)
    return b"{}"


METHODS: dict[str, Method] = {
    "tools/call": Method(p.CallTool, call_tool, capability="tools"),
    "tools/list": Method(p.Page, list_tools, capability="tools"),
    "resources/list": Method(p.Page, list_resources, capability="resources"),
    "resources/templates/list": Method(p.Page, list_templates, capability="resources"),
    "resources/read": Method(p.ReadResource, read_resource, capability="resources"),
    "resources/subscribe": Method(p.Uri, subscribe, "handshake", "resources.subscribe"),
    "resources/unsubscribe": Method(p.Uri, unsubscribe, "handshake", "resources.subscribe"),
    "prompts/list": Method(p.Page, list_prompts, capability="prompts"),
    "prompts/get": Method(p.GetPrompt, get_prompt, capability="prompts"),
    "completion/complete": Method(p.Complete, complete, capability="completions"),
    "logging/setLevel": Method(p.SetLevel, set_level, "handshake", "logging"),
    "ping": Method(p.Params, ping, "handshake"),
    "server/discover": Method(p.Params, discover, "modern"),
    "subscriptions/listen": Method(p.Listen, listen, "modern"),
    "tasks/get": Method(p.TaskId, get_task, "modern"),
    "tasks/update": Method(p.UpdateTask, update_task, "modern"),
    "tasks/cancel": Method(p.TaskId, cancel_task, "modern"),
}
