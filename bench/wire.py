"""The command `./dev bench wire`: what the gate adds to the wire protocol, and what sessions weigh.

psycopg reads the same database directly and through `tidegate serve --pg`, in turns: a point query
that is prepared, and 10,000 rows of six columns, in text and in binary format. The ratio is of the
medians of one run; the CPU is the least that the server's process took for one query in any round,
since other processes on the machine make it more. The same rows are read from a SQLite file, of
which there is nothing direct to compare with. Then 1,000 sessions are opened that do nothing, and
32 that ask in turns; the memory of the server is what the kernel reports for its process, less what
it was before.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from bench.grounds import tests_module

ROWS = 10_000
POINTS = 500
ROUNDS = 7
IDLE = 1_000
BUSY = 32
_TABLE = f"""
CREATE TABLE wide AS SELECT i AS id, 'name ' || i AS name, i * 1.25 AS amount, i / 3.0 AS ratio,
  timestamptz '2026-01-01' + i * interval '1 minute' AS at, i % 2 = 0 AS even
FROM generate_series(1, {ROWS}) AS i;
ALTER TABLE wide ADD PRIMARY KEY (id);
"""
Connection = psycopg.Connection[tuple[Any, ...]]


def point(connection: Connection) -> None:
    for number in range(POINTS):
        connection.execute("SELECT name FROM wide WHERE id = %s", (number,), prepare=True)


def rows(connection: Connection, *, binary: bool) -> None:
    connection.execute("SELECT * FROM wide", binary=binary).fetchall()


def processor_s(pid: int) -> float:
    """Seconds that the threads of a process have run."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


class Taken(NamedTuple):
    """Median seconds on the clock, and the least seconds of the server's processor."""

    clock_s: float
    processor_s: float


def measure(work: Callable[[Connection], None], pid: int, *connections: Connection) -> list[Taken]:
    """What the work takes on each connection, in turns."""
    clocks: list[list[float]] = [[] for _ in connections]
    processors: list[list[float]] = [[] for _ in connections]
    for _ in range(ROUNDS + 1):
        for which, connection in enumerate(connections):
            before, began = processor_s(pid), time.perf_counter()
            work(connection)
            clocks[which].append(time.perf_counter() - began)
            processors[which].append(processor_s(pid) - before)
    return [
        Taken(statistics.median(clock[1:]), min(processor[1:]))
        for clock, processor in zip(clocks, processors, strict=True)
    ]


def make_file(path: Path) -> None:
    """A SQLite file with the rows of `_TABLE`."""
    with sqlite3.connect(path) as file:
        file.execute(
            "CREATE TABLE wide (id INTEGER PRIMARY KEY, name TEXT, amount NUMERIC, ratio REAL,"
            " at TIMESTAMP, even BOOLEAN)"
        )
        file.executemany(
            "INSERT INTO wide VALUES (?, ?, ?, ?, ?, ?)",
            [
                (i, f"name {i}", i * 1.25, i / 3.0, f"2026-01-01 00:{i % 60:02}:00", i % 2 == 0)
                for i in range(1, ROWS + 1)
            ],
        )
    file.close()


def resident(pid: int) -> int:
    """Bytes of memory that the process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def sources_in(folder: Path, url: str) -> list[dict[str, str]]:
    """The PostgreSQL database and a file with the same rows."""
    make_file(folder / "wide.db")
    return [
        {"name": "pg", "url": url, "access": "read"},
        {"name": "file", "url": f"sqlite:///{folder}/wide.db", "access": "read"},
    ]


def main() -> None:
    argparse.ArgumentParser(prog="./dev bench wire", description=__doc__).parse_args()
    shops = tests_module("support.postgres_surface")
    servers = tests_module("support.wire_server")
    shop = shops.PostgresShop.lasting(_TABLE)
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.wire_server(Path(folder), sources=sources_in(Path(folder), shop.url)) as server,
        psycopg.connect(shop.server.conninfo(shop.database), autocommit=True) as direct,
        psycopg.connect(server.conninfo("pg"), autocommit=True) as gate,
        psycopg.connect(server.conninfo("file"), autocommit=True) as file,
    ):
        pid = server.process.process.pid
        print(f"{'':28}{'direct':>10}{'gate':>10}{'ratio':>8}{'gate CPU':>12}")
        cases: list[tuple[str, float, Callable[[Connection], None]]] = [
            (f"point query, 1 of {POINTS}", POINTS, point),
            (f"{ROWS} rows, text", 1, lambda each: rows(each, binary=False)),
            (f"{ROWS} rows, binary", 1, lambda each: rows(each, binary=True)),
        ]
        for name, times, work in cases:
            least, ours = measure(work, pid, direct, gate)
            ratio = ours.clock_s / least.clock_s
            shown = [each / times * 1000 for each in (least.clock_s, *ours)]
            print(f"{name:28}{shown[0]:7.2f} ms{shown[1]:7.2f} ms{ratio:8.2f}{shown[2]:9.3f} ms")
        for name, binary in (("text", False), ("binary", True)):
            (ours,) = measure(partial(rows, binary=binary), pid, file)
            clock, processor = ours.clock_s * 1000, ours.processor_s * 1000
            print(f"{f'SQLite, {name}':28}{'':10}{clock:7.2f} ms{'':8}{processor:9.3f} ms")
        before = resident(pid)
        idle = [psycopg.connect(server.conninfo("pg")) for _ in range(IDLE)]
        each = (resident(pid) - before) / IDLE / 1024
        print(f"{IDLE} idle sessions: {each:.1f} kB each")

        def ask(_: int) -> float:
            with psycopg.connect(server.conninfo("pg"), autocommit=True) as own:
                began = time.perf_counter()
                point(own)
                return time.perf_counter() - began

        began = time.perf_counter()
        with ThreadPoolExecutor(BUSY) as threads:
            list(threads.map(ask, range(BUSY)))
        rate = BUSY * POINTS / (time.perf_counter() - began)
        grown = (resident(pid) - before) / 1024 / 1024
        print(f"{BUSY} busy sessions beside them: {rate:.0f} queries a second, {grown:.0f} MB more")
        for connection in idle:
            connection.close()
    shop.drop()


if __name__ == "__main__":
    main()
