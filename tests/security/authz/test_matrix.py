"""Who may do what: every tool and resource x actor x source setting x effect, on every engine.

The outcome of each cell is written in `authz_grids`. After the refusals of each tool and effect
the database is looked at: nothing has changed. What changes it comes last, and does change it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.authz_calls import CHANGES, LISTINGS, ROWS, SEES
from support.authz_engines import ENGINES, SETTINGS
from support.authz_operations import MEMORY, WAYS, MemoryShop, Way
from support.authz_server import ACTORS, Caller, Harness, play, word, word_of
from tidegate.errors import TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.surfaces.registry import SURFACES

PLACES = [
    (engine, setting)
    for engine, spelling in ENGINES.items()
    for setting in SETTINGS
    if setting != "unmapped" or spelling.identities
]


async def wrongs(harness: Harness) -> list[str]:
    """Every cell that is not as the grids say, and every change that was none of the expected."""
    callers = await harness.callers()
    shop, setting = harness.shop, harness.setting
    found: list[str] = []
    late: list[tuple[str, str, str, str]] = []
    for surface, name in ROWS:
        row = harness.row((surface, name))
        for effect, grid in harness.grids((surface, name)).items():
            before = shop.digest()
            for actor in ACTORS:
                expected = grid[setting][actor]
                if expected == "ok" and effect in CHANGES and not row.explains:
                    late.append((surface, name, effect, actor))
                    continue
                outcome = await callers[surface, actor].outcome(name, effect, actor)
                if outcome != expected:
                    found.append(f"{name} {effect} {actor}: {outcome}, not {expected}")
            if shop.digest() != before:
                found.append(f"{name} {effect} changed the database")
    for surface, name, effect, actor in late:
        before = shop.digest()
        outcome = await callers[surface, actor].outcome(name, effect, actor)
        changed = shop.digest() != before
        if outcome != "ok" or not changed:
            found.append(f"{name} {effect} {actor}: {outcome}, changed={changed}")
    for surface, name in LISTINGS:
        for actor in ACTORS:
            hidden = SEES[actor]
            expected = hidden is not None and setting not in hidden
            if await lists(harness, callers[surface, actor].peer, name) != expected:
                found.append(f"{name} {actor}: expected the source there: {expected}")
    return found


async def lists(harness: Harness, peer: object, listing: str) -> bool:
    """Whether a listing shows the source."""
    from support.surface_client import Peer

    assert isinstance(peer, Peer)
    await harness.tab()
    if "://" in listing:
        reply = await peer.request("resources/read", uri=listing)
        return harness.source.id in reply["result"]["contents"][0]["text"]
    reply = await peer.call(listing)
    said = reply["result"]["content"][0]["text"]
    return harness.source.id in said or f"{harness.source.name}: " in said


@pytest.mark.parametrize(("engine", "setting"), PLACES)
def test_every_cell_is_as_the_grids_say(tmp_path: Path, engine: str, setting: str) -> None:
    assert play(tmp_path, engine, setting, wrongs) == []


async def outcome(harness: Harness, caller: Caller | None, actor: Actor, way: Way) -> str:
    """What came of asking in one way, as a word of `authz_grids`."""
    if way.request is None:
        assert caller is not None
        named = harness.source.id if way.source == "connection_id" else harness.source.name
        return word(await caller.peer.call(way.tool, **{way.source: named, **way.arguments}))
    # As a surface of the engine's own would: its tool that confirms is for who may write.
    scope = Scope.READ_WRITE if way.confirmed else Scope.READ_ONLY
    source, sure = harness.source.name, way.confirmed
    call = Call(actor, "operations", "ask", way.request, source, scope, confirmed=sure)
    try:
        await harness.app.gateway.handle(call)
    except TidegateError as error:
        return word_of(error.code.value)
    return "ok"


async def wrong_ways(harness: Harness) -> list[str]:
    """Every cell of the engine that speaks no SQL that is not as its grids say."""
    shop, callers, actors = harness.shop, await harness.callers(), harness.known_actors
    assert isinstance(shop, MemoryShop)
    found: list[str] = []
    ways = [way for way in WAYS if way.request is not None or way.surface in SURFACES]
    for way in ways:
        for name in ACTORS:
            shop.refill()
            before, expected = shop.digest(), way.grid[harness.setting][name]
            came = await outcome(harness, callers.get((way.surface, name)), actors[name], way)
            changed = shop.digest() != before
            if came != expected or changed != (way.changes and expected == "ok"):
                asked = way.request or (way.tool, way.arguments)
                found.append(f"{asked} {name}: {came}, not {expected}; changed={changed}")
    return found


@pytest.mark.parametrize("setting", [each for each in SETTINGS if each != "unmapped"])
def test_every_cell_of_an_engine_that_speaks_no_sql_is_as_its_grids_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setitem(ENGINES, "memory", MEMORY)
    assert play(tmp_path, "memory", setting, wrong_ways) == []
