"""The engines that the workbench is tested on: each with a small shop, and a way to look at it.

The shop of every engine: `customers`, `orders` that refer to them, the view `big_orders`, and
`void` without rows. Where there are schemas, `elsewhere` is another one with `totals` and with
`customers` of its own; where there are several databases, `second_database` is another with
`visits`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.duckdb_files import database_of
from support.surface_client import WRITER, Peer
from support.surface_gateway import SHOP_ID, SqliteGate
from tidegate.config.model import Config
from tidegate.engines.registry import engine_of
from tidegate.model.actors import Actor
from tidegate.model.sources import Source
from tidegate.surfaces.registry import open_surface

ResultT = TypeVar("ResultT")

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, email VARCHAR(60) NOT NULL UNIQUE,
  full_name VARCHAR(60) NOT NULL, city VARCHAR(60) DEFAULT 'Paris');
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL,
  placed_at VARCHAR(20) NOT NULL, total DECIMAL(10, 2),
  FOREIGN KEY (customer_id) REFERENCES customers (id));
CREATE INDEX orders_by_customer ON orders (customer_id, placed_at);
CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 100;
CREATE TABLE void (id INTEGER PRIMARY KEY, name VARCHAR(60));
INSERT INTO customers (id, email, full_name, city) VALUES
  (1, 'ada@example.org', 'Ada Lovelace', 'London'),
  (2, 'hokusai@example.org', '葛飾 北斎', NULL), (3, 'omar@example.org', 'عمر الخيام', 'Nishapur');
INSERT INTO orders (id, customer_id, placed_at, total) VALUES
  (1, 1, '2026-01-02', 120.5), (2, 1, '2026-01-03', 80), (3, 2, '2026-01-04', NULL);
"""
ELSEWHERE = """
CREATE TABLE {place}totals (id INTEGER PRIMARY KEY, amount INTEGER);
INSERT INTO {place}totals VALUES (1, 42);
CREATE TABLE {place}customers (id INTEGER PRIMARY KEY, nickname VARCHAR(60));
INSERT INTO {place}customers VALUES (7, 'the other one');
"""
SECOND_DATABASE = "CREATE TABLE visits (id INTEGER PRIMARY KEY); INSERT INTO visits VALUES (5);"


class EngineShop:
    """One engine's shop. `look` and `script` go past the gate, when no gate is open."""

    product = ""
    elsewhere: str | None = None
    second_database: str | None = None

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = self.build()
        self.dialect = engine_of(self.url)[1]

    def build(self) -> str:
        raise NotImplementedError

    def script(self, text: str) -> None:
        raise NotImplementedError

    def look(self, query: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def count(self, table: str) -> int:
        return int(self.look(f"SELECT count(*) FROM {table}")[0][0])

    @property
    def schema(self) -> str:
        """The schema where the shop is."""
        return "main"

    @property
    def database(self) -> str:
        return "shop"

    def source(self, **settings: Any) -> Source:
        engine, dialect = engine_of(self.url)
        given = {"access": "write"} | settings
        return Source(given.pop("id", SHOP_ID), given.pop("name", "shop"), self.url, engine,
                      dialect, **given)  # fmt: skip

    def gate(self, *more: Source, **settings: Any) -> SqliteGate:
        return SqliteGate(self.directory, self.source(**settings), *more)

    def converse(
        self,
        talk: Callable[[Peer], Awaitable[ResultT]],
        actor: Actor = WRITER,
        *,
        gate: SqliteGate | None = None,
        config: Config | None = None,
        revision: str = "2025-11-25",
    ) -> ResultT:
        """What a client of the workbench gets, with the gate open for this one conversation."""
        import asyncio

        gate = gate or self.gate()

        async def whole() -> ResultT:
            async with gate.opened():
                peer = Peer(open_surface("workbench", gate, config or Config()), actor, revision)
                await peer.open()
                return await talk(peer)

        return asyncio.run(whole())

    def result(self, tool: str, actor: Actor = WRITER, **arguments: Any) -> dict[str, Any]:
        """The structured content of one call."""
        given = {"connection_id": SHOP_ID} | arguments
        return self.converse(lambda peer: peer.result(tool, **given), actor)["structuredContent"]

    def error(
        self,
        tool: str,
        actor: Actor = WRITER,
        settings: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """The error of one call."""
        given = {"connection_id": SHOP_ID} | arguments
        gate = self.gate(**(settings or {}))
        return self.converse(lambda peer: peer.error(tool, **given), actor, gate=gate)


class SqliteShop(EngineShop):
    product = "SQLite"

    def build(self) -> str:
        self.path = self.directory / "shop.db"
        self.script(SHOP)
        return f"sqlite:///{self.path}"

    def script(self, text: str) -> None:
        connection = sqlite3.connect(self.path)
        connection.executescript(text)
        connection.close()

    def look(self, query: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()


class DuckdbShop(EngineShop):
    product = "DuckDB"
    elsewhere = "reporting"

    def build(self) -> str:
        self.path = self.directory / "shop.duckdb"
        self.path.write_bytes(
            database_of(f"{SHOP} CREATE SCHEMA reporting; {ELSEWHERE.format(place='reporting.')}")
        )
        return f"duckdb:///{self.path}"

    def script(self, text: str) -> None:
        import duckdb

        with duckdb.connect(str(self.path)) as connection:
            connection.execute(text)

    def look(self, query: str) -> list[tuple[Any, ...]]:
        import duckdb

        with duckdb.connect(str(self.path)) as connection:
            return connection.execute(query).fetchall()


class PostgresShop(EngineShop):
    product = "PostgreSQL"
    elsewhere = "reporting"

    def build(self) -> str:
        self.server = postgres_server.shared("wheel")
        self.name = self.server.copy_of(
            f"{SHOP} CREATE SCHEMA reporting; {ELSEWHERE.format(place='reporting.')}"
        )
        return self.server.url(self.name)

    @cached_property
    def second_database(self) -> str:
        return self.server.copy_of(SECOND_DATABASE)

    def script(self, text: str) -> None:
        self.server.ask(text, self.name)

    def look(self, query: str) -> list[tuple[Any, ...]]:
        return self.server.ask(query, self.name)

    @property
    def schema(self) -> str:
        return "public"

    @property
    def database(self) -> str:
        return self.name


class MariadbShop(EngineShop):
    product = "MariaDB"

    def build(self) -> str:
        self.server = mysql_server.shared()
        self.name = self._made(SHOP)
        return self.server.url(self.name).replace("mysql:", "mariadb:")

    @cached_property
    def second_database(self) -> str:
        return self._made(ELSEWHERE.format(place="") + SECOND_DATABASE)

    def _made(self, script: str) -> str:
        name = self.server.new_database()
        self.server.script(f"ALTER DATABASE {name} CHARACTER SET utf8mb4; {script}", name)
        return name

    def script(self, text: str) -> None:
        self.server.script(text, self.name)

    def look(self, query: str) -> list[tuple[Any, ...]]:
        return self.server.script(query, self.name)

    @property
    def schema(self) -> str:
        return self.name

    @property
    def database(self) -> str:
        return self.name


ENGINE_SHOPS: dict[str, type[EngineShop]] = {
    "duckdb": DuckdbShop,
    "sqlite": SqliteShop,
    "postgres": PostgresShop,
    "mariadb": MariadbShop,
}
