"""Messages between processes, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from typing import cast

from tidegate.errors import Code, TidegateError
from tidegate.store.messages import MOST_BYTES, Message
from tidegate.store.sqlite.connection import StateConnection
from tidegate.store.sqlite.rights import SqliteVersions


class SqliteMessageStore:
    """`messages.MessageStore` in the state file, by a connection that does not sync each write."""

    def __init__(self, file: StateConnection, versions: SqliteVersions) -> None:
        self._file = file
        self._versions = versions

    def send(self, sender: str, to: str, kind: str, body: bytes, now: float) -> int:
        if len(body) > MOST_BYTES:
            raise TidegateError(Code.LIMIT_BYTES, f"A message has at most {MOST_BYTES:,} bytes")
        with self._file.changing() as connection:
            n: int = connection.execute(
                "UPDATE generations SET value = value + 1 WHERE area = 'messages' RETURNING value"
            ).get
            connection.execute(
                "INSERT INTO messages (n, sender, recipient, kind, body, sent_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (n, sender, to, kind, body, now),
            )
        self._versions.learn({"messages": n})
        return n

    def read(self, reader: str, after: int, most: int) -> tuple[Message, ...]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT n, sender, recipient, kind, body FROM messages WHERE n > ?2"
                " AND recipient IN ('', ?1) AND sender <> ?1 ORDER BY n LIMIT ?3",
                (reader, after, most),
            )
            found = cast("list[tuple[int, str, str, str, bytes]]", rows.fetchall())
            return tuple([Message(*row) for row in found])

    def forget(self, before: float) -> None:
        with self._file.changing() as connection:
            connection.execute("DELETE FROM messages WHERE sent_at < ?", (before,))
