"""Decides how rows are read that hold text which is not in the database's encoding.

SQLite keeps whatever bytes it is given as text, and the driver refuses to read such a row. Then the
statement is run again inside one that gives its texts as bytes; they are decoded here, with U+FFFD
for what cannot be read.
"""

from __future__ import annotations

from typing import Any

from tidegate.engines.sqlite.authorizer import Mode
from tidegate.engines.sqlite.session import Session
from tidegate.statements import Statement

_AROUND = """WITH "tidegate rows"({names}) AS (
{inside}
)
SELECT {values} FROM "tidegate rows" LIMIT -1 OFFSET {skip}"""

_VALUE = "typeof({0}) = 'text', CASE typeof({0}) WHEN 'text' THEN CAST({0} AS BLOB) ELSE {0} END"


class LenientCursor:
    """The rows of a read behind the first `skip`. Used like the driver's cursor."""

    __slots__ = ("_cursor", "_encoding", "_rows")

    def __init__(self, session: Session, statement: Statement, columns: int, skip: int) -> None:
        """Raises: apsw.Error, also if the statement cannot stand inside another (PRAGMA)."""
        with session.mode(Mode.OBSERVE):
            inside = session.glance(statement.text, statement.params).sql.rstrip("; \t\r\n")
        with session.own():
            found = session.connection.execute("PRAGMA encoding").fetchall()
        self._encoding = str(found[0][0])
        names = [f"c{place}" for place in range(columns)]
        text = _AROUND.format(
            names=", ".join(names),
            inside=inside,
            values=", ".join([_VALUE.format(name) for name in names]),
            skip=skip,
        )
        self._cursor = session.connection.execute(text, statement.params, can_cache=False)
        self._rows = iter(self._cursor)

    def __iter__(self) -> LenientCursor:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = next(self._rows)
        return tuple(
            [
                value.decode(self._encoding, "replace") if is_text else value
                for is_text, value in zip(row[::2], row[1::2], strict=True)
            ]
        )

    def close(self, force: bool) -> None:
        """End it."""
        self._cursor.close(force)
