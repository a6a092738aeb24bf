"""Texts no one would write: pieces of the cases put together again. Most make no sense to any
database; what matters is that some do, and that the rest breaks nothing."""

from __future__ import annotations

import random
import re
from functools import cache

from support.judge_cases import load

_PIECE = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\w+|\s+|--|/\*|\*/|::|[^\w\s]")
_HEADS = (
    *(
        "",
        "EXPLAIN ",
        "EXPLAIN ANALYZE ",
        "WITH x AS (SELECT 1) ",
        "SELECT * FROM (",
        "VALUES (1) ",
    ),
    *("INSERT INTO t ", "WITH x AS (DELETE FROM t RETURNING *) ", "TABLE t UNION ", "("),
)
_TAILS = (
    *("", " FOR UPDATE", " INTO x", " RETURNING *", ") x", "; DELETE FROM t", " LIMIT 1"),
    *(" UNION SELECT * FROM t", ")", " --", " /* x */", " FOR SHARE OF t", " AS y"),
)


def splice(rng: random.Random) -> str:
    """A text of pieces of two cases, of whatever dialects, sometimes with a head and a tail."""
    one, other = rng.choice(_pieces()), rng.choice(_pieces())
    cut = rng.randrange(len(one) + 1)
    pieces = [*one[:cut], *other[rng.randrange(len(other) + 1) :]] if rng.random() < 0.6 else [*one]
    for _ in range(rng.choice((0, 0, 1, 1, 2, 4))):
        at = rng.randrange(len(pieces) + 1)
        match rng.randrange(4):
            case 0:
                del pieces[at : at + rng.randrange(1, 4)]
            case 1:
                pieces[at:at] = rng.choice(_pieces())[:6]
            case 2:
                pieces[at:at] = [" ", rng.choice(rng.choice(_pieces()) or [" "]), " "]
            case _:
                pieces[at : at + 1] = pieces[at : at + 1] * 2
    return (
        rng.choice(_HEADS) * (rng.random() < 0.3)
        + "".join(pieces)
        + (rng.choice(_TAILS) * (rng.random() < 0.3))
    )


@cache
def _pieces() -> list[list[str]]:
    return [_PIECE.findall(case.sql) for case in load() if len(case.sql) < 2_000]
