"""Fails what asks the state on the event loop of a server: one hanging disk would stop everyone.

`install` wraps what every statement of a state passes. It is part of each test: in the process of
the tests, and in the servers that they start (`loaded_commands`). Only servers follow their state,
so a command, whose loop serves nobody else, is left alone; and so is a test that asks the state
itself.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from functools import wraps
from inspect import CO_COROUTINE, CO_GENERATOR
from types import FrameType
from typing import Any

STATEMENTS = (
    ("tidegate.store.sqlite.connection", "StateConnection", "reading"),
    ("tidegate.store.sqlite.rights", "RightsConnection", "reading"),
    ("tidegate.store.postgres.database", "Database", "_begin"),
)
"""Where every statement passes: another implementation of the state adds its own."""

_FOLLOWED: set[int] = set()
"""The ids of the versions that are followed in this process."""


class BlockedLoop(AssertionError):
    """A statement of the state on a thread with a running event loop."""


def install() -> None:
    """Guard every state of this process from now on."""
    from tidegate.store.versions import Versions

    if getattr(Versions.follow, "guarded", False):
        return
    follow, close = Versions.follow, Versions.close

    @wraps(follow)
    def note_followed(versions: Versions) -> None:
        _guard_loaded()
        follow(versions)
        _FOLLOWED.add(id(versions))

    @wraps(close)
    def note_closed(versions: Versions) -> None:
        close(versions)
        _FOLLOWED.discard(id(versions))

    note_followed.guarded = True  # type: ignore[attr-defined]
    Versions.follow, Versions.close = note_followed, note_closed  # type: ignore[method-assign]


def _guard_loaded() -> None:
    """Guard the implementations that were imported: which is there is known by now."""
    for module, name, method in STATEMENTS:
        if module in sys.modules:
            kind = getattr(sys.modules[module], name)
            statement = getattr(kind, method)
            if not getattr(statement, "guarded", False):
                setattr(kind, method, _guarded(statement))


def _guarded(statement: Any) -> Any:
    @wraps(statement)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if _FOLLOWED and asyncio._get_running_loop() is not None:
            check(sys._getframe(1))
        return statement(*args, **kwargs)

    guarded.guarded = True  # type: ignore[attr-defined]
    return guarded


def check(frame: FrameType | None) -> None:
    """Raises: BlockedLoop if the statement was sent by a coroutine or a callback of ours."""
    began = frame
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("tidegate."):
            if frame.f_code.co_flags & CO_COROUTINE:
                break
        elif name.startswith(("asyncio.", "uvloop")):
            break  # a callback of the loop
        elif name != "contextlib" and not frame.f_code.co_flags & CO_GENERATOR:
            return  # a test's own statement
        frame = frame.f_back
    stack = "".join(traceback.format_stack(began, 12))
    print(f"A statement of the state on the event loop:\n{stack}", file=sys.stderr, flush=True)
    raise BlockedLoop(stack)
