"""The authorization matrix with every short way that a call can take, and with calls for which
everything is found out again: each cell comes to the same, and so does each line of the record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.audit_records import records
from support.authz_calls import ROWS, URI
from support.authz_engines import SqliteShop
from support.authz_server import ACTORS, Caller, Harness, play
from support.repeated_calls import NoSender
from support.repeated_conversation import (
    MODERN,
    UNLIKE,
    VARYING,
    turn_off,
    unlike,
    with_other_values,
)
from support.surface_client import Peer, modern_meta
from tidegate.model.actors import Actor
from tidegate.protocol.repeated_calls import RepeatedCalls
from tidegate.protocol.transport import TransportContext
from tidegate.surfaces.surface import Surface

PLACES = [
    *(("sqlite", each) for each in ("readOnly", "writes", "masked")),
    pytest.param("sqlite", "administered", marks=pytest.mark.whole),
    pytest.param("postgres", "everything", marks=pytest.mark.whole),
]
OWN = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|result \\*'[\w-]+|\b[0-9a-f]{8}\b"
    r"|/[^\"\\ ]*/shop\b|\btest_\d+\b"
    r"|(executed_at|execution_time_ms|elapsed_ms)\W+[\d.]+|\b\d+\.\d+ ?ms"
)
"""Sources, results, places and times of one run."""
BESIDE = frozenset({"profiles", "sample"})
"""Requests of a search for its index: they run beside the calls, in an order of their own."""


INDEXED = frozenset({"search", "find_tables", "list_databases"})
"""Tools whose answers say how far the work beside them is, or what databases other tests have."""


STATEMENTS = frozenset({"sql", "query", "statement"})
"""Arguments that are statements."""


class TwicePeer(Peer):
    """Calls each tool twice, in the stateless era, a statement with other values the second time:
    the second call can be recognized by the bytes of the first, and decided like it. With `short`
    it is."""

    def __init__(self, surface: Surface, actor: Actor, *, short: bool) -> None:
        super().__init__(surface, actor)
        self._short = short
        self.frames: list[bytes] = []
        self.recognized: list[tuple[bool, bool]] = []
        """Of each second call, whether it was, and whether it had to be."""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        repeated = RepeatedCalls() if self._short else None
        headers = {
            b"mcp-protocol-version": MODERN.encode(),
            b"mcp-method": b"tools/call",
            b"mcp-name": tool.encode(),
        }
        other = {
            name: with_other_values(value) if name in STATEMENTS else value
            for name, value in arguments.items()
        }
        reply: dict[str, Any] = {}
        for id, given in ((1, arguments), (2, other)):
            params = {"name": tool, "arguments": given, "_meta": modern_meta(elicitation={})}
            frame = msgspec.json.encode(
                {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
            )
            transport = TransportContext(
                self.actor, NoSender(), headers=headers, address="127.0.0.1", repeated=repeated
            )
            if repeated is not None and id == 2:
                found = repeated.find(frame, transport) is not None
                self.recognized.append((found, must_be_recognized(arguments, other)))
            answer = await self.kernel.serve(frame, transport)
            assert answer is not None
            self.frames.append(answer.frame)
            reply = msgspec.json.decode(answer.frame)
        return reply


def must_be_recognized(arguments: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether one text is longer than the others, nothing else differs, and no argument is a list
    or an object."""
    texts = [each for each in arguments.values() if isinstance(each, str)]
    longest = max(texts, key=len, default="")
    plain = not any(isinstance(each, (list, dict)) for each in arguments.values())
    same = all(given in (other[name], longest) for name, given in arguments.items())
    return plain and same and bool(longest) and texts.count(longest) == 1


class Repeater(Caller):
    def __init__(self, harness: Harness, surface: Surface, actor: Actor, *, short: bool) -> None:
        super().__init__(harness, surface, actor)
        self.peer = self.twice = TwicePeer(surface, actor, short=short)


async def cells(harness: Harness, *, short: bool) -> tuple[list[str], list[tuple[bool, bool]]]:
    """What came of each cell, and whether its second calls were recognized."""
    harness.known_actors = actors = await harness.actors()
    came: list[str] = []
    callers = {
        (surface, actor): Repeater(
            harness, harness.app.surface(surface), actors[actor], short=short
        )
        for surface in {surface for surface, _ in ROWS}
        for actor in ACTORS
    }
    for surface, name in ROWS:
        if harness.row((surface, name)).takes == URI:
            continue
        for effect in harness.grids((surface, name)):
            for actor in ACTORS:
                caller = callers[surface, actor]
                outcome = await caller.outcome(name, effect, actor)
                said = [without_places(frame.decode()) for frame in caller.twice.frames]
                caller.twice.frames.clear()
                if name in INDEXED:
                    said = []
                came.append(f"{surface} {name} {effect} {actor}: {outcome} {said}")
    recognized = [pair for caller in callers.values() for pair in caller.twice.recognized]
    if isinstance(harness.shop, SqliteShop):
        came.append(harness.shop.digest_of_rows())
    return came, recognized


def without_places(text: str) -> str:
    return VARYING.sub("#", OWN.sub("#", text))


def recorded(state: Path) -> list[str]:
    """The record of the calls, without the numbers that they share with the work beside them, and
    without the signatures, of which there is one for each so many seconds."""
    found: list[str] = []
    unlike = dict.fromkeys(UNLIKE, 0) | {"seq": 0, "call_id": ""}
    for fields in records(state):
        if fields.get("request") not in BESIDE and fields["phase"] != "checkpoint":
            found.append(without_places(json.dumps({**fields, **unlike})))
    return sorted(found)


@pytest.mark.parametrize(("engine", "setting"), PLACES)
def test_every_cell_and_its_records_are_the_same_in_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, setting: str
) -> None:
    came: list[list[str]] = []
    lines: list[list[str]] = []
    for short in (True, False):
        place = tmp_path / ("short" if short else "whole")
        place.mkdir()

        async def scenario(harness: Harness, short: bool = short) -> Any:
            return await cells(harness, short=short)

        with monkeypatch.context() as patch:
            if not short:
                turn_off(patch)
            found, recognized = play(place, engine, setting, scenario)
        came.append(found)
        lines.append(recorded(place / "state"))
        if short:
            assert all(was for was, must in recognized if must)
            assert sum(was for was, _ in recognized) > 0.8 * len(recognized) > 100
    assert unlike(*came) == []
    assert unlike(*lines) == []
