"""What a product adds to the commands of the kernel, beside commands of its own."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from tidegate.cli.checks.finding import Finding
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.model.sources import Source
from tidegate.product import found_already, load

if TYPE_CHECKING:
    from tidegate.app import App
    from tidegate.serve.lifecycle import Shutdown


class OptionGroup(Protocol):
    """A parser of argparse, or a group of its options."""

    def add_argument(self, *names: str, **about: Any) -> Any: ...


class CommandHooks:
    """Each method does nothing here; a product overrides those that it needs, and names an object
    of its class in `Product.command_hooks`. The methods run in the order in which they are defined
    here.
    """

    def add_serve_options(self, serve: argparse.ArgumentParser) -> None:
        """Add options to `serve`."""

    def add_source_options(self, options: OptionGroup) -> None:
        """Add options to `source add` and `source update`."""

    def found_sources(
        self, config: Config, named: Sequence[SourceSettings]
    ) -> tuple[SourceSettings, ...]:
        """Additional sources, besides those of the settings and of the command line."""
        return ()

    def read_serve_settings(self, config: Config, arguments: argparse.Namespace) -> Config:
        """The settings of `serve`, with what the product says of the whole server. Raises:
        TidegateError CONFIG_INVALID."""
        return config

    def replace_serve_settings(
        self, config: Config, arguments: argparse.Namespace, surfaces: Sequence[str]
    ) -> Mapping[str, Any]:
        """Fields of the settings that the product's options or the environment replace; of
        `sections` those that differ. Raises: TidegateError CONFIG_INVALID, ARGUMENT_INVALID."""
        return {}

    def serve_sources(
        self, config: Config, arguments: argparse.Namespace, given: Sequence[SourceSettings]
    ) -> tuple[SourceSettings, ...]:
        """Sources that `serve` opens beside those of the settings and the given ones."""
        return ()

    def complete_serve_settings(
        self, config: Config, arguments: argparse.Namespace, given: Sequence[SourceSettings]
    ) -> Config:
        """The settings of `serve` when their sources are known; `given` are those that are named
        for this run. Raises: TidegateError CONFIG_INVALID, SOURCE_URL."""
        return config

    def announce(self, config: Config) -> None:
        """Print what a person should know when the server starts."""

    def prepare(self, app: App, config: Config) -> Callable[[Shutdown], Awaitable[None]] | None:
        """What must have happened before the server answers."""
        return None

    def source_options(self, arguments: argparse.Namespace) -> Mapping[str, str]:
        """The options of a source that the product's options of the command line give."""
        return {}

    def prepare_source(
        self, config: Config, settings: SourceSettings, arguments: argparse.Namespace
    ) -> None:
        """Get what a source needs before it is tried. Raises: TidegateError."""

    async def check_source(self, app: App, source: Source) -> list[Finding]:
        """What `doctor` finds about a source that can be reached. Raises: TidegateError."""
        return []


def prepare_source(config: Config, settings: SourceSettings, arguments: argparse.Namespace) -> None:
    """Get what a source needs before it is tried, unless it is saved untried. Raises:
    TidegateError."""
    if not arguments.anyway:
        for hook in command_hooks():
            hook.prepare_source(config, settings, arguments)


def command_hooks() -> tuple[CommandHooks, ...]:
    """The hooks of the products that are here, then those of packages that are loaded already. A
    package is loaded when the settings name its engine, surface or section."""
    return tuple(
        cast("CommandHooks", load(each.command_hooks))
        for each in found_already()
        if each.command_hooks
    )
