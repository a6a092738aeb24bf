"""One way to read a result through JDBC, or from PostgreSQL itself, in a process of its own.

`python jdbc_readers.py READER` reads settings as JSON from standard input and prints one JSON
object: for each of the runs the seconds of CPU and of the wall clock, and the rows. The readers
`jaydebeapi` and `jpype` run in the peers' environment, so nothing of Tidegate is imported for them.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

if not __package__:  # run by its path, in an environment without Tidegate
    sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.process import cpu_here

RUNS = 3
"""The first is cold: classes are loaded, and Java compiles what it runs often."""

Rows = list[tuple[Any, ...]]


def main() -> None:
    settings = json.load(sys.stdin)
    reader: Callable[[dict[str, Any]], Iterator[Rows]] = READERS[sys.argv[1]]
    print(json.dumps(measured(reader(settings))))


def measured(runs: Iterator[Rows]) -> dict[str, Any]:
    """What each run took. The first item of `runs` is empty and comes when all is connected."""
    began, cpu = time.perf_counter(), cpu_here()
    figures: list[tuple[float, float]] = []
    last: Rows = []
    for rows in runs:
        figures.append((cpu_here() - cpu, time.perf_counter() - began))
        last = rows or last
        began, cpu = time.perf_counter(), cpu_here()
    (connect_cpu, connect_wall), *reads = figures
    return {
        "connect": {"cpu": connect_cpu, "wall": connect_wall},
        "reads": [{"cpu": cpu, "wall": wall} for cpu, wall in reads],
        "rows": len(last),
        "first": [str(value) for value in last[0]],
        "types": [type(value).__name__ for value in last[0]],
    }


def read_psycopg(settings: dict[str, Any]) -> Iterator[Rows]:
    import psycopg

    with psycopg.connect(settings["conninfo"], autocommit=True) as connection:
        yield []
        for _ in range(RUNS):
            yield connection.cursor(binary=True).execute(settings["sql"]).fetchall()


def read_worker(settings: dict[str, Any]) -> Iterator[Rows]:
    """Tidegate's engine: a statement under a permit, and its rows as Python values."""
    from bench.engines import LIMITS, permit_for
    from tidegate.engines.registry import engine_of, open_engine
    from tidegate.model.cancellation import NEVER
    from tidegate.model.requests import Query
    from tidegate.model.sources import Source
    from tidegate.model.statements import Statement

    options = tuple(settings["options"].items())
    source = Source("s", "s", settings["url"], *engine_of(settings["url"]), options=options)
    permit = permit_for(source, Query(Statement(settings["sql"]), limits=LIMITS))

    async def read() -> Rows:
        cursor = await engine.run(permit, NEVER)
        try:
            return [tuple(row) for row in await cursor.fetch(1_000_000)]
        finally:
            await cursor.close()

    with asyncio.Runner() as runner:
        engine: Any = runner.run(open_engine(source))
        yield []
        for _ in range(RUNS):
            yield runner.run(read())
        runner.run(engine.close())


def read_jaydebeapi(settings: dict[str, Any]) -> Iterator[Rows]:
    import jaydebeapi

    options = settings["options"]
    account = {"user": options["user"], "password": options["password"]}
    connection = jaydebeapi.connect(
        settings["driver"], settings["url"], account, options["driver_path"]
    )
    yield []
    for _ in range(RUNS):
        cursor = connection.cursor()
        cursor.execute(settings["sql"])
        yield cursor.fetchall()
        cursor.close()
    connection.close()


def read_jpype(settings: dict[str, Any]) -> Iterator[Rows]:
    """The getter that fits each column, and Python's types: as fast as JPype can be used."""
    import jpype
    import jpype.dbapi2

    options = settings["options"]
    jpype.startJVM(classpath=[options["driver_path"]])
    properties = jpype.JClass("java.util.Properties")()
    properties.setProperty("user", options["user"])
    properties.setProperty("password", options["password"])
    driver = jpype.JClass(settings["driver"])()
    connection = driver.connect(settings["url"], properties)
    connection.setAutoCommit(False)
    yield []
    moment = datetime.datetime.fromisoformat
    for _ in range(RUNS):
        statement = connection.createStatement()
        statement.setFetchSize(2_048)
        result = statement.executeQuery(settings["sql"])
        rows: Rows = []
        while result.next():
            rows.append(
                (
                    int(result.getInt(1)),
                    int(result.getLong(2)),
                    str(result.getString(3)),
                    Decimal(str(result.getString(4))),
                    moment(str(result.getString(5))),
                )
            )
        statement.close()
        yield rows
    connection.close()


READERS: dict[str, Callable[[dict[str, Any]], Iterator[Rows]]] = {
    "psycopg": read_psycopg,
    "worker": read_worker,
    "jpype": read_jpype,
    "jaydebeapi": read_jaydebeapi,
}


if __name__ == "__main__":
    main()
