"""Gates under many callers for a long time: nothing fails, memory stays, the records are whole.

    ./dev soak --minutes 30

Meanwhile gates are renewed one by one, which callers must not see.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from faults.gates.fleet import Fleet, Gate, fleet
from faults.gates.ledger import Ledger, compare
from faults.gates.rounds import Rounds, place_of_files
from faults.gates.traffic import Traffic
from support.eventually import wait_until

EXPECTED = frozenset({"done", "approval.needed", "57P01"})
"""Sessions of the wire protocol are those of a worker, and end with it: they are told so."""
GROWTH = 1_000_000
"""Bytes that a gate may grow by in `GROWTH_CALLS` calls of all gates, once it is warm."""
GROWTH_CALLS = 100_000
RENEWED = 0.2
"""The part of the time in which gates are renewed."""
WARM = 0.5
"""The part of the time after which a gate is warm: each change is a new text, and fills caches."""
WEIGHED = 10
"""How often gates are weighed."""
APPROVED_S = 10.0
"""Between two changes that a person allows."""


class Soak:
    """One run; `figures` and `wrong` say how it went."""

    def __init__(self, made: Fleet, seconds: float, renewals: int) -> None:
        self._fleet = made
        self._seconds, self._renewals = seconds, renewals
        self.wrong: list[str] = []
        self.figures: dict[str, object] = {}

    def run(self, traffic: Traffic, rounds: Rounds) -> None:
        began = time.monotonic()
        renew_at = [
            began + RENEWED * self._seconds * (n + 1) / (self._renewals + 1)
            for n in range(self._renewals)
        ]
        warm: tuple[int, list[int]] | None = None
        approved = 0
        weights: list[list[float]] = []
        while (now := time.monotonic()) < began + self._seconds:
            if renew_at and now > renew_at[0]:
                renew_at.pop(0)
                self._renew(self._fleet.gates[len(renew_at) % len(self._fleet.gates)])
            if warm is None and now > began + WARM * self._seconds and not renew_at:
                warm = traffic.calls, [each.memory() for each in self._fleet.gates]
            if now > began + len(weights) * self._seconds / WEIGHED:
                weights.append([round(each.memory() / 1e6, 1) for each in self._fleet.gates])
                print(f"{now - began:.0f} s, {traffic.calls} calls", weights[-1], file=sys.stderr)
            rounds.change_with_a_grant()
            approved += 1
            time.sleep(min(APPROVED_S, max(0.0, began + self._seconds - time.monotonic())))
        seconds = time.monotonic() - began
        self.figures |= {
            "seconds": round(seconds), "calls": traffic.calls, "changes with a grant": approved,
            "calls a second": round(traffic.calls / seconds), "MB over time": weights,
        }  # fmt: skip
        if warm is not None:
            self._weigh(traffic.calls - warm[0], warm[1])

    def _renew(self, gate: Gate) -> None:
        """Replace the workers of a gate one by one."""
        if gate.workers == 1:
            return
        before = set(gate.pids()[1:])
        gate.signal(signal.SIGUSR2, gate.pids()[:1])
        wait_until(lambda: before.isdisjoint(gate.pids()), f"{gate.name} to renew its workers")
        self._fleet.wait_ready(gate)

    def _weigh(self, calls: int, before: list[int]) -> None:
        """See what gates have grown by in so many calls of all."""
        grown = [each.memory() - b for each, b in zip(self._fleet.gates, before, strict=True)]
        self.figures["grown MB"] = [round(each / 1e6, 2) for each in grown]
        self.figures["calls of that"] = calls
        most = GROWTH * calls / GROWTH_CALLS
        if calls >= GROWTH_CALLS:
            self.wrong += [f"a gate grew by {each} bytes" for each in grown if each > most]


def endure(rounds: Rounds, *, clients: int, busy: int, seconds: float) -> dict[str, object]:
    """Let so many callers go on; what was found."""
    made, ledger = rounds.fleet, rounds.ledger
    soak = Soak(made, seconds, renewals=min(len(made.gates), 2))
    wires = max(1, busy // 10)
    with Traffic(
        made, ledger, rounds.agent, busy=busy, idle=clients - busy, wires=wires
    ) as traffic:
        soak.run(traffic, rounds)
    figures, wrong = compare(made, ledger)
    for name, count in figures.items():
        kind = name.removeprefix("answers ")
        if kind != name and kind not in EXPECTED:
            wrong.append(f"{count} times {kind}")
    wrong += soak.wrong + made.verify()
    return {**soak.figures, **figures, "wrong": wrong, "reasons": ledger.reasons}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--gates", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--busy", type=int, default=50)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=place_of_files()) as folder,
        fleet(Path(folder), given.gates, given.workers) as made,
    ):
        rounds = Rounds(made, Ledger())
        found = endure(rounds, clients=given.clients, busy=given.busy, seconds=60 * given.minutes)
    print(json.dumps(found, indent=1, default=str))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
