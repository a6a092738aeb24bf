"""What to change in a settings file, as the lines of a patch, for a source that is named there."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from tidegate.config.sources import SourceSettings

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def settings_patch(was: SourceSettings, now: SourceSettings, names: Collection[str]) -> str:
    """The lines of the source's table that go (`-`) and that come (`+`), as TOML. What has its
    default now has no line."""
    before, after, plain = _fields(was), _fields(now), _fields(SourceSettings("x", "sqlite://"))
    lines = [" [[sources]]", f" name = {_toml(was.name)}"]
    for name in SourceSettings.__struct_fields__:
        if name not in names:
            continue
        default = None if name in ("name", "url") else plain[name]
        if before[name] != default:
            lines.append(f"-{name} = {_toml(before[name])}")
        if after[name] != default:
            lines.append(f"+{name} = {_toml(after[name])}")
    return "\n".join(lines) + "\n"


def _fields(settings: SourceSettings) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(settings)
    return {name: _short(value) for name, value in found.items()}


def _short(value: Any) -> Any:
    """Without what is empty in an entry: its default is the same."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {name: _short(each) for name, each in items if each not in (None, (), [], {})}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_short(each) for each in cast("Sequence[Any]", value)]
    return value


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(_pairs(cast("Mapping[str, Any]", value))) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml(each) for each in cast("Sequence[Any]", value)) + "]"
    return json.dumps(value)


def _pairs(table: Mapping[str, Any]) -> Iterator[str]:
    for name, value in table.items():
        key = name if _BARE.fullmatch(name) else _toml(name)
        yield f"{key} = {_toml(value)}"
