"""Opens an exchange: in which era a request is served, and whether it may be at all.

A request whose `_meta`, or whose header, names a revision since 2026-07-28 is served by itself; any
other needs a session that is initialized.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from tidegate.protocol import headers, jsonrpc
from tidegate.protocol import params as p
from tidegate.protocol.jsonrpc import Message
from tidegate.protocol.model import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    Info,
    RpcError,
)
from tidegate.protocol.request import NOTHING, McpRequest
from tidegate.protocol.revisions import MODERN, REVISIONS
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.transport import TransportContext

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

UNKNOWN_CLIENT = Info("unknown", "0")


def open_request(
    offering: ServedServer, message: Message, params: p.Params, link: TransportContext
) -> McpRequest:
    """The exchange in which a request is answered.

    Raises: RpcError, if the request has no place in either era: INVALID_REQUEST, INVALID_PARAMS,
    HEADER_MISMATCH, UNSUPPORTED_VERSION.
    """
    if (params.meta and VERSION_KEY in params.meta) or link.names_modern:
        return _open_stateless(offering, message, params, link)
    return _open_in_session(offering, message, params, link)


def names_version(message: Message, link: TransportContext) -> bool:
    """Whether an `initialize` claims the stateless era, which does not have it."""
    if link.names_modern:
        return True
    if message.params is None:
        return False
    return VERSION_KEY in (p.read(p.Params, message.params).meta or ())


def _open_stateless(
    offering: ServedServer, message: Message, params: p.Params, link: TransportContext
) -> McpRequest:
    meta = params.meta or NOTHING
    version = meta.get(VERSION_KEY)
    capabilities = meta.get(CAPABILITIES_KEY)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta must name {VERSION_KEY}", status=400)
    if link.session is not None:
        link.session.stateless = True
    if link.headers is not None:
        name = getattr(params, headers.NAMED.get(message.method or "", ""), None)
        headers.check_standard(link.headers, version, message.method or "", name)
    accepted = offering.settings.revisions.accepted
    if version not in accepted or version not in MODERN:
        raise RpcError(
            UNSUPPORTED_VERSION,
            f"Unsupported protocol version {version}",
            {"supported": [each for each in accepted if each in MODERN], "requested": version},
            status=400,
        )
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta must name {CAPABILITIES_KEY}", status=400)
    exchange = McpRequest(
        actor=link.actor,
        wire=REVISIONS[version],
        outlet=link.outlet,
        id=message.id or jsonrpc.NO_ID,
        client=_read_client(meta.get(CLIENT_KEY)),
        client_capabilities=cast(Mapping[str, Any], capabilities),
        meta=meta,
        cancellation=link.cancellation,
        states=offering.states,
    )
    if link.headers is not None and isinstance(params, p.CallTool):
        marked = offering.marked_arguments(exchange, params.name)
        if marked:
            headers.check_parameters(link.headers, marked, params.arguments or {})
    return exchange


def _open_in_session(
    offering: ServedServer, message: Message, params: p.Params, link: TransportContext
) -> McpRequest:
    session = link.session
    if session is None:
        raise RpcError(
            INVALID_REQUEST, "Missing Mcp-Session-Id: the first request must be initialize",
            status=400,
        )  # fmt: skip
    revision = session.revision
    if revision is None:
        raise RpcError(INVALID_REQUEST, "The first request must be initialize", status=400)
    if link.headers is not None:
        named = link.headers.get(b"mcp-protocol-version")
        if named is not None and named != revision.name.encode():
            raise RpcError(
                INVALID_REQUEST, f"MCP-Protocol-Version must be {revision.name}", status=400
            )
    if not session.ready and offering.settings.strict_lifecycle and message.method != "ping":
        raise RpcError(
            INVALID_REQUEST, "Send notifications/initialized before other requests", status=400
        )
    return McpRequest(
        actor=link.actor,
        wire=revision,
        outlet=link.outlet,
        id=message.id or jsonrpc.NO_ID,
        client=session.client,
        client_capabilities=session.capabilities,
        meta=params.meta or NOTHING,
        session=session,
        state=session.state,
        cancellation=link.cancellation,
        closer=link.closer,
    )


def _read_client(given: Any) -> Info:
    if given is None:
        return UNKNOWN_CLIENT
    try:
        return msgspec.convert(given, Info)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"_meta {CLIENT_KEY}: {error}", status=400) from None
