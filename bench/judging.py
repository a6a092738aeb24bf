"""Measures the cost of the judge: in this process, one text at a time, CPU alone.

Each figure is next to the time that sqlglot takes to parse the same text, which is the least cost
of any judgement that uses it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.figures import rotate
from bench.workloads import Effort, Row, Rows
from tidegate.sql.judge import judge, judge_uncached

DIALECTS = ("sqlite", "postgres", "mysql", "duckdb")
_MONTHS = """
    SELECT c.name, sum(CASE WHEN o.status = 'paid' THEN o.total ELSE 0 END) AS paid,
        coalesce(round(avg(o.total), 2), 0) AS mean, count(DISTINCT o.id) AS orders
    FROM orders AS o LEFT JOIN customers AS c ON c.id = o.customer_id
    WHERE o.created_at >= '2026-01-01' AND o.status IN ('paid', 'open') AND NOT (o.total < 1.5)
    GROUP BY c.name HAVING count(*) > 3
"""
STATEMENTS = {
    "short": "SELECT * FROM orders WHERE id = 42",
    "typical": f"WITH months AS ({_MONTHS}) SELECT * FROM months ORDER BY paid DESC LIMIT 10",
    "long": " UNION ALL ".join([_MONTHS] * 20),
}
ANSWERED, JUDGED = 5_000, {"short": 200, "typical": 50, "long": 3}
"""How often a text is answered from the cache, and judged in full, in one turn."""


def judging(effort: Effort) -> Rows:
    """Seconds of CPU per statement, for each dialect and length: from the cache, from the cache of
    templates with a literal never seen, judged in full, and parsed by sqlglot."""
    names = [f"{dialect}, {length}" for dialect in DIALECTS for length in STATEMENTS]
    rows: Rows = {name: [] for name in names}
    for turn in range(effort.rounds + 1):
        for name in rotate(names, turn):
            row = _turn(*name.split(", "), turn)
            if turn:  # the first one imports the parser and fills the caches
                rows[name].append(row)
    return rows


def _turn(dialect: str, length: str, turn: int) -> Row:
    import sqlglot

    text, times = STATEMENTS[length], JUDGED[length]
    judge(text, dialect)
    fresh = iter(
        [text.replace("2026", f"{turn}{n}").replace("42", f"{turn}{n}") for n in range(50)]
    )
    return {
        "bytes": len(text),
        "cached": _cost(lambda: judge(text, dialect), ANSWERED),
        "new literal": _cost(lambda: judge(next(fresh), dialect), 50),
        "in full": _cost(lambda: judge_uncached(text, dialect), times),
        "parse": _cost(lambda: sqlglot.parse(text, read=dialect), times),
    }


def _cost(action: Callable[[], object], times: int) -> float:
    """Seconds of this thread's CPU for one of so many acts."""
    started = time.thread_time_ns()
    for _ in range(times):
        action()
    return (time.thread_time_ns() - started) / times / 1e9
