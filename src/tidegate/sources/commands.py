"""The command of `tidegate source` that does what a person does in a page. It holds no secret."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from typing import Any, cast

import msgspec

from tidegate.model.source_settings import Mask, RowFilter, RunAs, SourceSetting, source_settings
from tidegate.model.sources import Source
from tidegate.secrets.url_logins import without_password
from tidegate.store.passwords import Place


def add_command(source: Source, *, asks_password: bool = False, place: Place = "file") -> str:
    """The command that saves a new source."""
    settings = [s for s in source_settings() if getattr(source, s.name) != s.default]
    words = ["tidegate", "source", "add", source.name, without_password(source.url)]
    for setting in settings:
        words += _words(setting, getattr(source, setting.name))
    return shlex.join([*words, *_password_words(place, asks=asks_password)])


def update_command(
    was: Source, now: Source, names: Collection[str], *, asks_password: bool, place: Place
) -> str:
    """The command that changes the settings with these names; `url` may be one."""
    words = ["tidegate", "source", "update", was.name]
    if without_password(was.url) != without_password(now.url):
        words += ["--url", without_password(now.url)]
    for setting in source_settings():
        if setting.name in names:
            value = getattr(now, setting.name)
            if setting.name in ("run_as", "options") or value == ():
                words += ["--clear", setting.name.replace("_", "-")]
            words += _words(setting, value)
    return shlex.join([*words, *_password_words(place, asks=asks_password)])


def _password_words(place: Place, *, asks: bool) -> list[str]:
    if not asks:
        return []
    return ["--ask-password", *(["--keep-in", place] if place != "file" else [])]


def _words(setting: SourceSetting, value: Any) -> list[str]:
    if isinstance(value, RunAs):
        return list(_run_as_words(value))
    if setting.form == "entries" or setting.name == "options":
        return [word for each in value for word in (setting.option, _entry(each))]
    if value is None:
        return [setting.option, "none"] if setting.form == "number" else []
    return [setting.option, str(value)]


def _run_as_words(run_as: RunAs) -> Iterator[str]:
    if run_as.role is not None:
        yield from ("--run-as-role", run_as.role)
    for caller, role in run_as.roles:
        yield from ("--run-as", f"{caller}={role}")
    for name, value in run_as.variables:
        yield from ("--run-as-variable", f"{name}={value}")


def _entry(value: Any) -> str:
    """An entry of a setting as its option takes it: as JSON where the short form cannot say it."""
    if isinstance(value, Mask):
        plain = value == Mask(value.column, value.show)
        return f"{value.column}={value.show}" if plain else _json(value)
    if isinstance(value, RowFilter):
        plain = value == RowFilter(value.table, value.where) and ":" not in value.table
        stripped = value.where == value.where.strip()
        return f"{value.table}: {value.where}" if plain and stripped else _json(value)
    if isinstance(value, tuple):
        name, text = cast("tuple[str, str]", value)
        return f"{name}={text}"
    return str(value)


def _json(rule: Mask | RowFilter) -> str:
    fields = msgspec.to_builtins(rule)
    defaults = {f.name: f.default for f in msgspec.structs.fields(rule)}
    given = {name: value for name, value in fields.items() if _differs(value, defaults[name])}
    return msgspec.json.encode(given).decode()


def _differs(value: Any, default: Any) -> bool:
    if isinstance(value, list):
        value = tuple(cast("list[Any]", value))
    return bool(value != default)
