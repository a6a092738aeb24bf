"""The Data page of the console: the search over many tables, pages of a large one, held results.

    ./dev bench console

It serves the console before SQLite, PostgreSQL, MariaDB and DuckDB, each with a table of a million
rows, and SQLite with 1,200 tables beside it. Times are those of whole requests over HTTP, the
median of several; memory is the server's, as the kernel counts it.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from support.console_visitor import Visitor  # noqa: E402 - the tests' own shop
from support.data_desk import ENGINES, MAKERS, answer, desk  # noqa: E402

ROWS = 1_000_000
TABLES = 1_200
TIMES = 15
_NUMBER = {"field": "n", "type": "quantitative"}
CHARTS: dict[str, dict[str, Any]] = {
    "bars of sums": {
        "mark": "bar",
        "encoding": {
            "x": {"field": "made", "type": "temporal", "timeUnit": "yearmonth"},
            "y": {**_NUMBER, "aggregate": "sum"},
        },
    },
    "bins": {
        "mark": "bar",
        "encoding": {"x": {**_NUMBER, "bin": True}, "y": {"aggregate": "count"}},
    },
    "many categories": {
        "mark": "bar",
        "encoding": {
            "x": {"field": "word", "type": "nominal", "sort": "-y"},
            "y": {**_NUMBER, "aggregate": "median"},
        },
    },
    "points": {
        "mark": "point",
        "encoding": {"x": {"field": "id", "type": "quantitative"}, "y": _NUMBER},
    },
}
"""A chart of 100,000 rows takes at most 1.5 times as long as their CSV."""
_BIG = "CREATE TABLE big (id INTEGER PRIMARY KEY, word VARCHAR(40), n INTEGER, made TIMESTAMP)"
_FILL = {
    "lite": "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s LIMIT {rows})"
    " INSERT INTO big SELECT i, 'word ' || (i * 7919 % 100003), i % 1000, '2026-01-01 00:00:00'"
    " FROM s",
    "duck": "INSERT INTO big SELECT i, 'word ' || (i * 7919 % 100003), i % 1000,"
    " TIMESTAMP '2026-01-01 00:00:00' FROM range(1, {rows} + 1) AS s(i)",
    "pg": "INSERT INTO big SELECT i, 'word ' || (i::bigint * 7919 % 100003), i % 1000,"
    " TIMESTAMP '2026-01-01 00:00:00' FROM generate_series(1, {rows}) AS s(i)",
    "maria": "INSERT INTO big SELECT seq, concat('word ', seq * 7919 % 100003), seq % 1000,"
    " '2026-01-01 00:00:00' FROM seq_1_to_{rows}",
}


def fill(source: str, url: str) -> None:
    """The large table, made as another client would."""
    text = _FILL[source].format(rows=ROWS)
    if source == "lite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(_BIG)
            connection.execute(text)
            for number in range(TABLES):
                connection.execute(
                    f"CREATE TABLE part_{number:04d} (id INTEGER PRIMARY KEY, size_{number} TEXT,"
                    " name TEXT, made_at TEXT, made_by TEXT, weight REAL, note TEXT, parent INT)"
                )
    elif source == "duck":
        import duckdb

        with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
            connection.execute(_BIG)
            connection.execute(text)
    elif source == "pg":
        import support.postgres_server as postgres_server

        name = url.partition("@/")[2].partition("?")[0]
        for each in (_BIG, text, "ANALYZE big"):
            postgres_server.shared().ask(each, name)
    else:
        import support.mysql_server as mysql_server

        name = url.partition("@/")[2].partition("?")[0]
        for each in (_BIG, text, "ANALYZE TABLE big"):
            mysql_server.shared().script(each, name)


def timed(work: Callable[[], Any]) -> str:
    """The median and the longest of several requests, in milliseconds."""
    taken = times_of(work)
    return f"{median(taken):8.1f} ms   longest {max(taken):8.1f} ms"


def times_of(work: Callable[[], Any]) -> list[float]:
    """How long several requests take, in milliseconds, after one that is not counted."""
    work()
    taken: list[float] = []
    for _ in range(TIMES):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def memory(pid: int) -> float:
    """The resident memory of a process in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def ended(visitor: Visitor, id: str) -> dict[str, Any]:
    while True:
        run: dict[str, Any] = answer(visitor.get(f"data/runs/{id}"))
        if run["ended_at"] is not None:
            return run
        time.sleep(0.02)


def measure(visitor: Visitor, pid: int) -> None:
    """Print the figures."""
    for words in ("part", "size_11", "name", "zzz"):
        found = answer(visitor.get(f"data/search?q={words}"))
        shown = timed(lambda words=words: answer(visitor.get(f"data/search?q={words}")))
        print(f"search {words!r:10} {len(found['matches']):3} of {TABLES:,} tables   {shown}")
    page: dict[str, Any] = {"table": "big", "limit": 200}
    for source in ENGINES:
        body = {**page, "source": source}
        deep = {**body, "filters": [{"column": "id", "operator": ">", "value": str(ROWS - 500)}]}
        for name, sent in (
            ("first page", body),
            ("last rows", deep),
            ("sort, no index", {**body, "sort": [{"column": "word"}]}),
        ):
            shown = timed(lambda sent=sent: answer(visitor.post("data/rows", sent)))
            print(f"{source:6} {name:16} of {ROWS:,} rows   {shown}")
    for source in ENGINES:
        before = memory(pid)
        body = {"source": source, "statement": "SELECT * FROM big LIMIT 100000", "tab": ""}
        begun = answer(visitor.post("data/runs", {**body, "max_rows": 100_000}))
        run = ended(visitor, begun["id"])
        rows = timed(
            lambda id=run["id"]: answer(visitor.get(f"data/runs/{id}/rows?offset=70000&limit=1000"))
        )
        print(
            f"{source:6} held {run['row_count']:,} rows in {run['elapsed_ms']:,.0f} ms;"
            f" memory {before:.1f} -> {memory(pid):.1f} MB; 1,000 of them {rows}"
        )
        measure_charts(visitor, source, run)


def measure_charts(visitor: Visitor, source: str, run: dict[str, Any]) -> None:
    """Print how long charts of a held result take, beside its CSV file."""
    wanted = {"run": run["id"], "format": "csv"}
    csv = median(times_of(lambda: answer(visitor.post("data/export-ticket", wanted))))
    for name, spec in CHARTS.items():
        body = {"spec": spec}
        taken = median(
            times_of(lambda body=body: answer(visitor.post(f"data/runs/{run['id']}/chart", body)))
        )
        print(
            f"{source:6} {name:16} of {run['row_count']:,} rows {taken:8.1f} ms;"
            f" their CSV {csv:8.1f} ms; ratio {taken / csv:.2f}"
        )


def main() -> None:
    """Make the databases, serve them, measure."""
    directory = Path(tempfile.mkdtemp())
    for source in ENGINES:
        make = MAKERS[source]

        def made(place: Path, source: str = source, make: Callable[[Path], str] = make) -> str:
            url = make(place)
            fill(source, url)
            return url

        MAKERS[source] = made
    with desk(directory, operators=False) as place:
        visitor = place.visitor()
        answer(visitor.get("data/search?q=big"))
        measure(visitor, place.server.process.pid)


if __name__ == "__main__":
    main()
