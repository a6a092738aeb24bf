"""Operators, the links that sign them in, and their sessions, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import apsw
import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import RoleGrant
from tidegate.store.access import CheckOperators
from tidegate.store.held_rows import Touched
from tidegate.store.records import OperatorEntry, OperatorSession
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import StateConnection
from tidegate.typed_values import decode_json

_OPERATOR = OperatorEntry.__struct_fields__
_SESSION = OperatorSession.__struct_fields__

# It decides who may go on, with the names of its values. A test runs it on PostgreSQL.
USE_LINK = (
    "DELETE FROM operator_links WHERE digest = :digest AND expires_at > :now"
    " AND expires_at <= :latest"
)


class SqliteOperatorStore:
    """`api.OperatorStore` in the state file."""

    def __init__(self, file: StateConnection, seals: Seals) -> None:
        self._file = file
        self._seals = seals

    def list(self) -> tuple[OperatorEntry, ...]:
        with self._file.reading() as connection:
            return self._all(connection)

    def add(self, operator: OperatorEntry) -> None:
        marks = ", ".join("?" * len(_OPERATOR))
        with (
            self._file.changing() as connection,
            self._seals.changing(connection) as held,
        ):
            try:
                connection.execute(
                    f"INSERT INTO operators ({', '.join(_OPERATOR)}) VALUES ({marks})",
                    [_column(name, getattr(operator, name)) for name in _OPERATOR],
                )
                held.add("operators", operator.id)
            except apsw.ConstraintError:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already an operator `{operator.name}`.",
                    hint="Use another name; `tidegate operator list` shows those there are.",
                ) from None
            if connection.execute("SELECT count(*) FROM operators").fetchone() == (1,):
                # What agents opened before there was anyone to show it to.
                connection.execute(
                    "UPDATE windows SET owner = ? WHERE owner = ''", (operator.name,)
                )

    def change(
        self,
        operator: OperatorEntry,
        names: Sequence[str],
        check: CheckOperators | None = None,
        *,
        ends_access: bool = False,
    ) -> bool:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(connection, *_touched(operator.id)),
        ):
            if check is not None:
                check(self._all(connection))
            connection.execute(
                f"UPDATE operators SET ({', '.join(names)}) = ({', '.join('?' * len(names))})"
                " WHERE id = ?",
                (*(_column(name, getattr(operator, name)) for name in names), operator.id),
            )
            changed = connection.changes() > 0
            if ends_access:
                for table in ("operator_links", "operator_sessions"):
                    connection.execute(f"DELETE FROM {table} WHERE operator = ?", (operator.id,))
            return changed

    def remove(self, id: str, check: CheckOperators | None = None) -> bool:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(connection, *_touched(id)),
        ):
            if check is not None:
                check(self._all(connection))
            for table in ("windows", "closed_tabs", "window_pages", "tab_events", "staged_edits"):
                connection.execute(
                    f"DELETE FROM {table} WHERE owner IN (SELECT name FROM operators WHERE id = ?)",
                    (id,),
                )
            named = "(SELECT name FROM operators WHERE id = ?)"
            connection.execute(
                f"DELETE FROM saved_queries WHERE shared_with = '' AND owner IN {named}", (id,)
            )
            # What others read stays, for admins of its source to change.
            connection.execute(f"UPDATE saved_queries SET owner = '' WHERE owner IN {named}", (id,))
            connection.execute(f"DELETE FROM query_runs WHERE operator IN {named}", (id,))
            connection.execute("DELETE FROM operators WHERE id = ?", (id,))
            return connection.changes() > 0

    def add_link(self, digest: bytes, operator: str, expires_at: float, now: float) -> None:
        with (
            self._file.changing() as connection,
            self._seals.changing(
                connection, Touched("operator_links", "expires_at <= ?", (now,))
            ) as held,
        ):
            connection.execute("DELETE FROM operator_links WHERE expires_at <= ?", (now,))
            connection.execute(
                "INSERT INTO operator_links (digest, operator, expires_at) VALUES (?, ?, ?)",
                (digest, operator, expires_at),
            )
            held.add("operator_links", digest)

    def use_link(self, digest: bytes, now: float, latest: float = inf) -> str | None:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(
                connection, Touched("operator_links", "digest = ?", (digest,))
            ) as held,
        ):
            if not held.has("operator_links", digest):
                return None
            row = connection.execute(
                f"{USE_LINK} RETURNING operator", {"digest": digest, "now": now, "latest": latest}
            ).fetchone()
            return None if row is None else str(row[0])

    def add_session(self, session: OperatorSession, digest: bytes) -> None:
        marks = ", ".join("?" * len(_SESSION))
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(
                connection, Touched("operator_sessions", "ends_at <= ?", (session.created_at,))
            ) as held,
        ):
            connection.execute(
                "DELETE FROM operator_sessions WHERE ends_at <= ?", (session.created_at,)
            )
            connection.execute(
                f"INSERT INTO operator_sessions ({', '.join(_SESSION)}, digest)"
                f" VALUES ({marks}, ?)",
                [*(getattr(session, name) for name in _SESSION), digest],
            )
            held.add("operator_sessions", session.id)

    def session(self, digest: bytes) -> OperatorSession | None:
        return next(iter(self._sessions("WHERE digest = ?", digest)), None)

    def sessions(self) -> tuple[OperatorSession, ...]:
        return self._sessions("ORDER BY created_at, id")

    def touch_session(self, id: str, seen_at: float, confirmed_at: float | None) -> None:
        with (
            self._file.changing() as connection,
            self._seals.changing(connection, Touched("operator_sessions", "id = ?", (id,))),
        ):
            connection.execute(
                "UPDATE operator_sessions SET seen_at = ?, confirmed_at = ? WHERE id = ?",
                (seen_at, confirmed_at, id),
            )

    def end_sessions(self, *, id: str | None = None, operator: str | None = None) -> int:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(
                connection, Touched("operator_sessions", "id = ? OR operator = ?", (id, operator))
            ),
        ):
            connection.execute(
                "DELETE FROM operator_sessions WHERE id = ? OR operator = ?", (id, operator)
            )
            return connection.changes()

    def _sessions(self, rest: str, *values: Any) -> tuple[OperatorSession, ...]:
        with self._file.reading() as connection:
            rows = self._seals.select(
                connection, "operator_sessions", ", ".join(_SESSION), rest, values
            )
            return tuple(OperatorSession(*row) for row in rows)

    def _all(self, connection: apsw.Connection) -> tuple[OperatorEntry, ...]:
        rows = self._seals.select(
            connection,
            "operators",
            ", ".join(_OPERATOR),
            "ORDER BY name COLLATE NOCASE",
            is_whole=True,
        )
        return tuple(map(_operator, rows))


def _touched(id: str) -> tuple[Touched, ...]:
    """An operator and what may end with it."""
    return (
        Touched("operators", "id = ?", (id,)),
        Touched("operator_links", "operator = ?", (id,)),
        Touched("operator_sessions", "operator = ?", (id,)),
    )


def _column(name: str, value: Any) -> Any:
    if name == "roles":
        return msgspec.json.encode(value).decode()
    return value


def _operator(row: tuple[Any, ...]) -> OperatorEntry:
    fields = dict(zip(_OPERATOR, row, strict=True))
    fields["roles"] = decode_json(fields["roles"], tuple[RoleGrant, ...])
    return OperatorEntry(**fields)
