"""Decides whether the views that a statement reads, and the functions it calls, only read.

A view may call a stored function, and a stored function may do what its definer may, also in a
read-only session: write files, take locks, set global variables. So each view's definition, as the
server keeps it, is judged like a statement, and the views it reads as well. What was found holds
for some seconds.

The judge's list of functions is of names that some server has built in. Where another one lacks it,
or the name is qualified, a stored function may be meant: one of that name is refused.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from tidegate.engines.mysql import queries
from tidegate.engines.mysql.session import Session
from tidegate.sql.judge import judge
from tidegate.statements import Effect, Judgement

FRESH_S = 5.0
MOST_DEPTH = 16
_MOST_KEPT = 4096

Place = tuple[str, str]
Names = tuple[tuple[str, ...], tuple[str, ...], str | None]


class Views:
    """What is known of the tables and views of one server."""

    def __init__(self) -> None:
        self._definitions: dict[Place, tuple[float, str | None]] = {}
        self._stored: tuple[float, frozenset[str]] = (0.0, frozenset())
        self._answers: dict[Names, tuple[float, str | None]] = {}

    def recall(self, read: Judgement, database: str | None) -> tuple[bool, str | None]:
        """Whether the answer is known, and if so the objection to what a statement reads."""
        if not read.tables and not read.functions:
            return True, None
        until, objection = self._answers.get((read.tables, read.functions, database), (0.0, None))
        return until > time.monotonic(), objection

    async def objection(
        self, session: Session, read: Judgement, database: str | None
    ) -> str | None:
        """Why a statement that seems to read may do more; None if it does not.

        Raises: ServerError, GateError.
        """
        until = time.monotonic() + FRESH_S
        found = await self._stored_function(session, read.functions)
        if found is None:
            found = await self._look(session, read.tables, database)
        if len(self._answers) > _MOST_KEPT:
            self._answers.clear()
        self._answers[read.tables, read.functions, database] = (until, found)
        return found

    async def _stored_function(self, session: Session, functions: tuple[str, ...]) -> str | None:
        if not functions:
            return None
        until, stored = self._stored
        if until < time.monotonic():
            rows = await session.own(queries.STORED_FUNCTIONS)
            stored = frozenset(str(row[0]).lower() for row in rows)
            self._stored = (time.monotonic() + FRESH_S, stored)
        for function in functions:
            if function.lower() in stored:
                return f"The function {function} is a stored one, and may do more than read."
        return None

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
                for function in judgement.functions:
                    if f"`{function.lower()}`(" in definition.lower():
                        return f"The view {name} calls the stored function {function}."
                inner |= _places(judgement.tables, schema)
            wanted = inner
        return "The views are nested too deeply to be looked at."

    def forget(self) -> None:
        """Definitions may have changed."""
        self._definitions.clear()
        self._answers.clear()
        self._stored = (0.0, frozenset())

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
