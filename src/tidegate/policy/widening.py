"""Which settings of a source grant more than before. Pure."""

from __future__ import annotations

from tidegate.model.sources import Source
from tidegate.secrets import without_password

_STRICTEST_FIRST: dict[str, tuple[str, ...]] = {
    "access": ("none", "read", "write", "admin"),
    "agents": ("deny", "ask", "allow"),
    "approval_for": ("everything", "writes", "nothing"),
    "changes": ("deny", "allow"),
    "approval": ("inbox", "any"),
    "unattended": ("deny", "allow"),
    "unqualified": ("deny", "confirm", "allow"),
    "destructive_scope": ("fullAccess", "readWrite"),
    "undo": ("require", "keep", "off"),
}
"""The words of each setting, from the one that grants least to the one that grants most."""

_RULES_ON_DATA = ("masks", "filters")
"""Settings that hide data: to remove or to change one entry grants more."""

_MEANINGS = ("run_as", "options")
"""Settings that say as whom, and how: any change may grant more, as may another URL. A new password
of the same user grants nothing."""


def widened(before: Source, after: Source) -> tuple[str, ...]:
    """The names of the settings of `after` that grant callers more than `before` did."""
    found = [
        name
        for name, words in _STRICTEST_FIRST.items()
        if words.index(getattr(after, name)) > words.index(getattr(before, name))
    ]
    found += [
        name
        for name in _RULES_ON_DATA
        if not set(getattr(before, name)) <= set(getattr(after, name))
    ]
    if _most(after) > _most(before):
        found.append("max_rows_changed")
    if not set(after.functions) <= set(before.functions):
        found.append("functions")
    if set(after.tags) != set(before.tags):
        found.append("tags")  # a token, a mask or a filter may be for all sources with a tag
    if without_password(after.url) != without_password(before.url):
        found.append("url")
    found += [name for name in _MEANINGS if getattr(after, name) != getattr(before, name)]
    return tuple(found)


def _most(source: Source) -> float:
    return float("inf") if source.max_rows_changed is None else source.max_rows_changed
