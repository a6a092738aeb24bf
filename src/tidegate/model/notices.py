"""What a database notes while it runs a statement: NOTICE, WARNING, INFO.

They come on the connection whenever a step of the statement waits for it, and belong to no row. So
the gate does not hand a list through every engine's ways of running a statement: the task of the
call has one, and the connection that notes something finds it there.
"""

from __future__ import annotations

from contextvars import ContextVar

import msgspec

MOST_NOTICES = 100
"""Notices of one statement that are kept."""


class DatabaseNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """One notice: `severity` in English, as `WARNING`, the SQLSTATE, and its texts."""

    severity: str
    sqlstate: str
    message: str
    detail: str = ""
    hint: str = ""


_noted: ContextVar[list[DatabaseNotice] | None] = ContextVar("noted", default=None)


class NoticeCollection:
    """Collects what is noted for the statement that runs in this task, while it is entered."""

    __slots__ = ("_found", "_token")

    def __enter__(self) -> list[DatabaseNotice]:
        self._found: list[DatabaseNotice] = []
        self._token = _noted.set(self._found)
        return self._found

    def __exit__(self, *_: object) -> None:
        _noted.reset(self._token)


def note(notice: DatabaseNotice) -> None:
    """Keep a notice, if a statement runs for which they are collected."""
    found = _noted.get()
    if found is not None and len(found) < MOST_NOTICES:
        found.append(notice)
