"""Databases with changes that are to be taken back, one kind for each engine, and a gate in front.

`script` and `rows` go around the gate, as another program would.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from tidegate.app import App
from tidegate.config.model import Config
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.changes import ChangeEntry, ChangeList, ListChanges, UndoChange, Undone
from tidegate.model.requests import Call, Query, Request
from tidegate.model.results import Page
from tidegate.model.statements import Statement

AGENT = Actor("tok_agent", "agent", Scope.READ_WRITE)
OTHER = Actor("tok_other", "other", Scope.READ_WRITE)
READER = Actor("tok_agent", "agent", Scope.READ_ONLY)
PERSON = Actor("cli", "cli", Scope.READ_WRITE, kind="human")

SHOP = """
CREATE TABLE items (id INTEGER PRIMARY KEY, name VARCHAR(200), price INTEGER);
INSERT INTO items VALUES (1, 'one', 10), (2, 'two', 20), (3, NULL, NULL);
CREATE TABLE lines (a INTEGER NOT NULL, b VARCHAR(20) NOT NULL, note VARCHAR(200),
  PRIMARY KEY (a, b));
INSERT INTO lines VALUES (1, 'x', NULL), (1, 'y', 'why'), (2, 'x', 'ex');
CREATE TABLE loose (x INTEGER);
INSERT INTO loose VALUES (1), (1);
CREATE TABLE many (id INTEGER PRIMARY KEY, value INTEGER);
"""


class Shop:
    """One database."""

    name = ""
    more = ""
    """A script of the engine's own: `everything` has a column of each type, `typed` a trigger."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = self.build()
        self.script(SHOP)

    def build(self) -> str:
        """Make an empty database; returns its URL."""
        raise NotImplementedError

    def script(self, text: str) -> None:
        raise NotImplementedError

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def contents(self, *tables: str) -> dict[str, list[str]]:
        """All rows, exactly."""
        return {name: sorted(map(repr, self.rows(f"SELECT * FROM {name}"))) for name in tables}

    def close(self) -> None:
        """Let go of what is open."""


class SqliteShop(Shop):
    name = "sqlite"

    def build(self) -> str:
        self._path = str(self.directory / "shop.db")
        return f"sqlite:///{self._path}"

    def script(self, text: str) -> None:
        self.rows(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(self._path)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()


class Types(NamedTuple):
    """A table `everything` whose rows hold each kind of value, and statements that change it."""

    table: str
    insert: str
    update: str


SQLITE_TYPES = Types(
    "CREATE TABLE everything (id INTEGER PRIMARY KEY AUTOINCREMENT, i INTEGER, r REAL, t TEXT,"
    " b BLOB, x, g TEXT GENERATED ALWAYS AS (t || '!') STORED,"
    " v INTEGER GENERATED ALWAYS AS (i * 2))",
    "INSERT INTO everything (i, r, t, b, x) VALUES"
    " (9223372036854775807, 0.1, 'naïve – 海 🌊', x'00ff', 1),"
    " (-9223372036854775808, 9e999, '', x'', 1.0), (NULL, -9e999, NULL, NULL, '1'),"
    " (0, 1e-300, 'a''b', zeroblob(1000), x'31')",
    "UPDATE everything SET i = 0, r = 0, t = 'other', b = x'01', x = 'any'",
)


class Kind(NamedTuple):
    """An engine of the suite. `cascades` and `triggers`: it keeps rows that these change."""

    make: Callable[[Path], Shop]
    types: Types
    cascades: bool
    triggers: bool


KINDS: dict[str, Kind] = {"sqlite": Kind(SqliteShop, SQLITE_TYPES, True, True)}


class Gate:
    """The gate in front of one shop."""

    def __init__(self, app: App, shop: Shop) -> None:
        self.app = app
        self.shop = shop

    async def ask(self, request: Request, actor: Actor = AGENT, **fields: Any) -> Any:
        """The payload of the reply. Raises: TidegateError."""
        source = fields.pop("source", "shop")
        call = Call(actor, "core", "query", request, source, **fields)
        return (await self.app.gateway.handle(call)).payload

    async def change(self, text: str, actor: Actor = AGENT, **fields: Any) -> Page:
        """Run a statement."""
        page = await self.ask(Query(Statement(text)), actor, **fields)
        assert isinstance(page, Page)
        return page

    async def undo(self, change: str, actor: Actor = AGENT) -> Undone:
        done = await self.ask(UndoChange(change), actor)
        assert isinstance(done, Undone)
        return done

    async def changes(self, actor: Actor = PERSON, **fields: Any) -> tuple[ChangeEntry, ...]:
        found = await self.ask(ListChanges(**fields), actor)
        assert isinstance(found, ChangeList)
        return found.entries

    async def error(self, request: Request, actor: Actor = AGENT, **fields: Any) -> TidegateError:
        """The error that the request ends with."""
        try:
            payload = await self.ask(request, actor, **fields)
        except TidegateError as error:
            return error
        raise AssertionError(f"it was answered: {payload!r}")


@asynccontextmanager
async def gate_of(
    shop: Shop, *, config: dict[str, Any] | None = None, **settings: Any
) -> AsyncGenerator[Gate]:
    """A gate whose source keeps changes, unless `settings` of the source say otherwise."""
    source = {"name": "shop", "url": shop.url, "access": "write", "undo": "keep"}
    source |= {"unqualified": "allow"} | settings
    whole = {"sources": [source], "state": str(shop.directory / "state"), **(config or {})}
    app = App.open(msgspec.convert(whole, Config))
    try:
        yield Gate(app, shop)
    finally:
        await app.close()
