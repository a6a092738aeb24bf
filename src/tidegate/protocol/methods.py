"""What the kernel does for each method, whatever the revision.

A handler takes the exchange and its parameters and returns the result as JSON bytes. Who may call
what and when is `kernel.py`'s business.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tidegate.protocol import params as p
from tidegate.protocol import render
from tidegate.protocol.exchange import Exchange
from tidegate.protocol.frames import encode
from tidegate.protocol.model import INVALID_PARAMS, LOG_LEVELS, RpcError
from tidegate.protocol.revisions import MODERN, Revision
from tidegate.protocol.subscriptions import listen

if TYPE_CHECKING:
    from tidegate.protocol.kernel import Kernel

Handler = Callable[["Kernel", Exchange, Any], Awaitable[bytes]]


class Method(msgspec.Struct, frozen=True):
    """A method: its parameters, its handler, the eras that have it, the capability it needs."""

    params: type[p.Params]
    handle: Handler
    era: Literal["both", "handshake", "modern"] = "both"
    capability: str | None = None


def _result(kernel: Kernel, exchange: Exchange, fields: Mapping[str, Any]) -> bytes:
    if exchange.wire.modern:
        return render.modern_result(fields, kernel.server_meta)
    return encode(fields)


def _cacheable(kernel: Kernel, exchange: Exchange, fields: dict[str, Any]) -> bytes:
    if exchange.wire.modern:
        fields["ttlMs"] = kernel.settings.list_ttl_ms
        fields["cacheScope"] = kernel.settings.list_scope
    return _result(kernel, exchange, fields)


async def discover(kernel: Kernel, exchange: Exchange, params: p.Params) -> bytes:
    fields: dict[str, Any] = {
        "supportedVersions": [v for v in kernel.settings.revisions.accepted if v in MODERN],
        "capabilities": render.capabilities(kernel.server.capabilities, exchange.wire),
    }
    if kernel.server.instructions is not None:
        fields["instructions"] = kernel.server.instructions
    return _cacheable(kernel, exchange, fields)


async def ping(kernel: Kernel, exchange: Exchange, params: p.Params) -> bytes:
    return b"{}"


def _page(
    kernel: Kernel,
    exchange: Exchange,
    params: p.Page,
    key: str,
    items: Sequence[Any],
    show: Callable[[Any, Revision], Any],
) -> bytes:
    """One page of a list, encoded once for as long as the server returns the same list."""
    offset = _read_cursor(params.cursor, len(items))
    place = (key, exchange.revision, offset)
    kept = kernel.lists.get(place)
    if kept is not None and kept[0] is items:
        return kept[1]
    end = offset + kernel.settings.page_size
    fields: dict[str, Any] = {key: [show(item, exchange.wire) for item in items[offset:end]]}
    if end < len(items):
        fields["nextCursor"] = urlsafe_b64encode(f"from:{end}".encode()).decode()
    result = _cacheable(kernel, exchange, fields)
    if len(kernel.lists) > 64:
        kernel.lists.clear()
    kernel.lists[place] = (items, result)
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


async def list_tools(kernel: Kernel, exchange: Exchange, params: p.Page) -> bytes:
    items = kernel.server.tools(exchange)
    return _page(kernel, exchange, params, "tools", items, render.tool)


async def list_resources(kernel: Kernel, exchange: Exchange, params: p.Page) -> bytes:
    items = kernel.server.resources(exchange)
    return _page(kernel, exchange, params, "resources", items, render.resource)


async def list_templates(kernel: Kernel, exchange: Exchange, params: p.Page) -> bytes:
    items = kernel.server.resource_templates(exchange)
    return _page(kernel, exchange, params, "resourceTemplates", items, render.resource_template)


async def list_prompts(kernel: Kernel, exchange: Exchange, params: p.Page) -> bytes:
    items = kernel.server.prompts(exchange)
    return _page(kernel, exchange, params, "prompts", items, render.prompt)


async def call_tool(kernel: Kernel, exchange: Exchange, params: p.CallTool) -> bytes:
    result = await kernel.server.call_tool(exchange, params.name, params.arguments or {})
    return render.tool_result(result, exchange.wire, kernel.server_meta)


async def read_resource(kernel: Kernel, exchange: Exchange, params: p.ReadResource) -> bytes:
    contents = await kernel.server.read_resource(exchange, params.uri)
    return _cacheable(kernel, exchange, {"contents": render.resource_contents(contents)})


async def get_prompt(kernel: Kernel, exchange: Exchange, params: p.GetPrompt) -> bytes:
    result = await kernel.server.get_prompt(exchange, params.name, params.arguments or {})
    return _result(kernel, exchange, render.prompt_result(result, exchange.wire))


async def complete(kernel: Kernel, exchange: Exchange, params: p.Complete) -> bytes:
    if params.ref.get("type") not in ("ref/prompt", "ref/resource"):
        raise RpcError(INVALID_PARAMS, "Invalid params: ref must be ref/prompt or ref/resource")
    chosen = params.context.arguments if params.context is not None else {}
    value = await kernel.server.complete(
        exchange, params.ref, params.argument.name, params.argument.value, chosen
    )
    return _result(kernel, exchange, render.completion(value))


async def set_level(kernel: Kernel, exchange: Exchange, params: p.SetLevel) -> bytes:
    level = params.level.lower()
    if level not in LOG_LEVELS:
        raise RpcError(
            INVALID_PARAMS, f"Invalid params: unknown level; use {', '.join(LOG_LEVELS)}"
        )
    if exchange.session is not None:
        exchange.session.log_level = level
    return b"{}"


async def subscribe(kernel: Kernel, exchange: Exchange, params: p.Uri) -> bytes:
    if exchange.session is not None:
        exchange.session.subscribed.add(params.uri)
    return b"{}"


async def unsubscribe(kernel: Kernel, exchange: Exchange, params: p.Uri) -> bytes:
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
