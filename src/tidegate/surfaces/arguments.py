"""Turns a tool's arguments into its struct, strictly, and names the argument that is wrong.

Decides no wording of any product: surfaces that have their own read `details` of the error.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn, TypeVar

import msgspec

from tidegate.errors import Code, GateError

ArgsT = TypeVar("ArgsT", bound=msgspec.Struct)

_MISSING = re.compile(r"missing required field `([^`]+)`")
_UNKNOWN = re.compile(r"unknown field `([^`]+)`")
_PLACE = re.compile(r"(?P<problem>.*) - at `\$\.(?P<name>\w+)(?P<rest>[^`]*)`$")


def convert(arguments: dict[str, Any], args: type[ArgsT]) -> ArgsT:
    """The arguments as `args`, strictly: a wrong type is refused, never bent.

    Raises: GateError ARGUMENT_INVALID with details `parameter` and `problem`, which is `missing`,
    `unknown` or `type`.
    """
    try:
        return msgspec.convert(arguments, args)
    except msgspec.ValidationError as error:
        _refuse(str(error), args)


def _refuse(text: str, args: type[msgspec.Struct]) -> NoReturn:
    names = ", ".join(args.__struct_fields__) or "none"
    if match := _MISSING.search(text):
        raise wrong_argument(match[1], "missing", "is required")
    if match := _UNKNOWN.search(text):
        raise wrong_argument(match[1], "unknown", "is unknown", hint=f"Parameters: {names}.")
    if match := _PLACE.match(text):
        problem = match["problem"].replace("`", "").replace(" | null", "")
        place = f" at {match['rest']}" if match["rest"] else ""
        raise wrong_argument(match["name"], "type", problem[:1].lower() + problem[1:] + place)
    raise GateError(Code.ARGUMENT_INVALID, "The arguments must be one JSON object")


def wrong_argument(
    parameter: str, problem: str, what: str, *, hint: str | None = None
) -> GateError:
    """The refusal of one argument: `what` continues the sentence `Parameter X ...`."""
    verb = what if what.startswith("is ") else f"is wrong: {what}"
    return GateError(
        Code.ARGUMENT_INVALID,
        f"Parameter {parameter} {verb}",
        hint=hint,
        details={"parameter": parameter, "problem": problem},
    )
