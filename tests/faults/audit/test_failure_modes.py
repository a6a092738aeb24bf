"""What goes on while the record cannot be written, and what is said about it afterwards.

`/dev/full` in the place of the file is the disk that is full: the kernel itself refuses the write.
"""

import asyncio
import json
import os
from contextlib import contextmanager

import apsw
import pytest

from patience import wait_until
from tidegate.actors import Actor, Scope
from tidegate.app import App
from tidegate.audit import log as log_module
from tidegate.audit.event import Event
from tidegate.audit.happening import Happening
from tidegate.audit.log import AuditLog
from tidegate.audit.verify import verify
from tidegate.calls import Call, Query
from tidegate.config.model import AuditSettings, Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, GateError
from tidegate.statements import Statement

WRITER = Actor("tok_1", "writer", Scope.FULL_ACCESS)
INSERT = "INSERT INTO t(n) VALUES (1)"
SELECT = "SELECT count(*) FROM t"


class House:
    """A gate over one SQLite file, whose audit disk can be filled."""

    def __init__(self, directory, mode):
        self.file = directory / "shop.db"
        with apsw.Connection(str(self.file)) as made:
            made.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, n)")
        self.app = App.open(
            Config(
                state=str(directory / "state"),
                sources=(SourceSettings("shop", f"sqlite:///{self.file}", "readWrite"),),
                allow_writes=True,
                audit=AuditSettings(failure_mode=mode),
            )
        )
        self.audit = directory / "state" / "audit"
        self.keys = directory / "state" / "audit-key"

    def ask(self, text, scope=Scope.READ_ONLY):
        call = Call(WRITER, "test", "tool", Query(Statement(text)), "shop", scope=scope)
        return self.app.gateway.handle(call)

    async def refusal(self, text, scope=Scope.READ_ONLY):
        with pytest.raises(GateError) as caught:
            await self.ask(text, scope)
        return caught.value.code

    def rows(self):
        with apsw.Connection(str(self.file)) as seen:
            return seen.execute("SELECT count(*) FROM t").fetchall()[0][0]

    def lines(self):
        path = self.audit / "000001.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()]


@contextmanager
def full_disk(log):
    descriptor = log._writer.descriptor
    kept = os.dup(descriptor)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, descriptor)
    os.close(full)
    try:
        yield
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)


def scene(directory, mode, play):
    async def whole():
        house = House(directory, mode)
        try:
            await house.ask(SELECT)
            await house.ask(INSERT, Scope.FULL_ACCESS)
            with full_disk(house.app.audit):
                await play(house)
            await house.ask(SELECT)
        finally:
            await house.app.close()
        assert verify(house.audit, house.keys).faults == ()
        return house

    return asyncio.run(whole())


def gaps(house):
    return [line["missed"] for line in house.lines() if line["phase"] == "gap"]


def test_strict_runs_nothing_and_answers_nothing_unrecorded(tmp_path):
    async def play(house):
        assert await house.refusal(SELECT) is Code.AUDIT_UNAVAILABLE
        assert await house.refusal(INSERT, Scope.FULL_ACCESS) is Code.AUDIT_UNAVAILABLE
        assert await house.refusal("SELEC") is Code.AUDIT_UNAVAILABLE

    house = scene(tmp_path, "strict", play)
    assert house.rows() == 1
    assert gaps(house) == []


def test_strict_mutations_answers_reads_and_counts_them_but_changes_nothing(tmp_path):
    async def play(house):
        for _ in range(3):
            await house.ask(SELECT)
        assert await house.refusal(INSERT, Scope.FULL_ACCESS) is Code.AUDIT_UNAVAILABLE
        assert await house.refusal("DROP") is not Code.AUDIT_UNAVAILABLE

    house = scene(tmp_path, "strict_mutations", play)
    assert house.rows() == 1
    assert len(gaps(house)) == 1
    assert gaps(house)[0] >= 4


def test_best_effort_goes_on_and_says_how_much_is_missing(tmp_path):
    async def play(house):
        await house.ask(SELECT)
        await house.ask(INSERT, Scope.FULL_ACCESS)

    house = scene(tmp_path, "best_effort", play)
    assert house.rows() == 2
    # The read's outcome, the change's intent and its outcome.
    assert gaps(house) == [3]


def test_the_gap_stands_before_what_was_recorded_after_it(tmp_path):
    async def play(house):
        await house.ask(SELECT)

    house = scene(tmp_path, "best_effort", play)
    phases = [line["phase"] for line in house.lines()]
    assert phases[-3:] == ["gap", "outcome", "checkpoint"]


def test_after_a_failed_sync_another_segment_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(log_module, "MEND_S", 0.01)
    log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys")
    log.append(Event(call_id="before", phase="outcome", actor="a"))
    first = log.path
    reading, writing = os.pipe()
    os.dup2(writing, log._writer.descriptor)  # a pipe cannot be synced
    number = log.append(Event(call_id="lost", phase="outcome", actor="a"))

    async def wait():
        await log.durable(number)

    with pytest.raises(GateError):
        asyncio.run(wait())

    def noted():
        try:
            return log.note(Happening(name="back"))
        except GateError:
            return None

    after = wait_until(noted, "another segment")
    with pytest.raises(GateError):
        asyncio.run(wait())

    async def wait_for_the_new_one():
        await log.durable(after)

    asyncio.run(wait_for_the_new_one())
    assert log.path != first
    log.close()
    os.close(reading)
    os.close(writing)
    assert verify(tmp_path / "audit", tmp_path / "keys").intact
    assert b'"back"' in log.path.read_bytes()
