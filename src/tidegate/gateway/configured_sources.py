"""Makes sources of what settings say of them: the only place where a setting becomes a `Source`."""

from __future__ import annotations

import logging
import uuid
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import structs

from tidegate.config.cloud import CloudSettings
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
from tidegate.sql.dialects import find

_CLOUD_OPTION: Final = "settings"

logger = logging.getLogger("tidegate.sources")


def load_sources(config: Config) -> ConfiguredSources:
    """What the settings say of sources. One that no engine can open, or whose file is not there, is
    named in the log and fails alone: the file may come, the settings may be corrected. Raises:
    TidegateError SOURCE_URL."""
    apply_global_rules = partial(_with_global_settings, config=config)
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


def _with_global_settings(source: Source, config: Config) -> Source:
    """The source with the rules that are given for every source, and one of cloud providers with
    the settings of these, if it has none of its own."""
    source = with_global_rules(source, masks=config.masks, filters=config.filters)
    takes = source.engine == "cloud" and find_engine(source.url).has_option(_CLOUD_OPTION)
    if not takes or config.cloud == CloudSettings():
        return source
    if any(name == _CLOUD_OPTION for name, _ in source.options):
        return source
    text = msgspec.json.encode(config.cloud).decode()
    return structs.replace(source, options=(*source.options, (_CLOUD_OPTION, text)))


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
    otherwise look for it themselves. Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_URL."""
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
