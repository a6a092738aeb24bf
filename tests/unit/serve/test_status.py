"""What a server says of its own condition."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from support.surface_client import OWNER
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.gateway.source_connections import note_reach
from tidegate.model.budgets import Budget
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement
from tidegate.serve.status import status_of


async def test_an_open_source_of_which_calls_fail_is_not_shown_as_connected(tmp_path: Path) -> None:
    file, away = tmp_path / "shop.db", tmp_path / "away.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE t(id)")
    app = App.open(
        Config(
            state=str(tmp_path / "state"), sources=(SourceSettings("shop", f"sqlite:///{file}"),)
        )
    )

    async def ask(text: str) -> None:
        await app.gateway.handle(Call(OWNER, "core", "query", Query(Statement(text)), "shop"))

    def shown() -> tuple[str, str | None]:
        (source,) = status_of(app)["sources"]
        return source["status"], source["error"]

    try:
        await ask("SELECT 1")
        assert shown() == ("connected", None)
        file.rename(away)
        with pytest.raises(TidegateError) as raised:
            await ask("SELECT 2")
        assert raised.value.code is Code.SOURCE_UNREACHABLE
        assert shown() == ("error", raised.value.message)
        away.rename(file)
        await ask("SELECT 1")
        assert shown() == ("connected", None)
    finally:
        await app.close()


@pytest.mark.parametrize(
    "code",
    [
        *(Code.SOURCE_UNREACHABLE, Code.SOURCE_URL, Code.SOURCE_LOCKED),
        *(Code.SECRET_UNAVAILABLE, Code.KEYRING_FAILED),
        *(Code.CREDENTIAL_UNAVAILABLE, Code.CREDENTIAL_REFUSED),
    ],
)
async def test_why_no_call_can_reach_an_open_source_is_shown_until_one_does(
    tmp_path: Path, code: Code
) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE t(id)")
    sources = (SourceSettings("shop", f"sqlite:///{file}"),)
    app = App.open(Config(state=str(tmp_path / "state"), sources=sources))

    def shown() -> tuple[str, str | None]:
        (source,) = status_of(app)["sources"]
        return source["status"], source["error"]

    try:
        query = Query(Statement("SELECT 1"))
        await app.gateway.handle(Call(OWNER, "core", "query", query, "shop"))
        connection = app.connections.find("shop", OWNER)
        note_reach(connection, TidegateError(code, "It is gone"))
        assert shown() == ("error", "It is gone")
        await app.gateway.handle(Call(OWNER, "core", "query", query, "shop"))
        assert shown() == ("connected", None)
        note_reach(connection, TidegateError(Code.SQL_FAILED, "no such table"))
        assert shown() == ("connected", None)
    finally:
        await app.close()


async def test_a_server_that_lets_no_call_through_for_its_budgets_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTEST_KEY", "a key of the gates in these tests")
    file, place = tmp_path / "shop.db", tmp_path / "state"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE t(id)")
    app = App.open(
        Config(
            state=str(place),
            state_key="${ENV:PGTEST_KEY}",
            sources=(SourceSettings("shop", f"sqlite:///{file}"),),
        )
    )

    def change(amount: int) -> None:
        """Past the gate."""
        # Not by Python's own SQLite, which would end the locks of the one that has the file open.
        with closing(apsw.Connection(str(place / "state.db"))) as other:
            other.execute("UPDATE budgets SET amount = ?", (amount,))

    async def ask() -> None:
        await app.gateway.handle(Call(OWNER, "core", "query", Query(Statement("SELECT 1")), "shop"))

    try:
        app.state.budgets.add(Budget("b1", "calls", "day", 10, source="shop"))
        change(1_000)
        assert "budgets" in (await app.readiness.tried())["state"].message
        with pytest.raises(TidegateError) as raised:
            await ask()
        assert raised.value.code is Code.STATE_FAILED
        assert status_of(app)["failing"]["state"] == raised.value.message
        change(10)
        await ask()
        assert "state" not in app.conditions.known_failures()
    finally:
        await app.close()
