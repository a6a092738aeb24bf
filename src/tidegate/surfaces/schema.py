"""Writes the JSON Schema of an argument or output struct, inline and without `$ref`.

Clients and vendors of models refuse or silently drop what is less common, so that a node has one
`type`, an array has `items`, and what may have several types is an `anyOf` of them.

Only the types that surfaces use; anything else is a programming error and raises TypeError. Rules
on values (clamps, formats) belong to the tools: a schema describes shapes, it does not enforce.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import inspect

VALUE: dict[str, Any] = {
    "anyOf": [{"type": kind} for kind in ("string", "integer", "number", "boolean", "null")]
}
"""A value of a database as JSON writes it."""

_PLAIN: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
}


def schema_of(struct: type[msgspec.Struct], *, nullable: bool = True) -> dict[str, Any]:
    """The schema of `struct`.

    With `nullable` False, a field that may be left out is not shown to take null as well: null is
    then tolerated but not advertised, which keeps argument schemas short.
    """
    return _shape(inspect.type_info(struct), nullable)


def _object(info: inspect.StructType, nullable: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for field in info.fields:
        shape = _shape(field.type, nullable, optional=not field.required)
        if isinstance(field.default, str | int):
            shape["default"] = field.default
        properties[field.encode_name] = shape
        if field.required:
            required.append(field.encode_name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def _shape(kind: inspect.Type, nullable: bool, *, optional: bool = False) -> dict[str, Any]:
    if isinstance(kind, inspect.Metadata):
        extra = cast(dict[str, Any] | None, kind.extra_json_schema)  # pyright: ignore[reportUnknownMemberType] # msgspec leaves the dict bare
        if extra and "type" in extra:
            return extra  # it advertises one of the types that are taken
        inner = {} if isinstance(kind.type, inspect.RawType) else _shape(kind.type, nullable)
        return inner | (extra or {})
    plain = _PLAIN.get(type(kind))
    if plain is not None:
        return {"type": plain}
    if isinstance(kind, inspect.LiteralType):
        return {"type": "string", "enum": list(kind.values)}
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return {"type": "array", "items": _shape(kind.item_type, nullable)}
    if isinstance(kind, inspect.StructType):
        return _object(kind, nullable)
    if isinstance(kind, inspect.UnionType):
        return _union(kind, nullable or not optional)
    raise TypeError(f"no schema for {kind!r}")


def _union(kind: inspect.UnionType, nullable: bool) -> dict[str, Any]:
    shapes = [
        _shape(member, nullable)
        for member in kind.types
        if nullable or not isinstance(member, inspect.NoneType)
    ]
    if len(shapes) == 1:
        return shapes[0]
    return {"anyOf": shapes}
