"""The gates on one state, as Now shows them: each that answers, and each that does not, by name.

A gate holds the lease of its id in the state while it runs, and its processes answer those who
watch their calls. One that holds its lease and does not answer stands still.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tidegate.store.calls import read_state
from tidegate.store.gates import GateEntry

_FRESH_S = 1.0
"""For so long the gates are known: requests that have not signed in ask for them, too."""


class ServingGates:
    """The gates beside `own`, which is empty where none share the state. `read` gives all of the
    state, and `now` is its time."""

    def __init__(
        self, own: str, read: Callable[[], tuple[GateEntry, ...]], now: Callable[[], float]
    ) -> None:
        self.own = own
        self._read = read
        self._now = now
        self._gates: tuple[GateEntry, ...] = ()
        self._read_at = -_FRESH_S

    async def serve(self, gate: str) -> bool:
        """Whether another one with this id holds its lease, and serves. Raises: TidegateError
        STATE_FAILED."""
        if gate in ("", self.own) or not self.own:
            return False
        if time.monotonic() - self._read_at >= _FRESH_S:
            self._gates = await read_state(self._read)
            self._read_at = time.monotonic()
        found = serving_elsewhere(self._gates, self.own, self._now())
        return any(each.id == gate for each in found)


def gate_rows(
    gates: tuple[GateEntry, ...], own: str, now: float, answering: Mapping[str, int] | None
) -> list[dict[str, Any]]:
    """The gates that have served, this one first and then by place. `now` is the time of the state;
    `answering` how many processes of each answer, None if it is not known yet.

    `state` is `here`, `answers`, `partly` if some of its processes do not, `silent`, `unknown` yet,
    or `gone` if its lease has ended: it was stopped, was killed, or does not reach the state.
    """
    served = [each for each in gates if each.processes]
    served.sort(key=lambda each: (each.id != own, each.place))
    return [
        {
            "id": each.id,
            "place": each.place,
            "processes": each.processes,
            "seen_at": each.renewed_at,
            "state": "here" if each.id == own else _state(each, now, answering),
        }
        for each in served
    ]


def serving_elsewhere(gates: tuple[GateEntry, ...], own: str, now: float) -> list[GateEntry]:
    """The other gates that serve, by place."""
    found = [each for each in gates if each.processes and each.expires_at > now and each.id != own]
    return sorted(found, key=lambda each: each.place)


def name_gates(gates: tuple[GateEntry, ...]) -> dict[str, str]:
    """Names for people by id: the machine of each gate, or its place where it is not alone
    there."""
    machines = Counter(each.place.partition(":")[0] for each in gates if each.processes)
    return {
        each.id: machine if machines[machine := each.place.partition(":")[0]] == 1 else each.place
        for each in gates
    }


def _state(gate: GateEntry, now: float, answering: Mapping[str, int] | None) -> str:
    if gate.expires_at <= now:
        return "gone"
    if answering is None:
        return "unknown"
    found = answering.get(gate.id, 0)
    if found >= gate.processes:
        return "answers"
    return "partly" if found else "silent"
