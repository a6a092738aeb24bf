"""The ledger's engine as a case of the contract suite of engines: SQLite's shop in a ledger."""

from pathlib import Path
from typing import Any

from support.engine_cases import SQLITE, Case, digest_sqlite, make_sqlite


def _make(directory: Path) -> str:
    return make_sqlite(directory).replace("sqlite:", "ledger:", 1)


def _digest(engine: Any, url: str) -> str:
    return digest_sqlite(engine, url.replace("ledger:", "sqlite:", 1))


CASE = Case("ledger", _make, SQLITE, _digest)
