"""What JDBC adds to the commands of the kernel: a source's driver."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tidegate.cli.hooks import CommandHooks, OptionGroup
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings

if TYPE_CHECKING:
    from tidegate.app import App

COORDINATE: Final = "driver_coordinate"
"""The option that names the JDBC driver of a source."""


class JdbcHooks(CommandHooks):
    """The option `--driver-coordinate` of sources."""

    def add_source_options(self, options: OptionGroup) -> None:
        options.add_argument(
            "--driver-coordinate",
            metavar="COORDINATE",
            action="append",
            default=[],
            help="the JDBC driver of the source as groupId:artifactId:version, or as the name of a"
            " database such as h2; it is downloaded if `tidegate driver list` does not have it; may"
            " be repeated",
        )

    def source_options(self, arguments: argparse.Namespace) -> Mapping[str, str]:
        """Raises: TidegateError ARGUMENT_INVALID for what is no coordinate."""
        given: list[str] = getattr(arguments, "driver_coordinate", [])
        if not given:
            return {}
        from tidegate.products.jdbc.engine.driver_jars import named_coordinates

        named = [each for text in given for each in named_coordinates(text)]
        return {COORDINATE: ",".join(map(str, named))}

    def prepare_source(
        self, config: Config, settings: SourceSettings, arguments: argparse.Namespace
    ) -> None:
        """Download the driver that the source names, once a person agrees or the settings do."""
        asked = settings.options.get(COORDINATE)
        if asked is None:
            return
        from tidegate.app import App
        from tidegate.cli.local_actor import with_app
        from tidegate.engines.registry import check_options
        from tidegate.products.jdbc.commands.download import fetch_driver
        from tidegate.products.jdbc.maven.coordinates import parse_coordinates

        check_options(settings.url, settings.options)

        async def fetch(app: App) -> None:
            await fetch_driver(app, parse_coordinates(asked), arguments)

        with_app(App.open(config), fetch)


HOOKS = JdbcHooks()
