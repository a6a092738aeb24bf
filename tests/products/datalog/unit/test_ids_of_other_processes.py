"""Ids of databases and indexes at two processes that share what their callers have opened."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tidegate.errors import Code, TidegateError
from tidegate.gateway.choices import Choices
from tidegate.model.actors import Actor, Scope
from tidegate.products.datalog.requests import DatalogTarget
from tidegate.products.datalog.surface.handles import Handle, HandleTable
from tidegate.products.datalog.surface.settings import DatalogSettings
from tidegate.protocol.session_state import SessionState
from tidegate.store.carried import CarriedValues
from tidegate.store.sqlite.state import SqliteState
from tidegate.surfaces.shared_handles import SharedHandle

ACTOR = Actor("a", "a", Scope.FULL_ACCESS)


class Caller:
    """What a table of ids uses of a call (`ToolContext`), of a client with a session."""

    def __init__(self, choices: Choices, session: str = "one") -> None:
        self.actor = ACTOR
        self.gate: Any = SimpleNamespace(choices=choices)
        self.context = SimpleNamespace(state_id=session, address="")
        self._state = SessionState()
        self._state.id = session

    def new_state(self) -> SessionState:
        return self._state

    def find_state(self, id: str) -> SessionState | None:
        return self._state if id == self._state.id else None


def test_ids_in_saved_sources_move_and_those_of_a_directory_name_their_process(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        state = SqliteState(tmp_path / "state.db")
        values = CarriedValues(state.carried, "choices", lambda: "5a" * 32, lambda: 100.0)
        here, there = (Choices(values, frozenset(), place) for place in ("worker 1", "worker 2"))
        first, second = HandleTable(DatalogSettings()), HandleTable(DatalogSettings())
        caller: Any = Caller(here)
        store = Handle(
            caller, DatalogTarget("kv"), "saved", ("kv", "saved", b"{}"), temporary=False
        )
        target = DatalogTarget("search_index", {":dims": 3})
        index = Handle(caller, target, "saved", ("i", "x", b""), temporary=False, within=store)
        own = Handle(caller, DatalogTarget("database"), "t", ("d", "t", b""), temporary=True)
        for each in (store, index, own):
            await first.add(each)

        other: Any = Caller(there)
        found = await second.find(other, "search_index", index.id)
        assert (found.id, found.target, found.key) == (index.id, index.target, index.key)
        assert found.within is await second.find(other, "kv", store.id)
        with pytest.raises(TidegateError, match="database was opened by worker 1") as refused:
            await second.find(other, "database", own.id)
        assert refused.value.code is Code.SOURCE_UNKNOWN
        for stranger, id in ((Caller(there, "two"), store.id), (other, "kv-unknown")):
            with pytest.raises(TidegateError, match="Unknown kv store"):
                await HandleTable(DatalogSettings()).find(stranger, "kv", id)
        with pytest.raises(TidegateError, match="Unknown kv store"):
            await second.find(other, "kv", index.id)

        for body in (b"\xc1", msgspec.msgpack.encode(SharedHandle("worker 1", "one", b"?"))):
            await there.keep(ACTOR.id, "handle kv-old", body)
            with pytest.raises(TidegateError, match="another release") as refused:
                await second.find(other, "kv", "kv-old")
            assert refused.value.code is Code.RESULT_GONE and "again" in refused.value.hint

        await second.close(found.within)
        for id, kind in ((store.id, "kv"), (index.id, "search_index")):
            with pytest.raises(TidegateError, match="Unknown"):
                await second.find(other, kind, id)
        state.close()

    asyncio.run(scenario())
