"""The real gate over sources of any engine, for surface tests, with a record of every call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.audit.log import AuditLog
from tidegate.calls import Call, FocusTab, ListTabs, OpenTable, OpenWindow, SearchHistory
from tidegate.connections import Connections
from tidegate.desk import Desk
from tidegate.engines.registry import open_engine
from tidegate.gateway import Gateway
from tidegate.history import History
from tidegate.replies import Reply
from tidegate.sources import Source
from tidegate.store.approvals import ApprovalBook
from tidegate.store.desk import DeskFile
from tidegate.store.file import StateFile
from tidegate.store.sqlite import SqliteStore

SHOP_ID = "9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1"


def sqlite_source(
    path: Path,
    name: str = "shop",
    id: str = SHOP_ID,
    access: Literal["readOnly", "readWrite"] = "readOnly",
) -> Source:
    url = f"sqlite:///{path}"
    return Source(id, name, url, "sqlite", "sqlite", external_access=access)


class SqliteGate:
    """A gateway over `sources`, open within `async with gate.opened()`.

    `desk` is the registry of windows and tabs, for who plays the console. `calls` keeps what came
    through, also from one opening to the next.
    """

    def __init__(self, directory: Path, *sources: Source) -> None:
        self._directory = directory
        self._sources = sources
        self._gateway: Gateway | None = None
        self.calls: list[Call] = []

    async def handle(self, call: Call) -> Reply:
        assert self._gateway is not None, "open the gate first"
        self.calls.append(call)
        return await self._gateway.handle(call)

    async def settle(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        assert self._gateway is not None, "open the gate first"
        await self._gateway.settle(needed, call, allow)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[SqliteGate]:
        store = SqliteStore(self._directory / "state.db")
        history = History(store)
        audit = AuditLog(self._directory / "audit")
        connections = Connections(store, open_engine, self._sources)
        self.approvals = Approvals(ApprovalBook(StateFile(self._directory / "state.db")))
        self.desk = DeskFile(StateFile(self._directory / "state.db"))
        desk = Desk(self.desk)
        self._gateway = Gateway(
            connections,
            audit,
            history,
            approvals=self.approvals,
            keepers={
                SearchHistory: history.recall,
                OpenWindow: desk.open_window,
                OpenTable: desk.open_table,
                FocusTab: desk.focus_tab,
                ListTabs: desk.list_tabs,
            },
        )
        try:
            yield self
        finally:
            self._gateway = None
            await connections.close()
            self.approvals.close()
            desk.close()
            history.close()
            audit.close()
            store.close()
