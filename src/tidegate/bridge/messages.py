"""The parts of a message that a bridge needs: kind, id, and the values repeated in HTTP headers.

Messages are forwarded as the bytes that were received. Source: specification, `basic/transports`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from tidegate.errors import TidegateError
from tidegate.protocol.headers import NAMED, as_text, marked_arguments
from tidegate.protocol.jsonrpc import NO_ID, error_frame
from tidegate.typed_values import decode_json, json_decoder

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
REPEATABLE = frozenset(
    {
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
        "tools/list",
    }
)
"""Methods that are safe to send twice. `tools/call` is not one of them, because a tool may change
data, nor is any unknown method."""


class Frame(msgspec.Struct, frozen=True):
    """A message of the host.

    `id` is None for a notification, `ids` has the ids of the requests in a batch. `revision` is set
    for messages of the stateless era only. `cancels` is the id of the request that a
    `notifications/cancelled` is about.
    """

    data: bytes
    id: bytes | None = None
    method: str | None = None
    name: str | None = None
    revision: str | None = None
    ids: tuple[bytes, ...] | None = None
    cancels: bytes | None = None
    arguments: dict[str, Any] = {}

    @property
    def expects_response(self) -> bool:
        """Whether the host waits for a response."""
        return bool(self.ids) or (self.id is not None and self.method is not None)

    @property
    def is_repeatable(self) -> bool:
        return self.ids is None and self.method in REPEATABLE

    def headers(self, header_arguments: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
        """The headers of a message of the stateless era. `header_arguments` has, for each tool,
        the header suffix of each argument that is repeated in a header."""
        if self.revision is None:
            return []
        headers = [("MCP-Protocol-Version", _value(self.revision))]
        if self.method is not None:
            headers.append(("Mcp-Method", _value(self.method)))
        if self.name is not None:
            headers.append(("Mcp-Name", _value(self.name)))
        if self.method == "tools/call":
            for argument, suffix in header_arguments.get(self.name or "", {}).items():
                value = self.arguments.get(argument)
                if value is not None:
                    text = as_text(value)
                    headers.append((f"Mcp-Param-{suffix}", _value(text)))
        return headers


class _Envelope(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _CancelledParams(msgspec.Struct):
    requestId: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_envelope = json_decoder(_Envelope)
_envelopes = json_decoder(list[_Envelope])


def read(line: bytes) -> Frame | None:
    """Parse a line of the host; None if it is not JSON. The server refuses JSON that is not a
    message."""
    try:
        line.decode()
        if line.startswith(b"["):
            return _read_batch(line)
        envelope = _envelope.decode(line)
    except msgspec.ValidationError:
        return Frame(line, ids=())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    method = _text(envelope.method)
    params = _object(envelope.params)
    meta = params.get("_meta")
    revision = _dict(meta).get(VERSION_KEY)
    name = params.get(NAMED.get(method or "", ""))
    cancels = None
    if method == "notifications/cancelled" and envelope.params is not msgspec.UNSET:
        request_id = decode_json(envelope.params, _CancelledParams).requestId
        cancels = None if request_id is msgspec.UNSET else bytes(request_id)
    return Frame(
        line,
        None if envelope.id is msgspec.UNSET else bytes(envelope.id),
        method,
        name if isinstance(name, str) else None,
        revision if isinstance(revision, str) else None,
        cancels=cancels,
        arguments=_dict(params.get("arguments")) if revision is not None else {},
    )


def _read_batch(line: bytes) -> Frame:
    envelopes = _envelopes.decode(line)
    request_id = [
        bytes(envelope.id)
        for envelope in envelopes
        if envelope.id is not msgspec.UNSET and envelope.method is not msgspec.UNSET
    ]
    return Frame(line, ids=tuple(request_id))


def id_of(message: bytes) -> bytes | None:
    """The id of a response; None if the message is not a response."""
    try:
        envelope = _envelope.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if envelope.method is not msgspec.UNSET or envelope.id is msgspec.UNSET:
        return None
    return bytes(envelope.id)


def error_of(body: bytes) -> tuple[int, str, dict[str, Any] | None] | None:
    """(code, message, data) of an error response; None if the body is another message."""
    try:
        error = msgspec.json.decode(body)["error"]
        return int(error["code"]), str(error["message"]), error.get("data")
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
        return None


def result_of(body: bytes) -> dict[str, Any]:
    """The result of a response; empty if there is none."""
    try:
        result = msgspec.json.decode(body)["result"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return {}
    return _dict(result)


def header_arguments(body: bytes) -> dict[str, dict[str, str]]:
    """The arguments of each tool in a `tools/list` result that are repeated in headers."""
    if b"x-mcp-header" not in body:
        return {}
    found: dict[str, dict[str, str]] = {}
    for tool in map(_dict, result_of(body).get("tools", [])):
        name, schema = tool.get("name"), _dict(tool.get("inputSchema"))
        if isinstance(name, str):
            found[name] = marked_arguments(schema)
    return found


def refusal(id: bytes | None, error: TidegateError) -> bytes:
    """An error response to a request; with id None it answers no particular request."""
    text = f"{error.message.rstrip('.')}. {error.hint}" if error.hint else error.message
    data = {"code": error.code.value, "hint": error.hint}
    return error_frame(NO_ID if id is None else id, error.mapping.rpc, text, data)


def on_one_line(message: bytes) -> bytes:
    """The message without line breaks, which JSON allows only between tokens."""
    return message.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in message else message


def _text(raw: msgspec.Raw | msgspec.UnsetType) -> str | None:
    value = None if raw is msgspec.UNSET else msgspec.json.decode(raw)
    return value if isinstance(value, str) else None


def _object(raw: msgspec.Raw | msgspec.UnsetType) -> dict[str, Any]:
    return {} if raw is msgspec.UNSET else _dict(msgspec.json.decode(raw))


def _dict(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _value(text: str) -> str:
    """A header value: the text, or its base64 form if a header cannot hold the text."""
    plain = text.isascii() and text.isprintable() and text.strip() == text
    if plain and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="
