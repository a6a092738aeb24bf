"""A saved source, its settings, and what the records say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any, cast

import msgspec

from tidegate.config.sources import SourceSettings
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.model.source_settings import DeclaredSettings, RunAs, source_settings
from tidegate.model.sources import Source


def settings_of(source: Source, **changes: Any) -> SourceSettings:
    """The settings of a saved source with `changes`; `run_as` is left out, but where it changes."""
    present: dict[str, Any] = {"name": source.name, "url": source.url}
    present |= {name: getattr(source, name) for name in DeclaredSettings.__struct_fields__}
    present |= {"run_as": None, "options": dict(source.options)}
    return SourceSettings(**(present | changes))


def changed_source(was: Source, settings: SourceSettings, changes: Mapping[str, Any]) -> Source:
    """The saved source with the settings that `settings_of` gave for these changes.

    Raises: TidegateError SOURCE_URL, CONFIG_INVALID, SOURCE_UNREACHABLE.
    """
    return msgspec.structs.replace(
        source_from_settings(settings),
        id=was.id,
        ephemeral=False,
        **({} if "run_as" in changes else {"run_as": was.run_as}),
    )


def recorded(source: Source) -> dict[str, str]:
    """What the audit log has of a source that was saved: its words and numbers, and how many
    entries it has where it has some. What is in these stays out, such as an address or a value."""
    found = {"source": source.name}
    for setting in source_settings():
        value = getattr(source, setting.name)
        shows = setting.about.grants_more == "nothing"
        if (setting.form == "words" and not shows) or value != setting.default:
            found[setting.name] = _recorded(value)
    return found


def _recorded(value: Any) -> str:
    if isinstance(value, RunAs):
        return "given"
    return str(len(cast("Sized", value)) if isinstance(value, tuple) else value)
