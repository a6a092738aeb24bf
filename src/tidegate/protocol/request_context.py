"""Opens a request: checks that it may be served, and in which era.

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
from tidegate.protocol.request import NOTHING, PROGRESS_KEY, McpRequest, progress_token
from tidegate.protocol.revisions import MODERN, REVISIONS, negotiate
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.transport import TransportContext
from tidegate.typed_values import convert_value

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

UNKNOWN_CLIENT = Info("unknown", "0")


def open_request(
    served: ServedServer,
    message: Message,
    params: p.Params,
    transport: TransportContext,
    *,
    bare: bool = False,
) -> McpRequest:
    """The request that a method answers, with its client, era and session. `bare`: the method is
    not part of MCP.

    Raises: RpcError, if the request has no place in either era: INVALID_REQUEST, INVALID_PARAMS,
    HEADER_MISMATCH, UNSUPPORTED_VERSION.
    """
    modern = (params.meta and VERSION_KEY in params.meta) or transport.names_modern
    if modern and served.knows_modern:
        return _open_stateless(served, message, params, transport)
    revision = served.settings.methods_without_session
    session = transport.session
    if bare and revision is not None and (session is None or session.revision is None):
        return _open_before_handshake(served, revision, message, params, transport)
    return _open_in_session(served, message, params, transport)


def names_version(message: Message, transport: TransportContext) -> bool:
    """Whether an `initialize` claims the stateless era, which does not have it."""
    if transport.names_modern:
        return True
    if message.params is None:
        return False
    return VERSION_KEY in (p.read(p.Params, message.params).meta or ())


def declared_capabilities(message: Message, transport: TransportContext) -> Mapping[str, Any]:
    """What the client of a message has declared, before the message is read; nothing if it is not
    known yet."""
    try:
        meta = p.read(p.Params, message.params).meta or NOTHING
    except RpcError:
        return NOTHING
    if VERSION_KEY in meta:
        found = meta.get(CAPABILITIES_KEY)
        return cast("Mapping[str, Any]", found) if isinstance(found, dict) else NOTHING
    return NOTHING if transport.session is None else transport.session.capabilities


def _open_stateless(
    served: ServedServer, message: Message, params: p.Params, transport: TransportContext
) -> McpRequest:
    meta = params.meta or NOTHING
    version = meta.get(VERSION_KEY)
    capabilities = meta.get(CAPABILITIES_KEY)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta must name {VERSION_KEY}", status=400)
    if transport.session is not None:
        transport.session.stateless = True
    if transport.headers is not None:
        name = getattr(params, headers.NAMED.get(message.method or "", ""), None)
        headers.check_standard(transport.headers, version, message.method or "", name)
    accepted = served.settings.revisions.accepted
    if version not in accepted or version not in MODERN:
        raise RpcError(
            UNSUPPORTED_VERSION,
            f"Unsupported protocol version {version}",
            {"supported": [each for each in accepted if each in MODERN], "requested": version},
            status=400,
        )
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta must name {CAPABILITIES_KEY}", status=400)
    request = McpRequest(
        actor=transport.actor,
        wire=REVISIONS[version],
        sender=transport.sender,
        id=message.id or jsonrpc.NO_ID,
        client=_read_client(meta.get(CLIENT_KEY)),
        client_capabilities=cast(Mapping[str, Any], capabilities),
        meta=meta,
        user_agent=_user_agent(transport),
        address=transport.address,
        cancellation=transport.cancellation,
        early=transport.early,
        passes_on=transport.passes_on,
        states=served.states,
        wants_progress=PROGRESS_KEY in meta and progress_token(meta) is not None,
    )
    if isinstance(params, p.CallTool):
        check_marked(served, params, request, transport)
    return request


def check_marked(
    served: ServedServer, params: p.CallTool, request: McpRequest, transport: TransportContext
) -> None:
    """Compare the arguments that headers repeat. Raises: RpcError HEADER_MISMATCH."""
    if transport.headers is None:
        return
    marked = served.marked_arguments(request, params.name)
    if marked:
        headers.check_parameters(transport.headers, marked, params.given)


def _open_in_session(
    served: ServedServer, message: Message, params: p.Params, transport: TransportContext
) -> McpRequest:
    session = transport.session
    if message.method == "ping" and (session is None or session.revision is None):
        # Clients ask whether a server is there before they shake hands.
        policy = served.settings.revisions
        if set(policy.accepted) - set(MODERN):
            name = negotiate(policy, None).name
            return _open_alone(served, name, message, params, transport)
    if session is None:
        if served.settings.without_session is not None:
            return _open_alone(served, served.settings.without_session, message, params, transport)
        raise RpcError(
            INVALID_REQUEST, "Missing Mcp-Session-Id: the first request must be initialize",
            status=400,
        )  # fmt: skip
    revision = session.revision
    if revision is None:
        raise RpcError(INVALID_REQUEST, "The first request must be initialize", status=400)
    if transport.headers is not None:
        named = transport.headers.get(b"mcp-protocol-version")
        if named is not None and named != revision.name.encode():
            raise RpcError(
                INVALID_REQUEST, f"MCP-Protocol-Version must be {revision.name}", status=400
            )
    if not session.ready and served.settings.strict_lifecycle and message.method != "ping":
        raise RpcError(
            INVALID_REQUEST, "Send notifications/initialized before other requests", status=400
        )
    meta = params.meta or NOTHING
    return McpRequest(
        actor=transport.actor,
        wire=revision,
        sender=transport.sender,
        id=message.id or jsonrpc.NO_ID,
        client=session.client,
        client_capabilities=session.capabilities,
        meta=meta,
        user_agent=_user_agent(transport),
        address=transport.address,
        session=session,
        state=session.state,
        state_id=session.state.id,
        wants_progress=PROGRESS_KEY in meta and progress_token(meta) is not None,
        cancellation=transport.cancellation,
        early=transport.early,
        passes_on=transport.passes_on,
        closer=transport.closer,
        body=transport.body,
    )


def _open_alone(
    served: ServedServer,
    revision: str,
    message: Message,
    params: p.Params,
    transport: TransportContext,
) -> McpRequest:
    """A request of the handshake era from a client that has not shaken hands."""
    meta = params.meta or NOTHING
    return McpRequest(
        actor=transport.actor,
        wire=REVISIONS[revision],
        sender=transport.sender,
        id=message.id or jsonrpc.NO_ID,
        client=UNKNOWN_CLIENT,
        meta=meta,
        user_agent=_user_agent(transport),
        address=transport.address,
        wants_progress=PROGRESS_KEY in meta and progress_token(meta) is not None,
        cancellation=transport.cancellation,
        early=transport.early,
        passes_on=transport.passes_on,
        closer=transport.closer,
        body=transport.body,
    )


def _open_before_handshake(
    served: ServedServer,
    revision: str,
    message: Message,
    params: p.Params,
    transport: TransportContext,
) -> McpRequest:
    """A request for a method of the server's own, which needs no handshake. What it keeps belongs
    to the connection's session, or over HTTP to a state under a handle."""
    request = _open_alone(served, revision, message, params, transport)
    session = transport.session
    if session is None:
        request.states = served.states
        return request
    request.session = session
    request.state, request.state_id = session.state, session.state.id
    return request


def _user_agent(transport: TransportContext) -> str:
    if transport.headers is None:
        return ""
    return transport.headers.get(b"user-agent", b"").decode("latin-1")


def _read_client(given: Any) -> Info:
    if given is None:
        return UNKNOWN_CLIENT
    try:
        return convert_value(given, Info)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"_meta {CLIENT_KEY}: {error}", status=400) from None
