"""Makes sources of what settings say of them: the only place where a setting becomes a `Source`."""

from __future__ import annotations

import uuid
from functools import partial

from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.connections import Declared
from tidegate.engines.registry import check_run_as, engine_of
from tidegate.engines.url import require_file
from tidegate.policy.shields import dressed
from tidegate.sources import Source

FILE_ENGINES = ("sqlite", "duckdb")


def declared(config: Config) -> Declared:
    """What the settings say of sources. Raises: GateError SOURCE_URL, SOURCE_UNREACHABLE."""
    dress = partial(dressed, masks=config.masks, filters=config.filters)
    return tuple(source_of(settings) for settings in config.sources), dress


def source_of(settings: SourceSettings) -> Source:
    """The source, for this run alone.

    Raises: GateError SOURCE_URL, SOURCE_UNREACHABLE if a database file is not there: better now
    than at the first question.
    """
    engine, dialect = engine_of(settings.url)
    run_as = settings.run_as.run_as if settings.run_as else None
    check_run_as(settings.url, run_as)
    if engine in FILE_ENGINES:
        require_file(settings.url)
    return Source(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{settings.name}={settings.url}")),
        name=settings.name,
        url=settings.url,
        engine=engine,
        dialect=dialect,
        external_access=settings.external_access,
        ai_policy=settings.ai_policy,
        safe_mode=settings.safe_mode,
        tags=settings.tags,
        ephemeral=True,
        approval=settings.approval,
        unattended=settings.unattended,
        unqualified=settings.unqualified,
        destructive_scope=settings.destructive_scope,
        masks=settings.masks,
        filters=settings.filters,
        run_as=run_as,
    )
