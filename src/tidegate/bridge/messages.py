"""What a bridge must know of a message to carry it: its kind, its id, and what HTTP repeats of it.

Messages are carried as the bytes they came in. Source: specification, `basic/transports`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from tidegate.errors import TidegateError
from tidegate.protocol.headers import NAMED, as_text, marked_arguments
from tidegate.protocol.jsonrpc import NO_ID, error_frame

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
"""Methods that change nothing a second time. A tool may change something: `tools/call` is not
here, nor is what we do not know."""


class Frame(msgspec.Struct, frozen=True):
    """A message of the host. `id` None is a notification or a response; `ids` has those of a
    batch's requests. `revision` is named by messages of the stateless era alone."""

    data: bytes
    id: bytes | None = None
    method: str | None = None
    name: str | None = None
    revision: str | None = None
    ids: tuple[bytes, ...] | None = None
    withdraws: bytes | None = None
    arguments: dict[str, Any] = {}

    @property
    def is_asking(self) -> bool:
        """Whether an answer is owed."""
        return bool(self.ids) or (self.id is not None and self.method is not None)

    @property
    def is_repeatable(self) -> bool:
        return self.ids is None and self.method in REPEATABLE

    def headers(self, marked: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
        """What a message of the stateless era repeats in headers; `marked` has the arguments of
        each tool that do."""
        if self.revision is None:
            return []
        told = [("MCP-Protocol-Version", _value(self.revision))]
        if self.method is not None:
            told.append(("Mcp-Method", _value(self.method)))
        if self.name is not None:
            told.append(("Mcp-Name", _value(self.name)))
        if self.method == "tools/call":
            for argument, suffix in marked.get(self.name or "", {}).items():
                value = self.arguments.get(argument)
                if value is not None:
                    text = as_text(value)
                    told.append((f"Mcp-Param-{suffix}", _value(text)))
        return told


class _Head(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Withdrawn(msgspec.Struct):
    requestId: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_head = msgspec.json.Decoder(_Head)
_heads = msgspec.json.Decoder(list[_Head])


def read(line: bytes) -> Frame | None:
    """A line of the host; None if it is not JSON. What is JSON and no message is for the server
    to refuse."""
    try:
        line.decode()
        if line.startswith(b"["):
            return _read_batch(line)
        head = _head.decode(line)
    except msgspec.ValidationError:
        return Frame(line, ids=())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    method = _text(head.method)
    params = _object(head.params)
    meta = params.get("_meta")
    revision = _dict(meta).get(VERSION_KEY)
    name = params.get(NAMED.get(method or "", ""))
    withdraws = None
    if method == "notifications/cancelled" and head.params is not msgspec.UNSET:
        asked = msgspec.json.decode(head.params, type=_Withdrawn).requestId
        withdraws = None if asked is msgspec.UNSET else bytes(asked)
    return Frame(
        line,
        None if head.id is msgspec.UNSET else bytes(head.id),
        method,
        name if isinstance(name, str) else None,
        revision if isinstance(revision, str) else None,
        withdraws=withdraws,
        arguments=_dict(params.get("arguments")) if revision is not None else {},
    )


def _read_batch(line: bytes) -> Frame:
    heads = _heads.decode(line)
    asked = [
        bytes(head.id)
        for head in heads
        if head.id is not msgspec.UNSET and head.method is not msgspec.UNSET
    ]
    return Frame(line, ids=tuple(asked))


def id_of(message: bytes) -> bytes | None:
    """The id that a message of the server answers; None if it answers none."""
    try:
        head = _head.decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if head.method is not msgspec.UNSET or head.id is msgspec.UNSET:
        return None
    return bytes(head.id)


def error_of(body: bytes) -> tuple[int, str, dict[str, Any] | None] | None:
    """(code, message, data) of an error of the server; None if the body holds none."""
    try:
        error = msgspec.json.decode(body)["error"]
        return int(error["code"]), str(error["message"]), error.get("data")
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError):
        return None


def result_of(body: bytes) -> dict[str, Any]:
    """The result of an answer, empty if there is none."""
    try:
        result = msgspec.json.decode(body)["result"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return {}
    return _dict(result)


def marks_of(body: bytes) -> dict[str, dict[str, str]]:
    """Of each listed tool the arguments that are repeated in headers."""
    if b"x-mcp-header" not in body:
        return {}
    marks: dict[str, dict[str, str]] = {}
    for tool in map(_dict, result_of(body).get("tools", [])):
        name, schema = tool.get("name"), _dict(tool.get("inputSchema"))
        if isinstance(name, str):
            marks[name] = marked_arguments(schema)
    return marks


def refusal(id: bytes | None, error: TidegateError) -> bytes:
    """A coded error as the answer to a request; with id None it answers none in particular."""
    text = f"{error.message.rstrip('.')}. {error.hint}" if error.hint else error.message
    data = {"code": error.code.value, "hint": error.hint}
    return error_frame(NO_ID if id is None else id, error.fate.rpc, text, data)


def flat(message: bytes) -> bytes:
    """The message on one line: a line break in JSON is between its words."""
    return message.replace(b"\r", b" ").replace(b"\n", b" ") if b"\n" in message else message


def _text(raw: msgspec.Raw | msgspec.UnsetType) -> str | None:
    value = None if raw is msgspec.UNSET else msgspec.json.decode(raw)
    return value if isinstance(value, str) else None


def _object(raw: msgspec.Raw | msgspec.UnsetType) -> dict[str, Any]:
    return {} if raw is msgspec.UNSET else _dict(msgspec.json.decode(raw))


def _dict(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _value(text: str) -> str:
    """A header's value: as it is, or in base64 where a header cannot hold it."""
    plain = text.isascii() and text.isprintable() and text.strip() == text
    if plain and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="
