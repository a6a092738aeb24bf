"""Settings under their old names: read for this release, with a note for the operator.

The reference shows the new names only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from tidegate.config.errors import invalid

OLD_POLICY: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "external_access": {
        "blocked": {"access": "none"},
        "readOnly": {"access": "read"},
        "readWrite": {"access": "write"},
    },
    "ai_policy": {
        "alwaysAllow": {"agents": "allow"},
        "askEachTime": {"agents": "ask"},
        "never": {"agents": "deny"},
    },
    "safe_mode": {
        "silent": {"approval_for": "nothing", "changes": "allow"},
        "alert": {"approval_for": "writes", "changes": "allow"},
        "safeMode": {"approval_for": "writes", "changes": "allow"},
        "alertFull": {"approval_for": "everything", "changes": "allow"},
        "safeModeFull": {"approval_for": "everything", "changes": "allow"},
        "readOnly": {"approval_for": "nothing", "changes": "deny"},
    },
}
"""The settings of a source that were named after one product, and what each of their words sets.
`alert` and `safeMode` mean the same, and so do `alertFull` and `safeModeFull`."""
OLD_WORKBENCH = ("http_error_status", "export_directory", "extended")
"""The settings of the surface `workbench` that were at the top."""


def new_policy(old: str, word: str, path: str = "") -> Mapping[str, str]:
    """The settings that an old name with this word stands for; `path` is the place of the name.

    Raises: TidegateError CONFIG_INVALID for an unknown word.
    """
    words = OLD_POLICY[old]
    if word not in words:
        raise invalid(
            f"A setting is not valid: `{path}{old}` cannot be {word[:40]!r}.",
            hint=_suggestion(word, words),
        )
    return words[word]


def rename_policy(source: dict[str, Any], path: str = "") -> list[str]:
    """Replace the old policy names in one source's settings, in place. Returns those found.

    Raises: TidegateError CONFIG_INVALID for an unknown word, or for both names of one setting.
    """
    found = [old for old in OLD_POLICY if old in source]
    for old in found:
        renamed = new_policy(old, str(source.pop(old)), path)
        for new in renamed:
            if new in source:
                raise invalid(
                    f"`{path}{old}` is the old name of `{path}{new}`, and both are given.",
                    hint=f"Remove `{old}`.",
                )
        source.update(renamed)
    return found


def rename_settings(settings: dict[str, Any]) -> list[str]:
    """Replace every old name in a parsed table of settings, in place. Returns notes for the
    operator, one for each old name. Raises: TidegateError CONFIG_INVALID."""
    found: dict[str, None] = {}
    sources: Any = settings.get("sources")
    if isinstance(sources, list):
        for place, source in enumerate(cast("list[Any]", sources)):
            if isinstance(source, dict):
                fields = cast("dict[str, Any]", source)
                found |= dict.fromkeys(rename_policy(fields, f"sources[{place}]."))
    return [*(policy_note(old) for old in found), *_rename_workbench(settings)]


def _rename_workbench(settings: dict[str, Any]) -> list[str]:
    """Move the workbench's settings from the top into its section."""
    notes: list[str] = []
    for name in OLD_WORKBENCH:
        if name not in settings:
            continue
        surface: Any = settings.setdefault("surface", {})
        section: Any = surface.setdefault("workbench", {}) if isinstance(surface, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - parsed text has no type
        if not isinstance(section, dict) or name in section:
            raise invalid(
                f"`{name}` is the old name of `surface.workbench.{name}`, and both are given.",
                hint=f"Remove `{name}`.",
            )
        section[name] = settings.pop(name)
        notes.append(f"`{name}` has a new name: use `surface.workbench.{name}`")
    return notes


def policy_note(old: str, prefix: str = "") -> str:
    """The note for an operator who uses an old name; `prefix` comes before each name."""
    names = dict.fromkeys(f"{prefix}{name}" for new in OLD_POLICY[old].values() for name in new)
    return f"`{prefix}{old}` has a new name: use {_listed(names)}"


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _suggestion(word: str, words: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), {each.lower(): each for each in words}, 1)
    meant = next((each for each in words if near and each.lower() == near[0]), None)
    return f"Did you mean `{meant}`?" if meant else f"Choose from {', '.join(words)}."
