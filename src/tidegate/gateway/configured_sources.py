"""Makes sources of what settings say of them: the only place where a setting becomes a `Source`."""

from __future__ import annotations

import logging
import uuid
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.engines.common.url import require_file
from tidegate.engines.registry import check_settings, engine_of
from tidegate.engines.registry import find as find_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.source_connections import ConfiguredSources
from tidegate.model.source_settings import DeclaredSettings
from tidegate.model.sources import Source
from tidegate.policy.data_rules import with_global_rules
from tidegate.product import load
from tidegate.sql.dialects import find

_SHARED: Final = "settings"
"""The option of a source with the settings that it shares with others of its engine."""

logger = logging.getLogger("tidegate.sources")


def load_sources(config: Config, directory: Path | None = None) -> ConfiguredSources:
    """What the settings say of sources. One that no engine can open, or whose file is not there, is
    named in the log and fails alone: the file may come, the settings may be corrected. `directory`
    is that of the state. Raises: TidegateError SOURCE_URL."""
    apply_global_rules = partial(_with_global_settings, config=config, directory=directory)
    return tuple(_usable_or_not(settings) for settings in config.sources), apply_global_rules


def _usable_or_not(settings: SourceSettings) -> Source:
    """The source; one without an engine, which refuses every call, if none can open it."""
    try:
        source = _source(settings)
        _require_file(source)
    except TidegateError as error:
        if error.code not in (Code.SOURCE_UNREACHABLE, Code.SOURCE_URL, Code.CONFIG_INVALID):
            raise
        logger.warning("source %s: %s The other sources work.", settings.name, error.message)
        if error.code is not Code.SOURCE_UNREACHABLE:
            return _made(settings, engine="", dialect="")
        source = _source(settings)
    return source


def problem_of(source: Source) -> str:
    """Why no engine can open a source of the settings; empty if one can."""
    if source.engine:
        return ""
    try:
        check_settings(source)
    except TidegateError as error:
        return error.message
    return "its settings could not be used when they were read"


def _with_global_settings(source: Source, config: Config, directory: Path | None) -> Source:
    """The source with the rules that are given for every source, and with the settings that its
    engine shares among its sources, if it has none of its own."""
    source = with_global_rules(source, masks=config.masks, filters=config.filters)
    entry = find_engine(source.url) if source.engine else None
    if entry is None or not entry.shared_settings:
        return source
    if any(name == _SHARED for name, _ in source.options):
        return source
    text: str = load(entry.shared_settings)(config, directory)
    return structs.replace(source, options=(*source.options, (_SHARED, text))) if text else source


def source_id(name: str, url: str) -> str:
    """The id of a source: no two names have the same."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}={url}"))


def source_from_settings(settings: SourceSettings) -> Source:
    """The source, for this run alone.

    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE if a database file is not there: better now
    than at the first question.
    """
    source = _source(settings)
    _require_file(source)
    return source


def _require_file(source: Source) -> None:
    """See that a file is there which the URL names as file URLs do; engines whose URLs are written
    otherwise check for it themselves. Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_URL."""
    if find(source.dialect).in_files and not find_engine(source.url).locator:
        require_file(source.url)


def _source(settings: SourceSettings) -> Source:
    engine, dialect = engine_of(settings.url)
    source = _made(settings, engine, dialect)
    check_settings(source)
    return source


def _made(settings: SourceSettings, engine: str, dialect: str) -> Source:
    given: dict[str, Any] = {
        name: getattr(settings, name) for name in DeclaredSettings.__struct_fields__
    }
    given["run_as"] = settings.run_as.run_as if settings.run_as else None
    given["options"] = tuple(settings.options.items())
    id = source_id(settings.name, settings.url)
    return Source(id, settings.name, settings.url, engine, dialect, ephemeral=True, **given)
