"""Imports of a file: 100,000 lines into a new table as one change, beside the driver's batches.

    ./dev bench imports

Both read the same CSV file. The driver's side is what a person would write: `csv`, and batches of
500 rows in one transaction, by `executemany` where that is a batch. The gate also checks each
value, holds and digests all of them, judges, records, and counts what is added; undo is off. The
two take turns on tables without rows. The ratio is that of the median times, with the check of the
file and without it, in one run for each database.
"""

from __future__ import annotations

import asyncio
import csv
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import duckdb
import msgspec
import psycopg

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

import support.mysql_server as mysql_server  # noqa: E402 - the tests' own servers
import support.postgres_server as postgres_server  # noqa: E402
from tidegate.app import App  # noqa: E402
from tidegate.config.model import Config  # noqa: E402
from tidegate.errors import TidegateError  # noqa: E402
from tidegate.imports.checking import HeldRows, Pair, check_rows  # noqa: E402
from tidegate.imports.delimited import DelimitedRecords  # noqa: E402
from tidegate.imports.model import Reading  # noqa: E402
from tidegate.imports.open_file import OpenFile  # noqa: E402
from tidegate.model.actors import Actor, Scope  # noqa: E402
from tidegate.model.editing import Editability  # noqa: E402
from tidegate.model.requests import Call, Disconnect, Request  # noqa: E402
from tidegate.model.results import Limits  # noqa: E402
from tidegate.model.row_changes import ChangeRows, DescribeEditing  # noqa: E402

ROWS = 100_000
AT_ONCE = 500
TIMES = 5
MOST = 3.0
"""How many times as long as the driver's batches an import may take."""
_ACTOR = Actor("bench", "bench", Scope.READ_WRITE)
_LIMITS = Limits(1, 10_000_000, 600.0)
_READING = Reading()
_TABLE = (
    "CREATE TABLE big (id INTEGER PRIMARY KEY, word VARCHAR(40), n INTEGER, price DECIMAL(10,2),"
    " made TIMESTAMP)"
)


class Database(NamedTuple):
    """A database: its URL, its schema, what empties its table, and the driver's import."""

    url: str
    schema: str
    empty: Callable[[], None]
    batches: Callable[[Path], None]


def write_file(path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "word", "n", "price", "made"))
        for number in range(ROWS):
            made = f"2026-01-{1 + number % 28:02d} 10:{number % 60:02d}:00"
            writer.writerow((number, f"word {number}", number % 1000, f"{number % 977}.25", made))


def parts_of(path: Path) -> Iterator[list[list[str]]]:
    """The rows of the file, some at a time."""
    with path.open(newline="") as file:
        rows = csv.reader(file)
        next(rows)
        while part := list(islice(rows, AT_ONCE)):
            yield part


def make_sqlite(directory: Path) -> Database:
    import sqlite3

    path = directory / "big.db"

    def empty() -> None:
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.execute(_TABLE)
        connection.close()

    def batches(file: Path) -> None:
        connection = sqlite3.connect(path)
        with connection:
            for part in parts_of(file):
                connection.executemany("INSERT INTO big VALUES (?, ?, ?, ?, ?)", part)
        connection.close()

    return Database(f"sqlite:///{path}", "main", empty, batches)


def make_duckdb(directory: Path) -> Database:
    path = directory / "big.duckdb"

    def empty() -> None:
        path.unlink(missing_ok=True)
        with duckdb.connect(str(path)) as connection:
            connection.execute(_TABLE)

    def batches(file: Path) -> None:
        with duckdb.connect(str(path)) as connection:
            connection.begin()
            for part in parts_of(file):  # `executemany` takes a millisecond a row
                marks = ", ".join(["(?, ?, ?, ?, ?)"] * len(part))
                values = [value for row in part for value in row]
                connection.execute(f"INSERT INTO big VALUES {marks}", values)
            connection.commit()

    return Database(f"duckdb:///{path}", "main", empty, batches)


def make_postgres(_: Path) -> Database:
    server = postgres_server.shared()
    name = server.new_database()
    server.ask(_TABLE, name)

    def batches(file: Path) -> None:
        with psycopg.connect(server.conninfo(name)) as connection, connection.cursor() as cursor:
            for part in parts_of(file):
                cursor.executemany("INSERT INTO big VALUES (%s, %s, %s, %s, %s)", part)

    return Database(server.url(name), "public", lambda: empty_by(server.ask, name), batches)


def make_mariadb(_: Path) -> Database:
    server = mysql_server.shared()
    name = server.new_database()
    server.script(_TABLE, name)

    def batches(file: Path) -> None:
        async def work(connection: Any) -> None:
            async with connection.cursor() as cursor:
                await cursor.execute("BEGIN")
                for part in parts_of(file):
                    text = "INSERT INTO big VALUES (%s, %s, %s, %s, %s)"
                    await cursor.executemany(text, [tuple(row) for row in part])
                await cursor.execute("COMMIT")

        server.connected(work, name)

    return Database(server.url(name), name, lambda: empty_by(server.script, name), batches)


def empty_by(run: Callable[[str, str], Any], name: str) -> None:
    run("TRUNCATE TABLE big", name)


MAKERS = {
    "SQLite": make_sqlite,
    "PostgreSQL": make_postgres,
    "MariaDB": make_mariadb,
    "DuckDB": make_duckdb,
}


async def ask(app: App, request: Request) -> Any:
    """What the gate answers."""
    return (await app.gateway.handle(Call(_ACTOR, "core", "query", request, "big"))).payload


async def imported(app: App, schema: str, path: Path) -> tuple[float, float]:
    """The file through the gate: seconds of the check of all lines, and of adding the rows."""
    about = DescribeEditing(table="big", schema=schema, adds=True, limits=_LIMITS)
    described: Editability = await ask(app, about)
    assert described.shape is not None, described.reason
    shape = described.shape
    with path.open("rb") as file, tempfile.TemporaryFile() as room:
        held_file = OpenFile(room)
        began = time.perf_counter()
        pairs = [
            Pair(at, column.name, column, shape.names.index(column.name))
            for at, column in enumerate(described.columns)
        ]
        held = HeldRows(held_file, path.name, "0" * 64, pairs)
        records = DelimitedRecords(file, _READING)
        found = check_rows(records, _READING, pairs, held, lambda count: None)
        assert found.rows is not None, found.errors[:1]
        checked = time.perf_counter()
        change = ChangeRows(
            table="big", schema=schema, shape=shape, edits=(), feed=held, limits=_LIMITS
        )
        done = await ask(app, change)
        assert done.fed == ROWS
        return checked - began, time.perf_counter() - checked


async def measure(name: str, database: Database, app: App, path: Path) -> float:
    """Print the medians; the ratio."""
    alone: list[float] = []
    checks: list[float] = []
    adds: list[float] = []
    for turn in range(TIMES + 1):
        with suppress(TidegateError):  # it was not connected; one program at a time
            await ask(app, Disconnect())
        database.empty()
        began = time.perf_counter()
        await asyncio.to_thread(database.batches, path)
        one = time.perf_counter() - began
        database.empty()
        two, three = await imported(app, database.schema, path)
        if turn:  # the first opens connections
            alone.append(one)
            checks.append(two)
            adds.append(three)
    whole = [one + two for one, two in zip(checks, adds, strict=True)]
    ratio, added = median(whole) / median(alone), median(adds) / median(alone)
    print(f"{name:10}  driver {shown(alone)}   check {shown(checks)}   add {shown(adds)}")
    print(
        f"{name:10}  {ROWS:,} lines: {ratio:.2f} times the driver's batches (at most {MOST:g}),"
        f" {added:.2f} without the check"
    )
    return ratio


def shown(times: Sequence[float]) -> str:
    """A median, with the least and the longest."""
    return f"{median(times):.2f} s ({min(times):.2f} to {max(times):.2f})"


def main(names: Iterable[str] = ()) -> int:
    """1 if an import takes longer than it may."""
    ratios: list[float] = []
    wanted = list(names) or list(MAKERS)
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="tidegate-imports-") as folder:
            directory = Path(folder)
            path = directory / "big.csv"
            write_file(path)
            database = MAKERS[name](directory)
            database.empty()
            source = {"name": "big", "url": database.url, "access": "write"}
            config = {"sources": [source], "state": str(directory / "state")}
            app = App.open(msgspec.convert(config, Config))

            async def run(work: Callable[[], Awaitable[float]], app: App = app) -> float:
                try:
                    return await work()
                finally:
                    await app.close()

            ratios.append(
                asyncio.run(run(lambda: measure(name, database, app, path)))  # noqa: B023
            )
    return int(max(ratios) > MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
