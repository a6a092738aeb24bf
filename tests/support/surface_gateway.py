"""The real gate over sources of any engine, for surface tests, with a record of every call."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from tidegate.approvals.approvals import ApprovalNeeded, Approvals
from tidegate.audit.log import AuditLog
from tidegate.budgets.ledger import BudgetLedger
from tidegate.config.embeddings import EmbeddingSettings
from tidegate.engines.registry import open_engine
from tidegate.gateway.gateway import Gateway, GatewayOptions
from tidegate.gateway.handlers import Handlers
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.replies import Reply
from tidegate.model.requests import Call, SearchHistory
from tidegate.model.sources import Source
from tidegate.model.statements import Judgement
from tidegate.policy.explanation import Explanation
from tidegate.search.embeddings.embedder import Embedder
from tidegate.search.requests import EmbedTexts
from tidegate.store.sqlite.state import SqliteState
from tidegate.workspace.requests import FocusTab, ListTabs, OpenTable, OpenWindow
from tidegate.workspace.workspace import Workspace

HASHED = EmbeddingSettings(provider="hash-test", dimensions=16)
"""Vectors for tests, the same in each run."""

SHOP_ID = "9f1f0c3e-2e3d-4b14-9c3a-1d2f4ad1f6f1"


def sqlite_source(
    path: Path,
    name: str = "shop",
    id: str = SHOP_ID,
    access: Literal["read", "write"] = "read",
) -> Source:
    url = f"sqlite:///{path}"
    return Source(id, name, url, "sqlite", "sqlite", access=access)


class SqliteGate:
    """A gateway over `sources`, open within `async with gate.opened()`.

    `desk` is the registry of windows and tabs, for who plays the console. `calls` keeps what came
    through, also from one opening to the next.
    """

    def __init__(
        self,
        directory: Path,
        *sources: Source,
        embeddings: EmbeddingSettings = HASHED,
    ) -> None:
        self._embeddings = embeddings
        self._directory = directory
        self._sources = sources
        self._gateway: Gateway | None = None
        self.calls: list[Call] = []
        self.choices = None
        self.operators: list[str] = []
        """The people with accounts."""
        self.clock: Callable[[], float] = time.time

    async def handle(self, call: Call) -> Reply:
        assert self._gateway is not None, "open the gate first"
        self.calls.append(call)
        return await self._gateway.handle(call)

    async def explain(self, call: Call) -> tuple[Judgement, Explanation]:
        assert self._gateway is not None, "open the gate first"
        return await self._gateway.explain(call)

    def end_session(self, session: str) -> None:
        assert self._gateway is not None, "open the gate first"
        self._gateway.end_session(session)

    async def answer_approval(self, needed: ApprovalNeeded, call: Call, allow: bool) -> None:
        assert self._gateway is not None, "open the gate first"
        await self._gateway.answer_approval(needed, call, allow)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[SqliteGate]:
        state = self.state = SqliteState(self._directory / "state.db")
        history = History(state.history)
        audit = AuditLog(self._directory / "audit")
        self.connections = connections = SourceConnections(
            state.sources, open_engine, self._sources
        )
        self.approvals = Approvals(state.approvals)
        self.workspace = state.windows
        embedder = Embedder(self._embeddings, state.questions)
        workspace = Workspace(
            self.workspace, operators=lambda: self.operators, clock=lambda: self.clock()
        )
        self._gateway = Gateway(
            connections,
            audit,
            history,
            approvals=self.approvals,
            handlers=Handlers(
                {
                    SearchHistory: history.answer,
                    EmbedTexts: embedder.answer,
                    OpenWindow: workspace.open_window,
                    OpenTable: workspace.open_table,
                    FocusTab: workspace.focus_tab,
                    ListTabs: workspace.list_tabs,
                }
            ),
            options=GatewayOptions(budgets=BudgetLedger(state.budgets)),
        )
        try:
            yield self
        finally:
            self._gateway = None
            await connections.close()
            await embedder.close()
            history.close()
            audit.close()
            state.close()
