"""Arguments are taken strictly, schemas are derived from them, and what is wrong is named."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from tidegate.errors import Code, TidegateError
from tidegate.surfaces.arguments import EMPTY_COUNTS, NO_WORDS, NO_ZERO, convert
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
        ({"sql": "", "rows": "five"}, "rows", "type"),
        ({"sql": "", "rows": '"5"'}, "rows", "type"),
        ({"sql": "", "rows": "5.5"}, "rows", "type"),
        ({"sql": "", "rows": "[5]"}, "rows", "type"),
        ({"sql": "", "rows": True}, "rows", "type"),
        ({"sql": "", "rows": "-1"}, "rows", "type"),
        ({"sql": "", "how": "c"}, "how", "type"),
        ({"sql": "", "names": ["a", 1]}, "names", "type"),
        ({"sql": "", "names": "a"}, "names", "type"),
        ({"sql": "", "names": "[1]"}, "names", "type"),
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
    assert schema["properties"]["cell"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert schema["properties"]["parts"]["items"]["required"] == ["sql"]
    assert schema["required"] == ["rows", "parts", "cell"]
    assert "$ref" not in msgspec.json.encode(schema).decode()


def test_a_type_without_a_schema_is_a_programming_error() -> None:
    class Odd(msgspec.Struct):
        at: set[int]

    with pytest.raises(TypeError):
        schema_of(Odd)


class Nested(msgspec.Struct, frozen=True):
    column: str
    value: str | int | float | bool | None = None
    exact: bool = True


class Wide(msgspec.Struct, frozen=True):
    text: str
    source: str | None = None
    password: Annotated[str, Meta(extra=EMPTY_COUNTS)] | None = None
    limit: Annotated[int, Meta(extra=NO_ZERO)] = 20
    offset: int = 0
    share: float = 0.5
    exact: bool = False
    filters: tuple[Nested, ...] = ()
    values: list[Any] | None = None
    rows: list[list[int]] | None = None
    how: Literal["a", "b"] = "a"
    name: str | dict[str, Any] | UnsetType = UNSET
    fact: Any = UNSET
    of_facts: Annotated[Any, Meta(extra=NO_WORDS)] | UnsetType = UNSET
    topics: Annotated[
        str | list[str], Meta(extra_json_schema={"type": "array", "items": {"type": "string"}})
    ] = ""


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"limit": "5"}, {"limit": 5}),
        ({"limit": "5.0"}, {"limit": 5}),
        ({"share": "0.25"}, {"share": 0.25}),
        ({"exact": "true"}, {"exact": True}),
        ({"exact": "False"}, {"exact": False}),
        ({"rows": "[[1], [2]]"}, {"rows": [[1], [2]]}),
        ({"rows": ["[1]", ["2", 3.0]]}, {"rows": [[1], [2, 3]]}),
        ({"values": '[1, "1", null]'}, {"values": [1, "1", None]}),
        (
            {"filters": '[{"column": "c", "value": "5", "exact": "false"}]'},
            {"filters": [{"column": "c", "value": "5", "exact": False}]},
        ),
        ({"filters": ['{"column": "c"}']}, {"filters": [{"column": "c"}]}),
        ({"topics": '["a", "b"]'}, {"topics": ["a", "b"]}),
        ({"topics": "5"}, {"topics": "5"}),
        # Never inside a statement or a value.
        ({"text": "[1]"}, {"text": "[1]"}),
        ({"values": ["5", "true", "[1]"]}, {"values": ["5", "true", "[1]"]}),
        ({"fact": "5"}, {"fact": "5"}),
        ({"source": "5"}, {"source": "5"}),
    ],
)
def test_a_text_is_read_as_json_where_no_text_is_taken(
    sent: dict[str, Any], meant: dict[str, Any]
) -> None:
    assert convert({"text": "x"} | sent, Wide) == msgspec.convert({"text": "x"} | meant, Wide)


@pytest.mark.parametrize(
    "sent",
    [
        *({name: None} for name in Wide.__struct_fields__ if name != "text"),
        *({name: ""} for name in ("source", "limit", "offset", "share", "exact", "filters")),
        *({name: ""} for name in ("values", "rows", "how", "name")),
        {"limit": 0},
        {"limit": "0"},
        {"limit": "null"},
        {"limit": "None"},
        {"exact": "undefined"},
        {"how": "null"},
        {"of_facts": ""},
        {"of_facts": "null"},
    ],
)
def test_null_and_what_is_empty_and_no_value_are_not_given(sent: dict[str, Any]) -> None:
    assert convert({"text": "x"} | sent, Wide) == Wide("x")


@pytest.mark.parametrize(
    "sent",
    [{"text": ""}, {"text": "x", "password": ""}, {"text": "x", "offset": 0}]
    + [{"text": "x", "fact": value} for value in ("", "null", 0, False)]
    + [{"text": "x", "source": "null"}, {"text": "x", "of_facts": 0}]
    + [{"text": "x", "filters": [{"column": "", "value": value}]} for value in ("", 0, False)],
)
def test_what_is_empty_and_a_value_is_kept(sent: dict[str, Any]) -> None:
    assert convert(sent, Wide) == msgspec.convert(sent, Wide)


def test_a_value_that_is_no_choice_is_answered_with_the_choices() -> None:
    with pytest.raises(TidegateError, match="choose from a, b"):
        convert({"text": "x", "how": "c"}, Wide)
