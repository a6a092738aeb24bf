"""Writes the sample shop into an SQLite file: all of it or nothing.

The file is written under a temporary name next to its place and renamed when it is whole, so a
file with the right name is a complete one.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from tidegate.demo import rows as shop
from tidegate.system.processes import owner_of

VERSION = 1
"""Raise it when the content changes: older files are then made again."""

ROWS = 199_299
"""How many rows there are in all, for a progress bar."""

Advance = Callable[[str, int], None]
"""Called with (table, rows written since the last time)."""

_CHUNK = 5_000
_SCHEMA = Path(__file__).with_name("schema.sql")


def is_built(path: Path) -> bool:
    """Whether `path` is a complete shop of this version."""
    if not path.is_file():
        return False
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            return connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    except sqlite3.DatabaseError:
        return False


def build(path: Path, advance: Advance) -> None:
    """Make the shop at `path`. Raises OSError or sqlite3.Error, and leaves nothing then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with closing(sqlite3.connect(part)) as connection:
            _fill(connection, advance)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove what killed runs left; a part whose process still runs is kept."""
    for left in path.parent.glob(f"{path.name}.*.part"):
        pid = left.name.split(".")[-2]
        if pid.isdigit() and owner_of(int(pid)) is None:
            left.unlink(missing_ok=True)


def _fill(connection: sqlite3.Connection, advance: Advance) -> None:
    # Nothing needs to survive a crash half-way: the part file is thrown away then.
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript(_SCHEMA.read_text("utf-8"))
    with connection:
        for table, rows in tables():
            _insert(connection, table, rows, advance)
    connection.execute("ANALYZE")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.commit()


def tables() -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """Every table with its rows, parents before children."""
    category_rows, category_ids = shop.category_tree()
    product_rows = list(shop.products(category_ids))
    prices = [row[6] for row in product_rows]
    yield "countries", shop.countries()
    yield "categories", category_rows
    yield "suppliers", shop.suppliers()
    yield "products", product_rows
    yield "product_translations", shop.product_translations()
    yield "price_changes", shop.price_changes(prices)
    yield "warehouses", shop.warehouses()
    yield "stock", shop.stock()
    yield "employees", shop.employees()
    people, customer_rows, address_rows = shop.customers()
    yield "customers", customer_rows
    yield "addresses", address_rows
    yield "promotions", shop.promotions()
    yield "reviews", shop.reviews(people, len(prices))
    sales = shop.Sales(people, prices)
    sales.generate()
    yield "orders", sales.orders
    yield "order_items", sales.items
    yield "payments", sales.payments
    yield "shipments", sales.shipments
    yield "returns", sales.returns


def _insert(
    connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]], advance: Advance
) -> None:
    remaining = iter(rows)
    while chunk := list(islice(remaining, _CHUNK)):
        marks = ", ".join("?" * len(chunk[0]))
        # The table's name comes from `tables`, never from outside.
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", chunk)
        advance(table, len(chunk))
