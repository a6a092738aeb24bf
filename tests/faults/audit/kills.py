"""Kills the gate at random moments, again and again, and compares two logs of the same statements.

One is the audit record. The other is the database's own: triggers write down every row that was
changed. After every kill the record must verify, and every statement that the database ran must
have an intent in it; every answer that left the gate, its outcome. Then the gate starts again on
the same files.

    python tests/faults/audit/kills.py --count 10000

Each gate is a process forked from one that has imported everything, so a kill costs a few
hundredths of a second. SIGKILL ends a process, not the machine: what a power cut does to a disk's
own memory is not shown here.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import itertools
import json
import os
import random
import re
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from tidegate.app import App
from tidegate.audit.verify import verify
from tidegate.config.model import AuditSettings, Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement
from tidegate.sql.judge import judge

BATCH = 25
"""So many kills share their files; to read more than theirs after each would take ever longer."""
TALKERS = 3
MARK = re.compile(r"/\* (\S+) \*/|'(\d+-\d+-\d+)'")
ACTOR = Actor("tok_1", "agent", Scope.FULL_ACCESS)

SCHEMA = """
CREATE TABLE t(id INTEGER PRIMARY KEY, mark TEXT);
CREATE TABLE executed(mark TEXT, what TEXT);
CREATE TRIGGER inserted AFTER INSERT ON t BEGIN INSERT INTO executed VALUES (new.mark, 'i'); END;
CREATE TRIGGER updated AFTER UPDATE ON t BEGIN INSERT INTO executed VALUES (new.mark, 'u'); END;
"""


def make_database(directory: Path) -> None:
    with apsw.Connection(str(directory / "shop.db")) as made:
        made.execute(SCHEMA)


def settings_in(directory: Path) -> Config:
    return Config(
        state=str(directory / "state"),
        sources=(SourceSettings("shop", f"sqlite:///{directory}/shop.db", access="write"),),
        allow_writes=True,
        audit=AuditSettings(checkpoint_s=0.01, segment_bytes=60_000),
    )


async def change_one(gate: App, name: int, talker: int, number: int) -> str:
    """Have a statement of each kind in turn run; its mark. Raises: TidegateError."""
    mark = f"{name}-{talker}-{number}"
    text = (
        f"INSERT INTO t(mark) VALUES ('{mark}')",
        f"UPDATE t SET mark = '{mark}' WHERE id = {1 + number % 5}",
        f"SELECT '{mark}', count(*) FROM t",
    )[number % 3]
    scope = Scope.READ_ONLY if number % 3 == 2 else Scope.FULL_ACCESS
    call = Call(ACTOR, "test", "talk", Query(Statement(text)), "shop", scope=scope)
    await gate.gateway.handle(call)
    return mark


def serve_until_killed(directory: Path, name: int, descriptor: int) -> None:
    """In the child: open the gate and talk to it, telling each answer in one write."""

    async def talk(gate: App, talker: int) -> None:
        for number in itertools.count(1):
            try:
                mark = await change_one(gate, name, talker, number)
            except TidegateError as error:
                if error.code is not Code.SOURCE_BUSY:
                    raise
                continue  # SQLite has one writer at a time
            os.write(descriptor, f"{mark}\n".encode())

    async def all_talk() -> None:
        gate = App.open(settings_in(directory))
        await asyncio.gather(*(talk(gate, talker) for talker in range(TALKERS)))

    asyncio.run(all_talk())


def import_everything() -> None:
    """Import what a gate imports at its first statements: a child says what that is, since a gate
    would leave its threads here."""

    async def use(directory: Path) -> None:
        gate = App.open(settings_in(directory))
        for number in range(3):
            await change_one(gate, 0, 0, number)
        await gate.close()

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with tempfile.TemporaryDirectory() as made:
                make_database(Path(made))
                asyncio.run(use(Path(made)))
            os.write(writing, "\n".join(sys.modules).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        names = said.read().split()
    os.waitpid(child, 0)
    for name in names:
        if name != "__main__":
            with suppress(ImportError):  # what an extension made has a name, and no place
                importlib.import_module(name)
    judge("SELECT 1", "sqlite")  # compiles its regular expressions


def kill_one(directory: Path, name: int, rng: random.Random) -> list[str]:
    """Start a gate, kill it at a random moment, and return the marks of what it answered."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            serve_until_killed(directory, name, writing)
        except BaseException as error:  # noqa: BLE001 - a child must not go on as its parent
            print(f"gate {name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(1)
    os.close(writing)
    received = b""
    try:
        if rng.random() < 0.2:
            # While it opens its files, or claims its segment.
            time.sleep(rng.random() * 0.03)
        else:
            enough, until = rng.randrange(12), time.monotonic() + 20
            while received.count(b"\n") <= enough and time.monotonic() < until:
                if select.select([reading], [], [], 1)[0]:
                    part = os.read(reading, 64)
                    if not part:
                        break
                    received += part
            time.sleep(rng.random() * 0.002)
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    while part := os.read(reading, 4_096):
        received += part
    os.close(reading)
    if not os.WIFSIGNALED(status):
        raise AssertionError(f"gate {name} ended by itself")
    return received.decode().split()


def executed(directory: Path) -> set[str]:
    """What the database says that it ran."""
    with apsw.Connection(str(directory / "shop.db")) as seen:
        return {mark for (mark,) in seen.execute("SELECT mark FROM executed")}


def recorded(directory: Path) -> Iterator[tuple[str, str]]:
    """Phase and mark of every event that the audit record has of a statement."""
    for path in sorted((directory / "state" / "audit").glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n")[:-1]:
            fields = json.loads(line)
            found = MARK.search(fields.get("statement", ""))
            if found:
                yield fields["phase"], found[1] or found[2]


def compare(directory: Path, answered: set[str]) -> Counter[str]:
    """What is missing where; nothing should be."""
    audit = directory / "state" / "audit"
    if not audit.is_dir():
        return Counter(killed_before_the_first_line=1)
    report = verify(audit, directory / "state" / "audit-key")
    if report.faults:
        raise AssertionError(f"{directory}: {report.faults}")
    ran = executed(directory)
    phases: dict[str, set[str]] = {"intent": set(), "outcome": set()}
    for phase, mark in recorded(directory):
        phases.setdefault(phase, set()).add(mark)
    return Counter(
        executed_without_an_intent=len(ran - phases["intent"]),
        answered_without_an_outcome=len(answered - phases["outcome"]),
        torn_lines=sum("unfinished line" in note for note in report.notes),
        executed=len(ran),
        intents_of_what_did_not_run=len(phases["intent"] - ran),
        lines=report.lines,
        segments=report.segments,
        checkpoints=report.checkpoints,
    )


def run(count: int, seed: int) -> dict[str, int]:
    """Kill `count` gates. Raises: AssertionError when a record does not verify."""
    rng = random.Random(seed)
    totals: Counter[str] = Counter(kills=0, answered=0)
    import_everything()
    for first in range(0, count, BATCH):
        with tempfile.TemporaryDirectory() as made:
            directory = Path(made)
            make_database(directory)
            answered: set[str] = set()
            found: Counter[str] = Counter()
            for name in range(first, min(first + BATCH, count)):
                answered.update(kill_one(directory, name, rng))
                totals["kills"] += 1
                found = compare(directory, answered)
                for wrong in ("executed_without_an_intent", "answered_without_an_outcome"):
                    if found[wrong]:
                        raise AssertionError(f"{wrong}: {found[wrong]} after kill {name}")
                totals["torn_lines"] += found.pop("torn_lines", 0)
            totals["answered"] += len(answered)
            totals += found
    return dict(totals)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Kill the gate at random moments.")
    parser.add_argument("--count", type=int, default=500, help="how often (default 500)")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    began = time.monotonic()
    print(f"seed {arguments.seed}", file=sys.stderr, flush=True)
    outcome = run(arguments.count, arguments.seed)
    outcome["seconds"] = round(time.monotonic() - began)
    print(json.dumps(outcome))
