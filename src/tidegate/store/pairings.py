"""Requests for a token that wait for the operator, in the state file. Knows no policy, no clock.

A request is found by the short `id` that people compare, or by the digest of the secret code that
only the client has.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from tidegate.actors import Scope
from tidegate.store.file import StateFile

State = Literal["pending", "approved", "denied", "exchanged", "burnt"]


class Rights(msgspec.Struct, frozen=True):
    """What a token may do, as wanted or as granted. `sources` and `tags` None: every source;
    `tables` None: all there.

    `lasts_s` is how long the token is to live, in seconds from its making; None is for good.
    """

    scope: Scope = Scope.READ_ONLY
    sources: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    lasts_s: float | None = None
    tables: frozenset[str] | None = None


class Pairing(msgspec.Struct, frozen=True):
    """One request. Times are Unix seconds; `granted` and `token_name` are set by an approval."""

    id: str
    client: str
    address: str
    challenge: str
    wanted: Rights
    asked_at: float
    expires_at: float
    state: State = "pending"
    token_name: str = ""
    granted: Rights | None = None


_FIELDS = Pairing.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_JSON = frozenset({"wanted", "granted"})


class Pairings:
    """The requests in the state file, shared by processes. Safe to call from any thread.

    Each method may raise GateError STATE_FAILED.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file

    def add(
        self,
        pairing: Pairing,
        digest: bytes,
        *,
        most: int,
        most_of_origin: int,
        origin: Callable[[str], str],
    ) -> bool:
        """Keep a request under the digest of its code; False if too many wait already. `origin`
        tells what counts as one address."""
        values = [*map(_column, _FIELDS, _values(pairing)), digest]
        marks = ", ".join("?" * len(values))
        with self._file.changing() as connection:
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
            return True

    def forget(self, before: float) -> None:
        """Remove what ended before that time."""
        with self._file.changing() as connection:
            connection.execute("DELETE FROM pairings WHERE expires_at < ?", (before,))

    def list(self) -> tuple[Pairing, ...]:
        """All that are kept, oldest first."""
        return self._read("ORDER BY asked_at, id")

    def find(self, id: str) -> Pairing | None:
        """The request that people know by this id."""
        return next(iter(self._read("WHERE id = ?", id)), None)

    def by_digest(self, digest: bytes) -> Pairing | None:
        """The request whose code has this digest."""
        return next(iter(self._read("WHERE digest = ?", digest)), None)

    def decide(
        self,
        id: str,
        state: Literal["approved", "denied"],
        now: float,
        *,
        expires_at: float | None = None,
        token_name: str = "",
        granted: Rights | None = None,
    ) -> bool:
        """Answer a request that waits; False if it waits no more."""
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE pairings SET state = ?, expires_at = coalesce(?, expires_at),"
                " token_name = ?, granted = ?"
                " WHERE id = ? AND state = 'pending' AND expires_at > ?",
                (state, expires_at, token_name, _column("granted", granted), id, now),
            )
            return connection.changes() > 0

    def end(self, id: str, was: State, state: Literal["exchanged", "burnt"]) -> bool:
        """Make a code worthless; False if somebody was faster. So a code is used once."""
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE pairings SET state = ? WHERE id = ? AND state = ?", (state, id, was)
            )
            return connection.changes() > 0

    def _read(self, where: str, *values: Any) -> tuple[Pairing, ...]:
        with self._file.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM pairings {where}", values)
            return tuple(_pairing(row) for row in rows)


def _values(pairing: Pairing) -> list[Any]:
    return [getattr(pairing, name) for name in _FIELDS]


def _column(name: str, value: Any) -> Any:
    if name in _JSON and value is not None:
        return msgspec.json.encode(value).decode()
    return value


def _pairing(row: tuple[Any, ...]) -> Pairing:
    fields = dict(zip(_FIELDS, row, strict=True))
    return msgspec.convert(
        {
            name: msgspec.json.decode(value) if name in _JSON and value is not None else value
            for name, value in fields.items()
        },
        Pairing,
    )
