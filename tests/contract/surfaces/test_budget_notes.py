"""What the reply of any tool says of a budget: a call that paid says what is left of one that is
nearly used up, and a refusal names it, when it renews and who can raise it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from support.authz_calls import ROWS, URI
from support.authz_server import Caller, Harness, Refused, play
from tidegate.budgets.meter import Meter
from tidegate.model.actors import Scope
from tidegate.model.budgets import Budget, window_of
from tidegate.store.records import TokenRights
from tidegate.surfaces.registry import SURFACES

MOST, USED = 1_000, 850
LEFT = "left of the budget of 1,000 calls a day for all callers on readWrite"


class Purse:
    """A budget of the source, and what it has paid."""

    def __init__(self, harness: Harness, used: int) -> None:
        self.harness = harness
        store = harness.app.state.budgets
        assert store.add(Budget("b", "calls", "day", MOST, source="readWrite"))
        for now in (time.time() + 86_400, time.time()):  # the day may end meanwhile
            assert store.take("b", window_of("day", now)[0], used) is not None

    def meter(self) -> Meter | None:
        """The meter of this process, once a call has asked for it."""
        found = list(self.harness.app.budget_ledger.meters)
        return found[0] if found else None

    def left(self) -> int:
        meter = self.meter()
        return MOST if meter is None or not meter.ends_at else meter.left


async def reply_of(caller: Caller, surface: str, name: str, effect: str) -> dict[str, Any]:
    """The reply to one call of a tool, or to reading a resource."""
    harness = caller._harness  # pyright: ignore[reportPrivateUsage] - its parts, one by one
    row = harness.row((surface, name))
    if row.takes == URI:
        uri = name.partition("{?")[0].replace("{id}", harness.source.id)
        return await caller.peer.request("resources/read", uri=uri + row.arguments.get("?", ""))
    arguments = await caller.arguments_of(name, effect, "owner")
    return await caller.peer.call(name.partition(" ")[0], **arguments)


async def told(harness: Harness, used: int) -> dict[str, tuple[int, dict[str, Any]]]:
    """By tool and effect, what the call has paid, and its reply."""
    bearer, _ = harness.app.tokens.create("owner", TokenRights(Scope.FULL_ACCESS))
    owner = harness.app.tokens.verify(bearer)
    purse = Purse(harness, used)
    found: dict[str, tuple[int, dict[str, Any]]] = {}
    callers: dict[str, Caller] = {}
    for surface, name in ROWS:
        caller = callers.get(surface)
        if caller is None:
            caller = callers[surface] = Caller(harness, harness.app.surface(surface), owner)
            await caller.open()
        for effect in harness.grids((surface, name)):
            try:
                before = purse.left()
                reply = await reply_of(caller, surface, name, effect)
            except Refused as refused:
                reply = refused.reply
            found[f"{surface} {name} {effect}"] = before - purse.left(), reply
    return found


def test_the_reply_to_each_call_that_paid_says_what_is_left(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> dict[str, tuple[int, dict[str, Any]]]:
        return await told(harness, USED)

    found = play(tmp_path, "sqlite", "readWrite", scenario)
    paid = {name: reply for name, (cost, reply) in found.items() if cost > 0}
    good = {name: reply for name, reply in paid.items() if not failed(reply)}
    assert len(good) >= 10, sorted(found)
    assert {name.split()[0] for name in good} == {surface for surface, _ in ROWS}
    silent = [name for name, reply in good.items() if LEFT not in shown(reply)]

    assert silent == []


def test_a_refusal_names_the_budget_when_it_renews_and_who_can_raise_it(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> dict[str, tuple[int, dict[str, Any]]]:
        return await told(harness, MOST)

    surface = {
        "workbench": {"extended": True},
        "postgres": {"source": "readWrite", "error_detail": "production"},
    }
    of = {name: surface[name] for name in surface if name in SURFACES}
    found = play(tmp_path, "sqlite", "readWrite", scenario, surface=of)
    refused = {name: shown(reply) for name, (_, reply) in found.items() if is_refused(reply)}
    assert {name.split()[0] for name in refused} == {surface for surface, _ in ROWS}
    words = (
        "The budget of 1,000 calls a day for all callers on readWrite is used up", "It renews at",
        "Wait ", "an admin of the source readWrite can raise it",
    )  # fmt: skip
    wrong = [name for name, text in refused.items() if not all(word in text for word in words)]
    assert wrong == []
    for_programs = {"workbench": '"retry_after_s":', "jdbc": '"retryAfter":'}
    for name, text in refused.items():
        assert for_programs.get(name.split()[0], "") in text, text


def failed(reply: dict[str, Any]) -> bool:
    return "error" in reply or bool(reply["result"].get("isError"))


def is_refused(reply: dict[str, Any]) -> bool:
    return failed(reply) and "limit.budget" in shown(reply)


def shown(reply: dict[str, Any]) -> str:
    """All that a model or a client reads of a reply."""
    return msgspec.json.encode(reply).decode()
