"""Do a client's answers have the shape of what was asked? Pure.

Elicited content is checked against the question's flat schema (`client/elicitation`); sampling and
roots against the parts that a handler relies on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tidegate.protocol.model import INVALID_PARAMS, Ask, RpcError

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
}


def check(key: str, ask: Ask, answer: Any) -> None:
    """Raises: RpcError INVALID_PARAMS naming what is wrong."""
    if not isinstance(answer, Mapping):
        raise _wrong(key, "must be an object")
    fields = cast(Mapping[str, Any], answer)
    if ask.method == "elicitation/create":
        _check_elicitation(key, ask, fields)
    elif ask.method == "roots/list":
        if not isinstance(fields.get("roots"), list):
            raise _wrong(key, "has no list of roots")
    elif "content" not in fields or fields.get("role") not in ("user", "assistant"):
        raise _wrong(key, "has no role and content")


def _check_elicitation(key: str, ask: Ask, answer: Mapping[str, Any]) -> None:
    action = answer.get("action")
    if action not in ("accept", "decline", "cancel"):
        wrong = _wrong(key, "action must be accept, decline or cancel")
        wrong.data = {"action": str(action)[:80]}
        raise wrong
    schema: Mapping[str, Any] | None = ask.params.get("requestedSchema")
    if action != "accept" or schema is None:
        return
    given: Any = answer.get("content")
    if given is None and not schema.get("properties"):
        return  # a form without fields asks for consent alone
    if not isinstance(given, Mapping):
        raise _wrong(key, "content must be an object")
    values = cast(Mapping[str, Any], given)
    for name in schema.get("required", ()):
        if name not in values:
            raise _wrong(key, f"content lacks {name}")
    for name, field in schema.get("properties", {}).items():
        if name in values:
            _check_field(key, name, field, values[name])


def _check_field(key: str, name: str, field: Mapping[str, Any], value: Any) -> None:
    kinds = _TYPES.get(field.get("type", ""))
    if kinds is None:
        return
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _wrong(key, f"content.{name} must be of type {field['type']}")
    choices = _choices(field)
    if choices is None:
        return
    picked = cast(list[Any], value) if isinstance(value, list) else [value]
    if any(choice not in choices for choice in picked):
        raise _wrong(key, f"content.{name} is not one of the choices")


def _choices(field: Mapping[str, Any]) -> list[Any] | None:
    if field.get("type") == "array":
        field = field.get("items", {})
    if "enum" in field:
        return list(field["enum"])
    titled = field.get("oneOf") or field.get("anyOf")
    return [choice.get("const") for choice in titled] if titled else None


def _wrong(key: str, what: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"The answer to {key!r} {what}")
