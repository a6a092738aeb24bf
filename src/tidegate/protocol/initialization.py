"""The handshake era: `initialize`, notifications, and the client's answers to our questions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from tidegate.protocol import jsonrpc, render
from tidegate.protocol import params as p
from tidegate.protocol.jsonrpc import Message
from tidegate.protocol.model import INVALID_PARAMS, INVALID_REQUEST, Info, RpcError
from tidegate.protocol.revisions import REVISIONS, Revision, negotiate
from tidegate.protocol.served_server import ServedServer
from tidegate.protocol.session import Session
from tidegate.protocol.session_ids import Agreed
from tidegate.protocol.sessions import Sessions
from tidegate.protocol.subscriptions import follow
from tidegate.protocol.transport import Answer, TransportContext

MOST_ABOUT_CLIENT = 8_192
"""Bytes of the parameters of `initialize`, which are kept as long as the session."""


def initialize(
    served: ServedServer, sessions: Sessions, message: Message, transport: TransportContext
) -> Answer:
    """Initialize the client's session, or open a new one, and agree on a revision.

    Raises: RpcError INVALID_REQUEST if it is open already, INVALID_PARAMS.
    """
    session = transport.session
    if session is not None and session.revision is not None:
        raise RpcError(INVALID_REQUEST, "The session is initialized already", status=400)
    if message.params is not None and len(message.params) > MOST_ABOUT_CLIENT:
        raise RpcError(
            INVALID_PARAMS,
            f"Invalid params: initialize takes {MOST_ABOUT_CLIENT} bytes",
            status=400,
        )
    params = p.read(p.Initialize, message.params)
    document = served.settings.document_lifecycle
    if params.capabilities is None and not document:
        raise RpcError(
            INVALID_PARAMS,
            "Invalid params: Expected `object`, got `null` - at `$.capabilities`",
            status=400,
        )
    if params.protocol_version is None and (document or served.settings.revisions.fallback is None):
        raise RpcError(
            INVALID_PARAMS,
            "Invalid params: Object missing required field `protocolVersion`",
            status=400,
        )
    if session is None:
        session = transport.session = sessions.open(transport.actor)
    server = served.server
    revision = _with_newer_fields(
        served, negotiate(served.settings.revisions, params.protocol_version)
    )
    session.revision = revision
    session.client = params.client_info
    session.capabilities = params.capabilities or {}
    sessions.name(session)
    follow(served, session)
    info = server.info
    fields: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": render.capabilities(
            served.capabilities_for(session.capabilities), revision
        ),
        "serverInfo": info if revision.titles else Info(info.name, info.version),
    }
    if server.instructions is not None:
        fields["instructions"] = server.instructions
    return Answer(jsonrpc.result_frame(message.id or jsonrpc.NO_ID, jsonrpc.encode(fields)))


def restore(served: ServedServer, session: Session, agreed: Agreed) -> None:
    """Make of a new session the one that began elsewhere as its id says."""
    session.revision = _with_newer_fields(served, REVISIONS[agreed.revision])
    session.client = agreed.client
    session.capabilities = agreed.capabilities
    follow(served, session)


def _with_newer_fields(served: ServedServer, revision: Revision) -> Revision:
    """The revision, with what a newer one has where the server's settings send that, too."""
    if served.settings.newer_fields and revision.annotations:
        return structs.replace(revision, titles=True, structured=True)
    return revision


def on_notification(message: Message, transport: TransportContext) -> None:
    """Take a notification; unknown ones are ignored, as JSON-RPC says."""
    session = transport.session
    if session is None:
        return
    if message.method == "notifications/initialized":
        session.ready = session.revision is not None
    elif message.method == "notifications/cancelled":
        try:
            cancelled = p.read(p.Cancelled, message.params)
        except RpcError:
            return
        id, reason = bytes(cancelled.request_id), cancelled.reason or "cancelled by the client"
        if not session.cancel(id, reason):
            session.tell_others("cancel", id, reason.encode("utf-8", "replace"))


def on_response(message: Message, transport: TransportContext) -> None:
    """Take the client's answer to a request of ours."""
    session = transport.session
    if session is None or message.id is None:
        return
    result, error = None, "it answered with an error"
    if message.result is not None:
        try:
            result, error = msgspec.json.decode(message.result, type=dict[str, Any]), None
        except msgspec.ValidationError:
            error = "its result is not an object"
    if not session.accept(message.id, result, error):
        kind, body = (
            ("failed", error.encode()) if error else ("answer", bytes(message.result or b""))
        )
        session.tell_others(kind, message.id, body)
