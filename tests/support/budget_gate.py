"""A gate before a small SQLite database, with budgets in a real state; time stands still."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import structs

from support.set_clock import SetClock
from support.surface_gateway import sqlite_source
from tidegate.approvals.approvals import Approvals
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.budgets.ledger import BudgetLedger
from tidegate.engines.registry import open_engine
from tidegate.gateway.gateway import Gateway, GatewayOptions
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.budgets import UNITS, Budget, Measure, Window
from tidegate.model.requests import Call, Query, Request
from tidegate.model.results import Limits
from tidegate.model.statements import Statement
from tidegate.store.sqlite.state import SqliteState

START = 1_700_000_400.0  # the beginning of a minute and of an hour
ROWS = 2_000


class BudgetGate:
    """A gate over `shop` and `other`, with budgets, and what was recorded of its calls."""

    def __init__(self, folder: Path) -> None:
        for name in ("shop", "other"):
            database = sqlite3.connect(folder / f"{name}.db")
            database.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
            database.executemany(
                "INSERT INTO item VALUES (?, ?)", [(n, f"item {n:05}") for n in range(ROWS)]
            )
            database.commit()
            database.close()
        self.clock = SetClock(START)
        self.state = SqliteState(folder / "state.db")
        self.ledger = BudgetLedger(self.state.budgets, self.clock)
        self.events: list[Event] = []
        self.connections = SourceConnections(
            self.state.sources,
            open_engine,
            (
                sqlite_source(folder / "shop.db", access="write"),
                sqlite_source(folder / "other.db", "other", "0" * 8),
            ),
        )
        self.audit = AuditLog(folder / "audit")
        self.history = History(self.state.history)
        self._numbers = count()
        self.gate = Gateway(
            self.connections,
            self.audit,
            self.history,
            approvals=Approvals(self.state.approvals),
            options=GatewayOptions(observers=(self.events.append,), budgets=self.ledger),
            clock=self.clock,
        )

    def set(self, measure: Measure, window: Window, amount: float, **about: Any) -> Budget:
        """Add a budget, or give the one there is another amount."""
        units = int(amount * UNITS[measure])
        budget = Budget("", measure, window, units, **about)
        for was in self.state.budgets.list():
            if was.what == budget.what:
                now = structs.replace(was, amount=units)
                assert self.state.budgets.change(now, was)
                return now
        budget = structs.replace(budget, id=f"bud_{next(self._numbers)}")
        assert self.state.budgets.add(budget)
        return budget

    def taken(self) -> dict[str, int]:
        """What processes have taken, by the budget's id, in the newest window of each."""
        return {id: units for (id, _), units in sorted(self.state.budgets.taken(0).items())}

    async def ask(
        self, request: Request | str, actor: Actor | None = None, source: str = "shop", **more: Any
    ) -> Any:
        """The payload of a reply. A text is a query of at most 100 rows."""
        if isinstance(request, str):
            request = Query(Statement(request), limits=Limits(max_rows=100))
        call = Call(actor or agent(), "core", "query", request, source, **more)
        return (await self.gate.handle(call)).payload

    async def close(self) -> None:
        await self.connections.close()
        await self.ledger.close()
        self.history.close()
        self.audit.close()


def agent(name: str = "agent", owner: str = "ann", scope: Scope = Scope.READ_WRITE) -> Actor:
    return Actor(f"tok_{name}", name, scope, owner=owner)


PERSON = Actor("operator:ann", "ann", Scope.READ_WRITE, kind="human")


@asynccontextmanager
async def budget_gate(folder: Path) -> AsyncIterator[BudgetGate]:
    """The gate, open."""
    made = BudgetGate(folder)
    try:
        yield made
    finally:
        await made.close()
        made.state.close()
