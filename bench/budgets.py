"""What budgets cost a call: gates without any, with one and with one of each kind take turns.

./dev bench budgets [--rounds N] [--seconds S]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from bench import peers
from bench.servers import core
from bench.turns import Turn, compare, make_shop, take_turn
from bench.workloads import SHOP, Running, start

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


def measure(rounds: int, seconds: float) -> None:
    """Print the CPU of a call of each gate, in turns, and the ratio to the one without budgets."""
    make_shop()
    for name, budgets in GATES.items():
        set_budgets(name, budgets)

    def begin(stack: ExitStack) -> dict[str, Running]:
        return {
            name: start(stack, core(state_name=f"budgets-{name}"), log_name=f"budgets-{name}")
            for name in GATES
        }

    def take(name: str, one: Running, fresh: bool) -> Turn:
        return take_turn(one, fresh=fresh, seconds=seconds)

    compare(begin, rounds, take)


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
