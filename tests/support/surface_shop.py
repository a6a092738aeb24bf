"""A small shop database for surface tests: tables, a view, keys, NULLs, text in several scripts."""

from __future__ import annotations

import sqlite3
from pathlib import Path

STATEMENTS = (
    """CREATE TABLE customers (
        id INTEGER PRIMARY KEY,
        email TEXT NOT NULL UNIQUE,
        full_name TEXT NOT NULL,
        city TEXT DEFAULT 'Paris'
    )""",
    """CREATE TABLE orders (
        id INTEGER PRIMARY KEY,
        customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
        placed_at TEXT NOT NULL,
        total NUMERIC
    )""",
    "CREATE INDEX orders_by_customer ON orders (customer_id, placed_at)",
    "CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100",
    """INSERT INTO customers (email, full_name, city) VALUES
        ('ada@example.org', 'Ada Lovelace', 'London'),
        ('hokusai@example.org', '葛飾 北斎', NULL),
        ('omar@example.org', 'عمر الخيام', 'Nishapur')""",
    """INSERT INTO orders (customer_id, placed_at, total) VALUES
        (1, '2026-01-02', 120.5), (1, '2026-01-03', 80), (2, '2026-01-04', NULL)""",
)


def build_shop(path: Path) -> Path:
    """Write the database to `path` and return it."""
    connection = sqlite3.connect(path)
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path
