"""What cloud APIs add to the commands of the kernel."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec
from msgspec import structs

from tidegate.cli.checks.finding import Finding, note
from tidegate.cli.hooks import CommandHooks
from tidegate.cli.settings import admits_changes
from tidegate.cli.terminal import print_status
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.config.state import state_directory, state_key, state_path, state_url
from tidegate.engines.registry import find
from tidegate.model.sources import Source
from tidegate.products.cloud.settings import CloudSettings

if TYPE_CHECKING:
    from tidegate.app import App
    from tidegate.serve.lifecycle import Shutdown

_NAME: Final = "cloud"
"""The surface, the engine, and the source of the documents that were pulled."""
_MOST_PROVIDERS: Final = 10_000


class CloudHooks(CommandHooks):
    """A backing server of the surface, StackQL's settings, and the documents that were pulled."""

    def add_serve_options(self, serve: argparse.ArgumentParser) -> None:
        serve.add_argument(
            "--proxy",
            metavar="DSN",
            type=_filled,
            help="run the statements of the surface cloud on another server, a Tidegate"
            " with --pg: postgresql://USER@HOST:PORT/cloud, its password as ${ENV:NAME} or"
            " ${FILE:/path}",
        )

    def found_sources(
        self, config: Config, named: Sequence[SourceSettings]
    ) -> tuple[SourceSettings, ...]:
        """The source of the documents that `cloud pull` and `cloud import` put into the state
        directory, where no other source of cloud providers is named or saved, and none has its
        name; none if there are no documents."""
        folder = state_path(config.state).absolute() / _NAME
        if not (folder / "src").is_dir():
            return ()
        from tidegate.store.opening import open_state

        known = [(source.name, find(source.url).engine) for source in named]
        url = state_url(config.state_url)
        key = state_key(config.state_key, url)
        state = open_state(url, state_directory(config.state), key)
        try:
            known += [(source.name, source.engine) for source in state.sources.list()]
        finally:
            state.close()
        if any(_NAME in each for each in known):
            return ()
        return (SourceSettings(name=_NAME, url=f"cloud://{quote(str(folder))}"),)

    def read_serve_settings(self, config: Config, arguments: argparse.Namespace) -> Config:
        if _NAME not in config.surface:
            return config
        from tidegate.products.cloud.commands.server_settings import with_cloud_server

        return with_cloud_server(config, arguments)

    def serve_sources(
        self, config: Config, arguments: argparse.Namespace, given: Sequence[SourceSettings]
    ) -> tuple[SourceSettings, ...]:
        if _NAME not in config.surfaces or _given_dsn(config, arguments) is not None:
            return ()
        found = self.found_sources(config, (*given, *config.sources))
        writes = found and admits_changes(found[0].url, arguments, config)
        return tuple(structs.replace(each, access="write" if writes else "read") for each in found)

    def complete_serve_settings(
        self, config: Config, arguments: argparse.Namespace, given: Sequence[SourceSettings]
    ) -> Config:
        dsn = _given_dsn(config, arguments)
        if dsn is None:
            return config
        from tidegate.products.cloud.commands.backing_server import with_backing_server

        return with_backing_server(config, dsn, access="write" if config.allow_writes else "read")

    def announce(self, config: Config) -> None:
        """Print where the lines of the calls of the surface go, in the words of StackQL's
        server."""
        if _NAME not in config.surfaces:
            return
        from tidegate.products.cloud.surface.audit import CallAudit
        from tidegate.products.cloud.surface.settings import settings_of

        if (path := CallAudit.open(settings_of(config), config).path) is not None:
            print_status(f"sink file: {path}")

    def prepare(self, app: App, config: Config) -> Callable[[Shutdown], Awaitable[None]] | None:
        """The backing server must answer."""
        if not any(each.url.startswith("cloud+postgresql:") for each in config.sources):
            return None
        from tidegate.products.cloud.commands.backing_server import (
            is_backing_server,
            wait_for_backing_server,
        )

        if not any(is_backing_server(source) for source in config.sources):
            return None
        return partial(wait_for_backing_server, app)

    async def check_source(self, app: App, source: Source) -> list[Finding]:
        """The providers in the settings that the source has no document for: a misspelt name leaves
        a login without effect."""
        if source.engine != _NAME or not (providers := app.config.section(CloudSettings).providers):
            return []
        from tidegate.cli.local_actor import ask
        from tidegate.model.requests import Query
        from tidegate.model.results import Limits, Page
        from tidegate.model.statements import Statement

        query = Query(Statement("SHOW PROVIDERS"), limits=Limits(max_rows=_MOST_PROVIDERS))
        page = await ask(app, "doctor", query, source.name, Page)
        at = [column.name for column in page.columns].index("name")
        known = {row[at] for row in msgspec.json.decode(page.rows)}
        return [
            note(
                f"source {source.name}",
                f"`cloud.providers.{name}` is in the settings, and there is no document of this"
                " provider: its login is not used",
                f"Correct the name, or get its document: `tidegate cloud pull {name}`",
            )
            for name in providers
            if name not in known
        ]


def _given_dsn(config: Config, arguments: argparse.Namespace) -> str | None:
    """Raises: TidegateError CONFIG_INVALID if the option and the settings both name one."""
    if not arguments.proxy and _NAME not in config.surface:
        return None
    from tidegate.products.cloud.commands.backing_server import given_dsn

    return given_dsn(config, arguments)


def _filled(text: str) -> str:
    from tidegate.cli.arguments.options import filled

    return filled(text)


HOOKS = CloudHooks()
