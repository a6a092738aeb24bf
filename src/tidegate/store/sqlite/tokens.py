"""The tokens in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import apsw
import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.store.held_rows import Touched
from tidegate.store.records import TokenEntry
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import StateConnection
from tidegate.store.sqlite.rights import RightsConnection

_FIELDS = TokenEntry.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_MARKS = ", ".join("?" * len(_FIELDS))
_RIGHTS = ("scope", "sources", "tags", "tables", "expires_at", "proxy", "max_rows_changed")
_LISTS = frozenset({"sources", "tags", "tables"})


class SqliteTokenStore:
    """`api.TokenStore` in the state file. The time of last use goes by `usage`, which does not sync
    each write and does not keep rights waiting."""

    def __init__(self, rights: RightsConnection, usage: StateConnection, seals: Seals) -> None:
        self._rights = rights
        self._seals = seals
        self._usage = usage
        self.generation = partial(rights.versions.known.of, "tokens")

    def list(self) -> tuple[TokenEntry, ...]:
        with self._rights.reading() as connection:
            rows = self._seals.select(
                connection, "tokens", _COLUMNS, "ORDER BY serial", is_whole=True
            )
            return tuple(_token(row) for row in rows)

    def add(self, entry: TokenEntry, digest: bytes) -> None:
        with (
            self._rights.changing(uses_reserve=False) as connection,
            self._seals.changing(
                connection,
                Touched(
                    "tokens",
                    "name = ? AND revoked_at IS NULL AND expires_at <= ?",
                    (entry.name, entry.created_at),
                ),
            ) as held,
        ):
            connection.execute(
                "UPDATE tokens SET revoked_at = ?1"
                " WHERE name = ?2 AND revoked_at IS NULL AND expires_at <= ?1",
                (entry.created_at, entry.name),
            )
            try:
                connection.execute(
                    f"INSERT INTO tokens ({_COLUMNS}, digest) VALUES ({_MARKS}, ?)",
                    (*(_column(name, getattr(entry, name)) for name in _FIELDS), digest),
                )
                held.add("tokens", entry.id)
            except apsw.ConstraintError:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already an active token `{entry.name}`.",
                    hint="Revoke it first, or use another name.",
                ) from None

    def by_digest(self, digest: bytes) -> TokenEntry | None:
        with self._rights.reading() as connection:
            rows = self._seals.find(connection, "tokens", _COLUMNS, "digest", digest)
            return _token(rows[0]) if rows else None

    def change(self, entry: TokenEntry, was: TokenEntry) -> bool:
        names = ", ".join(_RIGHTS)
        marks = ", ".join("?" * len(_RIGHTS))
        same = " AND ".join(f"{name} IS ?" for name in _RIGHTS)
        now, before = (
            [_column(name, getattr(each, name)) for name in _RIGHTS] for each in (entry, was)
        )
        with (
            self._rights.changing() as connection,
            self._seals.changing(connection, Touched("tokens", "id = ?", (was.id,))),
        ):
            connection.execute(
                f"UPDATE tokens SET ({names}) = ({marks})"
                f" WHERE id = ? AND revoked_at IS NULL AND {same}",
                (*now, was.id, *before),
            )
            return connection.changes() > 0

    def revoke(self, name: str, at: float, id: str | None = None) -> TokenEntry | None:
        with (
            self._rights.changing() as connection,
            self._seals.changing(
                connection, Touched("tokens", "name = ? AND revoked_at IS NULL", (name,))
            ),
        ):
            row = connection.execute(
                "UPDATE tokens SET revoked_at = ?1 WHERE name = ?2 AND revoked_at IS NULL"
                f" AND (?3 IS NULL OR id = ?3) RETURNING {_COLUMNS}",
                (at, name, id),
            ).fetchone()
            return None if row is None else _token(row)

    def revoked(self, ids: Collection[str]) -> frozenset[str]:
        with self._rights.reading() as connection:
            rows = self._seals.select(
                connection,
                "tokens",
                "id, revoked_at",
                "WHERE id IN (SELECT value FROM json_each(?))",
                (msgspec.json.encode(sorted(ids)).decode(),),
            )
            listed = self._seals.listed(connection, "tokens", ids)
        # One whose row is gone or changed past the gates is as good as revoked.
        refused = listed - {row[0] for row in rows}
        return refused | {id for id, revoked_at in rows if revoked_at is not None}

    def touch(self, uses: Mapping[str, float]) -> None:
        with self._usage.changing() as connection:
            connection.executemany(
                "UPDATE tokens SET last_used_at = ?2 WHERE id = ?1"
                " AND (last_used_at IS NULL OR last_used_at < ?2)",
                uses.items(),
            )


def _column(name: str, value: Any) -> Any:
    if isinstance(value, Scope):
        return value.value
    if name in _LISTS and value is not None:
        return msgspec.json.encode(sorted(value)).decode()
    return value


def _token(row: tuple[Any, ...]) -> TokenEntry:
    fields: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))
    fields["scope"] = Scope(fields["scope"])
    fields["proxy"] = bool(fields["proxy"])
    for name in _LISTS:
        if fields[name] is not None:
            fields[name] = frozenset(msgspec.json.decode(fields[name], type=list[str]))
    return TokenEntry(**fields)
