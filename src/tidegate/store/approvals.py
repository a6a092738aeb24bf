"""Questions to a person and their answers, in the state file. Knows no policy and no clock.

A question is found by its `id`, which people use, or by its digest, which stands for what is asked.
An answer is used up in the transaction that finds it, so two processes cannot both use it.
"""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import apsw
import msgspec

from tidegate.errors import Code, GateError
from tidegate.statements import Rehearsal
from tidegate.store.file import StateFile

_Rows = list[tuple[Any, ...]]
State = Literal["pending", "allowed", "denied", "used", "expired"]


class Subject(msgspec.Struct, frozen=True):
    """What a person is shown of a call. `statement` and `params` hold no secrets.

    `withheld`: something was left out of them, because it may be a secret. `params` are as text,
    None if there are none. `guarded`: the caller may not see the rows, so its client may not.
    """

    actor_name: str
    client: str
    surface: str
    tool: str
    source: str
    source_id: str
    statement: str
    effect: str
    rule: str
    reason: str
    params: str | None = None
    withheld: bool = False
    tables: tuple[str, ...] = ()
    unqualified: bool = False
    database: str | None = None
    schema: str | None = None
    guarded: bool = False


class Question(msgspec.Struct, frozen=True):
    """One question. Times are Unix seconds; `actor` is the caller's id; `askers` counts the calls
    that asked it. `ended_at` is when an answer was used or expired."""

    id: str
    digest: str
    state: State
    actor: str
    subject: Subject
    asked_at: float
    askers: int = 1
    decided_at: float | None = None
    decided_by: str = ""
    reason: str = ""
    ended_at: float | None = None
    rehearsal: Rehearsal | None = None


class Bounds(msgspec.Struct, frozen=True):
    """Until when things hold, as times before which they do not, and how many may wait."""

    grants_since: float
    denials_since: float
    most: int
    most_of_actor: int


_FIELDS = Question.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_WAITING = "SELECT count(*) FROM approvals WHERE state = 'pending'"
_TYPES: dict[str, Any] = {"subject": Subject, "rehearsal": Rehearsal}


class ApprovalBook:
    """The questions in the state file. Safe to call from any thread, and shared by processes.

    Every method may raise GateError STATE_FAILED.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file

    def admit(self, question: Question, bounds: Bounds) -> Question:
        """The answer to the question as far as there is one, else the question that waits.

        In this order: a grant, which is used up now (state `used`); a denial that still holds
        (`denied`); the same question that waits already; this one, which waits from now on.
        Raises: GateError LIMIT_RATE if too many wait.
        """
        now = question.asked_at
        with self._file.changing() as connection:
            found = self._answer(connection, question.digest, bounds, now)
            found = found or _one(
                connection,
                "UPDATE approvals SET askers = askers + 1 WHERE digest = ? AND state = 'pending'"
                f" RETURNING {_COLUMNS}",
                (question.digest,),
            )
            if found is not None:
                return found
            every: int = connection.execute(_WAITING).get
            of_actor: int = connection.execute(f"{_WAITING} AND actor = ?", (question.actor,)).get
            if every >= bounds.most or of_actor >= bounds.most_of_actor:
                raise GateError(
                    Code.LIMIT_RATE,
                    "Too many questions wait for a person already",
                    hint="Ask the operator to answer them: `tidegate approvals list`.",
                )
            marks = ", ".join("?" * len(_FIELDS))
            connection.execute(
                f"INSERT INTO approvals ({_COLUMNS}) VALUES ({marks})",
                [_column(name, getattr(question, name)) for name in _FIELDS],
            )
        return question

    def answer(self, digest: str, bounds: Bounds, now: float) -> Question | None:
        """A grant, used up now, or a denial that still holds; None if there is neither."""
        with self._file.changing() as connection:
            return self._answer(connection, digest, bounds, now)

    @staticmethod
    def _answer(
        connection: apsw.Connection, digest: str, bounds: Bounds, now: float
    ) -> Question | None:
        granted = _one(
            connection,
            "UPDATE approvals SET state = 'used', ended_at = ? WHERE serial = (SELECT serial FROM"
            " approvals WHERE digest = ? AND state = 'allowed' AND decided_at > ?"
            f" ORDER BY serial LIMIT 1) RETURNING {_COLUMNS}",
            (now, digest, bounds.grants_since),
        )
        return granted or _one(
            connection,
            f"SELECT {_COLUMNS} FROM approvals WHERE digest = ? AND state = 'denied'"
            " AND decided_at > ? ORDER BY serial DESC LIMIT 1",
            (digest, bounds.denials_since),
        )

    def decide(
        self, id: str, state: Literal["allowed", "denied"], by: str, reason: str, now: float
    ) -> bool:
        """Answer a question that waits; False if it waits no more."""
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE approvals SET state = ?, decided_by = ?, reason = ?, decided_at = ?"
                " WHERE id = ? AND state = 'pending'",
                (state, by, reason, now, id),
            )
            return connection.changes() > 0

    def attach(self, id: str, rehearsal: Rehearsal) -> None:
        """Keep what a rehearsal showed with the question."""
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE approvals SET rehearsal = ? WHERE id = ?",
                (_column("rehearsal", rehearsal), id),
            )

    def find(self, id: str) -> Question | None:
        """The question of that id."""
        return next(iter(self._read("WHERE id = ?", id)), None)

    def starting(self, start: str) -> tuple[Question, ...]:
        """Questions whose id starts so, two at most: enough to see that there are several."""
        return self._read("WHERE substr(id, 1, ?) = ? LIMIT 2", len(start), start)

    def list(self, states: Sequence[State] | None = None) -> tuple[Question, ...]:
        """Questions in these states, or in any, oldest first."""
        if states is None:
            return self._read("ORDER BY serial")
        wanted = msgspec.json.encode(states).decode()
        return self._read("WHERE state IN (SELECT value FROM json_each(?)) ORDER BY serial", wanted)

    def sweep(
        self, now: float, *, grants: float, questions: float, ended: float
    ) -> tuple[Question, ...]:
        """Expire grants given and questions asked before those times, and return them; forget
        what ended before `ended`."""
        with self._file.changing() as connection:
            connection.execute(
                "DELETE FROM approvals WHERE state IN ('used', 'denied', 'expired')"
                " AND coalesce(ended_at, decided_at) < ?",
                (ended,),
            )
            rows = cast(
                _Rows,
                connection.execute(
                    "UPDATE approvals SET state = 'expired', ended_at = ? WHERE"
                    " state = 'allowed' AND decided_at <= ? OR state = 'pending' AND asked_at <= ?"
                    f" RETURNING {_COLUMNS}",
                    (now, grants, questions),
                ).fetchall(),
            )
            return tuple(map(_question, rows))

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        self._file.close()

    def _read(self, rest: str, *values: Any) -> tuple[Question, ...]:
        with self._file.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM approvals {rest}", values)
            return tuple(map(_question, rows))


def _one(connection: apsw.Connection, sql: str, values: Sequence[Any]) -> Question | None:
    rows = cast(_Rows, connection.execute(sql, values).fetchall())
    return _question(rows[0]) if rows else None


def _column(name: str, value: Any) -> Any:
    if name in _TYPES and value is not None:
        return msgspec.json.encode(value).decode()
    return value


def _question(row: tuple[Any, ...]) -> Question:
    fields = dict(zip(_FIELDS, row, strict=True))
    for name, kind in _TYPES.items():
        if fields[name] is not None:
            fields[name] = msgspec.json.decode(fields[name], type=kind)
    return Question(**fields)
