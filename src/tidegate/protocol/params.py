"""The parameters of each method, as the schemas of all revisions together define them."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from tidegate.protocol.model import INVALID_PARAMS, Info, RpcError
from tidegate.typed_values import decode_json


class Params(msgspec.Struct, rename="camel"):
    """What every request may carry."""

    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class Answered(Params, kw_only=True):
    """A request that may be a retry with answers (2026-07-28)."""

    input_responses: dict[str, Any] | None = None
    request_state: str | None = None


class BareParams(Answered, kw_only=True):
    """Parameters of a method that is not part of MCP: `fields` are those that are not ours."""

    fields: Any = None


_OURS = frozenset({"_meta", "inputResponses", "requestState"})


class CallTool(Answered, kw_only=True):
    """Some clients send the arguments as a text of JSON, as models write them."""

    name: str
    arguments: dict[str, Any] | str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The arguments, read. Raises: RpcError INVALID_PARAMS."""
        arguments = self.arguments
        return (_read_object(arguments) if isinstance(arguments, str) else arguments) or {}


class GetPrompt(Answered, kw_only=True):
    name: str
    arguments: dict[str, str | None] | None = None


def _read_object(text: str) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text.strip() else None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        message = "Invalid params: Expected `object`, got `str` - at `$.arguments`"
        raise RpcError(INVALID_PARAMS, message) from None


class ReadResource(Answered, kw_only=True):
    uri: str


class Page(Params, kw_only=True):
    cursor: str | None = None


class Uri(Params, kw_only=True):
    uri: str


class Argument(msgspec.Struct):
    name: str
    value: str


class CompletionContext(msgspec.Struct):
    arguments: dict[str, str] = {}


class Complete(Params, kw_only=True):
    ref: dict[str, Any]
    argument: Argument
    context: CompletionContext | None = None


class SetLevel(Params, kw_only=True):
    level: str


class Initialize(Params, kw_only=True):
    """`protocol_version` is None only where the server has an answer to that, and so are
    `capabilities`."""

    capabilities: dict[str, Any] | None
    client_info: Info
    protocol_version: str | None = None


class TaskId(Params, kw_only=True):
    task_id: str


class UpdateTask(TaskId, kw_only=True):
    input_responses: dict[str, Any] | None = None


class Filter(msgspec.Struct, rename="camel", omit_defaults=True):
    """Which changes a listener wants to be notified of."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []
    task_ids: list[str] = []


class Listen(Params, kw_only=True):
    notifications: Filter


class Cancelled(Params, kw_only=True):
    request_id: msgspec.Raw = msgspec.Raw(b"null")
    reason: str | None = None


LARGE = 65_536
MOST_VALUES = 120_000
"""Values in parameters above `LARGE` bytes: more would delay all clients while they are read.
Commas in texts count as well, since a text may be read as JSON, so a statement of the greatest
length must stay below."""
_SIGNS = (b",", b"[", b"{")
_ESCAPED_SIGNS = (b"u002c", b"u002C", b"u005b", b"u005B", b"u007b", b"u007B")
"""The same in a text, without the backslash, which may be escaped itself in a text of a text."""

P = TypeVar("P", bound=Params)


def read(kind: type[P], raw: msgspec.Raw | None) -> P:
    """Decode parameters. Raises: RpcError INVALID_PARAMS naming the field that is wrong."""
    if raw is not None and len(raw) > LARGE:
        _check_number(bytes(raw))
    try:
        return decode_json(raw if raw is not None else b"{}", kind)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from None


def read_bare(raw: msgspec.Raw | None) -> BareParams:
    """The parameters of a method that is not part of MCP. Raises: RpcError INVALID_PARAMS."""
    params = read(BareParams, raw)
    given: dict[str, Any] = msgspec.json.decode(raw) if raw is not None else {}
    params.fields = {name: value for name, value in given.items() if name not in _OURS}
    return params


def _check_number(text: bytes) -> None:
    found = sum(map(text.count, _SIGNS))
    if found + text.count(b"u00") > MOST_VALUES:  # a bound that costs one search
        found += sum(map(text.count, _ESCAPED_SIGNS))
    if found > MOST_VALUES:
        words = f"more than {MOST_VALUES} values, commas and brackets in texts included"
        raise RpcError(INVALID_PARAMS, f"Invalid params: {words}")
