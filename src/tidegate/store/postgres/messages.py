"""Messages between processes, in PostgreSQL."""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.store.messages import MOST_BYTES, Message
from tidegate.store.postgres.database import Database


class PostgresMessageStore:
    """`messages.MessageStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def send(self, sender: str, to: str, kind: str, body: bytes, now: float) -> int:
        if len(body) > MOST_BYTES:
            raise TidegateError(Code.LIMIT_BYTES, f"A message has at most {MOST_BYTES:,} bytes")
        with self._database.changing(settles=False) as connection:
            # Who sends at the same time waits here, so numbers are in order of commit.
            n = connection.number(
                "UPDATE tidegate.generations SET value = value + 1 WHERE area = 'messages'"
                " RETURNING value"
            )
            connection.ask(
                "INSERT INTO tidegate.messages (n, sender, recipient, kind, body, sent_at)"
                " VALUES (%s, %s, %s, %s, %s, %s)",
                (n, sender, to, kind, body, now),
            )
        self._database.learn({"messages": n})
        return n

    def read(self, reader: str, after: int, most: int) -> tuple[Message, ...]:
        with self._database.reading() as connection:
            rows = connection.ask(
                "SELECT n, sender, recipient, kind, body FROM tidegate.messages WHERE n > %s"
                " AND recipient IN ('', %s) AND sender <> %s ORDER BY n LIMIT %s",
                (after, reader, reader, most),
            )
            return tuple(
                [Message(n, who, to, kind, bytes(body)) for n, who, to, kind, body in rows]
            )

    def forget(self, before: float) -> None:
        with self._database.changing(settles=False) as connection:
            connection.ask("DELETE FROM tidegate.messages WHERE sent_at < %s", (before,))
