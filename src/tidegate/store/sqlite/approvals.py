"""Requests for approval and their answers, in the state file.

Every statement that moves a request on has the state it moves from in its own WHERE. SQLite's write
lock makes that superfluous; on a server, where transactions run side by side, it is what lets one
caller alone use a grant.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import Any, Literal, cast

import apsw
import msgspec
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import DryRun
from tidegate.store.held_rows import Held, Touched
from tidegate.store.records import (
    ApprovalBounds,
    ApprovalState,
    ApprovedRun,
    PendingApproval,
    RefusedRetry,
    Subject,
)
from tidegate.store.seals import Seals
from tidegate.store.sqlite.connection import StateConnection
from tidegate.typed_values import decode_json

_Rows = list[tuple[Any, ...]]
QUESTION_COLUMNS = PendingApproval.__struct_fields__
_COLUMNS = ", ".join(QUESTION_COLUMNS)
_ENDED = "(state IN ('used', 'denied', 'expired') AND coalesce(ended_at, decided_at) < ?)"
_EXPIRED = (
    "(state = 'allowed' AND (decided_at <= ? OR decided_at > ? OR until <= ?)"
    " OR state = 'pending' AND asked_at <= ?)"
)
_WAITING = "SELECT count(*) FROM approvals WHERE state = 'pending'"
_TYPES: dict[str, Any] = {
    "subject": Subject,
    "dry_run": DryRun,
    "run": ApprovedRun,
    "refused": RefusedRetry,
}


# The two that decide who may go on, with the names of their values. A test runs them on PostgreSQL.
USE_GRANT = (
    "UPDATE approvals SET uses = uses + 1,"
    " state = CASE WHEN uses + 1 < most_uses THEN 'allowed' ELSE 'used' END, ended_at = :now"
    " WHERE serial = (SELECT serial FROM approvals WHERE digest = :digest AND state = 'allowed'"
    " AND decided_at > :since AND decided_at <= :latest AND (until IS NULL OR until > :now)"
    " ORDER BY serial LIMIT 1)"
    " AND state = 'allowed' AND decided_at > :since AND decided_at <= :latest"
)
DECIDE = (
    "UPDATE approvals SET state = :state, decided_by = :by, reason = :reason, decided_at = :now,"
    " until = :until, most_uses = :most_uses WHERE id = :id AND state = 'pending'"
)
REVOKE = (
    "UPDATE approvals SET state = 'expired', ended_at = :now WHERE id = :id AND state = 'allowed'"
)


class SqliteApprovalStore:
    """`api.ApprovalStore` in the state file."""

    def __init__(self, file: StateConnection, seals: Seals) -> None:
        self._file = file
        self._seals = seals

    def admit(self, question: PendingApproval, bounds: ApprovalBounds) -> PendingApproval:
        now = question.asked_at
        with (
            self._file.changing() as connection,
            self._seals.changing(connection, _grants(question.digest)) as held,
        ):
            found = self._answer(connection, held, question.digest, bounds, now)
            found = found or _one(
                connection,
                "UPDATE approvals SET askers = askers + 1"
                f" WHERE digest = :digest AND state = 'pending'{_sealed(held)}"
                f" RETURNING {_COLUMNS}",
                {"digest": question.digest, **_keys(held)},
            )
            if found is not None:
                return found
            every: int = connection.execute(_WAITING).get
            of_actor: int = connection.execute(f"{_WAITING} AND actor = ?", (question.actor,)).get
            if every >= bounds.most or of_actor >= bounds.most_of_actor:
                raise TidegateError(Code.LIMIT_RATE, "Too many requests for approval are pending.")
            marks = ", ".join("?" * len(QUESTION_COLUMNS))
            connection.execute(
                f"INSERT INTO approvals ({_COLUMNS}) VALUES ({marks})",
                [_column(name, getattr(question, name)) for name in QUESTION_COLUMNS],
            )
            held.add("approvals", question.id)
        return question

    def answer(self, digest: str, bounds: ApprovalBounds, now: float) -> PendingApproval | None:
        with (
            self._file.changing() as connection,
            self._seals.changing(connection, _grants(digest)) as held,
        ):
            return self._answer(connection, held, digest, bounds, now)

    def _answer(
        self,
        connection: apsw.Connection,
        held: Held,
        digest: str,
        bounds: ApprovalBounds,
        now: float,
    ) -> PendingApproval | None:
        use = USE_GRANT.replace(" ORDER BY", f"{_sealed(held)} ORDER BY")
        granted = _one(
            connection,
            f"{use} RETURNING {_COLUMNS}",
            {
                **_keys(held),
                "now": now,
                "digest": digest,
                "since": bounds.grants_since,
                "latest": bounds.latest,
            },
        )
        if granted is not None:
            return structs.replace(granted, state="used")  # by this caller
        rows = self._seals.select(
            connection,
            "approvals",
            _COLUMNS,
            "WHERE digest = ? AND state = 'denied' AND decided_at > ? AND decided_at <= ?"
            " ORDER BY serial DESC",
            (digest, bounds.denials_since, bounds.latest),
        )
        return question_of(rows[0]) if rows else None

    def give_back(self, id: str) -> None:
        with self._file.changing() as connection, self._seals.changing(connection, _one_of(id)):
            connection.execute(
                "UPDATE approvals SET state = 'allowed', ended_at = NULL, uses = uses - 1"
                " WHERE id = ? AND state IN ('used', 'allowed') AND uses > 0",
                (id,),
            )

    def resolve(
        self,
        id: str,
        state: Literal["allowed", "denied"],
        by: str,
        reason: str,
        now: float,
        *,
        until: float | None = None,
        most_uses: int = 1,
    ) -> bool:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(connection, _one_of(id)) as held,
        ):
            if not held.has("approvals", id):
                return False
            connection.execute(
                DECIDE,
                {
                    "state": state,
                    "by": by,
                    "reason": reason,
                    "now": now,
                    "until": until,
                    "most_uses": most_uses,
                    "id": id,
                },
            )
            return connection.changes() > 0

    def revoke(self, id: str, now: float) -> bool:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(connection, _one_of(id)),
        ):
            connection.execute(REVOKE, {"id": id, "now": now})
            return connection.changes() > 0

    def set_waiting(self, id: str, until: float | None) -> None:
        with self._file.changing() as connection:
            connection.execute("UPDATE approvals SET waits_until = ? WHERE id = ?", (until, id))

    def attach_run(self, id: str, run: ApprovedRun) -> None:
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE approvals SET run = ? WHERE id = ?", (_column("run", run), id)
            )

    def note_refused(self, id: str, at: float, message: str) -> None:
        with self._file.changing() as connection:
            found = _one(connection, f"SELECT {_COLUMNS} FROM approvals WHERE id = ?", (id,))
            if found is None:
                return
            before = 0 if found.refused is None else found.refused.count
            connection.execute(
                "UPDATE approvals SET refused = ? WHERE id = ?",
                (_column("refused", RefusedRetry(at, message, before + 1)), id),
            )

    def attach_dry_run(self, id: str, dry_run: DryRun) -> None:
        with self._file.changing() as connection, self._seals.changing(connection, _one_of(id)):
            connection.execute(
                "UPDATE approvals SET dry_run = ? WHERE id = ?",
                (_column("dry_run", dry_run), id),
            )

    def find(self, id: str) -> PendingApproval | None:
        return next(iter(self._read("WHERE id = ?", id)), None)

    def answered(self, ids: Collection[str]) -> frozenset[str]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT id FROM approvals WHERE state = 'pending'"
                " AND id IN (SELECT value FROM json_each(?))",
                (msgspec.json.encode(sorted(ids)).decode(),),
            )
            waiting = {row[0] for row in cast("list[tuple[str]]", rows.fetchall())}
        return frozenset(ids) - waiting

    def starting(self, start: str) -> tuple[PendingApproval, ...]:
        return self._read("WHERE substr(id, 1, ?) = ? LIMIT 2", len(start), start)

    def list(self, states: Sequence[ApprovalState] | None = None) -> tuple[PendingApproval, ...]:
        if states is None:
            return self._read("ORDER BY serial")
        wanted = msgspec.json.encode(states).decode()
        return self._read("WHERE state IN (SELECT value FROM json_each(?)) ORDER BY serial", wanted)

    def spans(self, since: float) -> tuple[tuple[str, float, float | None], ...]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT json_extract(subject, '$.source'), asked_at,"
                " CASE state WHEN 'pending' THEN NULL ELSE coalesce(decided_at, ended_at) END"
                " FROM approvals WHERE state = 'pending'"
                " OR coalesce(decided_at, ended_at, asked_at) >= ?",
                (since,),
            )
            return tuple(cast("list[tuple[str, float, float | None]]", rows.fetchall()))

    def expire_old(
        self, now: float, *, grants: float, questions: float, ended: float, latest: float = inf
    ) -> tuple[PendingApproval, ...]:
        with (
            self._file.changing(uses_reserve=True) as connection,
            self._seals.changing(
                connection,
                Touched(
                    "approvals", f"{_ENDED} OR {_EXPIRED}", (ended, grants, latest, now, questions)
                ),
            ) as held,
        ):
            connection.execute(
                f"DELETE FROM approvals WHERE {_ENDED}",
                (ended,),
            )
            rows = cast(
                _Rows,
                connection.execute(
                    f"UPDATE approvals SET state = 'expired', ended_at = ? WHERE {_EXPIRED}"
                    f" RETURNING {_COLUMNS}",
                    (now, grants, latest, now, questions),
                ).fetchall(),
            )
            found = map(question_of, rows)
            return tuple(each for each in found if held.has("approvals", each.id))

    def _read(self, rest: str, *values: Any) -> tuple[PendingApproval, ...]:
        with self._file.reading() as connection:
            rows = self._seals.select(connection, "approvals", _COLUMNS, rest, values)
            return tuple(map(question_of, rows))


def _one_of(id: str) -> Touched:
    return Touched("approvals", "id = ?", (id,))


def _grants(digest: str) -> Touched:
    """What a call may use, or wait for."""
    return Touched("approvals", "digest = ? AND state IN ('pending', 'allowed')", (digest,))


def _sealed(held: Held) -> str:
    """The end of a condition that keeps rows away that are not sealed."""
    is_open = held.keys("approvals") is None
    return "" if is_open else " AND id IN (SELECT value FROM json_each(:sealed))"


def _keys(held: Held) -> dict[str, str]:
    keys = held.keys("approvals")
    return {} if keys is None else {"sealed": msgspec.json.encode(keys).decode()}


def _one(
    connection: apsw.Connection, sql: str, values: Sequence[Any] | dict[str, Any]
) -> PendingApproval | None:
    rows = cast(_Rows, connection.execute(sql, values).fetchall())
    return question_of(rows[0]) if rows else None


def _column(name: str, value: Any) -> Any:
    if name in _TYPES and value is not None:
        return msgspec.json.encode(value).decode()
    return value


def question_of(row: tuple[Any, ...]) -> PendingApproval:
    """The request in a row of `QUESTION_COLUMNS`."""
    fields = dict(zip(QUESTION_COLUMNS, row, strict=True))
    for name, kind in _TYPES.items():
        if fields[name] is not None:
            fields[name] = decode_json(fields[name], kind)
    return PendingApproval(**fields)
