"""The settings of a source that the options of `tidegate source` give."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tidegate.config.sources import RunAsSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.source_settings import RunAs, source_settings
from tidegate.model.sources import Source

_EMPTY: dict[str, Any] = {"options": {}}
"""What a setting of `SourceSettings` is without an entry, where its declared default is another."""


def given_settings(arguments: argparse.Namespace, before: Source | None = None) -> dict[str, Any]:
    """The settings that the options give, by name; `before` is the source before a change.

    Raises: TidegateError ARGUMENT_INVALID, CONFIG_INVALID.
    """
    given: dict[str, Any] = {}
    for setting in source_settings():
        value = getattr(arguments, setting.dest, None)
        if setting.form == "entries" and value:
            given[setting.name] = tuple(dict.fromkeys(value))
        elif setting.form in ("words", "text") and value is not None:
            given[setting.name] = value
        elif setting.form == "number" and value is not None:
            given[setting.name] = value or None  # 0 means no limit
        if setting.name.replace("_", "-") in getattr(arguments, "clear", ()):
            given.setdefault(setting.name, _EMPTY.get(setting.name, setting.default))
    if arguments.option:
        had = () if before is None or "options" in given else before.options
        given["options"] = _pairs("--option", "NAME=VALUE", arguments.option, had)
    run_as = _run_as(arguments, None if before is None or "run_as" in given else before.run_as)
    return given if run_as is None else {**given, "run_as": run_as}


def _run_as(arguments: argparse.Namespace, before: RunAs | None) -> RunAsSettings | None:
    """The database roles of callers; None if no option sets them.

    Existing roles and variables stay, unless the options replace them or remove them with an empty
    value. Raises: TidegateError ARGUMENT_INVALID, CONFIG_INVALID.
    """
    if arguments.run_as_role is None and not (arguments.run_as or arguments.run_as_variable):
        return None
    before = before or RunAs()
    role = before.role if arguments.run_as_role is None else arguments.run_as_role or None
    roles = _pairs("--run-as", "CALLER=ROLE", arguments.run_as, before.roles)
    given = arguments.run_as_variable
    variables = _pairs("--run-as-variable", "NAME=VALUE", given, before.variables)
    if variables and role is None and not roles and (before.role or before.roles):
        # Callers that were refused or had a weaker role would run as the account in the URL.
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "No role would be left, and every caller would run as the source's own account.",
            hint="If you want that, use --clear run-as and give the variables again.",
        )
    return RunAsSettings(role, roles, variables)


def _pairs(
    option: str, form: str, given: Sequence[str], before: Sequence[tuple[str, str]]
) -> dict[str, str]:
    pairs = dict(before)
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"`{option} {text}` is not {form}.",
                hint="`tidegate source update --help` has examples.",
            )
        pairs[name] = value
    return {name: value for name, value in pairs.items() if value}
