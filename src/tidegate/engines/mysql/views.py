"""Decides whether the views that a statement reads only read themselves.

A view may call a stored function, and a stored function may do what its definer may, also in a
read-only session: write files, take locks, set global variables. So each view's definition, as the
server keeps it, is judged like a statement, and the views it reads as well. What was found holds
for some seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from tidegate.engines.mysql import queries
from tidegate.engines.mysql.session import Session
from tidegate.sql.judge import judge
from tidegate.types import Effect

FRESH_S = 5.0
MOST_DEPTH = 16
_MOST_KEPT = 4096

Place = tuple[str, str]


class Views:
    """What is known of the tables and views of one server."""

    def __init__(self) -> None:
        self._definitions: dict[Place, tuple[float, str | None]] = {}
        self._answers: dict[tuple[str, ...], tuple[float, str | None]] = {}

    def recall(self, tables: tuple[str, ...]) -> tuple[bool, str | None]:
        """Whether the answer is known, and if so the objection to reading these tables."""
        if not tables:
            return True, None
        until, objection = self._answers.get(tables, (0.0, None))
        return until > time.monotonic(), objection

    async def objection(
        self, session: Session, tables: tuple[str, ...], database: str | None
    ) -> str | None:
        """Why reading these tables may do more than read; None if it does not.

        Raises: ServerError, GateError.
        """
        until = time.monotonic() + FRESH_S
        found = await self._look(session, tables, database)
        if len(self._answers) > _MOST_KEPT:
            self._answers.clear()
        self._answers[tables] = (until, found)
        return found

    async def _look(
        self, session: Session, tables: tuple[str, ...], database: str | None
    ) -> str | None:
        seen: set[Place] = set()
        wanted = _places(tables, database)
        for _ in range(MOST_DEPTH):
            wanted -= seen
            if not wanted:
                return None
            await self._learn(session, wanted)
            seen |= wanted
            inner: set[Place] = set()
            for schema, name in wanted:
                definition = self._definitions[schema, name][1]
                if definition is None:
                    continue
                if not definition:
                    return (
                        f"The view {name} keeps from this account what it does; "
                        "with the privilege SHOW VIEW on it, the gate could see."
                    )
                judgement = judge(definition, "mysql")
                if judgement.effect > Effect.READ:
                    return f"The view {name} may do more than read: {judgement.reason}"
                inner |= _places(judgement.tables, schema)
            wanted = inner
        return "The views are nested too deeply to be looked at."

    def forget(self) -> None:
        """Definitions may have changed."""
        self._definitions.clear()
        self._answers.clear()

    async def _learn(self, session: Session, wanted: set[Place]) -> None:
        now = time.monotonic()
        stale = [
            place
            for place in wanted
            if place not in self._definitions or self._definitions[place][0] < now
        ]
        if not stale:
            return
        if len(self._definitions) > _MOST_KEPT:
            self._definitions.clear()
            stale = list(wanted)
        found = {
            (str(schema), str(name)): str(text or "")
            for schema, name, text in await session.own(queries.views(stale))
        }
        for place in stale:
            self._definitions[place] = (now + FRESH_S, found.get(place))


def _places(tables: Iterable[str], database: str | None) -> set[Place]:
    """Where a table may be: its name may hold a dot, or be qualified."""
    places: set[Place] = set()
    for table in tables:
        schema, dot, name = table.partition(".")
        if dot and schema not in queries.SYSTEM:
            places.add((schema, name))
        if database is not None:
            places.add((database, table))
    return places
