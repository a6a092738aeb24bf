"""The saved sources in PostgreSQL."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from psycopg import errors

from tidegate.errors import Code, TidegateError
from tidegate.model.source_settings import DeclaredSettings
from tidegate.model.sources import Source
from tidegate.store.postgres.connection import Row, StateConnection
from tidegate.store.postgres.database import Database
from tidegate.store.versions import Versions

_NAMES = (
    "id", "name", "url", "engine", "dialect", "access", "agents", "approval_for", "tags", "rules"
)  # fmt: skip
_COLUMNS = ", ".join(_NAMES)
_MARKS = ", ".join(["%s"] * len(_NAMES))

# Settings without a column of their own: `rules` holds those that the operator set.
_RULES = tuple(name for name in DeclaredSettings.__struct_fields__ if name not in _NAMES)
_DEFAULTS = msgspec.structs.asdict(DeclaredSettings())
_FOLLOWING = (
    ("history", "source", False),
    ("windows", "source_id", True),
    ("closed_tabs", "source_id", True),
    ("saved_queries", "source_id", True),
    ("changes", "source", False),
    ("budgets", "source", False),
    ("changes", "source_id", True),
    ("confirmed_pairs", "source_id", True),
    ("answers", "source_id", True),
)
"""What goes with a source to its new name, or, if true, to its new id."""


class PostgresSourceStore:
    """`api.SourceStore` in PostgreSQL."""

    def __init__(self, database: Database, versions: Versions) -> None:
        self._database = database
        self._versions = versions
        self.generation = partial(versions.of, "sources")
        self._known: tuple[int, tuple[Source, ...], dict[str, Source]] | None = None
        self._followed: tuple[tuple[Source, ...], dict[str, Source]] = (), {}
        versions.load_with("sources", self._load)

    def list(self) -> tuple[Source, ...]:
        return self._current()[0]

    def find(self, name: str) -> Source | None:
        return self._current()[1].get(name)

    def add(self, source: Source) -> None:
        with self._database.changing("rights") as connection:
            try:
                connection.ask(
                    f"INSERT INTO tidegate.sources ({_COLUMNS}) VALUES ({_MARKS})", _values(source)
                )
            except errors.UniqueViolation:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already a source `{source.name}`.",
                    hint="Use another name, or change it with `tidegate source update`.",
                ) from None

    def change(self, source: Source, was: Source) -> bool:
        with self._database.changing("rights") as connection:
            if not _is_unchanged(connection, was, name=source.name, id=source.id):
                return False
            _write(connection, source, source.name)
            return True

    def rename(self, was: Source, now: Source, at: float) -> tuple[str, ...] | None:
        with self._database.changing("rights", "approvals", "windows", "queries") as connection:
            if not _is_unchanged(connection, was, name=was.name, id=was.id):
                return None
            holders = _rename_in_tokens(connection, was.name, now.name)
            try:
                _write(connection, now, was.name)
            except errors.UniqueViolation:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already a source `{now.name}`.",
                    hint="Use another name.",
                ) from None
            if was.name != now.name:  # of a source of that name that was there before
                connection.ask("DELETE FROM tidegate.budgets WHERE source = %s", (now.name,))
            for table, column, is_id in _FOLLOWING:
                old, new = (was.id, now.id) if is_id else (was.name, now.name)
                connection.ask(
                    f"UPDATE tidegate.{table} SET {column} = %s WHERE {column} = %s", (new, old)
                )
            # A person was shown the old name, under which another source may come.
            connection.ask(
                "UPDATE tidegate.approvals SET state = 'expired', ended_at = %s"
                " WHERE state IN ('pending', 'allowed') AND source_id = %s",
                (at, was.id),
            )
            return tuple(holders)

    def remove(self, name: str) -> bool:
        with self._database.changing("rights") as connection:
            return connection.change("DELETE FROM tidegate.sources WHERE name = %s", (name,)) > 0

    def _current(self) -> tuple[tuple[Source, ...], dict[str, Source]]:
        """All sources, and by name: from memory."""
        if self._versions.followed:
            self._versions.check()
            return self._followed
        generation = self.generation()
        if self._known is None or self._known[0] != generation:
            self._known = (generation, *self._read())
        return self._known[1:]

    def _load(self) -> None:
        """Read all sources, for answers from memory where changes are followed."""
        self._followed = self._read()

    def _read(self) -> tuple[tuple[Source, ...], dict[str, Source]]:
        with self._database.reading() as connection:
            rows = connection.ask(f"SELECT {_COLUMNS} FROM tidegate.sources ORDER BY name")
            found = tuple(map(_source, rows))
        return found, {source.name: source for source in found}


def _is_unchanged(connection: StateConnection, was: Source, *, name: str, id: str) -> bool:
    row = connection.row(
        f"SELECT {_COLUMNS} FROM tidegate.sources WHERE name = %s AND id = %s FOR UPDATE",
        (name, id),
    )
    return row is not None and _source(row) == was


def _write(connection: StateConnection, source: Source, name: str) -> None:
    connection.ask(
        f"UPDATE tidegate.sources SET ({_COLUMNS}) = ({_MARKS}) WHERE name = %s",
        (*_values(source), name),
    )


def _rename_in_tokens(connection: StateConnection, old: str, new: str) -> list[str]:
    """Rename a source in the lists of tokens; the names of these tokens."""
    holders: list[str] = []
    rows = connection.ask(
        "SELECT id, name, sources, tables FROM tidegate.tokens"
        " WHERE revoked_at IS NULL ORDER BY serial"
    )
    for id, holder, *lists in rows.fetchall():
        sources, tables = map(_names, lists)
        named = {*(sources or ()), *(_source_of(table) for table in tables or ())}
        if new in named:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The token `{holder}` names `{new}` and would see this source.",
                hint="Use another name, or revoke the token first.",
            )
        if old in named:
            connection.ask(
                "UPDATE tidegate.tokens SET sources = %s, tables = %s WHERE id = %s",
                (_renamed(sources, old, new), _renamed(tables, f"{old}:", f"{new}:"), id),
            )
            holders.append(holder)
    return holders


def _source(row: Row) -> Source:
    fields: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
    fields["tags"] = msgspec.json.decode(fields["tags"], type=tuple[str, ...])
    rules = fields.pop("rules")
    if rules == "{}":  # the types of all settings are not evaluated for it, which takes 1.7 ms
        return Source(**fields)
    return msgspec.convert(fields | msgspec.json.decode(rules), Source)


def _values(source: Source) -> tuple[str, ...]:
    """The values of `_COLUMNS`."""
    rules = {
        name: getattr(source, name) for name in _RULES if getattr(source, name) != _DEFAULTS[name]
    }
    return (
        source.id, source.name, source.url, source.engine, source.dialect,
        source.access, source.agents, source.approval_for,
        msgspec.json.encode(source.tags).decode(), msgspec.json.encode(rules).decode(),
    )  # fmt: skip


def _names(text: str | None) -> list[str] | None:
    """The list of a token."""
    return None if text is None else msgspec.json.decode(text, type=list[str])


def _source_of(table: str) -> str:
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
