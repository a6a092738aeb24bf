"""The dialects of SQL: one module each, with a `DIALECT`, and one entry in its
product's `product.py`.

CONTRIBUTING.md shows how to add one.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from tidegate.product import built_in, installed
from tidegate.sql.dialects.model import Dialect

DIALECTS: dict[str, str] = {
    "sqlite": "tidegate.sql.dialects.sqlite",
    "postgres": "tidegate.sql.dialects.postgres",
    "postgresql": "tidegate.sql.dialects.postgres",
    **{name: module for product in built_in() for name, module in product.dialects.items()},
}
"""The module of each dialect, by its name in lower case. Those of installed packages come in when
one is named that is not here."""

_OTHERS = frozenset(entry.dialect for product in built_in() for entry in product.engines.values())
"""Dialects of the products here, of which some are no SQL."""
_DEFAULT = "tidegate.sql.dialects.default"


@cache
def find(name: str) -> Dialect:
    """The tables for a dialect's name; the conservative default for a name that has none."""
    lowered = name.lower()
    if lowered not in DIALECTS and lowered not in _OTHERS:
        for product in installed():
            for each, module in product.dialects.items():
                DIALECTS.setdefault(each, module)
    dialect: Dialect = import_module(DIALECTS.get(lowered, _DEFAULT)).DIALECT
    return dialect
