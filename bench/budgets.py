"""What budgets cost a call: gates without any, with one and with one of each kind take turns.

./dev bench budgets [--rounds N] [--seconds S]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench import data, peers
from bench.client import volley
from bench.servers import core
from bench.workloads import CLIENTS, SHOP, Running, start

ROUNDS, SECONDS = 12, 2.0
GATES: dict[str, tuple[tuple[str, ...], ...]] = {
    "none": (),
    "one": (("1G", "calls/day", "--token", "bench"),),
    "four": (
        ("1G", "calls/day", "--token", "bench"),
        ("1G", "rows/day", "--source", "shop"),
        ("1000G", "bytes/hour", "--token", "bench", "--source", "shop"),
        ("1M", "seconds/day", "--token", "bench"),
    ),
}


def set_budgets(name: str, budgets: tuple[tuple[str, ...], ...]) -> None:
    """Give the gate of that name its budgets; its source is declared when it is served."""
    command = str(Path(sys.executable).parent / "tidegate")
    place = ("--state", str(peers.WORK / f"state-budgets-{name}"))
    config = f'{{"sources": [{{"name": "shop", "url": "sqlite:///{SHOP}"}}]}}'
    for words in budgets:
        asked = (command, "budget", "set", *words, *place, "--config", config)
        subprocess.run(asked, check=True, timeout=60, capture_output=True)


def turn(one: Running, fresh: bool, seconds: float) -> tuple[float, float]:
    """CPU of one call in microseconds, and calls a second."""
    shots = one.points(fresh=fresh)
    volley(one.port, shots, clients=CLIENTS, seconds=0.2)
    before = one.process.cpu()
    fired = volley(one.port, shots, clients=CLIENTS, seconds=seconds)
    return (one.process.cpu() - before) / fired.calls * 1e6, fired.calls / fired.wall


def measure(rounds: int, seconds: float) -> None:
    """Print the CPU of a call of each gate, in turns, and the ratio to the one without budgets."""
    if not SHOP.exists():
        SHOP.parent.mkdir(parents=True, exist_ok=True)
        data.make_shop(SHOP)
    with ExitStack() as stack:
        gates: dict[str, Running] = {}
        for name, budgets in GATES.items():
            made = core(state_name=f"budgets-{name}")
            set_budgets(name, budgets)
            gates[name] = start(stack, made, log_name=f"budgets-{name}")
        for fresh in (False, True):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in gates}
            for number in range(rounds):
                order = list(gates)[number % 3 :] + list(gates)[: number % 3]
                for name in order:
                    found[name].append(turn(gates[name], fresh, seconds))
            print(f"{'fresh' if fresh else 'repeated'} point query, {rounds} rounds in turns")
            for name, rows in found.items():
                ratios = [own[0] / none[0] for own, none in zip(rows, found["none"], strict=True)]
                print(
                    f"  {name:5} {median(row[0] for row in rows):7.1f} us CPU a call"
                    f"   {median(row[1] for row in rows):8,.0f} calls/s"
                    f"   ratio {median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}"
                )


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    measure(given.rounds, given.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
