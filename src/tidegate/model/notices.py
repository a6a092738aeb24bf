"""What a database notes while it runs a statement: NOTICE, WARNING, INFO.

They come on the connection whenever a step of the statement waits for it, and belong to no row. So
the gate does not hand a list through every engine's ways of running a statement: the task of the
call has one, and the connection that notes something finds it there. An engine whose database says
such things has the capability `notices`.
"""

from __future__ import annotations

from contextvars import ContextVar

import msgspec

MOST_NOTICES = 100
"""Notices of one statement that are kept; of the others one says how many they were."""


class DatabaseNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One notice: `severity` in English, as `WARNING`, the SQLSTATE, and its texts."""

    severity: str
    sqlstate: str
    message: str
    detail: str = ""
    hint: str = ""


_noted: ContextVar[NoticeCollection | None] = ContextVar("noted", default=None)


class NoticeCollection:
    """What is noted for the statement that runs in this task."""

    __slots__ = ("_found", "_left_out")

    def __init__(self) -> None:
        self._found: list[DatabaseNotice] = []
        self._left_out = 0

    def add(self, notice: DatabaseNotice) -> None:
        """Keep a notice, or count it if there are too many."""
        if len(self._found) < MOST_NOTICES:
            self._found.append(notice)
        else:
            self._left_out += 1

    @property
    def found(self) -> tuple[DatabaseNotice, ...]:
        """What was noted so far."""
        if not self._left_out:
            return tuple(self._found)
        said = (
            f"{self._left_out:,} more notices of the database are left out: of one statement the"
            f" first {MOST_NOTICES} are passed on."
        )
        return (*self._found, DatabaseNotice("WARNING", "01000", said))


def collect() -> NoticeCollection:
    """What is noted from here on in this task, until it collects again."""
    collection = NoticeCollection()
    _noted.set(collection)
    return collection


def note(notice: DatabaseNotice) -> None:
    """Keep a notice, if a statement runs for which they are collected."""
    collection = _noted.get()
    if collection is not None:
        collection.add(notice)
