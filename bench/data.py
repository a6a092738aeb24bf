"""The data of the server comparison: two SQLite files, and the statements run on them.

Both files are the same on every machine, byte for byte in what they answer: no clock, no chance.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

ROWS = 200_000
"""Rows of `items`."""

POINT_IDS = range(100_000, 200_000)
"""All of six digits, so that every request is equally long."""

WARM_ID = 123_456

COLUMNS = "id, sku, name, category, price, quantity, added_on, note"

_CATEGORIES = ("bicycles", "books", "ceramics", "garden", "kitchen", "lamps", "music", "textiles")
_WORDS = ("amber", "birch", "copper", "dune", "ember", "fjord", "granite", "harbour", "indigo")


def point(item: int) -> str:
    """The point query; its answer carries `point_marker(item)`, its text does not."""
    return f"SELECT id, sku, name, price FROM items WHERE id = {item}"


def point_marker(item: int) -> str:
    return f"item-{item:08d}"


def many(rows: int) -> str:
    """A query of `rows` rows and eight columns."""
    return f"SELECT {COLUMNS} FROM items ORDER BY id LIMIT {rows}"


def _item(number: int) -> tuple[object, ...]:
    word = _WORDS[number % 9]
    other = _WORDS[number // 9 % 9]
    note = (
        None
        if number % 5 == 0
        else f"{other} on {word}, "
        f"shelf {number % 97}, box {number % 1009}"  # codespell:ignore shelf
    )
    return (
        number,
        point_marker(number),
        f"{word.title()} {other} no. {number}",
        _CATEGORIES[number % 8],
        round(number * 37 % 99_991 / 100 + 0.99, 2),
        number * 7 % 500,
        f"20{number % 25:02d}-{number % 12 + 1:02d}-{number % 28 + 1:02d}",
        note,
    )


def items(count: int) -> Iterator[tuple[object, ...]]:
    """The first rows of `items`, by id."""
    return map(_item, range(1, count + 1))


def make_shop(path: Path) -> None:
    """Write the file of the speed workloads, unless it is there."""
    if path.exists():
        return
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    connection = sqlite3.connect(draft)
    connection.execute(
        "CREATE TABLE items (id INTEGER PRIMARY KEY, sku TEXT NOT NULL, name TEXT NOT NULL,"
        " category TEXT NOT NULL, price REAL NOT NULL, quantity INTEGER NOT NULL,"
        " added_on TEXT NOT NULL, note TEXT)"
    )
    with connection:
        connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", items(ROWS))
    connection.close()
    draft.rename(path)


def wide(tables: int) -> Iterator[str]:
    """A schema of so many tables of twenty columns, in words that all four engines know: a key of
    each, a reference to the table before, an index."""
    more = ", ".join(f"field_{n} {'VARCHAR(40)' if n % 2 else 'INTEGER'}" for n in range(1, 17))
    for number in range(tables):
        name = f"table_{number:04d}"
        parent = f"table_{max(number - 1, 0):04d}"
        yield (
            f"CREATE TABLE {name} (id INTEGER NOT NULL, parent_id INTEGER,"
            f" code VARCHAR(40) NOT NULL, amount DOUBLE PRECISION DEFAULT 0, {more},"
            f" PRIMARY KEY (id), FOREIGN KEY (parent_id) REFERENCES {parent} (id))"
        )
        yield f"CREATE INDEX {name}_code ON {name} (code)"


# The other wide schema: 212 tables of a company, in which a conversation has to find two.

_MODULES = (
    "sales", "purchase", "stock", "finance", "payroll", "project", "support", "fleet", "quality",
    "assets", "marketing", "plant",
)  # fmt: skip
_ENTITIES = (
    "partner", "contact", "address", "order", "order_line", "agreement", "document",
    "document_line", "category", "event", "event_log", "tag", "team", "policy", "plan", "rate",
    "attachment",
)  # fmt: skip

TABLES = 212
ANSWER_COUNTRY = "Norway"
ANSWER_TOTAL = 48_100

JOIN = (
    "SELECT c.country, SUM(i.total) AS total FROM invoice i JOIN customer c"
    " ON c.id = i.customer_id GROUP BY c.country ORDER BY total DESC LIMIT 3"
)
"""The statement that the conversation ends with; its first row is ANSWER_COUNTRY, ANSWER_TOTAL."""

_NAMESAKES = ("invoice_line", "invoice_reminder", "invoice_tax", "customer_group", "customer_visit")

_CUSTOMER = (
    "CREATE TABLE customer (id INTEGER PRIMARY KEY, number TEXT NOT NULL, name TEXT NOT NULL,"
    " email TEXT, phone TEXT, street TEXT, city TEXT, postal_code TEXT, country TEXT NOT NULL,"
    " group_id INTEGER REFERENCES customer_group(id), credit_limit REAL, created_at TEXT NOT NULL)"
)
_INVOICE = (
    "CREATE TABLE invoice (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL"
    " REFERENCES customer(id), number TEXT NOT NULL, issued_on TEXT NOT NULL, due_on TEXT,"
    " net REAL NOT NULL, tax REAL NOT NULL, total REAL NOT NULL, currency TEXT NOT NULL,"
    " status TEXT NOT NULL, paid_on TEXT, remark TEXT)"
)


def _table(name: str, parent: str) -> str:
    return (
        f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, code TEXT NOT NULL, title TEXT NOT NULL,"
        " status TEXT NOT NULL DEFAULT 'new', amount REAL, quantity INTEGER,"
        " created_at TEXT NOT NULL, updated_at TEXT, remark TEXT,"
        f" parent_id INTEGER REFERENCES {parent}(id))"
    )


def _company() -> Iterator[str]:
    yield _CUSTOMER
    yield _INVOICE
    for name in _NAMESAKES:
        yield _table(name, name.partition("_")[0])
    for entity in _ENTITIES:
        for module in _MODULES:
            yield _table(f"{module}_{entity}", f"{module}_partner")
    taken = 2 + len(_NAMESAKES) + len(_ENTITIES) * len(_MODULES)
    for year in range(2020, 2020 + TABLES - taken):
        yield _table(f"archive_{year}", f"archive_{year}")


def make_company(path: Path) -> None:
    """Write the file of the token workload: 212 tables, two of them with rows."""
    if path.exists():
        return
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    connection = sqlite3.connect(draft)
    for statement in _company():
        connection.execute(statement)
    countries = ("Norway", "Chile", "Japan", "Kenya")
    with connection:
        connection.executemany(
            "INSERT INTO customer (id, number, name, country, created_at)"
            " VALUES (?, ?, ?, ?, '2025-01-01')",
            [(n, f"K-{n:04d}", f"Customer {n}", countries[n % 4]) for n in range(1, 41)],
        )
        connection.executemany(
            "INSERT INTO invoice VALUES (?, ?, ?, '2025-02-01', NULL, ?, 0, ?, 'EUR', 'paid',"
            " NULL, NULL)",
            [(n, n % 40 + 1, f"R-{n:05d}", *2 * (_total(n % 40 + 1),)) for n in range(1, 1601)],
        )
    connection.close()
    draft.rename(path)


def _total(customer: int) -> float:
    return 120.25 if customer % 4 == 0 else 80.5
