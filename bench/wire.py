"""The command `./dev bench wire`: what the gate adds to the wire protocol, and what sessions weigh.

psycopg reads the same database directly and through `tidegate serve --pg`, in turns: a point query
that is prepared, and 10,000 rows of six columns, in text and in binary format. The ratio is of the
medians of one run. Then 1,000 sessions are opened that do nothing, and 32 that ask in turns; the
memory of the server is what the kernel reports for its process, less what it was before.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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


def compare(
    direct: Connection, gate: Connection, work: Callable[[Connection], None]
) -> tuple[float, float]:
    """The median seconds of each, in turns."""
    taken: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(ROUNDS + 1):
        for which, connection in enumerate((direct, gate)):
            began = time.perf_counter()
            work(connection)
            taken[which].append(time.perf_counter() - began)
    return statistics.median(taken[0][1:]), statistics.median(taken[1][1:])


def resident(pid: int) -> int:
    """Bytes of memory that the process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def main() -> None:
    argparse.ArgumentParser(prog="./dev bench wire", description=__doc__).parse_args()
    shops = tests_module("support.postgres_surface")
    servers = tests_module("support.wire_server")
    shop = shops.PostgresShop.lasting(_TABLE)
    sources = [{"name": "pg", "url": shop.url, "access": "read"}]
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.wire_server(Path(folder), sources=sources) as server,
        psycopg.connect(shop.server.conninfo(shop.database), autocommit=True) as direct,
        psycopg.connect(server.conninfo("pg"), autocommit=True) as gate,
    ):
        print(f"{'':28}{'direct':>10}{'gate':>10}{'ratio':>8}")
        cases: list[tuple[str, float, Callable[[Connection], None]]] = [
            (f"point query, 1 of {POINTS}", POINTS, point),
            (f"{ROWS} rows, text", 1, lambda each: rows(each, binary=False)),
            (f"{ROWS} rows, binary", 1, lambda each: rows(each, binary=True)),
        ]
        for name, times, work in cases:
            least, ours = compare(direct, gate, work)
            shown = (least / times * 1000, ours / times * 1000, ours / least)
            print(f"{name:28}{shown[0]:7.2f} ms{shown[1]:7.2f} ms{shown[2]:8.2f}")
        pid = server.process.process.pid
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
