"""Counts calls of the index of the audit log: for figures by time, source and how they ended."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from tidegate.audit.activity import ActivityIndex

MOST_PENDING = 1_000
"""How many calls that have not ended are read again."""
_BIN = (
    "CASE WHEN outcome = 'ok' AND ms IS NOT NULL THEN"
    " CASE WHEN ms > 0.0625 THEN min(87, CAST(log2(ms) * 4 + 16 AS INTEGER)) ELSE 0 END"
    " ELSE -1 END"
)
"""The rule of `gateway.call_figures.bin_of`."""
_WANTED = (
    "FROM lines WHERE (n > :after OR n IN (SELECT value FROM json_each(:pending)))"
    " AND time >= :since AND call_id <> '' AND substr(call_id, 1, length(:own)) <> :own"
)
_COUNTED = (
    "SELECT CASE WHEN time >= :minutes_since THEN CAST(time / 60 AS INTEGER)"
    " ELSE CAST(time / 600 AS INTEGER) * 10 END, source,"
    " CASE outcome WHEN 'unknown' THEN 'failed' ELSE outcome END,"
    f" {_BIN}, count(*) {_WANTED} AND outcome <> 'pending' GROUP BY 1, 2, 3, 4"
)
_LEFT = f"SELECT n {_WANTED} AND outcome = 'pending' ORDER BY n DESC LIMIT {MOST_PENDING}"


class CallCounts(NamedTuple):
    """Rows of minute (Unix time / 60), source, ending, bin of the time (-1: none) and count; the
    number of the newest line; and the newest of those whose calls have not ended."""

    newest: int
    pending: tuple[int, ...]
    rows: list[tuple[Any, ...]]


def count_calls(
    index: ActivityIndex,
    since: float,
    after: int = 0,
    pending: Sequence[int] = (),
    *,
    own: str,
    minutes_since: float,
) -> CallCounts:
    """Calls since a time (Unix seconds), by source, how they ended and ten minutes, or by minute
    since `minutes_since`: of the lines above `after`, and of those `pending` before. Calls whose id
    begins with `own` are left out. Raises: TidegateError STATE_FAILED."""
    values = {
        "since": since,
        "minutes_since": minutes_since,
        "after": after,
        "pending": msgspec.json.encode(pending).decode(),
        "own": own,
    }
    with index.using() as connection:
        newest: int = connection.execute("SELECT coalesce(max(n), 0) FROM lines").get
        rows = cast("list[tuple[Any, ...]]", connection.execute(_COUNTED, values).fetchall())
        left = cast("list[tuple[int]]", connection.execute(_LEFT, values).fetchall())
    return CallCounts(newest, tuple(n for (n,) in left), rows)
