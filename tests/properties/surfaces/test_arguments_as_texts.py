"""Arguments of every tool of every surface, in forms that clients send them in: as texts of JSON
where the schema admits no text, empty or null where they are optional. They mean the same, and a
text where the schema admits one stays that text.

Arguments of `datalog` that take any value may be EDN in a text, so that its surface reads them
itself (`tests/products/datalog/contract/test_argument_texts.py`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from support.surface_gateway import SqliteGate
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.arguments import convert
from tidegate.surfaces.registry import SURFACES, open_surface

Schema = Mapping[str, Any]
TEXTS = ("5", "0", "1.5", "true", "[1]", '["t"]', '{"a": "b"}', '"x"', "SELECT '[1]'", "t", " ")
"""Texts of which many are JSON. Those that are words for nothing are left to the unit tests."""
"""No tool list depends on its caller."""
READ_FROM_TEXT = {"integer", "number", "boolean", "array", "object"}


class Listed(NamedTuple):
    """A tool, and the schema of its arguments as clients see it."""

    tool: SurfaceTool
    schema: Schema

    @property
    def needed(self) -> Schema:
        """The schema of the arguments that must be given."""
        required: list[str] = list(self.schema.get("required", ()))
        properties = {name: self.schema["properties"][name] for name in required}
        return {"type": "object", "properties": properties, "required": required}

    @property
    def optional(self) -> dict[str, Schema]:
        required = self.schema.get("required", ())
        return {n: each for n, each in self.schema["properties"].items() if n not in required}


@cache
def tools_of(name: str) -> list[Listed]:
    """Every tool of a surface."""
    extended = [name for name in SURFACES if SURFACES[name].extended]
    everything = Config(surface={each: {"extended": True} for each in extended})
    surface = open_surface(name, SqliteGate(Path(tempfile.mkdtemp())), everything)
    listed = {tool.name: tool.input_schema for tool in surface.listed_tools()}
    return [Listed(tool, listed[tool.name]) for tool in surface.tools_by_name.values()]


def values(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that the schema admits."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([values(each) for each in schema["anyOf"]])
    match schema["type"]:
        case "string":
            return st.sampled_from(TEXTS)
        case "integer":
            least, most = schema.get("minimum", -9), schema.get("maximum", 2**40)
            return st.integers(least, most)
        case "number":
            return st.floats(schema.get("minimum", -9), schema.get("maximum", 9), width=32)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            return st.lists(values(schema["items"]), min_size=schema.get("minItems", 0), max_size=3)
        case _:
            return objects(schema)


def objects(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    properties: Schema = schema.get("properties", {})
    if not properties and "required" not in schema:
        return st.dictionaries(st.sampled_from("ab"), st.sampled_from(TEXTS), max_size=2)
    required = set(schema.get("required", ()))
    needed = {name: values(each) for name, each in properties.items() if name in required}
    others = {name: values(each) for name, each in properties.items() if name not in required}
    return st.fixed_dictionaries(needed, optional=others)


def as_texts(value: Any, schema: Schema, draw: st.DrawFn) -> Any:
    """The value with some of its parts as texts of JSON, where the schema admits no text."""
    if "anyOf" in schema:
        return value  # a value of a database, which a text may be
    if isinstance(value, list):
        value = [as_texts(each, schema["items"], draw) for each in value]
    properties: Schema = schema.get("properties", {})
    if isinstance(value, dict):
        value = {
            name: as_texts(each, properties[name], draw) if name in properties else each
            for name, each in value.items()
        }
    if schema.get("type") in READ_FROM_TEXT and draw(st.booleans()):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    return value


def takes_anything(kind: inspect.Type) -> bool:
    """Whether a parameter, or its items, have no type in the code."""
    if isinstance(kind, inspect.Metadata):
        return takes_anything(kind.type)
    if isinstance(kind, inspect.UnionType):
        return any(map(takes_anything, kind.types))
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return takes_anything(kind.item_type)
    return isinstance(kind, inspect.AnyType)


def untyped(tool: SurfaceTool) -> set[str]:
    kind = inspect.type_info(tool.args)
    assert isinstance(kind, inspect.StructType)
    return {field.encode_name for field in kind.fields if takes_anything(field.type)}


def converted(tool: SurfaceTool, arguments: dict[str, Any]) -> Any:
    """What the tool gets, or the parameter that is refused: not every limit is listed."""
    try:
        return msgspec.to_builtins(convert(arguments, tool.args), str_keys=True)
    except TidegateError as error:
        return "refused", error.details


@pytest.mark.parametrize("name", SURFACES)
@settings(max_examples=250, deadline=None)
@given(data=st.data())
def test_arguments_as_texts_mean_what_they_hold(name: str, data: st.DataObject) -> None:
    tool, schema = data.draw(st.sampled_from(tools_of(name)))
    if not schema["properties"]:
        return
    arguments = data.draw(objects(schema))
    sent = {
        each: value
        if each in untyped(tool)
        else as_texts(value, schema["properties"][each], data.draw)
        for each, value in arguments.items()
    }
    assert converted(tool, sent) == converted(tool, arguments)


@pytest.mark.parametrize("name", SURFACES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_text_stays_where_one_is_admitted(name: str, data: st.DataObject) -> None:
    tool, schema = listed = data.draw(st.sampled_from(tools_of(name)))
    texts = {
        each: inner
        for each, inner in schema["properties"].items()
        if inner.get("type") == "string" or "anyOf" in inner
    }
    needed = listed.needed
    arguments = data.draw(objects({**needed, "properties": {**needed["properties"], **texts}}))
    try:
        plain = msgspec.to_builtins(msgspec.convert(arguments, tool.args), str_keys=True)
    except msgspec.ValidationError:  # a limit that is not listed
        return
    assert converted(tool, arguments) == plain


@pytest.mark.parametrize("name", SURFACES)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_null_and_an_empty_text_that_is_no_value_are_absence(
    name: str, data: st.DataObject
) -> None:
    listed = data.draw(st.sampled_from(tools_of(name)))
    arguments = data.draw(objects(listed.needed))
    alone = converted(listed.tool, arguments)
    for each, schema in listed.optional.items():
        assert converted(listed.tool, {**arguments, each: None}) == alone
        read = schema.get("type") in READ_FROM_TEXT and each not in untyped(listed.tool)
        if read or "enum" in schema:
            assert converted(listed.tool, {**arguments, each: ""}) == alone
