"""The command `./dev spark`: a folder of Parquet files through Spark's Thrift server, as a source.

The source archive of pyspark brings the server and its JDBC driver; it is downloaded once, 456 MB.
The files are at least four times as large as the heap of Spark. Through the gate: a sum over all
rows, which must be DuckDB's own of the same files, and what is refused. Through the engine: a long
result in portions, a few rows of a long one, a time limit, and a caller who cancels; after each of
these Spark must have no job under way. Not a part of the tests: it takes minutes and gigabytes.

    ./dev spark                     2.8 GB of files, a heap of 640 MB
    ./dev spark --heap 512 --rows 16000000
    ./dev spark --java /path        the home of a Java, 17 or newer
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.engines import permit_for
from bench.peers import HERE, WORK
from bench.process import free_port, peak
from tidegate.engines.registry import engine_of, open_engine
from tidegate.errors import TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.requests import Query
from tidegate.model.results import Limits
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

PLACE = WORK / "spark"
FILES = PLACE / "orders"
REQUIREMENT = (HERE.parent / "requirements" / "spark.txt").read_text().split()[-1]
ROWS = 20_000_000
HEAP_MB = 640
PARTS = 12
TIMES_HEAP = 4
START_S = 300.0
SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"

SUM = (
    "SELECT count(*) AS n, sum(amount) AS total, count(DISTINCT customer) AS customers FROM orders"
)
LONG = "SELECT id, customer, amount, note FROM orders WHERE id < 1000000"
ENDLESS = "SELECT count(*) FROM orders a JOIN orders b ON a.note < b.note"
REFUSED = (
    "INSERT INTO orders SELECT * FROM orders",
    "SELECT * FROM text.`/etc/hostname`",
    "SELECT reflect('java.lang.System', 'getProperty', 'user.home')",
    "SELECT TRANSFORM (note) USING 'cat' FROM orders",
    "SET spark.sql.runSQLOnFiles=true",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--heap", type=int, default=HEAP_MB, help="megabytes")
    parser.add_argument("--java", help="the home of a Java")
    options = parser.parse_args()
    home = install()
    size = write_files(options.rows)
    if size < TIMES_HEAP * options.heap * 2**20:
        raise SystemExit(f"{size / 1e9:.1f} GB are less than {TIMES_HEAP} times the heap: --rows")
    found: dict[str, Any] = {"files, GB": size / 1e9, "heap of Spark, MB": options.heap}
    with Spark(home, options.heap, options.java, found) as spark:
        measure(spark, options.rows, found)
    (PLACE / "latest.json").write_text(json.dumps(found, indent=1) + "\n")
    print(render(found))


def install() -> Path:
    """The home of Spark, unpacked once. Raises: CalledProcessError if it cannot be downloaded."""
    PLACE.mkdir(parents=True, exist_ok=True)
    name = REQUIREMENT.replace("==", "-")
    archive, home = PLACE / f"{name}.tar.gz", PLACE / "home"
    if not archive.exists():
        print(f"downloading {REQUIREMENT}, 456 MB", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", "pyspark", REQUIREMENT, "-d", str(PLACE)]
        subprocess.run(command, check=True, timeout=1_800)
    stamp = home / name
    if not stamp.exists():
        shutil.rmtree(home, ignore_errors=True)
        with tarfile.open(archive) as content:
            for member in content:
                inside = member.name.partition("/deps/")[2]
                if inside.startswith(("jars/", "bin/")):
                    member.name = inside
                    content.extract(member, home, filter="data")
        stamp.touch()
    return home


def write_files(rows: int) -> int:
    """Parquet files of so many orders, once. Returns their size in bytes."""
    import duckdb

    stamp = FILES / f"_rows_{rows}"
    if not stamp.exists():
        shutil.rmtree(FILES, ignore_errors=True)
        FILES.mkdir(parents=True)
        note = " || ".join(f"hash(i * 7 + {n})" for n in range(6))
        with duckdb.connect() as connection:
            for part in range(PARTS):
                first, last = rows * part // PARTS, rows * (part + 1) // PARTS
                connection.execute(
                    f"COPY (SELECT i AS id, (i * 7919 % 1000003)::INTEGER AS customer,"
                    f" (i % 100000 / 100)::DECIMAL(12, 2) AS amount, {note} AS note"
                    f" FROM range({first}, {last}) t(i))"
                    f" TO '{FILES / f'part-{part}.parquet'}'"
                    " (FORMAT parquet, COMPRESSION uncompressed, ROW_GROUP_SIZE 50000)"
                )
        stamp.touch()
    return sum(path.stat().st_size for path in FILES.glob("*.parquet"))


class Spark:
    """A Thrift server on this machine. Use as a context: leaving it ends the server."""

    def __init__(self, home: Path, heap_mb: int, java: str | None, found: dict[str, Any]) -> None:
        self.home = home
        self.port, self._web = free_port(), free_port()
        self._found = found
        settings = {
            "spark.sql.thriftServer.incrementalCollect": "true",
            "spark.sql.warehouse.dir": str(PLACE / "run" / "warehouse"),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.shuffle.partitions": "8",
            # Spark holds one partition of a result at a time.
            "spark.sql.files.maxPartitionBytes": "16m",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.port": str(self._web),
            "spark.local.dir": str(PLACE / "run"),
        }
        self._command = [
            *(str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", SERVER),
            *("--driver-memory", f"{heap_mb}m"),
            *[part for name, value in settings.items() for part in ("--conf", f"{name}={value}")],
            *("spark-internal", "--hiveconf", f"hive.server2.thrift.port={self.port}"),
            *("--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"),
        ]
        self._environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
        if java:
            self._environment["JAVA_HOME"] = java

    @property
    def url(self) -> str:
        return f"jdbc:hive2://127.0.0.1:{self.port}/default"

    @property
    def driver_path(self) -> str:
        return str(self.home / "jars")

    def __enter__(self) -> Spark:
        run = PLACE / "run"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        began = time.perf_counter()
        for name in ("bin/spark-submit", "bin/spark-class", "bin/load-spark-env.sh"):
            (self.home / name).chmod(0o755)
        self._log = (run / "log").open("wb")
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            cwd=run,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            self._wait(began + START_S, b"HiveThriftServer2 started")
        except BaseException:
            self.__exit__()
            raise
        self._found["start of Spark, s"] = time.perf_counter() - began
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def resident_mb(self) -> float:
        """The most memory that Spark has had so far."""
        return peak(self._process.pid) / 2**20

    def jobs(self) -> int:
        """How many jobs are under way."""
        base = f"http://127.0.0.1:{self._web}/api/v1/applications"
        with urllib.request.urlopen(base, timeout=30) as reply:
            (application,) = json.load(reply)
        with urllib.request.urlopen(f"{base}/{application['id']}/jobs?status=running") as reply:
            return len(json.load(reply))

    def _wait(self, end: float, words: bytes) -> None:
        log = PLACE / "run" / "log"
        while words not in log.read_bytes():
            if self._process.poll() is not None or time.perf_counter() > end:
                raise RuntimeError(f"Spark did not start: {log.read_bytes()[-2000:].decode()}")
            time.sleep(0.2)


def measure(spark: Spark, rows: int, found: dict[str, Any]) -> None:
    """What the gate and the engine get. Raises: AssertionError where that is wrong."""
    asyncio.run(create_table(spark))
    with gate(spark) as ask:
        began = time.perf_counter()
        answer = ask("query", "lake", SUM, "--format", "json", "--timeout", "600")
        found["sum over all files through the gate, s"] = time.perf_counter() - began
        (row,) = json.loads(answer.stdout)
        expected = duckdb_sum()
        assert [int(row["n"]), str(row["total"]), int(row["customers"])] == expected, (
            row,
            expected,
        )
        assert expected[0] == rows
        for text in REFUSED:
            refused = ask("query", "lake", text, fails=True)
            assert refused.returncode, text
        found["refused"] = len(REFUSED)
        found["fences"] = ask("source", "test", "lake").stdout.strip().splitlines()
    asyncio.run(measure_engine(spark, found))
    found["most memory of Spark, MB"] = spark.resident_mb()


def duckdb_sum() -> list[Any]:
    import duckdb

    with duckdb.connect() as connection:
        files = FILES / "*.parquet"
        text = SUM.replace("FROM orders", f"FROM read_parquet('{files}')")
        row = connection.execute(text).fetchone()
    assert row is not None
    return [row[0], str(row[1]), row[2]]


@contextmanager
def gate(spark: Spark) -> Iterator[Any]:
    """The command line with a state of its own, where Spark is the source `lake`."""
    state = PLACE / "state"
    shutil.rmtree(state, ignore_errors=True)
    environment = {**os.environ, "TIDEGATE_STATE": str(state)}
    program = [sys.executable, "-m", "tidegate"]

    def ask(*words: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*program, *words], env=environment, capture_output=True, text=True, timeout=900
        )
        assert fails or not done.returncode, (words, done.stderr)
        return done

    options = (f"driver_path={spark.driver_path}", "user=reader")
    ask("source", "add", "lake", spark.url, *[w for o in options for w in ("--option", o)])
    yield ask
    shutil.rmtree(state, ignore_errors=True)


def source_of(spark: Spark) -> Source:
    options = (("driver_path", spark.driver_path), ("user", "reader"))
    return Source("lake", "lake", spark.url, *engine_of(spark.url), options=options)


async def create_table(spark: Spark) -> None:
    """Spark's table over the files, as its operator would make it: not through the gate."""
    from tidegate.products.jdbc.engine.jvm.process import JvmProcess
    from tidegate.products.jdbc.engine.jvm.runtime import find_runtime
    from tidegate.products.jdbc.engine.messages import Loaded, Started

    process = await JvmProcess.start(find_runtime(), "256m", "UTC")
    try:
        jars = sorted(map(str, Path(spark.driver_path).glob("*.jar")))
        await process.set_up({"jars": jars, "url": spark.url}, Loaded)
        channel = process.new_channel()
        await process.ask(channel, "connect", {"url": spark.url, "properties": {}}, dict)
        text = f"CREATE TABLE orders USING parquet LOCATION '{FILES}'"
        await process.ask(channel, "run", {"text": text, "writes": True}, Started)
    finally:
        process.close()
        await process.closed()


async def measure_engine(spark: Spark, found: dict[str, Any]) -> None:
    source = source_of(spark)
    began = time.perf_counter()
    engine: Any = await open_engine(source)
    found["connect, s"] = time.perf_counter() - began

    async def read(text: str, most: int, seconds: float, cancellation: Cancellation) -> int:
        limits = Limits(max_rows=most, max_bytes=1 << 40, timeout_s=seconds)
        permit = permit_for(source, Query(Statement(text), limits=limits))
        cursor = await engine.run(permit, cancellation)
        try:
            read = 0
            while read < most and (rows := await cursor.fetch(min(10_000, most - read))):
                read += len(rows)
            return read
        finally:
            await cursor.close()

    try:
        began = time.perf_counter()
        found["rows of a long result"] = await read(LONG, 2_000_000, 600, NEVER)
        assert found["rows of a long result"] == 1_000_000
        seconds = time.perf_counter() - began
        found["long result, s"] = seconds
        found["long result, rows/s"] = round(1_000_000 / seconds)
        found["memory of the driver's Java, MB"] = peak(engine._process.pid) / 2**20

        began = time.perf_counter()
        assert await read("SELECT * FROM orders", 1_000, 120, NEVER) == 1_000
        found["1,000 rows of all, s"] = time.perf_counter() - began
        found["jobs end after a limit of rows, s"] = await idle(spark)

        code, seconds = await failure(read(ENDLESS, 1, 5, NEVER))
        assert code == "limit.time", code
        found["a time limit of 5 s ends after, s"] = seconds
        found["jobs end after a time limit, s"] = await idle(spark)

        cancellation = Cancellation()
        wait_s = 5.0
        asyncio.get_running_loop().call_later(wait_s, cancellation.cancel)
        code, seconds = await failure(read(ENDLESS, 1, 600, cancellation))
        assert code == "call.cancelled", code
        found["a cancelled statement ends after, s"] = seconds - wait_s
        found["jobs end after a cancel, s"] = await idle(spark)
        assert await read("SELECT 1", 10, 60, NEVER) == 1
    finally:
        await engine.close()


async def failure(read: Awaitable[int]) -> tuple[str, float]:
    """The code of its error, and how long it took."""
    began = time.perf_counter()
    try:
        await read
    except TidegateError as error:
        return error.code.value, time.perf_counter() - began
    raise AssertionError("it did not fail")


async def idle(spark: Spark) -> float:
    """How long until Spark has no job under way. Raises: AssertionError after 30 s."""
    began = time.perf_counter()
    while await asyncio.to_thread(spark.jobs):
        assert time.perf_counter() < began + 30, "a job goes on"
        await asyncio.sleep(0.05)
    return time.perf_counter() - began


def render(found: dict[str, Any]) -> str:
    lines = ["| what | measured |", "|---|---|"]
    for name, value in found.items():
        if isinstance(value, float):
            value = f"{value:.2f}"
        elif isinstance(value, list):
            value = "; ".join(map(str, value))
        lines.append(f"| {name} | {value} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
