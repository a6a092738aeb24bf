"""A saved source as a row, and its name in the lists of tokens: what all implementations of the
state have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.source_settings import DeclaredSettings
from tidegate.model.sources import Source
from tidegate.typed_values import convert_value

NAMES = (
    "id", "name", "url", "engine", "dialect", "access", "agents", "approval_for", "tags", "rules"
)  # fmt: skip
COLUMNS = ", ".join(NAMES)

# Settings without a column of their own: `rules` holds those that the operator set.
_RULES = tuple(name for name in DeclaredSettings.__struct_fields__ if name not in NAMES)
_DEFAULTS = msgspec.structs.asdict(DeclaredSettings())


def source_of(row: Sequence[Any]) -> Source:
    """The source in a row of `COLUMNS`."""
    fields: dict[str, Any] = dict(zip(NAMES, row, strict=True))
    fields["tags"] = msgspec.json.decode(fields["tags"], type=tuple[str, ...])
    rules = fields.pop("rules")
    if rules == "{}":  # the types of all settings are not evaluated for it, which takes 1.7 ms
        return Source(**fields)
    return convert_value(fields | msgspec.json.decode(rules), Source)


def values_of(source: Source) -> tuple[str, ...]:
    """The values of `COLUMNS`."""
    rules = {
        name: getattr(source, name) for name in _RULES if getattr(source, name) != _DEFAULTS[name]
    }
    return (
        source.id, source.name, source.url, source.engine, source.dialect,
        source.access, source.agents, source.approval_for,
        msgspec.json.encode(source.tags).decode(), msgspec.json.encode(rules).decode(),
    )  # fmt: skip


def rename_in_lists(
    holder: str, lists: tuple[str | None, str | None], old: str, new: str
) -> tuple[str | None, str | None] | None:
    """The lists of sources and of tables of a token, as they are kept, where a source has another
    name; None if they do not name it. `holder` is the name of the token.

    Raises: TidegateError ARGUMENT_INVALID if they name `new`: the token would see a source that it
    was not given.
    """
    sources, tables = map(_names, lists)
    named = {*(sources or ()), *(_source_in(table) for table in tables or ())}
    if new in named:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The token `{holder}` names `{new}` and would see this source.",
            hint="Use another name, or revoke the token first.",
        )
    if old not in named:
        return None
    return _renamed(sources, old, new), _renamed(tables, f"{old}:", f"{new}:")


def _names(text: str | None) -> list[str] | None:
    """The list of a token."""
    return None if text is None else msgspec.json.decode(text, type=list[str])


def _source_in(table: str) -> str:
    """The source in an entry of a table list; empty if it names none."""
    source, colon, _ = table.partition(":")
    return source if colon else ""


def _renamed(names: list[str] | None, old: str, new: str) -> str | None:
    """The list of a token as it is kept: `old`, which may be the start up to `:`, replaced."""
    if names is None:
        return None
    changed = [
        new + name[len(old) :]
        if name == old or (old.endswith(":") and name.startswith(old))
        else name
        for name in names
    ]
    return msgspec.json.encode(sorted(changed)).decode()
