"""Turns a tool's arguments into its struct, strictly, and names the argument that is wrong.

Decides no wording of any product: surfaces that have their own read `details` of the error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.surfaces.argument_forms import choices_of, fit

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
    in another form is taken, as `argument_forms.py` says.

    Raises: TidegateError ARGUMENT_INVALID with details `parameter`, `problem` (`missing`, `unknown`
    or `type`; `missing` too for null where a value is required) and `required`.
    """
    fitting = fit(arguments, args)
    try:
        return msgspec.convert(fitting, args)
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
