"""Reads settings from a file or an inline object.

A misspelt or unknown setting is an error that names its path and the nearest known name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from tidegate.config.errors import invalid
from tidegate.config.file_permissions import require_private_file
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.products.cloud.settings_import import is_stackql
from tidegate.products.cloud.settings_import import translate as translate_stackql
from tidegate.products.pgedge.settings_import import is_pgedge, translate

Note = Callable[[str], None]


def _ignore(note: str) -> None:
    return None


def is_inline(path_or_inline: str) -> bool:
    """Whether this is the text of settings: an object in braces, or several lines."""
    text = path_or_inline.strip()
    return text.startswith("{") or "\n" in text


def load(path_or_inline: str, note: Note = _ignore) -> Config:
    """Read a TOML, JSON or YAML file, by its suffix, or settings that are given inline: an object
    in braces, as JSON or YAML, or lines of TOML or YAML. It may also be the configuration of
    pgEdge's server in a file (`pgedge.py`), or of StackQL's (`stackql.py`).

    `note` gets one line for each setting of pgEdge's server that has no effect here.
    Raises: TidegateError CONFIG_INVALID that names the file or the setting and what is wrong with
    it, also for a file that another account, or one of `agent_accounts`, could write.
    """
    if is_inline(path_or_inline):
        config = _convert(_parse_inline(path_or_inline.strip()))
        if config.approvals.webhook is not None:
            raise invalid(
                "`approvals.webhook` is not taken from inline settings.",
                hint="Write it into a settings file that you alone can write.",
            )
        return config
    path = Path(path_or_inline)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise invalid(
            f"Cannot read the settings file `{path}`: {reason}.",
            hint="Check the path and who may read it.",
        ) from None
    parse = {".toml": _parse_toml, ".json": _parse_json, ".yaml": parse_yaml, ".yml": parse_yaml}
    if path.suffix.lower() not in parse:
        raise invalid(
            f"The settings file `{path}` has no known suffix.",
            hint="Name it .toml, .json, .yaml or .yml.",
        )
    parsed = parse[path.suffix.lower()](content, f"`{path}`")
    if is_pgedge(parsed):
        parsed = translate(parsed, os.environ, lambda line: note(f"`{path}`: {line}"))
    config = _convert(parsed)
    require_private_file(path, config.agent_accounts)
    return config


def _parse_inline(text: str) -> Any:
    """The value of settings that are no file. What is wrong is said in the terms of the format that
    they begin like."""
    origin = "the inline settings"
    parsers = (_parse_json, parse_yaml) if text.startswith("{") else (_parse_toml, parse_yaml)
    try:
        return parsers[0](text, origin)
    except TidegateError as first:
        if "is given twice" in first.message:
            raise
        try:
            parsed = parsers[1](text, origin)
        except TidegateError:
            raise first from None
        if not isinstance(parsed, dict):
            raise
        return parsed  # pyright: ignore[reportUnknownVariableType] - parsed text has no type


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


def parse_yaml(text: str, origin: str) -> Any:
    """The value of a YAML text; an empty one is a table without entries. `origin` names the text.

    Raises: TidegateError CONFIG_INVALID.
    """
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


T = TypeVar("T", bound=msgspec.Struct)


def convert_table(settings: Any, model: type[T], path: str = "") -> T:
    """A parsed table as `model`, strictly; `path` is its place in the settings.

    Raises: TidegateError CONFIG_INVALID that names the setting and what is wrong with it.
    """
    if not isinstance(settings, dict):
        which = f" `{path}`" if path else ""
        raise invalid(f"The settings{which} are not a table of names and values.")
    _refuse_unknown(settings, model, path)
    try:
        return msgspec.convert(settings, model)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `")
        inner = where.removesuffix("`").removeprefix("$").removeprefix(".")
        place = ".".join(filter(None, (path, inner)))
        setting = f"`{place}`: {reason}" if place else reason
        meant = _meant(settings, model, inner)  # pyright: ignore[reportUnknownArgumentType] - parsed text has no type
        hint = f"Did you mean `{meant}`?" if meant else None
        raise invalid(f"A setting is not valid: {setting}.", hint=hint) from None


def _meant(settings: dict[Any, Any], model: type[msgspec.Struct], name: str) -> str | None:
    """The setting with nearly this name that could have this value, as the misspelt one cannot."""
    from difflib import get_close_matches

    types = {field.name: field.type for field in msgspec.structs.fields(model)}
    if types.pop(name, None) is None:
        return None
    for near in get_close_matches(name, types, cutoff=0.8):
        try:
            msgspec.convert(settings[name], types[near])
            return near
        except msgspec.ValidationError:
            pass  # the value fits this one as little
    return None


def _convert(settings: Any) -> Config:
    if not isinstance(settings, dict):
        raise invalid("The settings are not a table of names and values.")
    if is_stackql(settings):  # pyright: ignore[reportUnknownArgumentType] - as below
        settings = translate_stackql(settings)  # pyright: ignore[reportUnknownArgumentType] - as below
    return convert_table(settings, Config)


def _refuse_unknown(settings: Any, model: Any, path: str) -> None:
    """Walk settings and model together: msgspec refuses the unknown too, but suggests nothing."""
    if get_origin(model) is Annotated:
        model = get_args(model)[0]
    if get_origin(model) is tuple:
        if isinstance(settings, list):
            for place, item in enumerate(settings):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - parsed text has no type
                _refuse_unknown(item, get_args(model)[0], f"{path}[{place}]")
        return
    if isinstance(model, UnionType):  # a table that may be left out
        for each in get_args(model):
            _refuse_unknown(settings, each, path)
        return
    if get_origin(model) is Literal:
        _refuse_unknown_word(settings, get_args(model), path)
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


def _refuse_unknown_word(word: Any, known: tuple[str, ...], path: str) -> None:
    """Raises: TidegateError CONFIG_INVALID for a text that is none of the words a setting may
    be."""
    if not isinstance(word, str) or word in known:
        return
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), {each.lower(): each for each in known}, 1)
    meant = next((each for each in known if near and each.lower() == near[0]), None)
    raise invalid(
        f"A setting is not valid: `{path}` cannot be {word[:40]!r}.",
        hint=f"Did you mean `{meant}`?" if meant else f"Choose from {', '.join(known)}.",
    )
