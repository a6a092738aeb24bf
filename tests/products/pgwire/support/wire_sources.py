"""One source of each kind that clients of the wire protocol are tested on, with the same tables.

`pg`, `lite` (SQLite), `duck` (DuckDB) and `maria` (MariaDB) hold `item` and `sale`; `cloud` is a
provider of tickets.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import mysql_server
from support.cloud_surface import ADDRESS, Desk, running_desk, write_desk

TABLES = """
CREATE TABLE item (
  id INTEGER PRIMARY KEY, name VARCHAR(40) NOT NULL, price DECIMAL(10, 2), made DATE,
  code VARCHAR(9)
);
CREATE UNIQUE INDEX item_code ON item (code);
INSERT INTO item VALUES (1, 'boots', 79.5, '2026-01-02', 'b'), (2, 'hat', NULL, NULL, 'h'),
  (3, 'it''s', 3.25, '2026-03-04', NULL);
CREATE TABLE sale (
  id INTEGER PRIMARY KEY, item INTEGER NOT NULL, amount INTEGER DEFAULT 1,
  CONSTRAINT sale_of_item FOREIGN KEY (item) REFERENCES item (id)
);
CREATE INDEX sale_item ON sale (item);
INSERT INTO sale VALUES (1, 1, 2), (2, 3, 1);
"""
"""In words that all of them share."""
COMMENTS = "COMMENT ON TABLE item IS 'What is sold'; COMMENT ON COLUMN item.price IS 'In euros';\n"
PAGES = (
    "CREATE TABLE page (id INTEGER PRIMARY KEY, body VARCHAR(200));"
    " INSERT INTO page SELECT i, 'page ' || i FROM generate_series(1, 100) AS n (i);"
)


def sqlite_source(folder: Path) -> dict[str, Any]:
    """The source `lite`, a file in `folder`."""
    path = folder / "lite.db"
    connection = sqlite3.connect(path)
    connection.executescript(TABLES)
    connection.close()
    return {"name": "lite", "url": f"sqlite:///{path}", "access": "write"}


def duckdb_source(folder: Path) -> dict[str, Any]:
    """The source `duck`, a file in `folder`."""
    import duckdb

    path = folder / "duck.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLES + COMMENTS)
    return {"name": "duck", "url": f"duckdb:///{path}", "access": "write"}


def mariadb_source() -> dict[str, Any]:
    """The source `maria`; the test that asks is skipped where there is no server."""
    server = mysql_server.shared()
    name = server.new_database()
    server.script(
        TABLES + "ALTER TABLE item COMMENT 'What is sold';"
        "ALTER TABLE item MODIFY price DECIMAL(10, 2) COMMENT 'In euros'",
        name,
    )
    return {"name": "maria", "url": server.url(name), "access": "write"}


@contextmanager
def cloud_source(folder: Path) -> Iterator[tuple[Desk, dict[str, Any], dict[str, Any]]]:
    """The provider, the source `cloud` with its documents, and the settings that lead to it."""
    with running_desk() as desk:
        source = {"name": "cloud", "url": f"cloud://{write_desk(folder / 'registry')}"}
        yield desk, source | {"access": "write"}, {"endpoints": {ADDRESS: desk.url}}
