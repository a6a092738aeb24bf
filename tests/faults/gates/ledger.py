"""What was sent, compared with what the database ran and what the records say."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from faults.gates.clients import Answer, Client
from faults.gates.fleet import Fleet

MARK = re.compile(r"'([a-z]+-[0-9]+-[0-9]+)'")
OPEN_ENDED = frozenset({
    "sql.outcome_unknown", "audit.outcome_unrecorded", "call.cancelled", "limit.time", "57014",
    "57P01", "08006", "08007", "", "no answer",
})  # fmt: skip
"""The codes after which a change may have run."""
FAULTS = frozenset({"internal.fault", "no answer", "XX000"})
"""What no caller must get, whatever ends."""


def statement_of(mark: str) -> str:
    return f"INSERT INTO changes (id) VALUES ('{mark}')"


class Sent(NamedTuple):
    """One time that a change was sent."""

    mark: str
    source: str
    at: float
    answer: Answer


class Ledger:
    """All that was sent, by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: Counter[str] = Counter()
        self.sent: list[Sent] = []
        self.reads: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}

    def next_mark(self, kind: str, client: int) -> str:
        with self._lock:
            self._numbers[kind] += 1
            return f"{kind}-{client}-{self._numbers[kind]}"

    def note(self, sent: Sent) -> None:
        with self._lock:
            self.sent.append(sent)
            self._explain(sent.answer)

    def note_read(self, answer: Answer) -> None:
        with self._lock:
            self.reads[name_of(answer)] += 1
            self._explain(answer)

    def _explain(self, answer: Answer) -> None:
        if not answer.done:
            self.reasons.setdefault(name_of(answer), answer.text[:400])

    async def change(self, client: Client, mark: str, source: str = "open") -> Answer:
        """Send a change, and note what came of it."""
        at = time.time()
        answer = await client.query(statement_of(mark), source)
        self.note(Sent(mark, source, at, answer))
        return answer


def name_of(answer: Answer) -> str:
    return "done" if answer.done else answer.code or "connection lost"


def compare(fleet: Fleet, ledger: Ledger) -> tuple[dict[str, int], list[str]]:
    """Figures, and what is wrong; nothing should be."""
    ran = Counter(row[0] for row in fleet.ask_source("SELECT id FROM changes"))
    intents, outcomes = recorded(fleet)
    by_mark: dict[str, list[Sent]] = {}
    for each in ledger.sent:
        by_mark.setdefault(each.mark, []).append(each)
    wrong: list[str] = []
    for mark, count in ran.items():
        if count > 1:
            wrong.append(f"{mark} ran {count} times")
        if mark not in by_mark:
            wrong.append(f"{mark} ran and was never sent")
        if not intents[mark]:
            wrong.append(f"{mark} ran and no record has it")
    for mark, times in by_mark.items():
        done = [each for each in times if each.answer.done]
        if len(done) > 1:
            wrong.append(f"{mark} was answered as done {len(done)} times")
        if done and not ran[mark]:
            wrong.append(f"{mark} was answered as done and did not run: {done[0]}")
        if done and not outcomes[mark]:
            wrong.append(f"{mark} was answered as done and no record has its outcome")
        codes = {each.answer.code for each in times}
        if ran[mark] and not done and codes.isdisjoint(OPEN_ENDED):
            wrong.append(f"{mark} ran and was refused: {times}")
        if len(times) == 1 and intents[mark] > 1:
            wrong.append(f"{mark} has {intents[mark]} intents")
    answers = Counter(name_of(each.answer) for each in ledger.sent) + ledger.reads
    wrong += [f"{count} times {name}" for name, count in answers.items() if name in FAULTS]
    figures = {
        "changes sent": len(by_mark),
        "changes run": len(ran),
        "without an answer that run": sum(
            1 for mark in ran if not any(each.answer.done for each in by_mark.get(mark, ()))
        ),
        **{f"answers {name}": count for name, count in sorted(answers.items())},
    }
    return figures, wrong


def recorded(fleet: Fleet) -> tuple[Counter[str], Counter[str]]:
    """How many intents and outcomes of each change the records of all gates have."""
    phases: dict[str, Counter[str]] = {"intent": Counter(), "outcome": Counter()}
    for gate in fleet.gates:
        for mark, phase in _marks(gate.lines()):
            if phase in phases:
                phases[phase][mark] += 1
    return phases["intent"], phases["outcome"]


def _marks(lines: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    for line in lines:
        found = MARK.search(line.get("statement", ""))
        if found is not None:
            yield found[1], line["phase"]
