"""Turns a tool's arguments into its struct, strictly, and names the argument that is wrong.

Forms in which clients send arguments that mean one thing only are taken as what the schema wants.
Frameworks send every parameter that a tool has, with null, an empty text or 0 for those that their
model left out, and arrays, objects, numbers and truth values as texts of JSON. Both is taken where
its meaning is certain: an optional parameter that is null, or empty where that is no value of it,
is not given, and so is one that is a word for nothing where no text is taken; a text is read as
JSON where the schema admits no text. What a statement or a value of a database may be is left as it
is.

Decides no wording of any product: surfaces that have their own read `details` of the error. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect

from tidegate.errors import Code, TidegateError
from tidegate.typed_values import convert_value

EMPTY_COUNTS = {"empty": True}
"""The `extra` of a parameter's `Meta` whose empty text is a value of its own."""
NO_ZERO = {"zero": False}
"""The same where 0 makes no sense and the type does not exclude it, with `ge`."""
NO_WORDS = {"words": False}
"""The same where the type takes anything, and neither an empty text nor one of `_NOTHINGS` is a
value."""

_KINDS: Mapping[type[inspect.Type], str] = {
    inspect.StrType: "text",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
    inspect.LiteralType: "enum",
    inspect.ListType: "array",
    inspect.VarTupleType: "array",
    inspect.StructType: "object",
    inspect.DictType: "object",
}
_TEXTS = frozenset({"text", "enum", "any"})
_ONLY_TEXTS = {str}
_NAMES = frozenset({"text", "object", "null"})
"""The kinds of a parameter whose empty text counts as absent: a name, perhaps in its own form.
What may be a number as well is a value, and an empty text is one."""
_NOTHINGS = frozenset({"null", "none", "undefined"})
"""How programs and models write that there is nothing, where no text is taken."""
_TRUTH = {"true": b"true", "false": b"false"}

ArgsT = TypeVar("ArgsT", bound=msgspec.Struct)

# Compiled by `re` when first used: a run without mistakes does not pay for them.
_MISSING = r"missing required field `([^`]+)`"
_UNKNOWN = r"unknown field `([^`]+)`"
_TYPE = r"\b(str|int|float|bool)\b"
_PLACE = r"(?P<problem>.*) - at `\$\.(?P<name>\w+)(?P<rest>[^`]*)`$"

_JSON_NAMES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
"""The names of the tool's schema for the types that the decoder calls by Python's names."""


def convert(arguments: dict[str, Any], args: type[ArgsT]) -> ArgsT:
    """The arguments as `args`, strictly: a wrong type is refused, never bent. What means the same
    in another form is taken: see above.

    Raises: TidegateError ARGUMENT_INVALID with details `parameter`, `problem` (`missing`, `unknown`
    or `type`; `missing` too for null where a value is required) and `required`.
    """
    fitting = fit(arguments, args)
    try:
        return convert_value(fitting, args)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), fitting, args) from None


def _refusal(text: str, arguments: Mapping[str, Any], args: type[msgspec.Struct]) -> TidegateError:
    if match := re.search(_MISSING, text):
        return wrong_argument(match[1], "missing", "is required")
    if match := re.search(_UNKNOWN, text):
        names = ", ".join(args.__struct_fields__) or "none"
        return wrong_argument(match[1], "unknown", "is unknown", hint=f"Parameters: {names}.")
    if match := re.match(_PLACE, text):
        name, place = match["name"], match["rest"]
        required = any(
            field.required for field in msgspec.structs.fields(args) if field.encode_name == name
        )
        if required and arguments.get(name) is None:
            return wrong_argument(name, "missing", "is required")
        problem = (
            _with_choices(match["problem"], name, place, args)
            .replace("`", "")
            .replace(" | null", "")
        )
        if problem.startswith("Expected"):  # other problems quote what the caller wrote
            problem = re.sub(_TYPE, lambda found: _JSON_NAMES[found[1]], problem)
        what = f"is wrong: {problem[:1].lower()}{problem[1:]}" + (f" at {place}" if place else "")
        return wrong_argument(name, "type", what, required=required)
    return TidegateError(Code.ARGUMENT_INVALID, "The arguments must be one JSON object")


def _with_choices(problem: str, name: str, place: str, args: type[msgspec.Struct]) -> str:
    """The problem, with the values to choose from where another one was given."""
    choices = choices_of(args, name) if problem.startswith("Invalid enum value") else ()
    return f"{problem}; choose from {', '.join(choices)}" if choices and not place else problem


def wrong_argument(
    parameter: str, problem: str, what: str, *, hint: str | None = None, required: bool = True
) -> TidegateError:
    """The refusal of one argument: `what` continues the sentence `Parameter X ...`.

    `problem` is as for `convert`, or `value` where the type is right and the value is not.
    """
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"Parameter {parameter} {what}",
        hint=hint,
        details={"parameter": parameter, "problem": problem, "required": required},
    )


class _Form(msgspec.Struct, frozen=True):
    """What a parameter takes; `item` and `fields` of its arrays and objects, where they are known.
    `least` is the smallest number."""

    kinds: frozenset[str]
    item: _Form | None = None
    fields: Mapping[str, _Field] | None = None
    least: float | None = None
    choices: tuple[str, ...] = ()
    empty_counts: bool = False
    zero_counts: bool = True
    words_count: bool = True
    array_first: bool = False
    """Whether an array is advertised where a text is taken too."""


class _Field(msgspec.Struct, frozen=True):
    form: _Form
    required: bool


def fit(arguments: Mapping[str, Any], args: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The arguments in the form that `args` wants; what does not fit stays as it is."""
    values = arguments.values()
    if (
        _plain_texts(args).issuperset(arguments)
        and {*map(type, values)} == _ONLY_TEXTS
        and all(values)
    ):
        return arguments  # as most calls are
    return _fit_fields(arguments, _fields_of(args))


def choices_of(args: type[msgspec.Struct], name: str) -> tuple[str, ...]:
    """The values of a parameter that takes these only; none for another."""
    field = _fields_of(args).get(name)
    return field.form.choices if field is not None else ()


@cache
def _plain_texts(args: type[msgspec.Struct]) -> frozenset[str]:
    """The parameters of which every text but the empty one stays as it is."""
    plain: set[str] = set()
    for name, field in _fields_of(args).items():
        form = field.form
        if not form.array_first and form.kinds & {"text", "any"} and form.words_count:
            plain.add(name)
    return frozenset(plain)


@cache
def _fields_of(args: type[msgspec.Struct]) -> Mapping[str, _Field]:
    info = cast("inspect.StructType", inspect.type_info(args))
    return {
        field.encode_name: _Field(_form_of(field.type), field.required) for field in info.fields
    }


def _form_of(kind: inspect.Type) -> _Form:
    if isinstance(kind, inspect.Metadata):
        inner, extra = _form_of(kind.type), cast("dict[str, Any]", kind.extra or {})  # pyright: ignore[reportUnknownMemberType] # msgspec leaves the dict bare
        return msgspec.structs.replace(
            inner,
            array_first=_advertises_array(kind),
            empty_counts=inner.empty_counts or bool(extra.get("empty")),
            zero_counts=inner.zero_counts and bool(extra.get("zero", True)),
            words_count=inner.words_count and bool(extra.get("words", True)),
        )
    if isinstance(kind, inspect.UnionType):
        forms = [_form_of(member) for member in kind.types]
        return _Form(
            frozenset[str]().union(*(form.kinds for form in forms)),
            next((form.item for form in forms if form.item is not None), None),
            next((form.fields for form in forms if form.fields is not None), None),
            next((form.least for form in forms if form.least is not None), None),
            next((form.choices for form in forms if form.choices), ()),
            any(form.empty_counts for form in forms),
            all(form.zero_counts for form in forms),
            all(form.words_count for form in forms),
        )
    kinds = frozenset({_KINDS.get(type(kind), "any")})
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return _Form(kinds, item=_form_of(kind.item_type))
    if isinstance(kind, inspect.StructType):
        return _Form(kinds, fields=_fields_of(kind.cls))
    if isinstance(kind, inspect.LiteralType):
        return _Form(kinds, choices=tuple(map(str, kind.values)))
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return _Form(kinds, least=kind.ge)
    return _Form(kinds)


def _advertises_array(kind: inspect.Metadata) -> bool:
    shown = cast("dict[str, Any]", kind.extra_json_schema or {})  # pyright: ignore[reportUnknownMemberType] # as above
    return shown.get("type") == "array"


def _fit_fields(arguments: Mapping[str, Any], fields: Mapping[str, _Field]) -> dict[str, Any]:
    fitting: dict[str, Any] = {}
    for name, value in arguments.items():
        field = fields.get(name)
        if field is not None:
            value = _fit_value(value, field.form)
            if not field.required and _is_nothing(value, field.form):
                continue
        fitting[name] = value
    return fitting


def _is_nothing(value: Any, form: _Form) -> bool:
    """Whether an optional parameter with this value is not given."""
    if value is None:
        return True
    if isinstance(value, str):
        no_text = not form.kinds & {"text", "any"} or not form.words_count
        if value:
            return no_text and value not in form.choices and value.lower() in _NOTHINGS
        return (no_text or form.kinds <= _NAMES) and not form.empty_counts
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value == 0 and (not form.zero_counts or (form.least or 0) >= 1)
    return False


def _fit_value(value: Any, form: _Form) -> Any:
    kinds = form.kinds
    if isinstance(value, str):
        if kinds & _TEXTS and not form.array_first:
            return value
        read = _read(value)
        if form.array_first and not isinstance(read, list):
            return value
        return value if read is _NO_JSON or isinstance(read, str) else _fit_value(read, form)
    if isinstance(value, float):
        whole = "integer" in kinds and "number" not in kinds and value.is_integer()
        return int(value) if whole else value
    if isinstance(value, list) and form.item is not None:
        item, items = form.item, cast("list[Any]", value)
        return [_fit_value(each, item) for each in items]
    if isinstance(value, dict) and form.fields is not None:
        return _fit_fields(cast("dict[str, Any]", value), form.fields)
    return cast("Any", value)


_NO_JSON = object()


def _read(text: str) -> Any:
    """The value of a text of JSON, `_NO_JSON` for any other text."""
    try:
        read = msgspec.json.decode(_TRUTH.get(text.lower(), text))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _NO_JSON
    return _NO_JSON if read in (float("inf"), float("-inf")) else read
