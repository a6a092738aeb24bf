"""`./dev fuzz`: hunts for false reads, and ends by itself.

Prints one JSON object per engine, and ends with status 1 if a read changed something.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import chain, islice

from read_only_fuzz.harness import Harness
from read_only_fuzz.search import Hunt, Summary, reads
from read_only_fuzz.statements import Statements

ENGINES = {
    "sqlite": ("sqlite_harness", "SqliteHarness"),
    "duckdb": ("duckdb_harness", "DuckdbHarness"),
    "postgres": ("postgres_harness", "PostgresHarness"),
    "mysql": ("mysql_harness", "MysqlHarness"),
}


def builder(engine: str) -> Callable[[], Harness]:
    """What builds a harness of an engine; imported when it is needed."""
    module, name = ENGINES[engine]
    return getattr(import_module(f"read_only_fuzz.{module}"), name)


def hunt(engine: str, count: int, seconds: float, seed: int, planted: str | None = None) -> Summary:
    """Run one hunt to its end. `planted` is taken for a read, and comes in the
    middle of the first batch."""
    chase = Hunt(builder(engine), lambda text, kind: text == planted or reads(text, kind), seed)
    try:
        harness = chase.harness
        texts = Statements(harness.dialect, harness.calls(), str(harness.folder), seed).distinct()
        if planted is not None:
            texts = chain(islice(texts, 30), [planted], texts)
        return chase.go(texts, count, seconds)
    finally:
        chase.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, help="one engine; all of them if left out")
    parser.add_argument("--count", type=int, default=20_000, help="statements for each engine")
    parser.add_argument("--minutes", type=float, default=10, help="the most for each engine")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same statements")
    parser.add_argument("--plant", metavar="SQL", help="take this for a read: it must be found")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)  # the driver of MariaDB tells what the server warns of
    found = 0
    for engine in [asked.engine] if asked.engine else ENGINES:
        summary = hunt(engine, asked.count, asked.minutes * 60, asked.seed, asked.plant)
        print(json.dumps(summary.as_dict()), flush=True)
        found += summary.changed
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
