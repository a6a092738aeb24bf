"""Requests for a token that wait for the operator, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from tidegate.store.held_rows import Touched
from tidegate.store.records import Pairing, PairingState, TokenRights
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import StateConnection
from tidegate.typed_values import convert_value

_FIELDS = Pairing.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_JSON = frozenset({"wanted", "granted"})


# The two that decide who may go on, with the names of their values. A test runs them on PostgreSQL.
DECIDE = (
    "UPDATE pairings SET state = :state, expires_at = coalesce(:expires_at, expires_at),"
    " token_name = :token_name, granted = :granted"
    " WHERE id = :id AND state = 'pending' AND expires_at > :now"
)
END = "UPDATE pairings SET state = :state WHERE id = :id AND state = :was"


class SqlitePairingStore:
    """`api.PairingStore` in the state file."""

    def __init__(self, file: StateConnection, seals: Seals) -> None:
        self._file = file
        self._seals = seals

    def add(
        self,
        pairing: Pairing,
        digest: bytes,
        *,
        most: int,
        most_of_origin: int,
        origin: Callable[[str], str],
    ) -> bool:
        values = [*map(_column, _FIELDS, _values(pairing)), digest]
        marks = ", ".join("?" * len(values))
        with (
            self._file.changing() as connection,
            self._seals.changing(connection) as held,
        ):
            rows = connection.execute(
                "SELECT address FROM pairings WHERE state = 'pending' AND expires_at > ?",
                (pairing.asked_at,),
            )
            waiting = [origin(address) for (address,) in rows]
            if len(waiting) >= most or waiting.count(origin(pairing.address)) >= most_of_origin:
                return False
            connection.execute(
                f"INSERT INTO pairings ({_COLUMNS}, digest) VALUES ({marks})", values
            )
            held.add("pairings", pairing.id)
            return True

    def forget(self, before: float) -> None:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(connection, Touched("pairings", "expires_at < ?", (before,))),
        ):
            connection.execute("DELETE FROM pairings WHERE expires_at < ?", (before,))

    def list(self) -> tuple[Pairing, ...]:
        return self._read("ORDER BY asked_at, id")

    def find(self, id: str) -> Pairing | None:
        return next(iter(self._read("WHERE id = ?", id)), None)

    def by_digest(self, digest: bytes) -> Pairing | None:
        return next(iter(self._read("WHERE digest = ?", digest)), None)

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
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(connection, Touched("pairings", "id = ?", (id,))) as held,
        ):
            if not held.has("pairings", id):
                return False
            connection.execute(
                DECIDE,
                {
                    "state": state,
                    "expires_at": expires_at,
                    "token_name": token_name,
                    "granted": _column("granted", granted),
                    "id": id,
                    "now": now,
                },
            )
            return connection.changes() > 0

    def end(self, id: str, was: PairingState, state: Literal["exchanged", "burnt"]) -> bool:
        with (
            self._file.changing() as connection,
            self._seals.changing(connection, Touched("pairings", "id = ?", (id,))) as held,
        ):
            if not held.has("pairings", id):
                return False
            connection.execute(END, {"state": state, "id": id, "was": was})
            return connection.changes() > 0

    def _read(self, where: str, *values: Any) -> tuple[Pairing, ...]:
        with self._file.reading() as connection:
            rows = self._seals.select(connection, "pairings", _COLUMNS, where, values)
            return tuple(_pairing(row) for row in rows)


def _values(pairing: Pairing) -> list[Any]:
    return [getattr(pairing, name) for name in _FIELDS]


def _column(name: str, value: Any) -> Any:
    if name in _JSON and value is not None:
        return msgspec.json.encode(value).decode()
    return value


def _pairing(row: tuple[Any, ...]) -> Pairing:
    fields = dict(zip(_FIELDS, row, strict=True))
    return convert_value(
        {
            name: msgspec.json.decode(value) if name in _JSON and value is not None else value
            for name, value in fields.items()
        },
        Pairing,
    )
