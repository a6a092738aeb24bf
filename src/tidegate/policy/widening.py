"""Which settings of a source grant more than before. Pure."""

from __future__ import annotations

from typing import Any, cast

from tidegate.model.source_settings import SourceSetting, source_settings
from tidegate.model.sources import Source
from tidegate.secrets.url_logins import without_password


def widened(before: Source, after: Source) -> tuple[str, ...]:
    """The names of the settings of `after` that grant callers more than `before` did. Another URL
    may lead elsewhere; a new password of the same user grants nothing."""
    found = [
        setting.name
        for setting in source_settings()
        if _grants_more(setting, getattr(before, setting.name), getattr(after, setting.name))
    ]
    if without_password(after.url) != without_password(before.url):
        found.append("url")
    return tuple(found)


def only_narrows(before: Source, after: Source) -> bool:
    """Whether a change takes rights away and does nothing else."""
    shown = [each.name for each in source_settings() if each.about.grants_more == "nothing"]
    other = before.url != after.url or any(
        getattr(before, name) != getattr(after, name) for name in shown
    )
    return before != after and not other and not widened(before, after)


def _grants_more(setting: SourceSetting, before: Any, after: Any) -> bool:
    match setting.about.grants_more:
        case "a later word":
            return setting.words.index(after) > setting.words.index(before)
        case "a higher number":
            return _number(after) > _number(before)
        case "an added entry":
            return not set(after) <= set(before)
        case "a lost entry":
            return not set(before) <= set(after)
        case "a change":
            return _unordered(after) != _unordered(before)
        case "nothing":
            return False


def _number(value: int | None) -> float:
    return float("inf") if value is None else value


def _unordered(value: Any) -> Any:
    return frozenset(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
