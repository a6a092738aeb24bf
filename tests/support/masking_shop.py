"""Two databases per engine: the shop as it is, and as one who is bound by the rules may see it.

The second is made without any of the product's code: values are hidden by the functions here. So
what a rewritten statement gives on the first must be what the statement itself gives on the second.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import duckdb
import msgspec

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.permits import permit_for
from tidegate.engines.registry import engine_of, open_engine
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import NEVER
from tidegate.model.data_rules import DataRules
from tidegate.model.requests import Browse, Query
from tidegate.model.results import Limits
from tidegate.model.schema import Catalog
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.masking.rewrite import rewrite

KEY = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
ACTOR = Actor("t1", "reporting", Scope.READ_ONLY)
DATA_RULES = DataRules(
    masks=(
        ("customers.email", "hash"),
        ("customers.phone", "partial"),
        ("orders.notes", "nothing"),
    ),
    filters=(("orders", "tenant_id = 7"),),
)
ENGINES = ("postgres", "mysql", "sqlite", "duckdb")


def hashed(value: str | None) -> str | None:
    return None if value is None else hashlib.sha256((KEY + value).encode()).hexdigest()


def partly(value: str | None) -> str | None:
    """The documented rule for `partial`, said once more."""
    if value is None:
        return None
    name, at, domain = value.partition("@")
    if at and name and "." in domain[1:-1] and "@" not in domain and " " not in value:
        return (name[0] if len(name) > 2 else "") + "***@" + domain
    return "***" if len(value) < 6 else f"{value[0]}***{value[-2:]}"


def _rows() -> dict[str, list[tuple[Any, ...]]]:
    rng = random.Random(4)
    phones = ["+49 151 5550%03d", "secret%d@hidden.example.org", "ab%d@x.io", None, "c@d.io", "x%d"]
    customers = []
    for number in range(1, 25):
        phone = phones[number % 6]
        phone = phone % number if phone and "%" in phone else phone
        mail = None if number == 9 else f"secret{number % 20}@mail.example"
        customers.append((number, f"Customer {number}", mail, phone, rng.randint(0, 5) * 50))
    orders = [
        (
            number,
            rng.randint(1, 24),
            rng.choice([7, 7, 8, 9]),
            rng.randint(0, 9) * 10,
            rng.choice(["secretnote", f"secret {number}", None]),
        )
        for number in range(1, 61)
    ]
    # A condition on the memo that the database looked at before the filter would fail.
    orders = [(*line, str(line[0]) if line[2] == 7 else "secretmemo") for line in orders]
    products = [(number, f"Product {number}", number % 10 * 10) for number in range(1, 9)]
    return {"customers": customers, "orders": orders, "products": products}


ROWS = _rows()
HIDDEN_ROWS = {
    "customers": [(i, n, hashed(e), partly(p), s) for i, n, e, p, s in ROWS["customers"]],
    "orders": [(i, c, t, a, None, m) for i, c, t, a, _, m in ROWS["orders"] if t == 7],
    "products": ROWS["products"],
}
_TABLES = (
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(80), email VARCHAR(80),"
    " phone VARCHAR(80), spent INTEGER)",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, tenant_id INTEGER,"
    " total INTEGER, notes VARCHAR(80), memo VARCHAR(80))",
    "CREATE TABLE products (id INTEGER PRIMARY KEY, title VARCHAR(80), price INTEGER)",
    "CREATE VIEW vip AS SELECT id, email AS contact, phone FROM customers WHERE spent > 100",
    "CREATE VIEW cheap AS SELECT * FROM products WHERE price < 50",
    "CREATE VIEW vip_orders AS SELECT o.id, v.contact, o.notes, o.total FROM orders o"
    " JOIN vip v ON v.id = o.customer_id",
)


def row_texts(rows: list[tuple]) -> list[str]:
    """Rows in an order of their own, to compare."""
    return sorted(
        repr(tuple([bytes(cell) if isinstance(cell, msgspec.Raw) else cell for cell in row]))
        for row in rows
    )


def _literal(value: Any) -> str:
    return "NULL" if value is None else repr(value) if isinstance(value, int) else f"'{value}'"


def script(rows: dict[str, list[tuple[Any, ...]]], extra: tuple[str, ...] = ()) -> list[str]:
    statements = list(_TABLES[:3])
    for table, lines in rows.items():
        values = ", ".join(f"({', '.join(map(_literal, line))})" for line in lines)
        statements.append(f"INSERT INTO {table} VALUES {values}")
    return [*statements, *_TABLES[3:], *extra]


def make(engine: str, directory: Path, name: str, statements: list[str]) -> str:
    """Make a database of its own; its URL."""
    text = ";\n".join(statements)
    if engine == "postgres":
        server = postgres_server.shared()
        database = server.new_database()
        server.ask(text, database)
        return server.url(database)
    if engine == "mysql":
        server = mysql_server.shared()
        database = server.new_database()
        server.script(f"ALTER DATABASE {database} CHARACTER SET utf8mb4; {text}", database)
        return server.url(database)
    path = directory / f"{name}.{engine}"
    if engine == "sqlite":
        connection = apsw.Connection(str(path))
        connection.execute(text)
    else:
        connection = duckdb.connect(str(path))
        connection.execute(text)
    connection.close()
    return f"{engine}:///{path}"


class Side:
    """One database through its real engine."""

    def __init__(self, url: str) -> None:
        engine, self.dialect = engine_of(url)
        self.source = Source("s", "shop", url, engine, self.dialect)
        self.engine: Any = None
        self.catalog: Any = None

    async def ask(
        self, text: str | Statement, effect: Effect = Effect.READ
    ) -> tuple[list[str], list[tuple]]:
        statement = Statement(text) if isinstance(text, str) else text
        request = Query(statement, limits=Limits(max_rows=100_000))
        permit = permit_for(self.source, request, effect, actor=ACTOR)
        cursor = await self.engine.run(permit, NEVER)
        try:
            rows: list[tuple] = []
            while batch := await cursor.fetch(1000):
                rows += [tuple(row) for row in batch]
            return [column.name for column in cursor.columns], rows
        finally:
            await cursor.close()

    async def look(self) -> Catalog:
        permit = permit_for(self.source, Browse("catalog"), actor=ACTOR)
        self.catalog = await self.engine.describe(permit, NEVER)
        return self.catalog

    def rewritten(self, text: str, data_rules: DataRules = DATA_RULES) -> str:
        """The text as it would run."""
        return self.masked(text, data_rules).text

    def masked(self, text: str | Statement, data_rules: DataRules = DATA_RULES) -> Statement:
        statement = Statement(text) if isinstance(text, str) else text
        return rewrite(statement, self.dialect, data_rules, self.catalog, KEY)


@asynccontextmanager
async def opened(*urls: str):
    sides = [Side(url) for url in urls]
    try:
        for side in sides:
            side.engine = await open_engine(side.source)
            await side.look()
        yield sides
    finally:
        for side in sides:
            if side.engine is not None:
                await side.engine.close()


class Shop:
    """Both databases of one engine, for synchronous tests: a loop of its own keeps them open."""

    def __init__(self, engine: str, directory: Path, extra: tuple[str, ...] = ()) -> None:
        self.name = engine
        self._loop = asyncio.new_event_loop()
        urls = (
            make(engine, directory, "real", script(ROWS, extra)),
            make(engine, directory, "seen", script(HIDDEN_ROWS, extra)),
        )
        self._opened = opened(*urls)
        self.real, self.seen = self._loop.run_until_complete(self._opened.__aenter__())

    def ask(
        self, text: str | Statement, data_rules: DataRules = DATA_RULES
    ) -> tuple[list[str], list[tuple]]:
        """The rewritten statement on the real database."""
        return self._loop.run_until_complete(self.real.ask(self.real.masked(text, data_rules)))

    def expected(self, text: str) -> tuple[list[str], list[tuple]]:
        """The statement as it is on the database in which everything is hidden already."""
        return self._loop.run_until_complete(self.seen.ask(text))

    def ask_plainly(self, text: str) -> tuple[list[str], list[tuple]]:
        return self._loop.run_until_complete(self.real.ask(text))

    def close(self) -> None:
        self._loop.run_until_complete(self._opened.__aexit__(None, None, None))
        self._loop.close()
