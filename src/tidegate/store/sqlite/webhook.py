"""Messages of the webhook, in the state file with the questions that they are about."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, cast

import apsw
import msgspec

from tidegate.store.records import PendingApproval, WebhookMessage
from tidegate.store.seals import Seals
from tidegate.store.sqlite.approvals import QUESTION_COLUMNS, question_of
from tidegate.store.sqlite.connection import StateConnection
from tidegate.store.stamps import MEANING

_FIELDS = WebhookMessage.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_QUESTION = ", ".join(QUESTION_COLUMNS)
_Rows = list[tuple[Any, ...]]


class SqliteWebhookStore:
    """`api.WebhookStore` in the state file."""

    def __init__(self, file: StateConnection, seals: Seals) -> None:
        self._file = file
        self._seals = seals

    def newest_question(self) -> int:
        with self._file.reading() as connection:
            return _number(connection, "SELECT coalesce(max(serial), 0) FROM approvals")

    def new_questions(self, after: int, limit: int) -> tuple[tuple[int, PendingApproval], ...]:
        with self._file.reading() as connection:
            rows = self._seals.select(
                connection,
                "approvals",
                f"serial, {_QUESTION}",
                "WHERE (state = 'pending' OR serial > ?)"
                " AND NOT EXISTS (SELECT 1 FROM webhook_messages WHERE approval = approvals.id)"
                " ORDER BY serial LIMIT ?",
                (after, limit),
            )
        return tuple((int(row[0]), question_of(row[1:])) for row in rows)

    def answered(self, limit: int) -> tuple[PendingApproval, ...]:
        return self._questions("state <> 'pending'", "followed", limit)

    def add(self, message: WebhookMessage) -> bool:
        with self._file.changing() as connection:
            return self._insert(connection, message)

    def settle(self, approval: str, message: WebhookMessage | None) -> None:
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE webhook_messages SET followed = 0, state = CASE WHEN state IN"
                " ('waiting', 'listed') THEN 'dropped' ELSE state END"
                " WHERE approval = ? AND followed",
                (approval,),
            )
            if message is not None and connection.changes():
                self._insert(connection, message)

    def take(self, now: float, until: float) -> WebhookMessage | None:
        with self._file.reading() as connection:
            if not _number(
                connection,
                "SELECT count(*) FROM webhook_messages WHERE state = 'waiting' AND next_at <= ?",
                (now,),
            ):
                return None  # without the lock for writing, which others want
        with self._file.changing() as connection:
            rows = _rows(
                connection,
                "UPDATE webhook_messages SET attempts = attempts + 1, next_at = :until"
                " WHERE serial = (SELECT serial FROM webhook_messages WHERE state = 'waiting'"
                " AND next_at <= :now ORDER BY serial LIMIT 1)"
                f" AND state = 'waiting' AND next_at <= :now RETURNING {_COLUMNS}",
                {"now": now, "until": until},
            )
            if not rows:
                return None
            message = _message(rows[0])
            values = [getattr(message, name) for name in MEANING["webhook_messages"]]
            if self._seals.stamps.is_good(connection, "webhook_messages", values):
                return message
            # Of no gate: that of a question is made again.
            connection.execute("DELETE FROM webhook_messages WHERE id = ?", (message.id,))
            return None

    def close_message(self, id: str, state: Literal["sent", "dropped"]) -> None:
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE webhook_messages SET state = ? WHERE id = ? AND state = 'waiting'",
                (state, id),
            )

    def postpone(self, id: str, until: float) -> None:
        with self._file.changing() as connection:
            connection.execute("UPDATE webhook_messages SET next_at = ? WHERE id = ?", (until, id))

    def drop_before(self, before: float) -> int:
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE webhook_messages SET state = 'dropped'"
                " WHERE state = 'waiting' AND made_at < ?",
                (before,),
            )
            return connection.changes()

    def listed(self) -> tuple[PendingApproval, ...]:
        return self._questions("state = 'pending'", "webhook_messages.state = 'listed'", -1)

    def send_listed(self, digest: WebhookMessage, questions: Collection[str]) -> bool:
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE webhook_messages SET state = 'sent' WHERE state = 'listed'"
                " AND (approval IN (SELECT value FROM json_each(?)) OR NOT EXISTS"
                " (SELECT 1 FROM approvals WHERE id = approval AND state = 'pending'))",
                (msgspec.json.encode(list(questions)).decode(),),
            )
            if not connection.changes():
                return False
            self._insert(connection, digest)
            return True

    def last_made(self, type: str) -> float | None:
        with self._file.reading() as connection:
            found: float | None = connection.execute(
                "SELECT max(made_at) FROM webhook_messages WHERE type = ?", (type,)
            ).get
            return found

    def waiting(self) -> int:
        with self._file.reading() as connection:
            return _number(
                connection,
                "SELECT count(*) FROM webhook_messages WHERE state IN ('waiting', 'listed')",
            )

    def forget(self, before: float) -> None:
        with self._file.changing() as connection:
            connection.execute("DELETE FROM webhook_messages WHERE made_at < ?", (before,))
            self._seals.stamps.sweep(connection, "webhook_messages")

    def _questions(self, condition: str, message: str, limit: int) -> tuple[PendingApproval, ...]:
        with self._file.reading() as connection:
            rows = self._seals.select(
                connection,
                "approvals",
                _QUESTION,
                f"WHERE {condition} AND EXISTS (SELECT 1 FROM webhook_messages"
                f" WHERE approval = approvals.id AND {message}) ORDER BY serial LIMIT ?",
                (limit,),
            )
        return tuple(map(question_of, rows))

    def _insert(self, connection: apsw.Connection, message: WebhookMessage) -> bool:
        marks, values = ", ".join("?" * len(_FIELDS)), msgspec.structs.asdict(message)
        connection.execute(
            f"INSERT INTO webhook_messages ({_COLUMNS}) VALUES ({marks}) ON CONFLICT DO NOTHING",
            list(values.values()),
        )
        if is_added := connection.changes() > 0:
            self._seals.stamps.write(connection, "webhook_messages", values)
        return is_added


def _message(row: tuple[Any, ...]) -> WebhookMessage:
    fields = dict(zip(_FIELDS, row, strict=True))
    fields["followed"] = bool(fields["followed"])
    return WebhookMessage(**fields)


def _rows(connection: apsw.Connection, sql: str, values: Any) -> _Rows:
    return cast(_Rows, connection.execute(sql, values).fetchall())


def _number(connection: apsw.Connection, sql: str, values: Any = ()) -> int:
    return int(_rows(connection, sql, values)[0][0])
