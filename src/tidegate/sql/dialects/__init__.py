"""The dialects of SQL: one module each, with a `DIALECT`, and one line in `DIALECTS`.

CONTRIBUTING.md shows how to add one.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tidegate.sql.dialects.model import Dialect

DIALECTS = {
    "sqlite": "tidegate.sql.dialects.sqlite",
    "postgres": "tidegate.sql.dialects.postgres",
    "postgresql": "tidegate.sql.dialects.postgres",
    "mysql": "tidegate.sql.dialects.mysql",
    "mariadb": "tidegate.sql.dialects.mysql",
    "duckdb": "tidegate.sql.dialects.duckdb",
    "h2": "tidegate.sql.dialects.h2",
    "hsqldb": "tidegate.sql.dialects.hsqldb",
    "derby": "tidegate.sql.dialects.derby",
    "spark": "tidegate.sql.dialects.spark",
    "cloud": "tidegate.sql.dialects.cloud",
}
"""The module of each dialect, by its name in lower case."""

_DEFAULT = "tidegate.sql.dialects.default"


@cache
def find(name: str) -> Dialect:
    """The tables for a dialect's name; the conservative default for a name that has none."""
    dialect: Dialect = import_module(DIALECTS.get(name.lower(), _DEFAULT)).DIALECT
    return dialect
