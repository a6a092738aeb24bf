"""Who may do what: every tool x actor x source setting x effect, with the expected outcome.

The grids are the expectation, written out; nothing here computes them. A tool without a row in
`ROWS` fails the first test. After every refusal the database is looked at: nothing has changed.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from surface_peer import Peer
from surface_shop import build_shop
from tidegate.app import SURFACES, App
from tidegate.config import Config, SourceSettings
from tidegate.surfaces.api import Surface
from tidegate.types import Actor, Scope

SETTINGS: dict[str, dict[str, Any]] = {
    "readOnly": {"external_access": "readOnly"},
    "readWrite": {"external_access": "readWrite"},
    "blocked": {"external_access": "blocked"},
    "never": {"external_access": "readWrite", "ai_policy": "never"},
    "asks": {"external_access": "readWrite", "ai_policy": "askEachTime"},
    "locked": {"external_access": "readWrite", "safe_mode": "readOnly"},
    "alert": {"external_access": "readWrite", "safe_mode": "alert"},
}
ACTORS = {
    "reader": Actor("tok_1", "reader", Scope.READ_ONLY),
    "writer": Actor("tok_2", "writer", Scope.READ_WRITE),
    "owner": Actor("tok_3", "owner", Scope.FULL_ACCESS),
    "stranger": Actor("tok_4", "stranger", Scope.FULL_ACCESS, frozenset({"elsewhere"})),
    "anonymous": Actor("anonymous", "anonymous", Scope.READ_ONLY),
    "person": Actor("stdio", "person", Scope.READ_ONLY, kind="human"),
}
STATEMENTS = {
    "read": "SELECT full_name FROM customers",
    "write": "INSERT INTO customers (email, full_name) VALUES (hex(randomblob(8)), 'x')",
    "unqualified": "DELETE FROM orders",
    "destructive": "DROP TABLE orders",
    "session": "PRAGMA writable_schema = 1",
    "admin": "ATTACH DATABASE 'stolen.db' AS stolen",
    "unknown": "FROBNICATE customers",
    "several": "SELECT 1; DELETE FROM orders",
}
CODES = {
    "blocked": "policy.blocked",
    "source": "policy.source",
    "scope": "policy.scope",
    "readonly": "policy.read_only",
    "confirm": "policy.confirm",
    "approval": "approval.needed",
}

READS = """
            readOnly readWrite blocked never   asks     locked   alert
reader      ok       ok        blocked blocked approval ok       ok
writer      ok       ok        blocked blocked approval ok       ok
owner       ok       ok        blocked blocked approval ok       ok
stranger    source   source    blocked blocked source   source   source
anonymous   ok       ok        blocked blocked approval ok       ok
person      ok       ok        blocked ok      ok       ok       ok
"""
NAMES = """
            readOnly readWrite blocked never   asks     locked   alert
reader      ok       ok        blocked blocked ok       ok       ok
writer      ok       ok        blocked blocked ok       ok       ok
owner       ok       ok        blocked blocked ok       ok       ok
stranger    source   source    blocked blocked source   source   source
anonymous   ok       ok        blocked blocked ok       ok       ok
person      ok       ok        blocked ok      ok       ok       ok
"""
WRITES = """
            readOnly readWrite blocked never   asks     locked   alert
reader      readonly scope     blocked blocked scope    readonly scope
writer      readonly ok        blocked blocked approval readonly approval
owner       readonly ok        blocked blocked approval readonly approval
stranger    source   source    blocked blocked source   source   source
anonymous   readonly scope     blocked blocked scope    readonly scope
person      readonly scope     blocked scope   scope    readonly scope
"""
CONFIRMED_WRITES = """
            readOnly readWrite blocked never   asks     locked   alert
reader      readonly scope     blocked blocked scope    readonly scope
writer      readonly confirm   blocked blocked confirm  readonly confirm
owner       readonly confirm   blocked blocked confirm  readonly confirm
stranger    source   source    blocked blocked source   source   source
anonymous   readonly scope     blocked blocked scope    readonly scope
person      readonly scope     blocked scope   scope    readonly scope
"""
NEVER = """
            readOnly readWrite blocked never   asks     locked   alert
reader      denied   denied    blocked blocked denied   denied   denied
writer      denied   denied    blocked blocked denied   denied   denied
owner       denied   denied    blocked blocked denied   denied   denied
stranger    source   source    blocked blocked source   source   source
anonymous   denied   denied    blocked blocked denied   denied   denied
person      denied   denied    blocked denied  denied   denied   denied
"""
WRITE_SCOPE = """
            readOnly readWrite blocked never   asks     locked   alert
reader      scope    scope     blocked blocked scope    scope    scope
writer      readonly ok        blocked blocked ok       ok       ok
owner       readonly ok        blocked blocked ok       ok       ok
stranger    source   source    blocked blocked source   source   source
anonymous   scope    scope     blocked blocked scope    scope    scope
person      scope    scope     blocked scope   scope    scope    scope
"""
STATEMENT_GRIDS = {
    "read": READS,
    "write": WRITES,
    "unqualified": CONFIRMED_WRITES,
    "destructive": CONFIRMED_WRITES,
    "session": NEVER,
    "admin": NEVER,
    "unknown": NEVER,
    "several": NEVER,
}


class Row(NamedTuple):
    """How one tool is called: `takes` says by which argument the source is named.

    `text` is the argument that a statement goes in; `grid` the expectation if there is none.
    """

    takes: str | None
    arguments: dict[str, Any]
    grid: str = NAMES
    text: str | None = None


ID, NAME = "connection_id", "source"
ROWS: dict[tuple[str, str], Row] = {
    ("core", "sources"): Row(None, {}),
    ("core", "search"): Row(NAME, {"words": "orders"}),
    ("core", "describe"): Row(NAME, {"tables": ["orders"]}),
    ("core", "query"): Row(NAME, {}, text="sql"),
    ("core", "explain"): Row(NAME, {"sql": STATEMENTS["read"]}, READS),
    ("core", "more"): Row("handle", {}),
    ("workbench", "list_connections"): Row(None, {}),
    ("workbench", "connect"): Row(ID, {}),
    ("workbench", "disconnect"): Row(ID, {}, WRITE_SCOPE),
    ("workbench", "get_connection_status"): Row(ID, {}),
    ("workbench", "list_databases"): Row(ID, {}),
    ("workbench", "list_schemas"): Row(ID, {}),
    ("workbench", "list_tables"): Row(ID, {"include_row_counts": True}),
    ("workbench", "describe_table"): Row(ID, {"table": "orders"}),
    ("workbench", "get_table_ddl"): Row(ID, {"table": "orders"}),
    ("workbench", "execute_query"): Row(ID, {}, text="query"),
}
VISIBLE = {
    "reader": set(SETTINGS) - {"blocked", "never"},
    "writer": set(SETTINGS) - {"blocked", "never"},
    "owner": set(SETTINGS) - {"blocked", "never"},
    "stranger": set[str](),
    "anonymous": set(SETTINGS) - {"blocked", "never"},
    "person": set(SETTINGS) - {"blocked"},
}


def cells(grid: str) -> Iterator[tuple[str, str, str]]:
    """(actor, setting, outcome) of every cell."""
    header, *lines = [line.split() for line in grid.strip().splitlines()]
    for actor, *outcomes in lines:
        for setting, outcome in zip(header, outcomes, strict=True):
            yield actor, setting, outcome


# Resources: those that name a source, as READS says; the others list what is visible.
SCHEMA_RESOURCE = "tablepro://connections/{id}/schema"
LISTINGS = [
    ("core", "sources"),
    ("workbench", "list_connections"),
    ("workbench", "tablepro://connections"),
]


class House:
    """A server over one database per setting, and a watch on each of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        template = build_shop(directory / "template.db")
        for name in SETTINGS:
            shutil.copy(template, directory / f"{name}.db")
        sources = tuple(
            SourceSettings(name=name, url=f"sqlite:///{directory / name}.db", **setting)
            for name, setting in SETTINGS.items()
        )
        config = Config(sources=sources, allow_writes=True, state=str(directory / "state"))
        self.app = App.open(config)
        self.ids = {source.name: source.id for source in self.app.connections.sources()}
        self._watches = {name: sqlite3.connect(directory / f"{name}.db") for name in SETTINGS}

    def contents(self, name: str) -> list[str]:
        """Everything in one database, as SQL."""
        return list(self._watches[name].iterdump())

    async def close(self) -> None:
        for watch in self._watches.values():
            watch.close()
        await self.app.close()


class Caller:
    """One actor at one surface."""

    def __init__(self, house: House, surface: Surface, actor: str) -> None:
        self._house = house
        self._surface = surface.name
        self._peer = Peer(surface, ACTORS[actor])

    async def open(self) -> Caller:
        await self._peer.open()
        return self

    async def outcome(self, tool: str, setting: str, text: str | None = None) -> str:
        """`ok`, or the word of `CODES` for the refusal, or `denied` for what never runs."""
        row = ROWS[self._surface, tool]
        arguments = dict(row.arguments)
        if row.takes == "handle":
            arguments["handle"] = await self._handle(setting)
        elif row.takes is not None:
            arguments[row.takes] = self._house.ids[setting] if row.takes == ID else setting
        if row.text is not None and text is not None:
            arguments[row.text] = text
        return _word(await self._peer.call(tool, **arguments))

    async def _handle(self, setting: str) -> str:
        """The handle of a cut result, or one that leads nowhere if there is no result."""
        sql = "SELECT id FROM customers"
        reply = await self._peer.call("query", sql=sql, max_rows=1, source=setting)
        said = reply["result"]["content"][0]["text"]
        _, found, rest = said.partition('"more":"')
        return rest.partition('"')[0] if found else f"{setting}/none"

    async def reading(self, uri: str) -> str:
        """The outcome of reading a resource."""
        return _word(await self._peer.request("resources/read", uri=uri))

    async def visible(self, listing: str) -> set[str]:
        """The sources that a listing tool, or a resource if it is a URI, shows."""
        if "://" in listing:
            reply = await self._peer.request("resources/read", uri=listing)
            said = reply["result"]["contents"][0]["text"]
        else:
            reply = await self._peer.call(listing)
            said = reply["result"]["content"][0]["text"]
        return {name for name in SETTINGS if f'"name":"{name}"' in said or f"{name}: " in said}


def _word(reply: dict[str, Any]) -> str:
    if "error" in reply:
        code = reply["error"]["data"]["code"]
    elif reply["result"].get("isError"):
        code = reply["result"]["content"][0]["text"].partition(": ")[0]
    else:
        return "ok"
    for word, known in CODES.items():
        if code == known:
            return word
    return "denied" if code == "policy.denied" or code.startswith("sql.") else code


async def _mismatches(house: House, tool_row: tuple[str, str], grids: dict[str, str]) -> list[str]:
    """Every cell of one tool that is not as the grids say, or that changed what it must not."""
    surface = house.app.surface(tool_row[0])
    callers = {actor: await Caller(house, surface, actor).open() for actor in ACTORS}
    wrong: list[str] = []
    for effect, grid in grids.items():
        for actor, setting, expected in cells(grid):
            before = house.contents(setting)
            text = STATEMENTS.get(effect)
            found = await callers[actor].outcome(tool_row[1], setting, text)
            changed = house.contents(setting) != before
            if found != expected:
                wrong.append(f"{effect} {actor} {setting}: {found}, not {expected}")
            if changed != (expected == "ok" and effect == "write"):
                wrong.append(f"{effect} {actor} {setting}: changed={changed}")
    return wrong


def run(directory: Path, tool_row: tuple[str, str]) -> list[str]:
    row = ROWS[tool_row]
    grids = {"read": row.grid} if row.text is None else STATEMENT_GRIDS

    async def whole() -> list[str]:
        house = House(directory)
        try:
            return await _mismatches(house, tool_row, grids)
        finally:
            await house.close()

    return asyncio.run(whole())


def test_every_tool_and_resource_of_every_surface_has_a_row(tmp_path: Path) -> None:
    async def names() -> set[tuple[str, str]]:
        house = House(tmp_path)
        found: set[tuple[str, str]] = set()
        for name in SURFACES:
            surface = house.app.surface(name)
            found |= {(name, tool) for tool in surface.catalogue}
            found |= {(name, resource.uri) for resource in surface.readable}
        await house.close()
        return found

    assert asyncio.run(names()) == {*ROWS, *LISTINGS, ("workbench", SCHEMA_RESOURCE)}


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row not in LISTINGS and row[1] != "disconnect"]
)
def test_every_cell_is_as_the_table_says(tmp_path: Path, row: tuple[str, str]) -> None:
    assert run(tmp_path, row) == []


def test_disconnect_needs_the_write_scope(tmp_path: Path) -> None:
    async def whole() -> list[str]:
        house = House(tmp_path)
        surface = house.app.surface("workbench")
        wrong: list[str] = []
        for actor, setting, expected in cells(WRITE_SCOPE):
            connection = house.app.connections.find(setting, ACTORS["owner"])
            await house.app.connections.engine(connection)
            caller = await Caller(house, surface, actor).open()
            found = await caller.outcome("disconnect", setting)
            if found != expected or (connection.engine is None) != (expected == "ok"):
                wrong.append(f"{actor} {setting}: {found}, not {expected}")
        await house.close()
        return wrong

    assert asyncio.run(whole()) == []


@pytest.mark.parametrize("row", [row for row in ROWS if ROWS[row].takes is None])
def test_a_listing_shows_only_what_its_reader_may_see(tmp_path: Path, row: tuple[str, str]) -> None:
    async def whole() -> dict[str, set[str]]:
        house = House(tmp_path)
        surface = house.app.surface(row[0])
        seen = {
            actor: await (await Caller(house, surface, actor).open()).visible(row[1])
            for actor in ACTORS
        }
        await house.close()
        return seen

    assert asyncio.run(whole()) == VISIBLE
