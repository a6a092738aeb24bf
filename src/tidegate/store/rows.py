"""How sources, tokens and history stand in the rows of the state file. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.actors import Scope
from tidegate.sources import Source
from tidegate.store.api import HistoryEntry, TokenEntry

OF_SOURCE = "id, name, url, engine, dialect, external_access, ai_policy, safe_mode, tags, rules"
OF_TOKEN = ", ".join(TokenEntry.__struct_fields__)
HISTORY_FIELDS = tuple(name for name in HistoryEntry.__struct_fields__ if name != "id")
OF_HISTORY = ", ".join(f'"{name}"' for name in HISTORY_FIELDS)

_RULES = (
    "approval",
    "unattended",
    "unqualified",
    "destructive_scope",
    "masks",
    "filters",
    "run_as",
)
_PLAIN = msgspec.structs.asdict(Source("", "", "", "", ""))


def read_source(row: tuple[Any, ...]) -> Source:
    *columns, tags, rules = row
    source = Source(*columns, tags=msgspec.json.decode(tags, type=tuple[str, ...]))
    if rules == "{}":
        return source
    fields = msgspec.structs.asdict(source) | msgspec.json.decode(rules)
    return msgspec.convert(fields, Source)


def source_values(source: Source) -> tuple[str, ...]:
    """What stands in the columns of `OF_SOURCE`."""
    return (
        source.id, source.name, source.url, source.engine, source.dialect,
        source.external_access, source.ai_policy, source.safe_mode,
        msgspec.json.encode(source.tags).decode(), _rules(source),
    )  # fmt: skip


def _rules(source: Source) -> str:
    """What the operator set of the fields that have no column of their own."""
    set_here = {
        name: getattr(source, name) for name in _RULES if getattr(source, name) != _PLAIN[name]
    }
    return msgspec.json.encode(set_here).decode()


def token_values(entry: TokenEntry) -> tuple[Any, ...]:
    """What stands in the columns of `OF_TOKEN`."""
    return (
        entry.id, entry.name, entry.prefix, entry.scope.value, _names(entry.sources),
        entry.created_at, entry.expires_at, entry.last_used_at, entry.revoked_at,
        _names(entry.tags), _names(entry.tables),
    )  # fmt: skip


def read_token(row: tuple[Any, ...]) -> TokenEntry:
    fields: dict[str, Any] = dict(zip(TokenEntry.__struct_fields__, row, strict=True))
    fields["scope"] = Scope(fields["scope"])
    for name in ("sources", "tags", "tables"):
        fields[name] = _set(fields[name])
    return TokenEntry(**fields)


def _names(names: frozenset[str] | None) -> str | None:
    return None if names is None else msgspec.json.encode(sorted(names)).decode()


def _set(names: str | None) -> frozenset[str] | None:
    return None if names is None else frozenset(msgspec.json.decode(names, type=list[str]))


def read_entry(row: tuple[Any, ...]) -> HistoryEntry:
    fields = dict(zip(HISTORY_FIELDS, row, strict=False))
    fields["success"] = bool(fields["success"])
    return HistoryEntry(**fields, id=row[-1])
