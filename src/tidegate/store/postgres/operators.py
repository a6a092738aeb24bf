"""Operators, the links that sign them in, and their sessions, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from psycopg import errors

from tidegate.errors import Code, TidegateError
from tidegate.store.access import CheckOperators
from tidegate.store.held_rows import Touched
from tidegate.store.postgres.connection import StateConnection
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows
from tidegate.store.records import OperatorEntry, OperatorSession

_OPERATORS = Rows(OperatorEntry, as_json=("roles",))
_SESSIONS = Rows(OperatorSession)

USE_LINK = (
    "DELETE FROM tidegate.operator_links WHERE digest = %(digest)s AND expires_at > %(now)s"
    " AND expires_at <= %(latest)s"
)


class PostgresOperatorStore:
    """`api.OperatorStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> tuple[OperatorEntry, ...]:
        with self._database.reading() as connection:
            return self._all(connection)

    def add(self, operator: OperatorEntry) -> None:
        with (
            self._database.changing("operators") as connection,
            self._database.seals.changing(connection) as held,
        ):
            try:
                connection.ask(
                    f"INSERT INTO tidegate.operators ({_OPERATORS.columns})"
                    f" VALUES ({_OPERATORS.marks})",
                    _OPERATORS.values(operator),
                )
                held.add("operators", operator.id, _OPERATORS.named(operator))
            except errors.UniqueViolation:
                raise TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"There is already an operator `{operator.name}`.",
                    hint="Use another name; `tidegate operator list` shows those there are.",
                ) from None
            if connection.number("SELECT count(*) FROM tidegate.operators") == 1:
                # What agents opened before there was anyone to show it to.
                connection.ask(
                    "UPDATE tidegate.windows SET owner = %s WHERE owner = ''", (operator.name,)
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
            self._database.changing("operators") as connection,
            self._database.seals.changing(
                connection, *_touched(operator.id, _OPERATORS.named(operator, names))
            ) as held,
        ):
            if check is not None:
                check(self._all(connection))
            sets = ", ".join(f"{name} = %s" for name in names)
            changed = connection.change(
                f"UPDATE tidegate.operators SET {sets} WHERE id = %s",
                (*_OPERATORS.values(operator, names), operator.id),
            )
            if changed:
                held.expect("operators", operator.id)
            if ends_access:
                for table in ("operator_links", "operator_sessions"):
                    connection.ask(
                        f"DELETE FROM tidegate.{table} WHERE operator = %s", (operator.id,)
                    )
                held.expect_gone("operator_links", "operator_sessions")
            return changed > 0

    def remove(self, id: str, check: CheckOperators | None = None) -> bool:
        with (
            self._database.changing("operators", "windows", "queries") as connection,
            self._database.seals.changing(connection, *_touched(id)) as held,
        ):
            held.expect_gone("operators", "operator_links", "operator_sessions")
            if check is not None:
                check(self._all(connection))
            named = "(SELECT name FROM tidegate.operators WHERE id = %s)"
            for table in ("windows", "closed_tabs", "window_pages", "tab_events", "staged_edits"):
                connection.ask(f"DELETE FROM tidegate.{table} WHERE owner IN {named}", (id,))
            connection.ask(
                f"DELETE FROM tidegate.saved_queries WHERE shared_with = '' AND owner IN {named}",
                (id,),
            )
            # What others read stays, for admins of its source to change.
            connection.ask(
                f"UPDATE tidegate.saved_queries SET owner = '' WHERE owner IN {named}", (id,)
            )
            connection.ask(f"DELETE FROM tidegate.query_runs WHERE operator IN {named}", (id,))
            return connection.change("DELETE FROM tidegate.operators WHERE id = %s", (id,)) > 0

    def add_link(self, digest: bytes, operator: str, expires_at: float, now: float) -> None:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("operator_links", "expires_at <= %s", (now,))
            ) as held,
        ):
            connection.ask("DELETE FROM tidegate.operator_links WHERE expires_at <= %s", (now,))
            connection.ask(
                "INSERT INTO tidegate.operator_links (digest, operator, expires_at)"
                " VALUES (%s, %s, %s)",
                (digest, operator, expires_at),
            )
            made = {"digest": digest, "operator": operator, "expires_at": expires_at}
            held.add("operator_links", digest, made)

    def use_link(self, digest: bytes, now: float, latest: float = inf) -> str | None:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("operator_links", "digest = %s", (digest,))
            ) as held,
        ):
            if not held.has("operator_links", digest):
                return None
            row = connection.row(
                f"{USE_LINK} RETURNING operator", {"digest": digest, "now": now, "latest": latest}
            )
            if row is None:
                return None
            # What the database returns is not under the MAC, and what was locked is.
            return str(held.was("operator_links", digest).get("operator", row[0]))

    def add_session(self, session: OperatorSession, digest: bytes) -> None:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("operator_sessions", "ends_at <= %s", (session.created_at,))
            ) as held,
        ):
            connection.ask(
                "DELETE FROM tidegate.operator_sessions WHERE ends_at <= %s", (session.created_at,)
            )
            connection.ask(
                f"INSERT INTO tidegate.operator_sessions ({_SESSIONS.columns}, digest)"
                f" VALUES ({_SESSIONS.marks}, %s)",
                [*_SESSIONS.values(session), digest],
            )
            held.add(
                "operator_sessions", session.id, {**_SESSIONS.named(session), "digest": digest}
            )

    def session(self, digest: bytes) -> OperatorSession | None:
        with self._database.reading() as connection:
            rows = self._database.seals.find(
                connection, "operator_sessions", _SESSIONS.columns, "digest", digest
            )
            return next(iter(_SESSIONS.records(rows)), None)

    def sessions(self) -> tuple[OperatorSession, ...]:
        return self._sessions("ORDER BY created_at, id")

    def touch_session(self, id: str, seen_at: float, confirmed_at: float | None) -> None:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection,
                Touched("operator_sessions", "id = %s", (id,), {"confirmed_at": confirmed_at}),
            ),
        ):
            connection.ask(
                "UPDATE tidegate.operator_sessions SET seen_at = %s, confirmed_at = %s"
                " WHERE id = %s",
                (seen_at, confirmed_at, id),
            )

    def end_sessions(self, *, id: str | None = None, operator: str | None = None) -> int:
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("operator_sessions", "id = %s OR operator = %s", (id, operator))
            ) as held,
        ):
            held.expect_gone("operator_sessions")
            return connection.change(
                "DELETE FROM tidegate.operator_sessions WHERE id = %s OR operator = %s",
                (id, operator),
            )

    def _sessions(self, rest: str, *values: Any) -> tuple[OperatorSession, ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection, "operator_sessions", _SESSIONS.columns, rest, values
            )
            return tuple(_SESSIONS.records(rows))

    def _all(self, connection: StateConnection) -> tuple[OperatorEntry, ...]:
        rows = self._database.seals.select(
            connection, "operators", _OPERATORS.columns, "ORDER BY folded", is_whole=True
        )
        return tuple(_OPERATORS.records(rows))


def _touched(id: str, sets: Mapping[str, Any] | None = None) -> tuple[Touched, ...]:
    """An operator and what may end with it."""
    return (
        Touched("operators", "id = %s", (id,), sets or {}),
        Touched("operator_links", "operator = %s", (id,)),
        Touched("operator_sessions", "operator = %s", (id,)),
    )
