"""What of a tool's schema a framework for agents does not give to its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]


def losses(listed: Schema, given: Schema, *, all_required: bool = False) -> list[str]:
    """Places where `given`, the form for a model, says less or other than the `listed` schema.

    With `all_required` the form names every property as required, and takes null for those that
    may be left out.
    """
    return list(_losses(listed, _inline(given, given.get("$defs", {})), "$", all_required))


def has_open_object(listed: Schema) -> bool:
    """Whether a schema takes an object of any properties, for which there is no strict form."""
    if listed.get("type") == "object" and not listed.get("properties"):
        return True
    parts = [*listed.get("properties", {}).values(), listed.get("items", {})]
    return any(has_open_object(each) for each in parts if each)


def _inline(schema: Any, shapes: Schema) -> Any:
    """The schema with what its references name in their place."""
    if isinstance(schema, list):
        return [_inline(each, shapes) for each in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    own = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
    return {key: _inline(value, shapes) for key, value in {**shapes.get(name, {}), **own}.items()}


def _losses(listed: Schema, given: Schema, place: str, all_required: bool) -> Iterator[str]:
    wanted, found = _types(listed), _types(given)
    if wanted != found:
        yield f"{place}: {sorted(wanted)} became {sorted(found)}"
        return
    members = _members(given)
    if "enum" in listed and listed["enum"] != members.get("enum"):
        yield f"{place}: enum {listed['enum']!r} became {members.get('enum')!r}"
    # Some forms write bounds of a value behind its description.
    if not str(members.get("description", "")).startswith(listed.get("description", "")):
        yield f"{place}: its description became {members.get('description')!r}"
    properties: Schema = listed.get("properties", {})
    shown: Schema = _members(given).get("properties") or {}
    if set(properties) != set(shown):
        yield f"{place}: properties {sorted(properties)} became {sorted(shown)}"
        return
    required = set(_members(given).get("required") or ())
    expected = set(properties) if all_required else set(listed.get("required", ()))
    if required != expected:
        yield f"{place}: required {sorted(expected)} became {sorted(required)}"
    for name, schema in properties.items():
        yield from _losses(schema, shown[name], f"{place}.{name}", all_required)
    if "items" in listed:
        yield from _losses(listed["items"], _items(given), f"{place}[]", all_required)


def _types(schema: Schema) -> set[str]:
    """The types that a schema takes but null, which an optional property takes in some forms."""
    kinds = schema.get("type")
    types = {str(each) for each in (kinds if isinstance(kinds, list) else [kinds]) if each}
    for member in schema.get("anyOf") or schema.get("any_of") or ():
        types |= _types(member)
    return {each.rpartition(".")[2].lower() for each in types} - {"null"}


def _members(schema: Schema) -> Schema:
    """The schema with what the one member of its union besides null says."""
    union = schema.get("anyOf") or schema.get("any_of") or ()
    real = [each for each in union if _types(each)]
    return {**real[0], **schema} if len(real) == 1 else schema


def _items(schema: Schema) -> Schema:
    for each in (schema, *(schema.get("anyOf") or schema.get("any_of") or ())):
        if each.get("items"):
            return each["items"]
    return {}
