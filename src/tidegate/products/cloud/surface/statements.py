"""Writes the statement of a tool from its arguments: names are escaped, so that no argument can be
more than the name it replaces."""

from __future__ import annotations

import re

from tidegate.surfaces.arguments import wrong_argument

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_VERSION = re.compile(r"v?\d{1,9}(?:\.\d{1,9}){0,3}(?:-[\w.]{1,40})?")
_LONGEST = 256


def name(value: str, parameter: str) -> str:
    """A name in a statement. Raises: TidegateError ARGUMENT_INVALID."""
    if not value.strip():
        raise wrong_argument(parameter, "missing", "is required")
    if len(value) > _LONGEST or not value.isprintable():
        raise wrong_argument(parameter, "value", "is no name")
    if _PLAIN.fullmatch(value):
        return value
    return '"' + value.replace('"', '""') + '"'


def path(**names: str) -> str:
    """`provider.service.resource`, from the values of the parameters in their order."""
    return ".".join(name(value, parameter) for parameter, value in names.items())


def version(value: str) -> str:
    """A version in a statement. Raises: TidegateError ARGUMENT_INVALID."""
    if not _VERSION.fullmatch(value):
        raise wrong_argument("version", "value", "is no version, such as v24.11.00274")
    return value
