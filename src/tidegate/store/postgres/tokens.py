"""The tokens in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from psycopg import errors

from tidegate.errors import Code, TidegateError
from tidegate.store.held_rows import Touched
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.epochs import Epochs
from tidegate.store.postgres.rows import Rows
from tidegate.store.records import TokenEntry
from tidegate.store.versions import Versions

_TOKENS = Rows(TokenEntry, as_json=("sources", "tags", "tables"))
_RIGHTS = ("scope", "sources", "tags", "tables", "expires_at", "proxy", "max_rows_changed")


class PostgresTokenStore:
    """`api.TokenStore` in PostgreSQL."""

    def __init__(self, database: Database, versions: Versions, epochs: Epochs) -> None:
        self._database = database
        self._epochs = epochs
        self.generation = partial(versions.of, "tokens")

    def list(self) -> tuple[TokenEntry, ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection, "tokens", _TOKENS.columns, "ORDER BY serial", is_whole=True
            )
            found = tuple(_TOKENS.records(rows))
        for each in found:
            if each.revoked_at is not None:
                self._epochs.see_revoked(each.id, each.revoked_at)
        return found

    def add(self, entry: TokenEntry, digest: bytes) -> None:
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(
                connection,
                Touched(
                    "tokens",
                    "name = %s AND revoked_at IS NULL AND expires_at <= %s",
                    (entry.name, entry.created_at),
                    {"revoked_at": entry.created_at},
                ),
            ) as held,
        ):
            connection.ask(
                "UPDATE tidegate.tokens SET revoked_at = %(now)s"
                " WHERE name = %(name)s AND revoked_at IS NULL AND expires_at <= %(now)s",
                {"now": entry.created_at, "name": entry.name},
            )
            try:
                connection.ask(
                    f"INSERT INTO tidegate.tokens ({_TOKENS.columns}, digest)"
                    f" VALUES ({_TOKENS.marks}, %s)",
                    (*_TOKENS.values(entry), digest),
                )
                held.add("tokens", entry.id, {**_TOKENS.named(entry), "digest": digest})
            except errors.UniqueViolation:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already an active token `{entry.name}`.",
                    hint="Revoke it first, or use another name.",
                ) from None

    def by_digest(self, digest: bytes) -> TokenEntry | None:
        with self._database.reading() as connection:
            rows = self._database.seals.find(
                connection, "tokens", _TOKENS.columns, "digest", digest
            )
            return next(iter(_TOKENS.records(rows)), None)

    def change(self, entry: TokenEntry, was: TokenEntry) -> bool:
        sets = ", ".join(f"{name} = %s" for name in _RIGHTS)
        same = " AND ".join(f"{name} IS NOT DISTINCT FROM %s" for name in _RIGHTS)
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(
                connection, Touched("tokens", "id = %s", (was.id,), _TOKENS.named(entry, _RIGHTS))
            ) as held,
        ):
            changed = (
                connection.change(
                    f"UPDATE tidegate.tokens SET {sets}"
                    f" WHERE id = %s AND revoked_at IS NULL AND {same}",
                    (*_TOKENS.values(entry, _RIGHTS), was.id, *_TOKENS.values(was, _RIGHTS)),
                )
                > 0
            )
            if changed:
                held.expect("tokens", was.id)
            return changed

    def revoke(self, name: str, at: float, id: str | None = None) -> TokenEntry | None:
        with (
            self._database.changing("rights") as connection,
            self._database.seals.changing(
                connection,
                Touched("tokens", "name = %s AND revoked_at IS NULL", (name,), {"revoked_at": at}),
            ) as held,
        ):
            row = connection.row(
                "UPDATE tidegate.tokens SET revoked_at = %(at)s WHERE name = %(name)s"
                " AND revoked_at IS NULL AND (%(id)s::text IS NULL OR id = %(id)s)"
                f" RETURNING {_TOKENS.columns}",
                {"at": at, "name": name, "id": id},
            )
            revoked = None if row is None else _TOKENS.record(row)
            if revoked is not None:
                held.expect("tokens", revoked.id)
        if revoked is not None:
            self._epochs.see_revoked(revoked.id, at)
        return revoked

    def revoked(self, ids: Collection[str]) -> frozenset[str]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection, "tokens", "id, revoked_at", "WHERE id = ANY(%s::text[])", (list(ids),)
            )
            listed = self._database.seals.listed(connection, "tokens", ids)
        # One whose row is gone or changed past the gates is as good as revoked.
        refused = listed - {row[0] for row in rows}
        return refused | {id for id, revoked_at in rows if revoked_at is not None}

    def touch(self, uses: Mapping[str, float]) -> None:
        with self._database.changing(settles=False) as connection:
            # In one order, so that no two gates wait for each other.
            used = sorted(uses.items())
            connection.ask(
                "UPDATE tidegate.tokens SET last_used_at = given.at"
                " FROM (SELECT tokens.id, used.at FROM tidegate.tokens"
                " JOIN unnest(%s::text[], %s::float8[]) AS used (id, at) ON used.id = tokens.id"
                " ORDER BY tokens.serial FOR UPDATE OF tokens) AS given"
                " WHERE tokens.id = given.id"
                " AND (last_used_at IS NULL OR last_used_at < given.at)",
                ([id for id, _ in used], [at for _, at in used]),
            )
