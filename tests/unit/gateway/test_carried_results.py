"""Rows that another process has read are shown under what they were read under, and no other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support.surface_gateway import sqlite_source
from tidegate.errors import Code, TidegateError
from tidegate.gateway.carried_results import CarriedResults
from tidegate.gateway.result_cache import NO_RULES, AppliedRules, CachedResult, RowBuffer
from tidegate.model.data_rules import DataRules
from tidegate.model.requests import Query
from tidegate.model.results import Column, Limits
from tidegate.model.source_settings import Mask
from tidegate.model.sources import Identity, Source
from tidegate.model.statements import Statement
from tidegate.store.carried import Carried, CarriedValues
from tidegate.store.sqlite.state import SqliteState

SOURCE = sqlite_source(Path("shop.db"))
HANDLE = "h" * 24
Change = Callable[[Source, AppliedRules], tuple[Source, AppliedRules]]


def result(rows: list[tuple[Any, ...]], actor: str = "ada", handle: str = HANDLE) -> CachedResult:
    query = Query(Statement(""), limits=Limits(10, 10_000_000, 1.0))
    rest = RowBuffer(query)
    for at in range(0, len(rows), 128):
        rest.write(rows[at : at + 128])
    rest.write(())
    cached = CachedResult(actor, SOURCE, query, (Column("n", "integer"),), rest)
    cached.handle = handle
    return cached


class Process:
    """Two processes on one state, at a time."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.state = SqliteState(folder / "state.db")
        values = CarriedValues(self.state.carried, "rows", lambda: "5a" * 32, lambda: self.now)
        self.values = values
        self.one, self.two = (CarriedResults(values, f"worker {n}") for n in (1, 2))

    async def shown(
        self,
        handle: str = HANDLE,
        actor: str = "ada",
        source: Source = SOURCE,
        rights: AppliedRules = NO_RULES,
    ) -> list[Any] | None:
        found = await self.two.read(handle, actor, source, rights, 10)
        return None if found is None else list(found[0].take(10))


@pytest.mark.parametrize(
    "change",
    [
        lambda source, rights: (replace(source, masks=(Mask("items.id"),)), rights),
        lambda source, rights: (replace(source, agents="ask"), rights),
        lambda source, rights: (replace(source, access="none"), rights),
        lambda source, rights: (replace(source, url="sqlite:///other.db"), rights),
        lambda source, rights: (replace(source, id="another of this name"), rights),
        lambda source, rights: (source, AppliedRules(DataRules(only=("t",)), None)),
        lambda source, rights: (source, AppliedRules(DataRules(), None)),
        lambda source, rights: (source, AppliedRules(DataRules(filters=(("t", "n = 1"),)), None)),
        lambda source, rights: (source, AppliedRules(None, Identity("other"))),
        lambda source, rights: (source, AppliedRules(None, Identity(None, (("a", "b"),)))),
    ],
)
async def test_rows_are_not_shown_once_rules_or_settings_are_others(
    tmp_path: Path, change: Change
) -> None:
    process = Process(tmp_path)
    await process.one.keep(result([(n,) for n in range(300)]))
    assert await process.shown() == [[n] for n in range(10)]
    source, rights = change(SOURCE, NO_RULES)
    with pytest.raises(TidegateError) as refused:
        await process.shown(source=source, rights=rights)
    assert refused.value.code is Code.RESULT_GONE
    assert await process.shown(actor="bob", source=source, rights=rights) is None
    process.state.close()


async def test_rows_that_another_release_has_kept_are_gone_and_it_is_said_why(
    tmp_path: Path,
) -> None:
    process = Process(tmp_path)
    process.values.put(HANDLE, "ada", [b"\xc1 of another release"], 60.0)
    with pytest.raises(TidegateError, match="another release") as refused:
        await process.shown()
    assert refused.value.code is Code.RESULT_GONE and refused.value.hint
    process.state.close()


async def test_rows_are_those_of_their_id_and_time_and_caller(tmp_path: Path) -> None:
    process = Process(tmp_path)
    other = "o" * 24
    await process.one.keep(result([(1,), (2,)]))
    await process.one.keep(result([(3,), (4,)], "bob", other))
    assert await process.shown(actor="bob") is None
    assert await process.shown(f"{HANDLE}.1") == [[2]]
    for odd in (f"{HANDLE}.2", f"{HANDLE}.-1", f"{HANDLE}.999999", "x" * 24, "", "." * 24):
        assert await process.shown(odd) is None
    now = process.now
    parts = {id: process.state.carried.read("rows", id, now, 0, 9) for id in (HANDLE, other)}
    swapped = Carried("rows", HANDLE, "ada", now + 60)
    process.state.carried.put(swapped, [body for _, body in parts[other]], now)
    assert await process.shown() is None
    mixed = [parts[HANDLE][0][1], parts[other][1][1]]
    process.state.carried.put(swapped, mixed, now)
    assert await process.shown() is None
    assert await process.shown(other, "bob") == [[3], [4]]
    process.now += 600
    assert await process.shown(other, "bob") is None
    process.state.close()


@pytest.mark.parametrize(("size", "fits"), [(900_000, True), (1_048_600, False)])
async def test_a_large_row_is_carried_up_to_a_bound(tmp_path: Path, size: int, fits: bool) -> None:
    process = Process(tmp_path)
    await process.one.keep(result([("x" * size,)]))
    if fits:
        assert await process.shown() == [["x" * size]]
    else:
        with pytest.raises(TidegateError, match=r"too large .* worker 1"):
            await process.shown()
    process.state.close()
