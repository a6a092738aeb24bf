"""The dialects of SQL: one module each, with a `DIALECT`, and one entry in its
product's `product.py`.

CONTRIBUTING.md shows how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from tidegate.product import Product, add_installed, built_in, own_entries
from tidegate.sql.dialects.model import Dialect


def _dialects(product: Product) -> Mapping[str, str]:
    return product.dialects


DIALECTS: dict[str, str] = {
    "sqlite": "tidegate.sql.dialects.sqlite",
    "postgres": "tidegate.sql.dialects.postgres",
    "postgresql": "tidegate.sql.dialects.postgres",
    **own_entries(_dialects),
}
"""The module of each dialect, by its name in lower case. Those of installed packages come in when
one is named that is not here."""

_OTHERS = frozenset([
    name
    for product in built_in()
    for entry in product.engines.values()
    for name in (entry.dialect, *entry.other_dialects)
    if name not in DIALECTS
])  # fmt: skip
"""Dialects of the products here, of which some are no SQL."""
_DEFAULT = "tidegate.sql.dialects.default"


@cache
def find(name: str) -> Dialect:
    """The tables for a dialect's name; the conservative default for a name that has none."""
    lowered = name.lower()
    if lowered not in DIALECTS and lowered not in _OTHERS:
        add_installed(DIALECTS, _dialects, "dialect", _OTHERS)
    dialect: Dialect = import_module(DIALECTS.get(lowered, _DEFAULT)).DIALECT
    return dialect
