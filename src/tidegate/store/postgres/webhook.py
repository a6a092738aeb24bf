"""Messages of the webhook, in PostgreSQL with the questions that they are about."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from tidegate.store.postgres.approvals import QUESTIONS
from tidegate.store.postgres.connection import StateConnection
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows
from tidegate.store.records import PendingApproval, WebhookMessage
from tidegate.store.stamps import MEANING

_MESSAGES = Rows(WebhookMessage)


class PostgresWebhookStore:
    """`api.WebhookStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest_question(self) -> int:
        return self._number("SELECT max(serial) FROM tidegate.approvals")

    def new_questions(self, after: int, limit: int) -> tuple[tuple[int, PendingApproval], ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection,
                "approvals",
                f"serial, {QUESTIONS.columns}",
                "WHERE (state = 'pending' OR serial > %s) AND NOT EXISTS"
                " (SELECT 1 FROM tidegate.webhook_messages WHERE approval = approvals.id)"
                " ORDER BY serial LIMIT %s",
                (after, limit),
            )
            return tuple((row[0], QUESTIONS.record(row[1:])) for row in rows)

    def answered(self, limit: int) -> tuple[PendingApproval, ...]:
        return self._questions("state <> 'pending'", "followed", limit)

    def add(self, message: WebhookMessage) -> bool:
        with self._database.changing() as connection:
            return self._insert(connection, message)

    def settle(self, approval: str, message: WebhookMessage | None) -> None:
        with self._database.changing() as connection:
            settled = connection.change(
                "UPDATE tidegate.webhook_messages SET followed = false, state = CASE WHEN state IN"
                " ('waiting', 'listed') THEN 'dropped' ELSE state END"
                " WHERE approval = %s AND followed",
                (approval,),
            )
            if message is not None and settled:
                self._insert(connection, message)

    def take(self, now: float, until: float) -> WebhookMessage | None:
        due = "state = 'waiting' AND next_at <= %(now)s"
        values = {"now": now, "until": until}
        if not self._number(
            f"SELECT count(*) FROM (SELECT 1 FROM tidegate.webhook_messages WHERE {due} LIMIT 1)"
            " AS due",
            values,
        ):
            return None
        with self._database.changing() as connection:
            row = connection.row(
                "UPDATE tidegate.webhook_messages SET attempts = attempts + 1, next_at = %(until)s"
                f" WHERE serial = (SELECT serial FROM tidegate.webhook_messages WHERE {due}"
                " ORDER BY serial LIMIT 1 FOR UPDATE SKIP LOCKED)"
                f" RETURNING {_MESSAGES.columns}",
                values,
            )
            if row is None:
                return None
            message = _MESSAGES.record(row)
            values = [getattr(message, name) for name in MEANING["webhook_messages"]]
            if self._database.seals.stamps.is_good(connection, "webhook_messages", values):
                return message
            # Of a gate that knows no stamps, or of no gate: that of a question is made again.
            connection.ask("DELETE FROM tidegate.webhook_messages WHERE id = %s", (message.id,))
            return None

    def close_message(self, id: str, state: Literal["sent", "dropped"]) -> None:
        self._change("state = %s WHERE id = %s AND state = 'waiting'", state, id)

    def postpone(self, id: str, until: float) -> None:
        self._change("next_at = %s WHERE id = %s", until, id)

    def drop_before(self, before: float) -> int:
        return self._change("state = 'dropped' WHERE state = 'waiting' AND made_at < %s", before)

    def listed(self) -> tuple[PendingApproval, ...]:
        return self._questions("state = 'pending'", "webhook_messages.state = 'listed'", None)

    def send_listed(self, digest: WebhookMessage, questions: Collection[str]) -> bool:
        with self._database.changing() as connection:
            listed = connection.change(
                "UPDATE tidegate.webhook_messages SET state = 'sent' WHERE state = 'listed'"
                " AND (approval = ANY(%s::text[]) OR NOT EXISTS"
                " (SELECT 1 FROM tidegate.approvals WHERE id = approval AND state = 'pending'))",
                (list(questions),),
            )
            return listed > 0 and self._insert(connection, digest)

    def last_made(self, type: str) -> float | None:
        with self._database.reading() as connection:
            row = connection.row(
                "SELECT max(made_at) FROM tidegate.webhook_messages WHERE type = %s", (type,)
            )
            return None if row is None else row[0]

    def waiting(self) -> int:
        return self._number(
            "SELECT count(*) FROM tidegate.webhook_messages WHERE state IN ('waiting', 'listed')"
        )

    def forget(self, before: float) -> None:
        with self._database.changing() as connection:
            connection.ask("DELETE FROM tidegate.webhook_messages WHERE made_at < %s", (before,))
            self._database.seals.stamps.sweep(connection, "webhook_messages")

    def _questions(
        self, condition: str, message: str, limit: int | None
    ) -> tuple[PendingApproval, ...]:
        with self._database.reading() as connection:
            rows = self._database.seals.select(
                connection,
                "approvals",
                QUESTIONS.columns,
                f"WHERE {condition} AND EXISTS (SELECT 1 FROM tidegate.webhook_messages"
                f" WHERE approval = approvals.id AND {message}) ORDER BY serial LIMIT %s",
                (limit,),
            )
            return tuple(QUESTIONS.records(rows))

    def _insert(self, connection: StateConnection, message: WebhookMessage) -> bool:
        added = connection.change(
            f"INSERT INTO tidegate.webhook_messages ({_MESSAGES.columns})"
            f" VALUES ({_MESSAGES.marks}) ON CONFLICT DO NOTHING",
            values := _MESSAGES.values(message),
        )
        if added:
            named = dict(zip(_MESSAGES.names, values, strict=True))
            self._database.seals.stamps.write(connection, "webhook_messages", named)
        return added > 0

    def _change(self, rest: str, *values: Any) -> int:
        with self._database.changing() as connection:
            return connection.change(f"UPDATE tidegate.webhook_messages SET {rest}", values)

    def _number(self, sql: str, values: Any = None) -> int:
        with self._database.reading() as connection:
            return connection.number(sql, values)
