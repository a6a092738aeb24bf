"""The schemas of all tools of all surfaces, by the strictest rules that clients and vendors of
models are known to have: what one of them refuses or drops is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.surface_gateway import SqliteGate
from tidegate.config.model import Config
from tidegate.protocol.model import Tool
from tidegate.surfaces.registry import SURFACES, open_surface

ALL = Config(surface={name: {"extended": True} for name in ("workbench", "cloud")})
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,49}")
MOST_DESCRIPTION = 1_024
KNOWN = {"type", "description", "properties", "required", "items", "enum", "anyOf", "default"}
"""What all of them read, and what those that do not read it leave out without harm."""
HARMLESS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "title"}
PLAIN = {"string", "integer", "number", "boolean", "null"}
UNIONS = {
    # Values of a database: a document's parameter of a query, or of a condition.
    "jdbc.record.parameters[]": "a value of a column, or one with its type",
    "jdbc.record.parameterSets[][]": "the same",
    "postgres.similarity_search.filter[].value": "a value of a column, or several of them",
    "postgres.similarity_search.filter[].value|[]": "the same",
    "workbench.browse_table.filters[].value": "a value of a column",
    "workbench.browse_table.filters[].second_value": "the same",
    "workbench.count_rows.filters[].value": "the same",
    "workbench.count_rows.filters[].second_value": "the same",
    "workbench.insert_rows.rows[][]": "the same",
}
"""Where a union is, and why. The documents in which the surfaces are defined have none: these are
parameters beyond them that take any value of a database (decision 82)."""


def tools_of(name: str, folder: Path) -> list[Tool]:
    gate = SqliteGate(folder)
    variants = [None, *(variant.name for variant in SURFACES[name].variants)]
    surfaces = [open_surface(name, gate, ALL, variant=variant) for variant in variants]
    return [
        tool
        for surface in surfaces
        for shows_app in (False, True)
        for tool in surface.listed_tools(shows_app=shows_app)
    ]


def faults(schema: Mapping[str, Any], place: str) -> Iterator[str]:
    """Each breach of the rules in a schema and in what it is made of."""
    unknown = set(schema) - KNOWN - HARMLESS
    if unknown:
        yield f"{place}: {sorted(unknown)}"
    if len(schema.get("description", "")) >= MOST_DESCRIPTION:
        yield f"{place}: the description is too long"
    if "anyOf" in schema:
        if place not in UNIONS:
            yield f"{place}: a union"
        for member in schema["anyOf"]:
            yield from faults(member, f"{place}|")
        return
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in PLAIN | {"array", "object"}:
        yield f"{place}: the type {kind!r}"
    if any(not isinstance(each, str) for each in schema.get("enum", ())):
        yield f"{place}: an enum of no texts"
    if kind == "array":
        if not isinstance(schema.get("items"), Mapping):
            yield f"{place}: an array without items"
        else:
            yield from faults(schema["items"], f"{place}[]")
    if kind == "object":
        properties: Mapping[str, Any] = schema.get("properties", {})
        if set(schema.get("required", ())) - set(properties):
            yield f"{place}: requires what it does not have"
        for name, each in properties.items():
            if not NAME.fullmatch(name):
                yield f"{place}: the name {name!r}"
            yield from faults(each, f"{place}.{name}")


@pytest.mark.parametrize("name", SURFACES)
def test_each_tool_is_one_that_all_clients_and_models_take(name: str, tmp_path: Path) -> None:
    tools = tools_of(name, tmp_path)
    assert tools
    found = [f"{tool.name}: a bad name" for tool in tools if not NAME.fullmatch(tool.name)]
    for tool in tools:
        assert tool.description
        assert len(tool.description) < MOST_DESCRIPTION
        assert tool.input_schema["type"] == "object"
        assert "properties" in tool.input_schema
        found += faults(tool.input_schema, f"{name}.{tool.name}")
    assert found == []


def unions(schema: Mapping[str, Any], place: str) -> Iterator[str]:
    """The places of unions in a schema."""
    if "anyOf" in schema:
        yield place
        for member in schema["anyOf"]:
            yield from unions(member, f"{place}|")
    if "items" in schema:
        yield from unions(schema["items"], f"{place}[]")
    for name, each in schema.get("properties", {}).items():
        yield from unions(each, f"{place}.{name}")


@pytest.mark.parametrize("name", SURFACES)
def test_each_union_that_is_listed_is_there(name: str, tmp_path: Path) -> None:
    there = {
        place
        for tool in tools_of(name, tmp_path)
        for place in unions(tool.input_schema, f"{name}.{tool.name}")
    }
    assert there == {place for place in UNIONS if place.partition(".")[0] == name}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": ["string", "null"]},
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}},
        {"$ref": "#/x"},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "properties": {"1st": {"type": "string"}}},
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "string", "description": "x" * MOST_DESCRIPTION},
    ],
)
def test_what_some_client_refuses_is_found(schema: Mapping[str, Any]) -> None:
    assert list(faults(schema, "x"))
