"""What traces and metrics by OpenTelemetry cost a call.

    ./dev bench otel [--rounds N] [--seconds S]

Gates take turns: without the setting, with a collector where nothing is traced ("metrics"), where
nothing is counted or traced ("none"), and where every request is traced ("all"). What is counted
ends when all spans of the turn are sent. The collector is a process that reads and answers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from bench import data
from bench.client import volley
from bench.process import Launch, Process, free_port, wait_for_port
from bench.servers import Contestant, core
from bench.workloads import CLIENTS, LOGS, SHOP, Running, start

ROUNDS, SECONDS = 8, 2.0
SETTLED_S = 2.5
GATES: dict[str, dict[str, Any] | None] = {
    "off": None,
    "none": {"sample_ratio": 0.0, "metrics": False},
    "metrics": {"sample_ratio": 0.0},
    "all": {"traces_per_s": 100_000, "max_queue": 100_000, "flush_s": 0.5},
}


def receive(port: int) -> None:
    """Take what comes, and keep nothing."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


def traced_gate(name: str, otel: dict[str, Any] | None, port: int) -> Contestant:
    """The gate `core` with these settings of traces."""
    made = core(state_name=f"otel-{name}")
    if otel is None:
        return made
    settings = json.dumps({"otel": {"endpoint": f"http://127.0.0.1:{port}", **otel}})
    plain = made.http

    def launch(port: int, database: Path) -> Launch:
        command = plain(port, database)
        return Launch((*command.argv, "--config", settings), command.env)

    return replace(made, name=f"otel-{name}", http=launch)


def turn(one: Running, fresh: bool, seconds: float) -> tuple[float, float]:
    """CPU of one call in microseconds, until all of the turn is sent; and calls a second."""
    shots = one.points(fresh=fresh)
    volley(one.port, shots, clients=CLIENTS, seconds=0.2)
    time.sleep(SETTLED_S)
    before = one.process.cpu()
    fired = volley(one.port, shots, clients=CLIENTS, seconds=seconds)
    time.sleep(SETTLED_S)
    return (one.process.cpu() - before) / fired.calls * 1e6, fired.calls / fired.wall


def measure(rounds: int, seconds: float) -> None:
    """Print the CPU of a call of each gate, in turns, and the ratio to the one without traces."""
    if not SHOP.exists():
        SHOP.parent.mkdir(parents=True, exist_ok=True)
        data.make_shop(SHOP)
    with ExitStack() as stack:
        port, place = free_port(), {"PYTHONPATH": str(Path(__file__).parents[1])}
        words = (sys.executable, "-m", "bench.otel", "--receive", str(port))
        collector = stack.enter_context(Process(Launch(words, place), LOGS / "otel.log"))
        wait_for_port(collector, port)
        gates = {
            name: start(stack, traced_gate(name, otel, port), log_name=f"otel-{name}")
            for name, otel in GATES.items()
        }
        for fresh in (False, True):
            found: dict[str, list[tuple[float, float]]] = {name: [] for name in gates}
            for number in range(rounds):
                cut = number % len(gates)
                for name in list(gates)[cut:] + list(gates)[:cut]:
                    found[name].append(turn(gates[name], fresh, seconds))
            print(f"{'fresh' if fresh else 'repeated'} point query, {rounds} rounds in turns")
            for name, rows in found.items():
                ratios = [own[0] / off[0] for own, off in zip(rows, found["off"], strict=True)]
                print(
                    f"  {name:8} {median(row[0] for row in rows):7.1f} us CPU a call"
                    f"   {median(row[1] for row in rows):8,.0f} calls/s"
                    f"   ratio {median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}",
                    flush=True,
                )


def main() -> int:
    """Measure, or be the collector."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--receive", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.receive is not None:
        receive(given.receive)
    measure(given.rounds, given.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
