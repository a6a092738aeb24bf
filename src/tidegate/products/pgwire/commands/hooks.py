"""What the PostgreSQL wire protocol adds to `serve`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from tidegate.cli.arguments.options import filled
from tidegate.cli.hooks import CommandHooks
from tidegate.cli.settings import check_without_auth
from tidegate.config.model import Config
from tidegate.products.pgwire.settings import PgWireSettings


class WireHooks(CommandHooks):
    """The option `--pg`."""

    def add_serve_options(self, serve: argparse.ArgumentParser) -> None:
        serve.add_argument(
            "--pg",
            type=filled,
            metavar="HOST:PORT",
            help="serve PostgreSQL's wire protocol there as well: the database is a source, the"
            " user a token's name, the password the token",
        )

    def replace_serve_settings(
        self, config: Config, arguments: argparse.Namespace, surfaces: Sequence[str]
    ) -> Mapping[str, Any]:
        if not arguments.pg:
            return {}
        if arguments.no_auth:
            check_without_auth("--pg", arguments.pg)
        section = structs.replace(config.section(PgWireSettings), listen=arguments.pg)
        return {"sections": {section.NAME: section}}


HOOKS = WireHooks()
