"""Defaults of sessions, where any process may get the next call."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.gateway.choices import Choices
from tidegate.model.actors import Actor, Scope
from tidegate.products.pgedge.surface.databases import Databases
from tidegate.products.pgedge.surface.settings import PostgresSettings
from tidegate.store.carried import CarriedValues
from tidegate.store.sqlite.state import SqliteState


def test_each_session_has_its_own_default_within_the_share_of_its_caller(tmp_path: Path) -> None:
    async def scenario() -> None:
        state = SqliteState(tmp_path / "state.db")
        values = CarriedValues(state.carried, "choices", lambda: "5a" * 32, lambda: 100.0)
        choices = Choices(values, frozenset(), "worker 1")
        databases = Databases(PostgresSettings())

        def caller(actor: str, session: str) -> Any:
            return SimpleNamespace(
                actor=Actor(actor, actor, Scope.READ_ONLY),
                gate=SimpleNamespace(choices=choices),
                context=SimpleNamespace(state_id=session),
            )

        for session in ("", "one", "two"):
            await databases.set_default(caller("ada", session), f"source {session}")
        for session in ("", "one", "two"):
            assert await databases.name_of(caller("ada", session), None) == f"source {session}"
            assert await databases.name_of(caller("bob", session), None) is None
        await choices.keep("ada", "postgres.default_source one", b"of another release")
        with pytest.raises(TidegateError, match="another release") as refused:
            await databases.name_of(caller("ada", "one"), None)
        assert refused.value.code is Code.RESULT_GONE and "default again" in refused.value.hint
        assert await databases.name_of(caller("ada", "one"), "shop") == "shop"
        await databases.set_default(caller("ada", "one"), "shop")
        assert await databases.name_of(caller("ada", "one"), None) == "shop"
        state.close()
        with closing(sqlite3.connect(tmp_path / "state.db")) as file:
            assert file.execute("SELECT DISTINCT owner FROM carried_values").fetchall() == [
                ("ada",)
            ], "a caller that opens session after session fills the state"

    asyncio.run(scenario())
