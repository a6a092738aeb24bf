"""A statement described before it runs: what it gives and takes, and that nothing of it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec import structs

from tidegate.approvals.approvals import Approvals
from tidegate.audit.log import AuditLog
from tidegate.config.model import ApprovalSettings
from tidegate.engines.registry import open_engine
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.gateway.source_connections import SourceConnections
from tidegate.history.history import History
from tidegate.model.actors import Actor, Scope
from tidegate.model.replies import Prepared
from tidegate.model.requests import Call, Prepare
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.store.sqlite.state import SqliteState

WRITER = Actor("writer", "writer", Scope.FULL_ACCESS)
INSERT = "INSERT INTO t (name) VALUES (?) RETURNING id"


class Shop:
    """One SQLite source with the table `t`, behind a gate."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.file = directory / "shop.db"
        with apsw.Connection(str(self.file)) as made:
            made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
            made.execute("INSERT INTO t VALUES (1, 'a')")
        settings = {"access": "write", **settings}
        source = Source("s1", "shop", f"sqlite:///{self.file}", "sqlite", "sqlite")
        self.state = SqliteState(directory / "state.db")
        self.state.sources.add(structs.replace(source, **settings))
        self.audit, self.history = AuditLog(directory / "audit"), History(self.state.history)
        self.approvals = Approvals(self.state.approvals, ApprovalSettings())
        self.connections = SourceConnections(self.state.sources, open_engine, [])
        self.gateway = Gateway(self.connections, self.audit, self.history, approvals=self.approvals)

    async def prepare(self, text: str, **fields: Any) -> Prepared:
        request = Prepare(statement=Statement(text), **fields)
        call = Call(WRITER, "core", "query", request, "shop", Scope.READ_ONLY)
        found = (await self.gateway.handle(call)).payload
        assert isinstance(found, Prepared)
        return found

    def names(self) -> list[str]:
        with apsw.Connection(str(self.file)) as seen:
            return [row[0] for row in seen.execute("SELECT name FROM t")]

    async def close(self) -> None:
        await self.connections.close()
        self.history.close()
        self.audit.close()
        self.state.close()


@asynccontextmanager
async def shop(directory: Path, **settings: Any) -> AsyncIterator[Shop]:
    made = Shop(directory, **settings)
    try:
        yield made
    finally:
        await made.close()


async def test_a_query_has_its_columns_parameters_tables_and_effect(tmp_path: Path):
    async with shop(tmp_path) as built:
        found = await built.prepare("SELECT id, name FROM t WHERE id = ? OR name = ?")
        assert [(each.name, each.type) for each in found.columns or ()] == [
            ("id", "INTEGER"),
            ("name", "TEXT"),
        ]
        assert len(found.parameters or ()) == 2
        assert (found.effect, found.tables, found.asks, found.masked) == ("read", ("t",), False, ())


async def test_a_change_is_described_only_where_that_is_asked_for(tmp_path: Path):
    async with shop(tmp_path) as built:
        with pytest.raises(TidegateError) as refused:
            await built.prepare(INSERT)
        assert refused.value.code is Code.UNSUPPORTED
        found = await built.prepare(INSERT, changes=True)
        assert [(each.name, each.type) for each in found.columns or ()] == [("id", "INTEGER")]
        assert (len(found.parameters or ()), found.effect) == (1, "write")
        assert built.names() == ["a"]


async def test_what_is_neither_a_read_nor_a_write_gives_and_takes_nothing(tmp_path: Path):
    async with shop(tmp_path, access="admin") as built:
        found = await built.prepare("VACUUM", changes=True)
        assert (found.columns, found.parameters, found.effect) == ((), (), "admin")
        assert found.asks
        assert built.approvals.list() == ()


async def test_what_the_database_refuses_to_prepare_is_an_error_of_the_database(tmp_path: Path):
    async with shop(tmp_path) as built:
        for text in ("SELECT nothing FROM t", "INSERT INTO nothing VALUES (1)"):
            with pytest.raises(TidegateError) as refused:
                await built.prepare(text, changes=True)
            assert refused.value.code is Code.SQL_FAILED


async def test_the_digest_changes_with_whatever_is_shown(tmp_path: Path):
    async with shop(tmp_path) as built:
        first = await built.prepare("SELECT id FROM t")
        again = await built.prepare("SELECT id FROM t")
        other = await built.prepare("SELECT name FROM t")
        assert first.digest == again.digest != other.digest
        with apsw.Connection(str(built.file)) as changed:
            changed.execute("ALTER TABLE t ADD COLUMN more TEXT")
        wide = await built.prepare("SELECT * FROM t")
        with apsw.Connection(str(built.file)) as changed:
            changed.execute("ALTER TABLE t DROP COLUMN more")
        assert (await built.prepare("SELECT * FROM t")).digest != wide.digest


async def test_masked_columns_are_named_and_no_person_is_asked_to_approve(tmp_path: Path):
    settings = {"masks": (Mask("t.name"),), "approval_for": "everything", "approval": "inbox"}
    async with shop(tmp_path, **settings) as built:
        found = await built.prepare("SELECT name FROM t")
        assert found.masked == (("t", "name"),)
        assert found.asks
        assert built.approvals.list() == ()
