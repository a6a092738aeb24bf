"""Changes rows in an order in which each finds its unique values free, in the open transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tidegate.engines.common.row_edits import EditTurns
from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.internal_queries import send_queries
from tidegate.errors import TidegateError

EditT = TypeVar("EditT")
_SAVE = b"SAVEPOINT edits", None
_BACK = b"ROLLBACK TO SAVEPOINT edits", None
_DROP = b"RELEASE SAVEPOINT edits", None
_TAKEN = frozenset({"23505", "23P01"})
"""A unique value that another row has, and one that an exclusion constraint keeps apart."""


async def make_edits(
    session: PostgresSession,
    edits: Sequence[EditT],
    together: Callable[[], Awaitable[object]],
    alone: Callable[[EditT], Awaitable[object]],
) -> None:
    """Make several edits `together`; where a value that one of them writes is another row's still,
    undo that, and make each `alone`. Raises: TidegateError."""
    if len(edits) < 2:
        await together()
        return
    await send_queries(session, _SAVE)
    try:
        await together()
        return
    except TidegateError as error:
        await _go_back(session, error)
    turns = EditTurns(edits)
    while (due := turns.next()) is not None:
        try:
            await alone(due)
        except TidegateError as error:
            await _go_back(session, error)
            turns.put_off(due, error)
        else:
            await send_queries(session, _DROP, _SAVE)


async def _go_back(session: PostgresSession, error: TidegateError) -> None:
    """Raises: TidegateError, that one if it tells of no value that is taken."""
    if error.details.get("sqlstate") not in _TAKEN:
        raise error
    await session.be_ready_in_block()
    await send_queries(session, _BACK)
