"""What all that a team switches on costs a call together: metrics, budgets and shipping.

    ./dev bench together [--rounds N] [--seconds S] [--budgets one|four] [--memory CALLS]

Two gates take turns, one without any of it. What is counted of the other ends when all lines of
the turn are shipped, and its figures are read once in each, as Prometheus would. Then memory: each
gate gets CALLS calls with ever new texts, and every 100,000 of them its resident bytes are read.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.budgets import GATES, set_budgets
from bench.client import volley
from bench.process import free_port
from bench.servers import Contestant, core
from bench.turns import Turn, compare, configured, make_shop, take_turn
from bench.workloads import CLIENTS, Running, start

ROUNDS, SECONDS = 10, 3.0
SETTLED_S = 2.5
"""In which what a turn has left to ship is shipped."""
STEP = 100_000
MEMORY = 3 * STEP
LONGEST_S = 600.0
"""For the calls of one gate whose memory is read."""
Begin = Callable[[ExitStack], dict[str, Running]]


def make_gate(directory: Path, metrics_port: int) -> Contestant:
    """The gate `core` with metrics, and shipping to a file; its budgets are in its state."""
    to = {"name": "file", "url": f"file://{directory}/record.jsonl"}
    settings = {"ship": {"to": [to]}, "metrics": {"listen": f"127.0.0.1:{metrics_port}"}}
    return configured(core(state_name="budgets-together"), "together", settings)


def scrape(port: int) -> int:
    """Read the figures; how many lines they have."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return answer.read().count(b"\n")


def measure_calls(begin: Begin, port: int, given: argparse.Namespace) -> None:
    """Print the CPU of a call of each gate, in turns, and the ratio."""

    def take(name: str, one: Running, fresh: bool) -> Turn:
        read = partial(scrape, port) if name == "on" else None
        return take_turn(one, fresh=fresh, seconds=given.seconds, settled_s=SETTLED_S, end=read)

    compare(begin, given.rounds, take)


def measure_memory(gates: dict[str, Running], port: int, calls: int) -> None:
    """Print the resident bytes of each gate on its way to so many calls."""
    for name, one in gates.items():
        shots, end, sizes = one.points(fresh=True), time.monotonic() + LONGEST_S, list[int]()
        done = 0
        while done < calls and (left := end - time.monotonic()) > 0:
            fired = volley(
                one.port, shots, clients=CLIENTS, calls=min(STEP, calls - done), seconds=left
            )
            done += fired.calls
            time.sleep(SETTLED_S)
            if name == "on":
                scrape(port)
            sizes.append(one.process.rss())
        grown = (sizes[-1] - sizes[0]) / max(1, len(sizes) - 1)
        shown = ", ".join(f"{size / 1e6:.1f}" for size in sizes)
        print(
            f"{name:3} MB after each {STEP:,} of {done:,} calls: {shown};"
            f" {grown / 1e6:+.2f} MB in each after the first",
            flush=True,
        )


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--budgets", choices=("one", "four"), default="four")
    parser.add_argument("--memory", type=int, default=MEMORY, help="0: not measured")
    given = parser.parse_args()
    make_shop()
    with tempfile.TemporaryDirectory() as made:
        port = free_port()
        all_on = make_gate(Path(made), port)
        set_budgets("together", GATES[given.budgets])

        def begin(stack: ExitStack) -> dict[str, Running]:
            return {
                "off": start(stack, core(state_name="together-off"), log_name="off"),
                "on": start(stack, all_on, log_name="on"),
            }

        if given.rounds:
            measure_calls(begin, port, given)
        if given.memory:
            with ExitStack() as stack:
                measure_memory(begin(stack), port, given.memory)
        lines = sum(1 for _ in (Path(made) / "record.jsonl").open("rb"))
        print(f"{lines:,} events were shipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
