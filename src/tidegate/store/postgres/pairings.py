"""Requests for a token that wait for the operator, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from tidegate.store.held_rows import Touched
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows
from tidegate.store.records import Pairing, PairingState, TokenRights

_PAIRINGS = Rows(Pairing, as_json=("wanted", "granted"))


class PostgresPairingStore:
    """`api.PairingStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        pairing: Pairing,
        digest: bytes,
        *,
        most: int,
        most_of_origin: int,
        origin: Callable[[str], str],
    ) -> bool:
        with (
            self._database.changing("pairings") as connection,
            self._database.seals.changing(connection) as held,
        ):
            rows = connection.ask(
                "SELECT address FROM tidegate.pairings WHERE state = 'pending' AND expires_at > %s",
                (pairing.asked_at,),
            )
            waiting = [origin(row[0]) for row in rows]
            if len(waiting) >= most or waiting.count(origin(pairing.address)) >= most_of_origin:
                return False
            connection.ask(
                f"INSERT INTO tidegate.pairings ({_PAIRINGS.columns}, digest)"
                f" VALUES ({_PAIRINGS.marks}, %s)",
                [*_PAIRINGS.values(pairing), digest],
            )
            held.add("pairings", pairing.id, {**_PAIRINGS.named(pairing), "digest": digest})
            return True

    def forget(self, before: float) -> None:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("pairings", "expires_at < %s", (before,))
            ),
        ):
            connection.ask("DELETE FROM tidegate.pairings WHERE expires_at < %s", (before,))

    def list(self) -> tuple[Pairing, ...]:
        return self._read("ORDER BY asked_at, id")

    def find(self, id: str) -> Pairing | None:
        return next(iter(self._read("WHERE id = %s", id)), None)

    def by_digest(self, digest: bytes) -> Pairing | None:
        with self._database.reading() as connection:
            rows = self._database.seals.find(
                connection, "pairings", _PAIRINGS.columns, "digest", digest
            )
            return next(iter(_PAIRINGS.records(rows)), None)

    def resolve(
        self,
        id: str,
        state: Literal["approved", "denied"],
        now: float,
        *,
        expires_at: float | None = None,
        token_name: str = "",
        granted: TokenRights | None = None,
    ) -> bool:
        sets: dict[str, Any] = {"state": state, "token_name": token_name}
        sets["granted"] = _PAIRINGS.value("granted", granted)
        if expires_at is not None:
            sets["expires_at"] = expires_at
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("pairings", "id = %s", (id,), sets)
            ) as held,
        ):
            changed = held.has("pairings", id) and (
                connection.change(
                    "UPDATE tidegate.pairings SET state = %s,"
                    " expires_at = coalesce(%s::float8, expires_at), token_name = %s, granted = %s"
                    " WHERE id = %s AND state = 'pending' AND expires_at > %s",
                    (
                        *(state, expires_at, token_name),
                        *(_PAIRINGS.value("granted", granted), id, now),
                    ),
                )
                > 0
            )
            if changed:
                held.expect("pairings", id)
            return changed

    def end(self, id: str, was: PairingState, state: Literal["exchanged", "burnt"]) -> bool:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("pairings", "id = %s", (id,), {"state": state})
            ) as held,
        ):
            changed = held.has("pairings", id) and (
                connection.change(
                    "UPDATE tidegate.pairings SET state = %s WHERE id = %s AND state = %s",
                    (state, id, was),
                )
                > 0
            )
            if changed:
                held.expect("pairings", id)
            return changed

    def _read(self, rest: str, *values: Any) -> tuple[Pairing, ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection, "pairings", _PAIRINGS.columns, rest, values
            )
            return tuple(_PAIRINGS.records(rows))
