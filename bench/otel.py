"""What traces and metrics by OpenTelemetry cost a call.

    ./dev bench otel [--rounds N] [--seconds S]

Gates take turns: without the setting, with a collector where nothing is traced ("metrics"), where
nothing is counted or traced ("none"), and where every request is traced ("all"). What is counted
ends when all spans of the turn are sent. The collector is a process that reads and answers.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.process import Launch, Process, free_port, wait_for_port
from bench.servers import Contestant, core
from bench.turns import Turn, compare, configured, make_shop, take_turn
from bench.workloads import LOGS, Running, start

ROUNDS, SECONDS = 8, 2.0
SETTLED_S = 2.5
GATES: dict[str, dict[str, Any] | None] = {
    "off": None,
    "none": {"sample_ratio": 0.0, "metrics": False},
    "metrics": {"sample_ratio": 0.0},
    "all": {"traces_per_s": 100_000, "max_queue": 100_000, "flush_s": 0.5},
}


def traced_gate(name: str, otel: dict[str, Any] | None, port: int) -> Contestant:
    """The gate `core` with these settings of traces."""
    made = core(state_name=f"otel-{name}")
    if otel is None:
        return made
    settings = {"otel": {"endpoint": f"http://127.0.0.1:{port}", **otel}}
    return configured(made, f"otel-{name}", settings)


def measure(rounds: int, seconds: float) -> None:
    """Print the CPU of a call of each gate, in turns, and the ratio to the one without traces."""
    make_shop()
    with ExitStack() as stack:
        port, place = free_port(), {"PYTHONPATH": str(Path(__file__).parents[1])}
        words = (sys.executable, "-m", "bench.shipping", "--receive", "otlp", str(port))
        collector = stack.enter_context(Process(Launch(words, place), LOGS / "otel.log"))
        wait_for_port(collector, port)

        def begin(gates: ExitStack) -> dict[str, Running]:
            return {
                name: start(gates, traced_gate(name, otel, port), log_name=f"otel-{name}")
                for name, otel in GATES.items()
            }

        def take(name: str, one: Running, fresh: bool) -> Turn:
            return take_turn(one, fresh=fresh, seconds=seconds, settled_s=SETTLED_S)

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
