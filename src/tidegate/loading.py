"""Reads settings from a file or an inline object, and finds the directory of all state.

A misspelt or unknown setting is an error that names its path and the nearest known name.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec

from tidegate.config import Config, invalid
from tidegate.custody import refuse_foreign_hands
from tidegate.errors import Code, GateError


def load(path_or_inline: str) -> Config:
    """Read a TOML, JSON or YAML file, told by its suffix, or an inline JSON object (`{...}`).

    Raises: GateError CONFIG_INVALID that names the file or the setting and what is wrong with it,
    also for a file that another account, or one of `agent_accounts`, could write.
    """
    text = path_or_inline.lstrip()
    if text.startswith("{"):
        return _convert(_parse_json(text, "the inline settings"))
    path = Path(path_or_inline)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise invalid(f"Cannot read the settings file `{path}`: {reason}.") from None
    parse = {".toml": _parse_toml, ".json": _parse_json, ".yaml": _parse_yaml, ".yml": _parse_yaml}
    if path.suffix.lower() not in parse:
        raise invalid(
            f"The settings file `{path}` has no known suffix.",
            hint="Name it .toml, .json, .yaml or .yml.",
        )
    config = _convert(parse[path.suffix.lower()](content, f"`{path}`"))
    refuse_foreign_hands(path, config.agent_accounts)
    return config


def state_directory(configured: str | None) -> Path:
    """The directory of all state: as configured, else TIDEGATE_STATE, else the platform's own.

    Made with mode 0700 if it is not there.
    Raises: GateError STATE_FAILED if it cannot be made or is open to every user's writing.
    """
    chosen = configured or os.environ.get("TIDEGATE_STATE")
    if chosen:
        path = Path(chosen).expanduser()
    else:
        from platformdirs import user_data_path

        path = user_data_path("tidegate", appauthor=False)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.stat().st_mode
    except OSError as error:
        raise GateError(
            Code.STATE_FAILED, f"Cannot make the state directory `{path}`: {error.strerror}."
        ) from None
    if os.name == "posix" and mode & 0o002:
        raise GateError(
            Code.STATE_FAILED,
            f"Every user can write in the state directory `{path}`.",
            hint=f"Run `chmod 700 {path}`, or use a directory of its own inside it.",
        )
    return path


def _parse_toml(text: str, origin: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise invalid(f"Cannot read {origin} as TOML: {error}.") from None


def _parse_json(text: str, origin: str) -> Any:
    import json

    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ValueError as error:
        raise invalid(f"Cannot read {origin} as JSON: {error}.") from None


def _parse_yaml(text: str, origin: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a key that is given twice, as TOML does."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            _unique([(key.value, None) for key, _ in node.value])
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader) or {}
    except (yaml.YAMLError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise invalid(f"Cannot read {origin} as YAML: {reason}.") from None


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    settings: dict[Any, Any] = {}
    for key, value in pairs:
        if key in settings:
            raise ValueError(f"`{key}` is given twice")
        settings[key] = value
    return settings


def _convert(settings: Any) -> Config:
    if not isinstance(settings, dict):
        raise invalid("The settings are not a table of names and values.")
    _refuse_unknown(settings, Config, "")
    try:
        return msgspec.convert(settings, Config)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `")
        path = where.removesuffix("`").removeprefix("$").removeprefix(".")
        setting = f"`{path}`: {reason}" if path else reason
        raise invalid(f"A setting is not valid: {setting}.") from None


def _refuse_unknown(settings: Any, model: Any, path: str) -> None:
    """Walk settings and model together: msgspec refuses the unknown too, but suggests nothing."""
    if get_origin(model) is tuple:
        if isinstance(settings, list):
            for place, item in enumerate(settings):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - parsed text has no type
                _refuse_unknown(item, get_args(model)[0], f"{path}[{place}]")
        return
    if isinstance(model, UnionType):  # a table that may be left out
        for each in get_args(model):
            _refuse_unknown(settings, each, path)
        return
    if not (isinstance(model, type) and issubclass(model, msgspec.Struct)):
        return
    if not isinstance(settings, dict):
        return
    known = {field.name: field.type for field in msgspec.structs.fields(model)}
    for name, value in settings.items():  # pyright: ignore[reportUnknownVariableType] - as above
        at = f"{path}.{name}" if path else str(name)  # pyright: ignore[reportUnknownArgumentType] - as above
        if name not in known:
            from difflib import get_close_matches

            near = get_close_matches(str(name), known, n=1, cutoff=0.6)  # pyright: ignore[reportUnknownArgumentType] - as above
            hint = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(known)}."
            raise invalid(f"There is no setting `{at}`.", hint=hint)
        _refuse_unknown(value, known[name], at)
