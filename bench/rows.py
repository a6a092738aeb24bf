"""Edits of rows: 1,000 rows of one table as one change, beside the bare driver's locked updates.

    ./dev bench rows

Both read and lock the rows by their keys, and then update each by its key, in one transaction of
PostgreSQL. The gate reads, compares, records and reads again in addition, with an audit log and a
history; undo is off. The two take turns, and the ratio is that of their medians.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import psycopg

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import support.postgres_server as postgres_server  # noqa: E402 - the tests' own server
from tidegate.app import App  # noqa: E402
from tidegate.config.model import Config  # noqa: E402
from tidegate.model.actors import Actor, Scope  # noqa: E402
from tidegate.model.requests import Call, Request  # noqa: E402
from tidegate.model.results import Limits  # noqa: E402
from tidegate.model.row_changes import ChangeRows, FoundRows, ReadImages, RowEdit  # noqa: E402

ROWS = 1_000
TIMES = 15
MOST = 3.0
"""How many times as long as the bare driver a change may take."""
_ACTOR = Actor("bench", "bench", Scope.READ_WRITE)
_TABLE = """CREATE TABLE big (id INTEGER PRIMARY KEY, word VARCHAR(40), n INTEGER, made TIMESTAMP);
INSERT INTO big SELECT i, 'word ' || i, i % 1000, TIMESTAMP '2026-01-01 00:00:00'
FROM generate_series(1, 100000) AS s(i)"""


def bare(connection: psycopg.Connection[Any], turn: int) -> float:
    """Locked updates by the driver: seconds."""
    began = time.perf_counter()
    keys = list(range(1, ROWS + 1))
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM big WHERE id = ANY(%s) FOR UPDATE", [keys])
        rows = cursor.fetchall()
        changed = [(f"bare {turn} {row[0]}", turn, row[0]) for row in rows]
        cursor.executemany("UPDATE big SET word = %s, n = %s WHERE id = %s", changed)
    return time.perf_counter() - began


async def ask(app: App, request: Request) -> Any:
    """What the gate answers."""
    return (await app.gateway.handle(Call(_ACTOR, "core", "query", request, "big"))).payload


async def edited(app: App, turn: int) -> tuple[float, float]:
    """The same through the gate: seconds of the reading of images, and of the change."""
    limits = Limits(ROWS, 10_000_000, 60.0)
    keys = tuple([(str(number),) for number in range(1, ROWS + 1)])
    began = time.perf_counter()
    request = ReadImages(table="big", schema="public", keys=keys, limits=limits)
    found: FoundRows = await ask(app, request)
    read = time.perf_counter()
    edits = tuple(
        [
            RowEdit(row.image, ((1, f"gate {turn} {row.image[0]}"), (2, str(turn))))
            for row in found.rows
            if row is not None
        ]
    )
    change = ChangeRows(table="big", schema="public", shape=found.shape, edits=edits, limits=limits)
    await ask(app, change)
    return read - began, time.perf_counter() - read


async def measure(app: App, connection: psycopg.Connection[Any]) -> float:
    """Print the medians; the ratio."""
    alone: list[float] = []
    reads: list[float] = []
    changes: list[float] = []
    for turn in range(TIMES + 1):
        one, (two, three) = bare(connection, turn), await edited(app, turn)
        if turn:  # the first opens connections
            alone.append(one)
            reads.append(two)
            changes.append(three)
    ratio = median(changes) / median(alone)
    for what, times in (("bare driver", alone), ("images", reads), ("ChangeRows", changes)):
        print(f"{what:12} {median(times) * 1000:7.1f} ms  (longest {max(times) * 1000:.1f})")
    print(f"ChangeRows of {ROWS:,} rows: {ratio:.2f} times the bare driver (at most {MOST:g})")
    return ratio


def main() -> int:
    """1 if the change takes longer than it may."""
    server = postgres_server.shared()
    name = server.new_database()
    for each in _TABLE.split(";"):
        server.ask(each, name)
    with tempfile.TemporaryDirectory(prefix="tidegate-rows-") as state:
        source = {"name": "big", "url": server.url(name), "access": "write"}
        config = msgspec.convert({"sources": [source], "state": state}, Config)
        app = App.open(config)

        async def run() -> float:
            try:
                with psycopg.connect(server.conninfo(name)) as connection:
                    return await measure(app, connection)
            finally:
                await app.close()

        return int(asyncio.run(run()) > MOST)


if __name__ == "__main__":
    sys.exit(main())
