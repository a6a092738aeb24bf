"""What the judge knows of each dialect, as tables of data. `find` picks one; no other logic."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tidegate.sql.dialects.model import Dialect

_MODULES = {
    "sqlite": "sqlite",
    "postgres": "postgres",
    "postgresql": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "duckdb": "duckdb",
}


@cache
def find(name: str) -> Dialect:
    """The tables for a dialect's name; the conservative default for a name that has none."""
    module = import_module(f"tidegate.sql.dialects.{_MODULES.get(name.lower(), 'default')}")
    dialect: Dialect = module.DIALECT
    return dialect
