"""Decides what a text is, by having the server prepare it, which runs nothing.

The server tells how many columns the statement would give. What only reads gives at least one; an
INTO OUTFILE, also one in an executable comment, gives none, nor do SET, CALL, LOCK, DDL. Prepared
in a read-only session, a change is refused there already. The few that give columns and do more
(CHECK, ANALYZE, HELP ...) are told by their first word.
"""

from __future__ import annotations

import re

import msgspec

from tidegate.engines.mysql.faults import ServerError
from tidegate.engines.mysql.session import Session
from tidegate.errors import Code
from tidegate.statements import Effect, Judgement

READING_WORDS = frozenset(
    {"SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"}
)

POOLED_WORDS = frozenset(
    """
    BEGIN START COMMIT ROLLBACK SAVEPOINT RELEASE LOCK UNLOCK XA PREPARE EXECUTE DEALLOCATE HANDLER
    USE DELIMITER
    """.split()  # noqa: SIM905 - a paragraph of words is easier to read and to change
)
"""What a caller may not do whatever its permit: a session is everyone's, one statement long."""

RULE = "mysql.prepare"

_MOST_KEPT = 4096
_KEPT_TEXT = 8192
_NOT_FOR_PREPARING = 1295
_READ_ONLY = frozenset({1290, 1792, 1836})
_BEFORE = re.compile(
    r"(?:\s|\(|#[^\n]*(?:\n|$)|--(?:[\s][^\n]*)?(?:\n|$)|/\*(?![!M]).*?\*/)*", re.DOTALL
)
_WORD = re.compile(r"[A-Za-z]+")


class Study(msgspec.Struct, frozen=True):
    """What the server says of a text; `error` is why it could not be prepared, and `changes` that
    it was refused since sessions are read-only."""

    effect: Effect
    reason: str
    error: ServerError | None = None
    changes: bool = False


_READS = Study(Effect.READ, "The server sees a statement that gives rows.")


def first_word(text: str) -> str:
    """The statement's first word in capitals; empty if it begins with anything else."""
    before = _BEFORE.match(text)
    word = _WORD.match(text, before.end() if before else 0)
    return word[0].upper() if word else ""


async def study(session: Session, text: str, encoded: bytes) -> Study:
    """What a text is. Raises: GateError SOURCE_UNREACHABLE."""
    try:
        statement, columns, _ = await session.line.prepare(encoded)
    except ServerError as error:
        if error.number in _READ_ONLY:
            return Study(Effect.WRITE, "The server sees a change in it.", changes=True)
        if error.number == _NOT_FOR_PREPARING:
            return Study(Effect.WRITE, "The server sees a statement that it does not prepare.")
        return Study(Effect.UNKNOWN, "The server cannot prepare it.", error)
    session.line.forget(statement)
    if columns and first_word(text) in READING_WORDS:
        return _READS
    return Study(Effect.WRITE, "The server sees a statement that does more than give rows.")


class Studies:
    """Texts that were found to read in a database, and so need not be prepared again."""

    def __init__(self) -> None:
        self._reading: dict[tuple[str, str | None], None] = {}

    def get(self, key: tuple[str, str | None]) -> Study | None:
        """The study of a text that is known to read."""
        return _READS if key in self._reading else None

    def put(self, key: tuple[str, str | None], found: Study) -> None:
        """Keep what reads, if it is not too long."""
        if found.effect is Effect.READ and len(key[0]) <= _KEPT_TEXT:
            while len(self._reading) >= _MOST_KEPT:
                del self._reading[next(iter(self._reading))]
            self._reading[key] = None


def as_judgement(found: Study) -> Judgement:
    """The study as an opinion on a statement."""
    code = None if found.effect is Effect.READ else Code.POLICY_READ_ONLY.value
    return Judgement(found.effect, RULE, found.reason, code)
