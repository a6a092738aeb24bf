"""Requests about the database server: what is refused, to whom, before the server is contacted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from msgspec import structs

from support.audit_records import records
from tidegate.approvals.approvals import Approvals
from tidegate.audit.log import AuditLog
from tidegate.config.model import ApprovalSettings
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.model.results import Page
from tidegate.model.server_requests import CancelSession, ReadServer
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.model.sources import Source
from tidegate.store.sqlite.state import SqliteState

AGENT = Actor("agent", "agent", Scope.FULL_ACCESS)
NOWHERE = "postgresql://u@127.0.0.1:1/none"


class Servers:
    """A file of SQLite, and a PostgreSQL that is not there, behind a gate."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        file = directory / "shop.db"
        with apsw.Connection(str(file)) as made:
            made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        self.state = SqliteState(directory / "state.db")
        lite = Source("s1", "lite", f"sqlite:///{file}", "sqlite", "sqlite")
        far = Source("s2", "far", NOWHERE, "postgres", "postgres")
        for source in (lite, far):
            self.state.sources.add(structs.replace(source, **{"access": "write", **settings}))
        self.audit, self.history = AuditLog(directory / "audit"), History(self.state.history)
        approvals = Approvals(self.state.approvals, ApprovalSettings())
        self.connections = SourceConnections(self.state.sources, open_engine, [])
        self.gateway = Gateway(self.connections, self.audit, self.history, approvals=approvals)

    async def ask(self, request: Any, source: str = "far", actor: Actor = AGENT) -> Page:
        call = Call(actor, "core", "server", request, source, Scope.READ_ONLY, waits=False)
        page = (await self.gateway.handle(call)).payload
        assert isinstance(page, Page)
        return page

    async def refused(self, request: Any, source: str = "far", actor: Actor = AGENT) -> Code:
        with pytest.raises(TidegateError) as caught:
            await self.ask(request, source, actor)
        return caught.value.code

    async def close(self) -> None:
        await self.connections.close()
        self.history.close()
        self.audit.close()
        self.state.close()


@asynccontextmanager
async def servers(directory: Path, **settings: Any) -> AsyncIterator[Servers]:
    made = Servers(directory, **settings)
    try:
        yield made
    finally:
        await made.close()


async def test_a_file_has_sizes_and_no_sessions(tmp_path: Path) -> None:
    async with servers(tmp_path) as built:
        page = await built.ask(ReadServer(panel="sizes"), "lite")
        names = [row[1] for row in msgspec.json.decode(page.rows)]
        assert "t" in names
        assert await built.refused(ReadServer(panel="sessions"), "lite") is Code.UNSUPPORTED
        cancel = CancelSession(session="1", started="x")
        assert await built.refused(cancel, "lite") is Code.UNSUPPORTED


async def test_no_agent_reads_the_statements_of_others(tmp_path: Path) -> None:
    async with servers(tmp_path) as built:
        for request in (ReadServer(panel="sessions", texts=True), ReadServer(panel="statements")):
            assert await built.refused(request) is Code.POLICY_SCOPE
        # Without them it is let through, as far as there is a server.
        assert await built.refused(ReadServer(panel="sessions")) is Code.SOURCE_UNREACHABLE


@pytest.mark.parametrize(
    "settings",
    [
        {"masks": (Mask("t.name", "nothing"),)},
        {"filters": (RowFilter("t", "id = 1"),)},
    ],
)
async def test_what_could_tell_of_hidden_data_is_refused(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    async with servers(tmp_path, **settings) as built:
        assert await built.refused(ReadServer(panel="sizes"), "lite") is Code.POLICY_MASKED
        for panel in ("sizes", "blocking", "statements"):
            assert await built.refused(ReadServer(panel=panel)) is Code.POLICY_MASKED
        texts = ReadServer(panel="sessions", texts=True)
        assert await built.refused(texts) is Code.POLICY_MASKED


async def test_a_caller_with_a_list_of_tables_sees_no_sizes(tmp_path: Path) -> None:
    listed = structs.replace(AGENT, tables=frozenset({"t"}))
    async with servers(tmp_path) as built:
        assert await built.refused(ReadServer(panel="sizes"), "lite", listed) is Code.POLICY_TABLE


async def test_a_cancel_needs_the_right_to_change_and_is_on_record(tmp_path: Path) -> None:
    cancel = CancelSession(session="7", started="then")
    reader = structs.replace(AGENT, scope=Scope.READ_ONLY)
    async with servers(tmp_path) as built:
        assert await built.refused(cancel, actor=reader) is Code.POLICY_SCOPE
    lines = [each for each in records(tmp_path) if "request" in each]
    assert [(each["request"], each["phase"]) for each in lines] == [("cancel_session", "refusal")]


async def test_a_source_that_is_read_only_cancels_nothing(tmp_path: Path) -> None:
    async with servers(tmp_path, access="read") as built:
        cancel = CancelSession(session="7", started="then")
        assert await built.refused(cancel) is Code.POLICY_READ_ONLY
