"""The sources as an admin of all sources sees them in the console, and what may be set for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import TidegateError
from tidegate.gateway.configured_sources import problem_of
from tidegate.identity.operators import SignedIn
from tidegate.model.source_settings import SourceSetting, source_settings
from tidegate.model.sources import Source
from tidegate.products.console.admins import check_admin
from tidegate.products.console.cards import source_fields
from tidegate.products.console.source_drafts import version_of
from tidegate.secrets.url_logins import without_password
from tidegate.sources.settings import settings_of
from tidegate.store.api import SourceStore
from tidegate.store.passwords import place_of_password


class SourceList:
    """The saved sources and those of the settings. `served` gives those that callers may use,
    `config` the settings that the server follows."""

    def __init__(
        self,
        sources: SourceStore,
        served: Callable[[], Sequence[Source]],
        config: Callable[[], Config],
    ) -> None:
        self._sources = sources
        self._served = served
        self._config = config

    def show(self, signed_in: SignedIn) -> dict[str, Any]:
        """All sources by name, with their settings and without a secret. Raises: TidegateError
        POLICY_DENIED unless the operator is an admin of all sources."""
        check_admin(signed_in)
        config = self._config()
        named = {each.name: each for each in config.sources}
        found = [
            _shown(source, settings_of(source), version_of(source), "state")
            for source in self._sources.list()
            if source.name not in named
        ]
        for source in self._served():
            settings = named.get(source.name)
            if settings is not None:
                found.append(_shown(source, settings, version_of(settings), "settings"))
        return {
            "sources": sorted(found, key=lambda each: each["name"]),
            "declared": [_declared(each) for each in source_settings()],
            "folders": list(config.console.source_folders),
        }


def _shown(source: Source, settings: SourceSettings, version: str, kept: str) -> dict[str, Any]:
    url = without_password(source.url)
    values: dict[str, Any] = msgspec.to_builtins(settings)
    if kept == "state":
        values["run_as"] = _run_as(source)
    return {
        **source_fields(source.name, source),
        "engine": source.engine,
        "dialect": source.dialect,
        "url": url,
        "password": "" if url == source.url else place_of_password(source.url),
        "from": kept,
        "version": version,
        "settings": {each.name: values[each.name] for each in source_settings()},
        "problem": _problem(source),
    }


def _run_as(source: Source) -> dict[str, Any] | None:
    run_as = source.run_as
    if run_as is None:
        return None
    roles, variables = dict(run_as.roles), dict(run_as.variables)
    return {"role": run_as.role, "roles": roles, "variables": variables}


def _problem(source: Source) -> str:
    try:
        return problem_of(source)
    except TidegateError as error:
        return error.without_secrets().message


def _declared(setting: SourceSetting) -> dict[str, Any]:
    about = setting.about
    return {
        "name": setting.name,
        "form": setting.form,
        "words": list(setting.words),
        "default": msgspec.to_builtins(setting.default),
        "meaning": about.meaning,
        "syntax": about.syntax,
        "group": about.group,
        "shows": about.grants_more == "nothing",
    }
