"""Reads settings from a file or an inline object.

A misspelt or unknown setting is an error that names its path and the nearest known name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast, get_args, get_origin

import msgspec

from tidegate.config.errors import invalid
from tidegate.config.file_permissions import require_private_file
from tidegate.config.model import Config
from tidegate.config.sections import Section
from tidegate.errors import TidegateError
from tidegate.product import Product, add_installed, built_in, own_entries
from tidegate.product import load as load_place
from tidegate.typed_values import convert_value

Note = Callable[[str], None]


class SettingsFormat(NamedTuple):
    """The configuration of another program, which `translate` gives as settings of ours, not
    checked yet. It gets the parsed configuration, the environment, and what takes a line for each
    key without effect; it raises TidegateError CONFIG_INVALID for a key that cannot be kept.
    `recognizes` says whether parsed settings are such a configuration. `in_files_alone`: it is not
    taken as inline settings."""

    recognizes: Callable[[object], bool]
    translate: Callable[[dict[str, Any], Mapping[str, str], Note], dict[str, Any]]
    in_files_alone: bool = False


def _ignore(note: str) -> None:
    return None


def is_inline(path_or_inline: str) -> bool:
    """Whether this is the text of settings: an object in braces, or several lines."""
    text = path_or_inline.strip()
    return text.startswith("{") or "\n" in text


def load(path_or_inline: str, note: Note = _ignore) -> Config:
    """Read a TOML, JSON or YAML file, by its suffix, or settings that are given inline: an object
    in braces, as JSON or YAML, or lines of TOML or YAML. It may also be written for another
    program, of which a product reads the configuration (`SettingsFormat`).

    `note` gets one line for each setting of that program that has no effect here.
    Raises: TidegateError CONFIG_INVALID that names the file or the setting and what is wrong with
    it, also for a file that another account, or one of `agent_accounts`, could write.
    """
    if is_inline(path_or_inline):
        config = _convert(_parse_inline(path_or_inline.strip()), note)
        for setting in _secret_addresses(config):
            raise invalid(
                f"`{setting}` is not taken from inline settings.",
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
    config = _convert(parsed, note, path)
    require_private_file(path, config.agent_accounts)
    return config


def _secret_addresses(config: Config) -> Iterator[str]:
    """The settings that hold an address which may be a secret."""
    if config.approvals.webhook is not None:
        yield "approvals.webhook"
    for section in config.sections.values():
        yield from section.secret_addresses()


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
        return convert_value(settings, model)
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
            convert_value(settings[name], types[near])
            return near
        except msgspec.ValidationError:
            pass  # the value fits this one as little
    return None


def _convert(parsed: Any, note: Note, path: Path | None = None) -> Config:
    """The settings in a parsed text, which was the file at `path`. Raises: TidegateError
    CONFIG_INVALID."""
    if not isinstance(parsed, dict):
        raise invalid("The settings are not a table of names and values.")
    settings = _translate(cast("dict[str, Any]", parsed), note, path)
    return convert_settings(settings)


def convert_settings(settings: dict[str, Any]) -> Config:
    """Parsed settings as the model, those of products as their sections. Raises: TidegateError
    CONFIG_INVALID that names the setting and what is wrong with it."""
    rest = dict(settings)
    sections = _take_sections(rest)
    return msgspec.structs.replace(convert_table(rest, Config), sections=sections)


def _translate(settings: dict[str, Any], note: Note, path: Path | None) -> dict[str, Any]:
    """A copy of the settings; those for another program as settings of ours. Raises:
    TidegateError CONFIG_INVALID."""
    ours = {*Config.__struct_fields__, *own_entries(_settings)}
    if settings.keys() <= ours and not isinstance(settings.get("http"), dict):
        return dict(settings)
    for product in built_in():
        if not product.settings_format:
            continue
        form: SettingsFormat = load_place(product.settings_format)
        if form.recognizes(settings) and (path is not None or not form.in_files_alone):
            return form.translate(settings, os.environ, lambda line: note(f"`{path}`: {line}"))
    return dict(settings)


def _take_sections(settings: dict[str, Any]) -> dict[str, Section]:
    """The sections of products, which `settings` then has no more. Raises: TidegateError
    CONFIG_INVALID."""
    known = own_entries(_settings)
    unknown = [name for name in settings if name not in known]
    if any(name not in Config.__struct_fields__ for name in unknown):
        add_installed(known, _settings, "section", Config.__struct_fields__)
    if "sections" in settings:  # the name of a field is no setting
        _refuse_unknown_name("sections", "sections", known)
    found: dict[str, Section] = {}
    for name in sorted(known.keys() & settings.keys()):
        kind: type[Section] = load_place(known[name])
        if name != kind.NAME:  # else nothing would read what is set here
            raise invalid(f"The section `{name}` belongs to a struct for `{kind.NAME}`.")
        found[name] = convert_table(settings.pop(name), kind, name)
    return found


def section_kinds() -> dict[str, type[Section]]:
    """The structs of the sections of the products that are here, by name."""
    return {name: load_place(place) for name, place in own_entries(_settings).items()}


def _settings(product: Product) -> Mapping[str, str]:
    return product.settings


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
            names = [*known, *own_entries(_settings)] if model is Config else known
            _refuse_unknown_name(str(name), at, names)  # pyright: ignore[reportUnknownArgumentType] - as above
        _refuse_unknown(value, known[name], at)


def _refuse_unknown_name(name: str, at: str, known: Iterable[str]) -> None:
    """Raises: TidegateError CONFIG_INVALID with the nearest of the known names."""
    from difflib import get_close_matches

    names = [each for each in known if each != "sections"]
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f"Did you mean `{near[0]}`?" if near else f"Known here: {', '.join(names)}."
    raise invalid(f"There is no setting `{at}`.", hint=hint)


def _refuse_unknown_word(word: Any, known: tuple[str, ...], path: str) -> None:
    """Raises: TidegateError CONFIG_INVALID for a text that is not one of the words a setting may
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
