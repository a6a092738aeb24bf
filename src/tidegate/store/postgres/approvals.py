"""Requests for approval and their answers, in PostgreSQL.

A grant is used up by one conditional write. A question is added under the lock of the
area: so the bounds hold, and numbers are in order of commit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from math import inf
from typing import Any, Literal

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import DryRun
from tidegate.store.held_rows import Held, Touched
from tidegate.store.postgres.connection import StateConnection
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows
from tidegate.store.records import (
    ApprovalBounds,
    ApprovalState,
    ApprovedRun,
    PendingApproval,
    RefusedRetry,
)
from tidegate.store.seal_faults import foreign_values

QUESTIONS = Rows(PendingApproval, as_json=("subject", "dry_run", "run", "refused"))
_COLUMNS = QUESTIONS.columns

# A grant that another caller is using is left to it, and the next of the same call is taken.
USE_GRANT = (
    "UPDATE tidegate.approvals SET uses = uses + 1,"
    " state = CASE WHEN uses + 1 < most_uses THEN 'allowed' ELSE 'used' END, ended_at = %(now)s"
    " WHERE serial = (SELECT serial FROM tidegate.approvals WHERE digest = %(digest)s"
    " AND state = 'allowed' AND decided_at > %(since)s AND decided_at <= %(latest)s"
    " AND (until IS NULL OR until > %(now)s)"
    " AND (%(sealed)s::text[] IS NULL OR id = ANY(%(sealed)s::text[]))"
    " ORDER BY serial LIMIT 1 FOR UPDATE{})"
)
_ENDED = "(state IN ('used', 'denied', 'expired') AND coalesce(ended_at, decided_at) < %s)"
_EXPIRED = (
    "(state = 'allowed' AND (decided_at <= %s OR decided_at > %s OR until <= %s)"
    " OR state = 'pending' AND asked_at <= %s)"
)
_PENDING = "SELECT count(*) FROM tidegate.approvals WHERE state = 'pending'"


class PostgresApprovalStore:
    """`api.ApprovalStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def admit(self, question: PendingApproval, bounds: ApprovalBounds) -> PendingApproval:
        now = question.asked_at
        with (
            self._database.changing("approvals") as connection,
            self._grants(connection, question.digest) as held,
        ):
            found = self._answer(connection, held, question.digest, bounds, now)
            if found is not None:
                return found
            row = connection.row(
                "UPDATE tidegate.approvals SET askers = askers + 1"
                " WHERE digest = %(digest)s AND state = 'pending'"
                " AND (%(sealed)s::text[] IS NULL OR id = ANY(%(sealed)s::text[]))"
                f" RETURNING {_COLUMNS}",
                {"digest": question.digest, "sealed": held.keys("approvals")},
            )
            if row is not None:
                return QUESTIONS.record(row)
            every = connection.number(_PENDING)
            of_actor = connection.number(f"{_PENDING} AND actor = %s", (question.actor,))
            if every >= bounds.most or of_actor >= bounds.most_of_actor:
                raise TidegateError(Code.LIMIT_RATE, "Too many requests for approval are pending.")
            subject = question.subject
            connection.ask(
                f"INSERT INTO tidegate.approvals ({_COLUMNS}, source, source_id)"
                f" VALUES ({QUESTIONS.marks}, %s, %s)",
                [*QUESTIONS.values(question), subject.source, subject.source_id],
            )
            held.add("approvals", question.id, QUESTIONS.named(question))
        return question

    def answer(self, digest: str, bounds: ApprovalBounds, now: float) -> PendingApproval | None:
        with (
            self._database.changing() as connection,
            self._grants(connection, digest) as held,
        ):
            return self._answer(connection, held, digest, bounds, now)

    def give_back(self, id: str) -> None:
        sets = {"state": "allowed", "ended_at": None}
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("approvals", "id = %s", (id,), sets)
            ) as held,
        ):
            changed = held.has("approvals", id) and connection.change(
                "UPDATE tidegate.approvals SET state = 'allowed', ended_at = NULL, uses = uses - 1"
                " WHERE id = %s AND state IN ('used', 'allowed') AND uses > 0",
                (id,),
            )
            if changed and (was := held.was("approvals", id)):
                held.expect("approvals", id, uses=was["uses"] - 1)

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
        sets = {
            "state": state, "decided_by": by, "reason": reason, "decided_at": now,
            "until": until, "most_uses": most_uses,
        }  # fmt: skip
        return self._reseal(
            id,
            sets,
            "state = %s, decided_by = %s, reason = %s, decided_at = %s, until = %s, most_uses = %s"
            " WHERE id = %s AND state = 'pending'",
            *(state, by, reason, now, until, most_uses, id),
        )

    def revoke(self, id: str, now: float) -> bool:
        return self._reseal(
            id,
            {"state": "expired", "ended_at": now},
            "state = 'expired', ended_at = %s WHERE id = %s AND state = 'allowed'",
            *(now, id),
        )

    def set_waiting(self, id: str, until: float | None) -> None:
        self._change("waits_until = %s WHERE id = %s", until, id)

    def attach_run(self, id: str, run: ApprovedRun) -> None:
        self._change("run = %s WHERE id = %s", QUESTIONS.value("run", run), id)

    def note_refused(self, id: str, at: float, message: str) -> None:
        with self._database.changing() as connection:
            row = connection.row(
                f"SELECT {_COLUMNS} FROM tidegate.approvals WHERE id = %s FOR UPDATE", (id,)
            )
            if row is None:
                return
            before = QUESTIONS.record(row).refused
            refused = RefusedRetry(at, message, 1 if before is None else before.count + 1)
            connection.ask(
                "UPDATE tidegate.approvals SET refused = %s WHERE id = %s",
                (QUESTIONS.value("refused", refused), id),
            )

    def attach_dry_run(self, id: str, dry_run: DryRun) -> None:
        text = QUESTIONS.value("dry_run", dry_run)
        self._reseal(id, {"dry_run": text}, "dry_run = %s WHERE id = %s", text, id)

    def find(self, id: str) -> PendingApproval | None:
        return next(iter(self._read("WHERE id = %s", id)), None)

    def answered(self, ids: Collection[str]) -> frozenset[str]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT id FROM tidegate.approvals WHERE state = 'pending'"
                " AND id = ANY(%s::text[])",
                (list(ids),),
            )
            return frozenset(ids) - {row[0] for row in rows}

    def starting(self, start: str) -> tuple[PendingApproval, ...]:
        return self._read("WHERE starts_with(id, %s) LIMIT 2", start)

    def list(self, states: Sequence[ApprovalState] | None = None) -> tuple[PendingApproval, ...]:
        if states is None:
            return self._read("ORDER BY serial")
        return self._read("WHERE state = ANY(%s::text[]) ORDER BY serial", [*states])

    def spans(self, since: float) -> tuple[tuple[str, float, float | None], ...]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT source, asked_at,"
                " CASE state WHEN 'pending' THEN NULL ELSE coalesce(decided_at, ended_at) END"
                " FROM tidegate.approvals WHERE state = 'pending'"
                " OR coalesce(decided_at, ended_at, asked_at) >= %s",
                (since,),
            )
            return tuple((row[0], row[1], row[2]) for row in rows)

    def expire_old(
        self, now: float, *, grants: float, questions: float, ended: float, latest: float = inf
    ) -> tuple[PendingApproval, ...]:
        with (
            self._database.changing("approvals") as connection,
            self._database.seals.changing(
                connection,
                Touched(
                    "approvals",
                    f"{_ENDED} OR {_EXPIRED}",
                    (ended, grants, latest, now, questions),
                    {"state": "expired", "ended_at": now},
                ),
            ) as held,
        ):
            connection.ask(
                f"DELETE FROM tidegate.approvals WHERE {_ENDED}",
                (ended,),
            )
            rows = connection.ask(
                f"UPDATE tidegate.approvals SET state = 'expired', ended_at = %s WHERE {_EXPIRED}"
                f" RETURNING {_COLUMNS}",
                (now, grants, latest, now, questions),
            )
            found = QUESTIONS.records(rows)
            return tuple(each for each in found if held.has("approvals", each.id))

    def _reseal(self, id: str, sets: Mapping[str, Any], rest: str, *values: Any) -> bool:
        """Change what is sealed of a question."""
        with (
            self._database.changing() as connection,
            self._database.seals.changing(
                connection, Touched("approvals", "id = %s", (id,), sets)
            ) as held,
        ):
            if not held.has("approvals", id):
                return False
            changed = connection.change(f"UPDATE tidegate.approvals SET {rest}", values) > 0
            if changed:
                held.expect("approvals", id)
            return changed

    def _grants(self, connection: StateConnection, digest: str) -> AbstractContextManager[Held]:
        """Changes the grants of a call, one caller at a time where they are sealed."""
        where = "digest = %s AND state IN ('pending', 'allowed')"
        return self._database.seals.changing(connection, Touched("approvals", where, (digest,)))

    def _change(self, rest: str, *values: Any) -> bool:
        with self._database.changing() as connection:
            return connection.change(f"UPDATE tidegate.approvals SET {rest}", values) > 0

    def _read(self, rest: str, *values: Any) -> tuple[PendingApproval, ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(connection, "approvals", _COLUMNS, rest, values)
            return tuple(QUESTIONS.records(rows))

    def _answer(
        self,
        connection: StateConnection,
        held: Held,
        digest: str,
        bounds: ApprovalBounds,
        now: float,
    ) -> PendingApproval | None:
        values = {
            "now": now,
            "digest": digest,
            "since": bounds.grants_since,
            "latest": bounds.latest,
            "sealed": held.keys("approvals"),
        }
        used = None if held.keys("approvals") == [] else _use(connection, values)
        if used is not None:
            was = held.was("approvals", used.id)
            if was:
                if (was["digest"], was["state"]) != (digest, "allowed"):
                    raise foreign_values("approvals")
                uses = was["uses"] + 1
                state = "allowed" if uses < was["most_uses"] else "used"
                held.expect("approvals", used.id, uses=uses, state=state, ended_at=now)
            return used
        rows = self._database.seals.select(
            connection,
            "approvals",
            _COLUMNS,
            "WHERE digest = %s AND state = 'denied' AND decided_at > %s AND decided_at <= %s"
            " ORDER BY serial DESC",
            (digest, bounds.denials_since, bounds.latest),
        )
        return next(iter(QUESTIONS.records(rows)), None)


def _use(connection: StateConnection, values: dict[str, Any]) -> PendingApproval | None:
    # First one that no other caller holds; else wait for those who hold one, and see what is left.
    for waits in (" SKIP LOCKED", ""):
        text = f"{USE_GRANT.format(waits)} RETURNING {_COLUMNS}"
        for _ in range(_TRIES):
            row = connection.row(text, values)
            if row is not None:
                return structs.replace(QUESTIONS.record(row), state="used")  # by this caller
            if waits or not connection.number(_LEFT, values):
                break
    return None


_TRIES = 20
_LEFT = (
    "SELECT count(*) FROM tidegate.approvals WHERE digest = %(digest)s AND state = 'allowed'"
    " AND decided_at > %(since)s AND decided_at <= %(latest)s"
    " AND (until IS NULL OR until > %(now)s)"
    " AND (%(sealed)s::text[] IS NULL OR id = ANY(%(sealed)s::text[]))"
)
