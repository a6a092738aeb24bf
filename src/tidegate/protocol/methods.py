"""What the kernel does for each method, whatever the revision.

A handler takes the exchange and its parameters and returns the result as JSON bytes. Who may call
what and when is `kernel.py`'s business.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from tidegate.protocol import params as p
from tidegate.protocol import render
from tidegate.protocol.jsonrpc import encode, result_frame
from tidegate.protocol.model import INVALID_PARAMS, LOG_LEVELS, BareMethod, RpcError, ToolResult
from tidegate.protocol.request import McpRequest
from tidegate.protocol.revisions import MODERN, Revision
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.subscriptions import listen

Handler = Callable[[ServedServer, McpRequest, Any], Awaitable[bytes]]


class Method(msgspec.Struct, frozen=True):
    """A method: its parameters, its handler, the eras that have it, the capability it needs."""

    params: type[p.Params]
    handle: Handler
    era: Literal["both", "handshake", "modern"] = "both"
    capability: str | None = None


def _result(offering: ServedServer, exchange: McpRequest, fields: Mapping[str, Any]) -> bytes:
    if exchange.wire.modern:
        return render.modern_result(fields, offering.server_meta)
    return encode(fields)


def _cacheable(offering: ServedServer, exchange: McpRequest, fields: dict[str, Any]) -> bytes:
    if exchange.wire.modern:
        fields["ttlMs"] = offering.settings.list_ttl_ms
        fields["cacheScope"] = offering.settings.list_scope
    return _result(offering, exchange, fields)


async def discover(offering: ServedServer, exchange: McpRequest, params: p.Params) -> bytes:
    fields: dict[str, Any] = {
        "supportedVersions": [v for v in offering.settings.revisions.accepted if v in MODERN],
        "capabilities": render.capabilities(offering.server.capabilities, exchange.wire),
    }
    if offering.server.instructions is not None:
        fields["instructions"] = offering.server.instructions
    return _cacheable(offering, exchange, fields)


async def ping(offering: ServedServer, exchange: McpRequest, params: p.Params) -> bytes:
    return b"{}"


def _page(
    offering: ServedServer,
    exchange: McpRequest,
    params: p.Page,
    key: str,
    items: Sequence[Any],
    show: Callable[[Any, Revision], Any],
) -> bytes:
    """One page of a list, encoded once for as long as the server returns the same list."""
    offset = _read_cursor(params.cursor, len(items))
    place = (key, exchange.revision, offset)
    kept = offering.lists.get(place)
    if kept is not None and kept[0] is items:
        return kept[1]
    end = offset + offering.settings.page_size
    fields: dict[str, Any] = {key: [show(item, exchange.wire) for item in items[offset:end]]}
    if end < len(items):
        fields["nextCursor"] = urlsafe_b64encode(f"from:{end}".encode()).decode()
    result = _cacheable(offering, exchange, fields)
    if len(offering.lists) > 64:
        offering.lists.clear()
    offering.lists[place] = (items, result)
    return result


def _read_cursor(cursor: str | None, length: int) -> int:
    if cursor is None:
        return 0
    try:
        word, _, digits = urlsafe_b64decode(cursor.encode("ascii")).decode("ascii").partition(":")
        offset = int(digits)
    except ValueError:
        offset = word = None
    if word != "from" or offset is None or not 0 < offset < length:
        raise RpcError(INVALID_PARAMS, "Invalid params: unknown cursor; list from the start")
    return offset


async def list_tools(offering: ServedServer, exchange: McpRequest, params: p.Page) -> bytes:
    items = offering.server.tools(exchange)
    return _page(offering, exchange, params, "tools", items, render.tool)


async def list_resources(offering: ServedServer, exchange: McpRequest, params: p.Page) -> bytes:
    items = offering.server.resources(exchange)
    return _page(offering, exchange, params, "resources", items, render.resource)


async def list_templates(offering: ServedServer, exchange: McpRequest, params: p.Page) -> bytes:
    items = offering.server.resource_templates(exchange)
    return _page(offering, exchange, params, "resourceTemplates", items, render.resource_template)


async def list_prompts(offering: ServedServer, exchange: McpRequest, params: p.Page) -> bytes:
    items = offering.server.prompts(exchange)
    return _page(offering, exchange, params, "prompts", items, render.prompt)


async def call_tool(offering: ServedServer, exchange: McpRequest, params: p.CallTool) -> bytes:
    result = await offering.server.call_tool(exchange, params.name, params.arguments or {})
    shown = render.tool_result(result, exchange.wire, offering.server_meta)
    if result.shrink is None:
        return shown
    return _shortened(result, offering, exchange, shown)


def _shortened(
    result: ToolResult, offering: ServedServer, exchange: McpRequest, shown: bytes
) -> bytes:
    """The result within the size that its `shrink` allows, by the bytes that would be sent."""
    size = len(result_frame(exchange.id, shown))
    while result.shrink is not None and (shorter := result.shrink(size)) is not None:
        result = shorter
        shown = render.tool_result(result, exchange.wire, offering.server_meta)
        before, size = size, len(result_frame(exchange.id, shown))
        if size >= before:
            break  # it would never end
    return shown


def bare(method: BareMethod) -> Method:
    """The kernel's entry for a server's own method, in every era."""

    async def handle(offering: ServedServer, exchange: McpRequest, params: p.BareParams) -> bytes:
        return _result(offering, exchange, await method(exchange, params.fields))

    return Method(p.BareParams, handle)


async def read_resource(
    offering: ServedServer, exchange: McpRequest, params: p.ReadResource
) -> bytes:
    contents = await offering.server.read_resource(exchange, params.uri)
    return _cacheable(offering, exchange, {"contents": render.resource_contents(contents)})


async def get_prompt(offering: ServedServer, exchange: McpRequest, params: p.GetPrompt) -> bytes:
    result = await offering.server.get_prompt(exchange, params.name, params.arguments or {})
    return _result(offering, exchange, render.prompt_result(result, exchange.wire))


async def complete(offering: ServedServer, exchange: McpRequest, params: p.Complete) -> bytes:
    if params.ref.get("type") not in ("ref/prompt", "ref/resource"):
        raise RpcError(INVALID_PARAMS, "Invalid params: ref must be ref/prompt or ref/resource")
    chosen = params.context.arguments if params.context is not None else {}
    value = await offering.server.complete(
        exchange, params.ref, params.argument.name, params.argument.value, chosen
    )
    return _result(offering, exchange, render.completion(value))


async def set_level(offering: ServedServer, exchange: McpRequest, params: p.SetLevel) -> bytes:
    level = params.level.lower()
    if level not in LOG_LEVELS:
        raise RpcError(
            INVALID_PARAMS, f"Invalid params: unknown level; use {', '.join(LOG_LEVELS)}"
        )
    if exchange.session is not None:
        exchange.session.log_level = level
    return b"{}"


async def subscribe(offering: ServedServer, exchange: McpRequest, params: p.Uri) -> bytes:
    if exchange.session is not None:
        exchange.session.subscribed.add(params.uri)
    return b"{}"


async def unsubscribe(offering: ServedServer, exchange: McpRequest, params: p.Uri) -> bytes:
    if exchange.session is not None:
        exchange.session.subscribed.discard(params.uri)
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
}
