"""The engine that speaks no SQL in the authorization matrix: its shop, and how it is asked.

A way is a tool with a statement of the engine's language, or a request that is sent to the gate as
a surface of its own would send it. `authz_grids` says what comes of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from support.authz_engines import Shop, Spelling
from support.authz_grids import (
    CONFIRMED,
    CONFIRMED_NEVER,
    DESTRUCTIVE,
    HARMLESS,
    NAMES,
    NEVER,
    OPERATION_READS,
    OPERATION_WRITES,
    READS_ONLY,
    STATE,
    Grid,
)
from support.memory_engine import DATABASES
from support.memory_engine.engine import fresh
from support.memory_engine.requests import CountAll
from tidegate.model.requests import Operation, Query, Request
from tidegate.model.statements import Statement


class MemoryShop(Shop):
    """The tables of one name, which all connections of the process share."""

    database = "main"

    def build(self, script: str) -> str:
        self._name = f"authz{id(self)}"
        self.refill()
        return f"memory://{self._name}"

    def refill(self) -> None:
        """Put the tables as they were, so that a second change shows as the first did."""
        DATABASES.setdefault(self._name, {}).update(fresh())

    def digest(self) -> str:
        return repr(DATABASES[self._name])

    def close(self) -> None:
        del DATABASES[self._name]


MEMORY = Spelling(MemoryShop, session="", admin="", administer="", planned=frozenset())


class Way(NamedTuple):
    """One way to ask, and what comes of it: a tool's name and arguments, or a request.

    `source` is the argument that names the source. `changes`: what is `ok` changes the tables.
    """

    grid: Grid
    surface: str = ""
    tool: str = ""
    source: str = ""
    arguments: Mapping[str, Any] = MappingProxyType({})
    request: Request | None = None
    changes: bool = False
    confirmed: bool = False


READ, ADD, CLEAR = "TABLE items", "APPEND void 1 x", "CLEAR items"
OTHERS = ("SELECT 1", "ROWS 1; CLEAR items", "DROP items")
PHRASE = "I understand this is irreversible"


def _query(text: str, grid: Grid, changes: bool = False) -> Way:
    return Way(grid, "core", "query", "source", {"sql": text}, changes=changes)


def _sure(text: str, grid: Grid, changes: bool = False) -> Way:
    given = {"sql": text, "confirm": PHRASE}
    return Way(grid, "core", "query", "source", given, changes=changes)


def _explain(text: str, grid: Grid) -> Way:
    return Way(grid, "core", "explain", "source", {"sql": text})


def _bench(tool: str, grid: Grid, changes: bool = False, **given: Any) -> Way:
    return Way(grid, "workbench", tool, "connection_id", given, changes=changes)


def _ask(
    name: str, grid: Grid, changes: bool = False, confirmed: bool = False, **given: Any
) -> Way:
    return Way(grid, request=Operation(name, given), changes=changes, confirmed=confirmed)


WAYS = (
    _query(READ, OPERATION_READS),
    _query(ADD, OPERATION_WRITES, changes=True),
    _query(CLEAR, DESTRUCTIVE),
    *(_query(text, NEVER) for text in OTHERS),
    _sure(ADD, HARMLESS),
    _sure(CLEAR, CONFIRMED, changes=True),
    *(_sure(text, CONFIRMED_NEVER) for text in OTHERS),
    _explain(READ, OPERATION_READS),
    _explain(CLEAR, OPERATION_READS),
    _explain("DROP items", NEVER),
    _bench("execute_query", OPERATION_READS, query=READ),
    _bench("execute_query", OPERATION_WRITES, changes=True, query=ADD),
    _bench("execute_query", DESTRUCTIVE, query=CLEAR),
    _bench("confirm_destructive_operation", CONFIRMED, changes=True, query=CLEAR,
           confirmation_phrase=PHRASE),
    _bench("export_data", OPERATION_READS, format="csv", query=READ),
    _bench("export_data", READS_ONLY, format="csv", query=ADD),
    _bench("list_tables", NAMES, include_row_counts=True),
    _bench("search_query_history", STATE, query=""),
    _ask("table.read", OPERATION_READS, table="items"),
    _ask("basket.open", OPERATION_READS),
    _ask("row.add", OPERATION_WRITES, changes=True, table="void", row=[1, "x"]),
    _ask("table.clear", DESTRUCTIVE, table="items"),
    _ask("table.clear", CONFIRMED, changes=True, confirmed=True, table="items"),
    _ask("table.drop", NEVER, table="items"),
    Way(OPERATION_READS, request=CountAll()),
    Way(OPERATION_WRITES, request=Query(Statement("APPEND parts 9 9")), changes=True),
)  # fmt: skip
