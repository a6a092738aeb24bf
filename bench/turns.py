"""Gates that differ in their settings take turns: what a call of each costs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench import data
from bench.client import volley
from bench.process import Launch
from bench.servers import Contestant
from bench.workloads import CLIENTS, SHOP, Running

WARM_S = 0.3


class Turn(NamedTuple):
    """CPU of one call in microseconds, and calls a second."""

    cost: float
    rate: float


def make_shop() -> None:
    """Make the sample database, unless an earlier run did."""
    if not SHOP.exists():
        SHOP.parent.mkdir(parents=True, exist_ok=True)
        data.make_shop(SHOP)


def configured(made: Contestant, name: str, settings: Mapping[str, Any]) -> Contestant:
    """A gate with these settings over HTTP, under another name."""
    plain = made.http

    def launch(port: int, database: Path) -> Launch:
        command = plain(port, database)
        return Launch((*command.argv, "--config", json.dumps(settings)), command.env)

    return replace(made, name=name, http=launch)


def take_turn(
    one: Running,
    *,
    fresh: bool,
    seconds: float,
    settled_s: float = 0.0,
    end: Callable[[], object] | None = None,
) -> Turn:
    """Point queries for so long. What a turn leaves to be done counts: that of `settled_s` more
    seconds, and `end`, which is called before them."""
    shots = one.points(fresh=fresh)
    volley(one.port, shots, clients=CLIENTS, seconds=WARM_S)
    time.sleep(settled_s)
    before = one.process.cpu()
    fired = volley(one.port, shots, clients=CLIENTS, seconds=seconds)
    if end is not None:
        end()
    time.sleep(settled_s)
    return Turn((one.process.cpu() - before) / fired.calls * 1e6, fired.calls / fired.wall)


def compare(
    begin: Callable[[ExitStack], Mapping[str, Running]],
    rounds: int,
    take: Callable[[str, Running, bool], Turn],
) -> None:
    """Print what a call of each gate costs, in turns, and its ratio to the first of them.

    `begin` starts new gates for each round: of four equal processes one was 8 % slower than
    another for as long as both ran, so a pair of them says nothing about a few percent.
    """
    found: dict[bool, dict[str, list[Turn]]] = {False: {}, True: {}}
    for number in range(rounds):
        with ExitStack() as stack:
            gates = begin(stack)
            names = list(gates)
            cut = number % len(names)
            for fresh, turns in found.items():
                for name in names[cut:] + names[:cut]:
                    turns.setdefault(name, []).append(take(name, gates[name], fresh))
    for fresh, turns in found.items():
        print(f"{'fresh' if fresh else 'repeated'} point query, {rounds} rounds in turns")
        first = median(turn.cost for turn in turns[names[0]])
        for name in names:
            costs = [turn.cost for turn in turns[name]]
            print(
                f"  {name:8} {median(costs):7.1f} us CPU a call, {min(costs):.1f} to"
                f" {max(costs):.1f}   {median(turn.rate for turn in turns[name]):8,.0f} calls/s"
                f"   ratio of the medians {median(costs) / first:.3f}",
                flush=True,
            )
