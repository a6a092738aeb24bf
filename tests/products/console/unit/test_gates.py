"""Now names each gate on the state, whether it answers or not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support import postgres_state
from support.eventually import HANG_S
from tidegate.app import App
from tidegate.config.model import Config
from tidegate.gateway import other_processes
from tidegate.products.console.gates import gate_rows
from tidegate.store.gates import GateEntry

NOW = 100.0


def gate(id: str, place: str, processes: int = 2, expires_at: float = NOW + 9) -> GateEntry:
    return GateEntry(id, "holder", place, "key", processes, b"", NOW - 3, expires_at)


def states(answering: Mapping[str, int] | None, *gates: GateEntry) -> dict[str, str]:
    return {each["id"]: each["state"] for each in gate_rows(gates, "own", NOW, answering)}


def test_a_gate_is_what_its_processes_and_its_lease_say() -> None:
    gates = (
        *(gate("b", "b:/"), gate("c", "c:/"), gate("d", "d:/"), gate("own", "z:/")),
        *(gate("ended", "e:/", expires_at=NOW), gate("commands", "f:/", processes=0)),
    )
    said = {"own": "here", "b": "answers", "c": "partly", "d": "silent", "ended": "gone"}
    found = states({"b": 2, "c": 1}, *gates)
    assert found == said
    assert list(found) == ["own", "b", "c", "d", "ended"]


def test_no_gate_is_called_silent_before_it_had_the_time_to_answer() -> None:
    assert states(None, gate("own", "a:/"), gate("b", "b:/")) == {"own": "here", "b": "unknown"}


async def test_a_gate_that_runs_no_call_answers_until_it_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres_state.empty_state("wheel")
    for name, seconds in (("GONE_S", 2.0), ("WATCH_S", 2.0), ("ASK_S", 0.5), ("AGAIN_S", 0.5)):
        monkeypatch.setattr(other_processes, name, seconds)
    monkeypatch.setenv("PGTEST_KEY", "a key of both gates of this test, long enough")
    url, key = postgres_state.state_url(), "${ENV:PGTEST_KEY}"
    here, elsewhere = (
        App.open(Config(state=str(tmp_path / name), state_url=url, state_key=key), "server")
        for name in ("a", "b")
    )
    for app in (here, elsewhere):
        await asyncio.to_thread(app.state.versions.follow)
    reading = [asyncio.create_task(app.mailbox.run()) for app in (here, elsewhere)]
    assert here.lease is not None and elsewhere.lease is not None
    own, other = here.lease.id, elsewhere.lease.id

    async def look() -> dict[str, Any]:
        await here.other_processes.watch()
        gates = await asyncio.to_thread(here.state.gates.list)
        rows = gate_rows(gates, own, here.state.now(), here.other_processes.answering())
        return {each["id"]: each["state"] for each in rows}

    async def until(state: str) -> None:
        async with asyncio.timeout(HANG_S):
            while (found := await look()) != {own: "here", other: state}:
                assert set(found) == {own, other}
                await asyncio.sleep(0.02)

    try:
        await until("unknown")
        await until("answers")
        reading[1].cancel()
        await until("silent")
    finally:
        for task in reading:
            task.cancel()
        for app in (here, elsewhere):
            await app.close()
