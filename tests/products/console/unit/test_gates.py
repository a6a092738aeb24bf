"""Now names each gate on the state, whether it answers or not."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from products.console.support.two_gates import two_gates
from support import postgres_state
from support.eventually import HANG_S
from tidegate.config.sources import SourceSettings
from tidegate.errors import TidegateError
from tidegate.gateway import other_processes
from tidegate.gateway.call_figures import CallFigures, Series, Span, series
from tidegate.gateway.running_calls import OPERATOR
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement
from tidegate.products.console import gate_figures
from tidegate.products.console.gate_figures import GateFigures
from tidegate.products.console.gates import gate_rows
from tidegate.store.gates import GateEntry
from tidegate.store.messages import MOST_BODY

NOW = 100.0
READER = Actor("tok_1", "reader", Scope.READ_ONLY)
LONG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90000000)"
    " SELECT max(i) FROM n"
)
SPANS: tuple[Span, ...] = ("hour", "day")


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
    for name, seconds in (("GONE_S", 2.0), ("WATCH_S", 2.0), ("ASK_S", 0.5), ("AGAIN_S", 0.5)):
        monkeypatch.setattr(other_processes, name, seconds)
    here, elsewhere = await two_gates(tmp_path, monkeypatch)
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


async def test_no_statement_under_way_can_be_read_in_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as made:
        made.execute("CREATE TABLE t (n INTEGER)")
    shop = SourceSettings("shop", f"sqlite:///{tmp_path}/shop.db")
    here, elsewhere = await two_gates(tmp_path, monkeypatch, shop)
    reading = [asyncio.create_task(app.mailbox.run()) for app in (here, elsewhere)]
    await asyncio.sleep(0)
    call = Call(READER, "core", "query", Query(Statement(LONG)), source="shop")
    asked = asyncio.ensure_future(elsewhere.gateway.handle(call))
    try:
        async with asyncio.timeout(HANG_S):
            while not here.other_processes.calls()[0]:
                await here.other_processes.watch()
                await asyncio.sleep(0.02)
        assert [each.statement for each in here.other_processes.calls()[0]] == [LONG]
        kept = postgres_state.ask(
            "SELECT kind, encode(body, 'escape') FROM tidegate.messages"
            " UNION ALL SELECT kind, encode(body, 'escape') FROM tidegate.carried_values"
        )
        assert other_processes.CALLS in {kind for kind, _ in kept}
        texts = " ".join(str(body) for _, body in kept)
        assert not any(word in texts for word in ("RECURSIVE", "reader", "shop"))
    finally:
        elsewhere.gateway.running.end_all(OPERATOR)
        with pytest.raises(TidegateError):
            await asked
        for task in reading:
            task.cancel()
        for app in (here, elsewhere):
            await app.close()


async def test_figures_are_those_of_all_gates_that_send_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def complete() -> bool:
        return True

    monkeypatch.setattr(gate_figures, "ASK_S", 0.2)
    apps = await two_gates(tmp_path, monkeypatch)
    reading = [asyncio.create_task(app.mailbox.run()) for app in apps]
    ids = [app.lease.id for app in apps if app.lease is not None]
    counts = [CallFigures(lambda: 600_000.0), CallFigures(lambda: 600_030.0)]
    figures = [
        GateFigures(app.mailbox, counted, id, complete)
        for app, counted, id in zip(apps, counts, ids, strict=True)
    ]
    for counted in counts:
        counted.count("shop", 2.0)
        counted.count("shop", None)
        counted.count_failure("other", "denied")
    counts[1].count("shop", 2.0)

    def known(span: Span) -> tuple[frozenset[str], Series]:
        first, steps = counts[0].steps(span)
        answered, all_of_them = figures[0].add_to(span, first, steps)
        assert all_of_them
        return answered, series(span, first, steps, lambda source: True)

    async def shown(span: Span) -> tuple[frozenset[str], Series]:
        await figures[0].ask(span)
        return known(span)

    try:
        answered, alone = known("hour")
        assert (answered, sum(alone.calls)) == (frozenset(), 3)
        for span in SPANS:
            async with asyncio.timeout(HANG_S):
                while not (found := await shown(span))[0]:
                    await asyncio.sleep(0.02)
            assert found[0] == {ids[1]}
            assert (sum(found[1].calls), sum(found[1].denied)) == (7, 2)
            assert found[1].calls[-1] == 7 and found[1].total_p50 == alone.total_p50
    finally:
        for task in reading:
            task.cancel()
        for app in apps:
            await app.close()


def test_figures_that_are_too_many_for_a_message_are_sent_with_less() -> None:
    bins = tuple(range(88)) * 2
    for sources, is_whole in ((3, True), (40, False)):
        cells = tuple(
            [
                gate_figures.SentCell(step, f"{source} " * 40, (1, 0, 0, 0, 0), bins)
                for step in range(60)
                for source in range(sources)
            ]
        )
        whole = gate_figures.SentFigures("g", "hour", True, cells)
        body = gate_figures.encode_figures(whole)
        found = msgspec.json.decode(body, type=gate_figures.SentFigures)
        assert len(body) <= MOST_BODY
        assert sum(each.outcomes[0] for each in found.cells) == 60 * sources
        assert (found == whole) is is_whole
