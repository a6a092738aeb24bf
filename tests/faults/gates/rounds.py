"""Faults, one at a time, while callers go on; then what was promised is looked at.

./dev faults --rounds 200
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from faults.gates.clients import Answer, Client
from faults.gates.fleet import Fleet, Gate, fleet
from faults.gates.ledger import Ledger, compare
from faults.gates.traffic import Traffic
from support.eventually import LOOK_S, wait_until
from support.network_link import network_link

SEEN_S = 2.0
"""Within this time a revocation counts at all gates."""
VERIFIED = 5
"""After so many rounds of a kind the records are verified."""
OUTAGE_S = 1.5
"""How long a fault lasts, before what was ended is started again."""


LATE = "late standby promoted"
"""It lacks the revocation of the round, and that its grant was used."""
KINDS = (
    "worker killed", "gate killed", "parent killed", "stopped", "state killed", "state silent",
    "source killed", "standby promoted", LATE, "link cut",
)  # fmt: skip


class Rounds:
    """Faults of the gates of `fleet`, which are chosen by `rng`."""

    def __init__(
        self, fleet: Fleet, ledger: Ledger, rng: random.Random | None = None, stop_s: float = 0.0
    ) -> None:
        self.fleet, self.ledger, self._rng = fleet, ledger, rng or random.Random(0)
        self._stop_s = stop_s
        words = ("token", "create", "agent", "--scope", "readWrite")
        self.agent = fleet.gates[0].run(*words).out.strip()
        """The token of those who change."""
        self._count = 0
        self.revoked: list[str] = []
        self.wrong: list[str] = []
        faults: tuple[Callable[[Gate], None], ...] = (
            self._kill_worker, self._kill_gate, self._kill_parent, self._stop, self._kill_state,
            self._stop_state, self._kill_source, self._promote,
            self._promote_late, self._cut_link,
        )  # fmt: skip
        self._faults: dict[str, Callable[[Gate], None]] = dict(zip(KINDS, faults, strict=True))

    def run(self, kind: str, traffic: Traffic) -> float:
        """One fault; how long callers then had to wait."""
        self._count += 1
        gate = self.fleet.gates[-1]
        if kind != "link cut":
            gate = self._rng.choice(self.fleet.gates)
        other = self._rng.choice([each for each in self.fleet.gates if each is not gate])
        leaving = self._new_token(other)
        mark = self._approved_change(other)
        traffic.wait_flowing()
        if kind == LATE:
            self.fleet.pair.detach()
        revoking = threading.Thread(target=self._revoke, args=(other, leaving))
        using = threading.Thread(target=self._use_grant, args=(mark,))
        for each in (using, revoking):
            each.start()
        self._faults[kind](gate)
        for each in (using, revoking):
            each.join()
        began = time.monotonic()
        self.fleet.wait_all_ready()
        traffic.wait_flowing()
        waited = time.monotonic() - began
        self._use_grant(mark)
        self._deny_rest(other)
        self._check_revoked()
        return waited

    def change_with_a_grant(self) -> None:
        """Have a change allowed, and each gate be asked for it at once."""
        self._count += 1
        gate = self._rng.choice(self.fleet.gates)
        self._use_grant(self._approved_change(gate))
        self._deny_rest(gate)

    # What must not come back

    def _new_token(self, gate: Gate) -> str:
        name = f"leaving{self._count}"
        made = gate.run("token", "create", name, "--scope", "readOnly")
        assert made.status == 0, made.err
        secret = made.out.strip()
        for each in self.fleet.gates:
            wait_until(lambda each=each: _ask(each, secret).done, f"{name} to count")
        return secret

    def _revoke(self, gate: Gate, secret: str) -> None:
        """Revoke the token of this round, again until that is answered as done."""
        gate.ask_until_done("token", "revoke", f"leaving{self._count}")
        self.revoked.append(secret)
        time.sleep(SEEN_S)
        self._check_revoked()

    def _check_revoked(self) -> None:
        """No gate lets a revoked token in. One that does nothing now may answer later."""
        for gate in self.fleet.gates:
            for secret in self.revoked[-3:]:
                answer = _ask(gate, secret)
                if answer.done:
                    self.wrong.append(f"{gate.name} let in a token that was revoked: {answer}")

    def _approved_change(self, gate: Gate) -> str:
        """The mark of a change that a person has allowed."""
        mark = self.ledger.next_mark("g", self._count)
        token = self.agent

        async def ask() -> Answer:
            client = Client(gate.http, token, host=gate.address)
            try:
                return await self.ledger.change(client, mark, "asked")
            finally:
                client.close()

        answers: list[Answer] = []

        def is_asked() -> bool:
            answers.append(asyncio.run(ask()))
            return answers[-1].code == "approval.needed"

        try:
            wait_until(is_asked, "a question to be asked")
        except AssertionError as late:
            raise AssertionError(f"{late}, but {gate.name} said {answers[-1]}") from None
        listed = gate.ask_until_done("approvals", "list", "--json").json["approvals"]
        found = [each["id"] for each in listed if mark in each["subject"]["statement"]]
        for id in found:
            gate.ask_until_done("approvals", "allow", id)
        return mark

    def _use_grant(self, mark: str) -> None:
        """Have each gate be asked for the change at once: one may run it."""

        async def ask(gate: Gate) -> None:
            client = Client(gate.http, self.agent, host=gate.address)
            await self.ledger.change(client, mark, "asked")
            client.close()

        async def ask_all() -> None:
            await asyncio.gather(*(ask(each) for each in self.fleet.gates))

        asyncio.run(ask_all())

    def _deny_rest(self, gate: Gate) -> None:
        """Answer the questions of those who came too late for the grant: there is a limit."""
        listed = gate.ask_until_done("approvals", "list", "--json").json["approvals"]
        for each in listed:
            gate.run("approvals", "deny", each["id"])

    # The faults

    def _kill_worker(self, gate: Gate) -> None:
        workers = gate.pids()[1:] or gate.pids()
        gate.signal(signal.SIGKILL, [self._rng.choice(workers)])
        if gate.workers == 1:
            gate.wait_gone(workers)
            self.fleet.restart(gate)

    def _kill_gate(self, gate: Gate) -> None:
        gate.kill()
        time.sleep(OUTAGE_S)
        self.fleet.restart(gate)

    def _kill_parent(self, gate: Gate) -> None:
        gate.kill_parent()
        time.sleep(OUTAGE_S)
        self.fleet.restart(gate)

    def _stop(self, gate: Gate) -> None:
        """While it does nothing, a token is revoked, and calls wait at its socket."""
        pids = gate.pids()
        gate.signal(signal.SIGSTOP, pids)
        answers: list[Answer] = []
        try:
            before = len(self.revoked)
            wait_until(lambda: len(self.revoked) > before, "the revocation to be done")
            time.sleep(max(SEEN_S, self._stop_s))
            late = self.revoked[-1]
            waiting = [
                threading.Thread(target=lambda: answers.append(_ask(gate, late))) for _ in range(4)
            ]
            for each in waiting:
                each.start()
            time.sleep(20 * LOOK_S)
        finally:
            gate.signal(signal.SIGCONT, pids)
        for each in waiting:
            each.join()
        let_in = [each for each in answers if each.done]
        if let_in:
            self.wrong.append(f"{gate.name} woke up and let in {len(let_in)} revoked calls")

    def _kill_state(self, gate: Gate) -> None:
        self.fleet.pair.primary.kill()
        time.sleep(OUTAGE_S)
        self.fleet.pair.primary.start()

    def _stop_state(self, gate: Gate) -> None:
        """Its server does nothing, and every connection stays: no gate hears of it."""
        pids = self.fleet.pair.primary.pids()
        gate.signal(signal.SIGSTOP, pids)
        try:
            time.sleep(max(4.0, self._stop_s / 2))
        finally:
            gate.signal(signal.SIGCONT, pids)

    def _kill_source(self, gate: Gate) -> None:
        self.fleet.source.kill()
        time.sleep(OUTAGE_S)
        self.fleet.source.start()

    def _promote(self, gate: Gate) -> None:
        self.fleet.pair.promote()
        began = time.monotonic()
        self.fleet.wait_all_ready()
        waited = time.monotonic() - began
        if waited > 10.0:
            self.wrong.append(f"gates answered {waited:.1f} s after the promotion")
        self.fleet.pair.rejoin()

    def _promote_late(self, gate: Gate) -> None:
        before = len(self.revoked)
        wait_until(lambda: len(self.revoked) > before, "the revocation to be done")
        time.sleep(SEEN_S)
        self._promote(gate)

    def _cut_link(self, gate: Gate) -> None:
        """A gate hears nothing of its state, and callers reach it."""
        link = self.fleet.link
        assert link is not None
        link.cut()
        try:
            time.sleep(max(4.0, self._stop_s))
        finally:
            link.mend()


def _ask(gate: Gate, token: str) -> Answer:
    async def ask() -> Answer:
        client = Client(gate.http, token, host=gate.address)
        try:
            return await client.query("SELECT 1 AS n")
        finally:
            client.close()

    return asyncio.run(ask())


def cause(rounds: Rounds, kinds: Iterable[str]) -> dict[str, object]:
    """Have the faults of `kinds` happen; what was found."""
    made, ledger = rounds.fleet, rounds.ledger
    waited: dict[str, list[float]] = {}
    with Traffic(made, ledger, rounds.agent, busy=6, idle=10) as traffic:
        for kind in kinds:
            began = time.monotonic()
            waited.setdefault(kind, []).append(round(rounds.run(kind, traffic), 1))
            print(f"{kind}: {time.monotonic() - began:.1f} s, {rounds.wrong}", file=sys.stderr)
            if len(waited[kind]) % VERIFIED == 0:
                rounds.wrong += made.verify()  # as an operator does, while the gates go on
    figures, wrong = compare(made, ledger)
    wrong += rounds.wrong + made.verify()
    return {**figures, "waited": waited, "wrong": wrong, "reasons": ledger.reasons}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="of each kind")
    parser.add_argument("--kinds", default="", help="some of them, with commas")
    parser.add_argument("--gates", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--stop-s", type=float, default=30.0, help="how long a gate is stopped")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    given = parser.parse_args()
    kinds = (given.kinds or ",".join(KINDS)).split(",") * given.rounds
    random.Random(given.seed).shuffle(kinds)
    print(f"seed {given.seed}", file=sys.stderr)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=place_of_files()))
        link = stack.enter_context(network_link()) if "link cut" in kinds else None
        if link is None and "link cut" in kinds:
            kinds = [each for each in kinds if each != "link cut"]
            print("link cut: left out, it takes a network namespace", file=sys.stderr)
        made = stack.enter_context(fleet(Path(folder), given.gates, given.workers, link))
        rounds = Rounds(made, Ledger(), random.Random(given.seed), given.stop_s)
        found = cause(rounds, kinds)
    print(json.dumps(found, indent=1, default=str))
    return 1 if found["wrong"] else 0


def place_of_files() -> str | None:
    """Where files of a run are: in memory, if the system has a place there."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
