"""What the tools for PostgreSQL add to `serve`: what variables of pgEdge's server set."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from tidegate.cli.hooks import CommandHooks
from tidegate.cli.settings import print_note
from tidegate.config.loading import convert_settings
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.products.pgedge.environment import database_of_environment
from tidegate.products.pgedge.settings import LanguageSettings
from tidegate.products.pgedge.settings_import import settings_of_environment, translate

SURFACE = "postgres"
_FIELDS = ("auth", "token_files", "tls", "lockout", "embeddings")


class PgedgeHooks(CommandHooks):
    """The variables count where the surface is served."""

    def replace_serve_settings(
        self, config: Config, arguments: argparse.Namespace, surfaces: Sequence[str]
    ) -> Mapping[str, Any]:
        """What the variables set and the settings leave at their defaults."""
        environment = settings_of_environment(os.environ) if SURFACE in surfaces else {}
        if not environment:
            return {}
        made = convert_settings(translate(environment, os.environ, print_note))
        names = _FIELDS if arguments.stdio else (*_FIELDS, "http")
        default = Config()
        changes: dict[str, Any] = {
            name: getattr(made, name)
            for name in names
            if getattr(config, name) == getattr(default, name) != getattr(made, name)
        }
        language = made.section(LanguageSettings)
        if config.section(LanguageSettings) == LanguageSettings() != language:
            changes["sections"] = {language.NAME: language}
        return changes

    def serve_sources(
        self, config: Config, arguments: argparse.Namespace, given: Sequence[SourceSettings]
    ) -> tuple[SourceSettings, ...]:
        """The database that the environment names, if nothing else names one."""
        if given or config.sources or SURFACE not in config.surfaces:
            return ()
        found = database_of_environment(os.environ)
        return () if found is None else (found,)

    def complete_serve_settings(
        self, config: Config, arguments: argparse.Namespace, given: Sequence[SourceSettings]
    ) -> Config:
        """The only source that was named for this server is what calls are about that name none."""
        if len(given) != 1 or SURFACE not in config.surfaces:
            return config
        own = {"source": given[0].name} | config.surface.get(SURFACE, {})
        return structs.replace(config, surface=config.surface | {SURFACE: own})


HOOKS = PgedgeHooks()
