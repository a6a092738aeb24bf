"""A server of the PostgreSQL wire protocol in a process of its own, with sources and tokens."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.command_line import Serving, serving
from tidegate.identity.tokens import Tokens
from tidegate.model.actors import Scope
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

SHOP = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, made DATE);
INSERT INTO item VALUES (1, 'boots', 79.5, '2026-01-02'), (2, 'hat', NULL, NULL),
  (3, 'it''s', 3.0, '2026-03-04');
CREATE TABLE sale (
  id INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES item (id) ON DELETE CASCADE, count INT
);
CREATE INDEX sale_item ON sale (item);
CREATE VIEW dear AS SELECT id FROM item WHERE price > 50;
"""


class WireServer(NamedTuple):
    """Where it listens, and the secrets of its tokens by name. `http_port` is 0 without HTTP."""

    process: Serving
    port: int
    secrets: dict[str, str]
    folder: Path
    http_port: int = 0

    def conninfo(self, database: str = "shop", user: str = "writer", **more: Any) -> str:
        """For libpq and psycopg."""
        words = {
            "host": "127.0.0.1", "port": self.port, "dbname": database, "user": user,
            "password": self.secrets.get(user, "none"), **more,
        }  # fmt: skip
        return " ".join(f"{name}={value}" for name, value in words.items())

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """What the file of `shop` holds, past the gate."""
        connection = sqlite3.connect(self.folder / "shop.db")
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()


@contextmanager
def wire_server(
    folder: Path, *options: str, program: Sequence[str] | None = None, **settings: Any
) -> Iterator[WireServer]:
    """Serve `shop` (SQLite) and what `sources` adds, to the tokens `reader`, `writer` and `proxy`,
    which may write and name the callers for whom it speaks. `program` is as in `serving`."""
    shop = sqlite3.connect(folder / "shop.db")
    shop.executescript(SHOP)
    shop.close()
    state = folder / "state"
    state.mkdir(mode=0o700)
    store = SqliteState(state / "state.db")
    tokens = Tokens(store.tokens)
    secrets = {
        "reader": tokens.create("reader", TokenRights(Scope.READ_ONLY))[0],
        "writer": tokens.create("writer", TokenRights(Scope.READ_WRITE))[0],
        "proxy": tokens.create("proxy", TokenRights(Scope.READ_WRITE), proxy=True)[0],
    }
    tokens.close()
    store.close()
    declared = [
        {"name": "shop", "url": f"sqlite:///{folder}/shop.db", "access": "write"},
        *settings.pop("sources", ()),
    ]
    config = folder / "settings.json"
    config.write_text(json.dumps({"sources": declared, **settings}))
    words = ("serve", "--config", str(config), "--pg", "127.0.0.1:0", *options)
    with serving(words, state, program=program) as process:
        http_port = 0
        while "postgresql://" not in (line := process.until("serving")):
            http_port = int(line.rsplit(":", 1)[1].removesuffix("/mcp\n"))
        yield WireServer(process, int(line.rsplit(":", 1)[1]), secrets, folder, http_port)
