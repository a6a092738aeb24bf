"""Telling clients of changes: a session's stream before 2026-07-28, listen streams since.

Source: specification 2026-07-28, `basic/patterns/subscriptions`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from tidegate.protocol import params as p
from tidegate.protocol.jsonrpc import encode, notification_frame
from tidegate.protocol.request import McpRequest
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.session import Session
from tidegate.protocol.task_methods import follow_tasks

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

_LIST_CHANGED = {
    "tools": ("notifications/tools/list_changed", "tools_list_changed"),
    "prompts": ("notifications/prompts/list_changed", "prompts_list_changed"),
    "resources": ("notifications/resources/list_changed", "resources_list_changed"),
}
_UPDATED = "notifications/resources/updated"


async def listen(served: ServedServer, request: McpRequest, params: p.Listen) -> bytes:
    """Answer `subscriptions/listen`: acknowledge, then notify until cancelled."""
    wanted = _granted(params.notifications, served.server.capabilities)
    meta = {SUBSCRIPTION_KEY: msgspec.Raw(request.id)}
    sender = request.sender
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    def changed(kind: str, uri: str | None) -> None:
        if ended.done():
            return
        if kind == "resource":
            if uri in wanted.resource_subscriptions:
                sender.send(notification_frame(_UPDATED, {"uri": uri, "_meta": meta}))
            return
        method, flag = _LIST_CHANGED[kind]
        if getattr(wanted, flag):
            sender.send(notification_frame(method, {"_meta": meta}))

    followed, stop_tasks = await follow_tasks(
        served, request, params.notifications.task_ids, sender.send, meta
    )
    wanted.task_ids = followed
    acknowledgement: dict[str, Any] = {"notifications": wanted, "_meta": meta}
    sender.send(notification_frame("notifications/subscriptions/acknowledged", acknowledgement))
    stop = served.server.subscribe(changed)
    served.listening.add(end)
    request.cancellation.listen(end)
    try:
        await ended
    finally:
        served.listening.discard(end)
        stop_tasks()
        stop()
    return encode({"resultType": "complete", "_meta": meta})


def _granted(wanted: p.Filter, capabilities: Mapping[str, Mapping[str, Any]]) -> p.Filter:
    """What of a listener's filter the server has: no change of another kind will come."""

    def has(kind: str, capability: str) -> bool:
        return bool(capabilities.get(kind, {}).get(capability))

    return p.Filter(
        tools_list_changed=wanted.tools_list_changed and has("tools", "listChanged"),
        prompts_list_changed=wanted.prompts_list_changed and has("prompts", "listChanged"),
        resources_list_changed=wanted.resources_list_changed and has("resources", "listChanged"),
        resource_subscriptions=wanted.resource_subscriptions
        if has("resources", "subscribe")
        else [],
    )


def follow(served: ServedServer, session: Session) -> None:
    """Send a session of the handshake era the notifications that it may get, until it is closed."""
    capabilities = served.server.capabilities

    def changed(kind: str, uri: str | None) -> None:
        if kind == "resource":
            if uri in session.subscribed:
                session.send(notification_frame(_UPDATED, {"uri": uri}))
        elif capabilities.get(kind, {}).get("listChanged"):
            session.send(notification_frame(_LIST_CHANGED[kind][0]))

    session.unsubscribe = served.server.subscribe(changed)
