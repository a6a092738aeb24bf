"""`./dev fuzz`: hunts for false reads, and ends by itself.

Prints one JSON object per engine, and ends with status 1 if a read changed something.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from importlib import import_module

from untouched.house import House
from untouched.hunt import Hunt, Summary
from untouched.statements import Statements

ENGINES = {
    "sqlite": ("sqlite_house", "SqliteHouse"),
    "duckdb": ("duckdb_house", "DuckdbHouse"),
    "postgres": ("postgres_house", "PostgresHouse"),
    "mysql": ("mysql_house", "MysqlHouse"),
}


def builder(engine: str) -> Callable[[], House]:
    """What builds a house of an engine; imported when it is needed."""
    module, name = ENGINES[engine]
    return getattr(import_module(f"untouched.{module}"), name)


def hunt(engine: str, count: int, seconds: float, seed: int) -> Summary:
    """One hunt from building the house to its end."""
    chase = Hunt(builder(engine), seed=seed)
    try:
        house = chase.house
        statements = Statements(house.dialect, house.calls(), str(house.folder), seed)
        return chase.go(statements.distinct(), count, seconds)
    finally:
        chase.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, help="one engine; all of them if left out")
    parser.add_argument("--count", type=int, default=20_000, help="statements for each engine")
    parser.add_argument("--minutes", type=float, default=10, help="the most for each engine")
    parser.add_argument("--seed", type=int, default=1, help="the same seed, the same statements")
    asked = parser.parse_args()
    found = 0
    for engine in [asked.engine] if asked.engine else ENGINES:
        summary = hunt(engine, asked.count, asked.minutes * 60, asked.seed)
        print(json.dumps(summary.as_dict()), flush=True)
        found += summary.changed
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
