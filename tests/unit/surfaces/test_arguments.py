"""Arguments are taken strictly, schemas are derived from them, and what is wrong is named."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from tidegate.errors import Code, TidegateError
from tidegate.surfaces.arguments import convert
from tidegate.surfaces.schema import schema_of


class Asked(msgspec.Struct, frozen=True):
    sql: Annotated[str, Meta(description="One statement")]
    rows: Annotated[int, Meta(ge=1)] | None = None
    how: Literal["a", "b"] = "a"
    names: list[str] = []


class Strict(Asked, frozen=True, forbid_unknown_fields=True):
    pass


class Records(msgspec.Struct, frozen=True):
    rows: Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "array"})]
    parts: tuple[Asked, ...]
    cell: str | None
    note: str | UnsetType = UNSET


@pytest.mark.parametrize(
    ("arguments", "parameter", "problem"),
    [
        ({}, "sql", "missing"),
        ({"sql": None}, "sql", "missing"),
        ({"sql": 1}, "sql", "type"),
        ({"sql": "", "rows": "5"}, "rows", "type"),
        ({"sql": "", "rows": True}, "rows", "type"),
        ({"sql": "", "rows": 0}, "rows", "type"),
        ({"sql": "", "how": "c"}, "how", "type"),
        ({"sql": "", "names": ["a", 1]}, "names", "type"),
        ({"sql": "", "limit": 1}, "limit", "unknown"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], parameter: str, problem: str) -> None:
    with pytest.raises(TidegateError) as caught:
        convert(arguments, Strict)
    error = caught.value
    assert error.code is Code.ARGUMENT_INVALID
    assert (error.details["parameter"], error.details["problem"]) == (parameter, problem)
    assert parameter in error.message


def test_unknown_arguments_pass_where_the_document_ignores_them() -> None:
    assert convert({"sql": "x", "limit": 1}, Asked) == Asked("x")


def test_null_stands_for_an_argument_left_out() -> None:
    assert convert({"sql": "x", "rows": None}, Asked) == Asked("x")


def test_an_argument_schema_shows_no_null_and_requires_what_has_no_default() -> None:
    assert schema_of(Asked, nullable=False) == {
        "type": "object",
        "properties": {
            "sql": {"type": "string", "description": "One statement"},
            "rows": {"type": "integer"},
            "how": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "names": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["sql"],
    }


def test_an_output_schema_is_inline_and_shows_null() -> None:
    schema = schema_of(Records)
    assert schema["properties"]["rows"] == {"type": "array"}
    assert schema["properties"]["cell"] == {"type": ["string", "null"]}
    assert schema["properties"]["parts"]["items"]["required"] == ["sql"]
    assert schema["required"] == ["rows", "parts", "cell"]
    assert "$ref" not in msgspec.json.encode(schema).decode()


def test_a_type_without_a_schema_is_a_programming_error() -> None:
    class Odd(msgspec.Struct):
        at: set[int]

    with pytest.raises(TypeError):
        schema_of(Odd)
