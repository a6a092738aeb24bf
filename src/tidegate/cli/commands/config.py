"""`tidegate config check | show`: the settings as a server would read them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import msgspec

from tidegate.cli.settings import config_path, load_for_query
from tidegate.cli.terminal import print_status, show_json
from tidegate.config.loading import is_inline
from tidegate.config.model import Config
from tidegate.errors import FATES, Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.surfaces.registry import check_surfaces


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.action`. Raises: TidegateError CONFIG_INVALID and what else is wrong."""
    path = config_path(arguments)
    if arguments.action == "check" and path is None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "No settings file is named.",
            hint="Name it with --config or in TIDEGATE_CONFIG.",
        )
    config = load_for_query(arguments)
    check_surfaces(config)
    if arguments.action == "show":
        show_json(_shown(config, everything=arguments.all))
        return 0
    faults = list(_faults(config))
    for fault in faults:
        print_status(fault)
    if faults:
        return FATES[Code.CONFIG_INVALID].exit_status
    count = len(config.sources)
    sources = "1 source" if count == 1 else f"{count} sources"
    print_status(f"{_named(str(path))}: the settings are valid, with {sources}")
    return 0


def _faults(config: Config) -> Iterator[str]:
    """What is wrong with each source, one line each. No source is opened."""
    for settings in config.sources:
        try:
            source_from_settings(settings)
        except TidegateError as error:
            yield f"source {settings.name}: {error.message} {error.hint}"


def _shown(config: Config, *, everything: bool) -> dict[str, Any]:
    """The settings as one object; without those that are as by default, unless all are wanted.
    They hold no secret, only references to them."""
    fields: dict[str, Any] = msgspec.to_builtins(config)
    if everything:
        return fields
    default: dict[str, Any] = msgspec.to_builtins(Config())
    return {name: value for name, value in fields.items() if value != default[name]}


def _named(path: str) -> str:
    return "the inline settings" if is_inline(path) else path
