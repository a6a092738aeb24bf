"""Gates that differ in their settings take turns: what a call of each costs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
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
    gates: Mapping[str, Running], rounds: int, take: Callable[[str, Running, bool], Turn]
) -> None:
    """Print what a call of each gate costs, in turns, and the ratio to the first of them."""
    names = list(gates)
    for fresh in (False, True):
        found: dict[str, list[Turn]] = {name: [] for name in names}
        for number in range(rounds):
            cut = number % len(names)
            for name in names[cut:] + names[:cut]:
                found[name].append(take(name, gates[name], fresh))
        print(f"{'fresh' if fresh else 'repeated'} point query, {rounds} rounds in turns")
        for name, turns in found.items():
            ratios = [
                own.cost / first.cost for own, first in zip(turns, found[names[0]], strict=True)
            ]
            print(
                f"  {name:8} {median(turn.cost for turn in turns):7.1f} us CPU a call"
                f"   {median(turn.rate for turn in turns):8,.0f} calls/s"
                f"   ratio {median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}",
                flush=True,
            )
