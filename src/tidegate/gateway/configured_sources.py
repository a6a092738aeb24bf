"""Makes sources of what settings say of them: the only place where a setting becomes a `Source`."""

from __future__ import annotations

import uuid
from functools import partial

from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.engines.common.url import require_file
from tidegate.engines.registry import check_access, check_options, check_run_as, engine_of
from tidegate.gateway.connections import ConfiguredSources
from tidegate.model.sources import Source
from tidegate.policy.data_rules import with_global_rules
from tidegate.sql.dialects import find


def load_sources(config: Config) -> ConfiguredSources:
    """What the settings say of sources. Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE."""
    apply_global_rules = partial(with_global_rules, masks=config.masks, filters=config.filters)
    return tuple(source_from_settings(settings) for settings in config.sources), apply_global_rules


def source_from_settings(settings: SourceSettings) -> Source:
    """The source, for this run alone.

    Raises: TidegateError SOURCE_URL, SOURCE_UNREACHABLE if a database file is not there: better now
    than at the first question.
    """
    engine, dialect = engine_of(settings.url)
    run_as = settings.run_as.run_as if settings.run_as else None
    check_run_as(settings.url, run_as)
    check_options(settings.url, settings.options)
    check_access(settings.url, settings.access)
    if find(dialect).in_files:
        require_file(settings.url)
    return Source(
        id=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{settings.name}={settings.url}")),
        name=settings.name,
        url=settings.url,
        engine=engine,
        dialect=dialect,
        access=settings.access,
        agents=settings.agents,
        approval_for=settings.approval_for,
        changes=settings.changes,
        tags=settings.tags,
        ephemeral=True,
        approval=settings.approval,
        unattended=settings.unattended,
        unqualified=settings.unqualified,
        destructive_scope=settings.destructive_scope,
        masks=settings.masks,
        filters=settings.filters,
        run_as=run_as,
        options=tuple(settings.options.items()),
    )
