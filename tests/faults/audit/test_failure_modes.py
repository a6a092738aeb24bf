"""What goes on while the record cannot be written, and what is said about it afterwards.

`/dev/full` in the place of the file is the disk that is full: the kernel itself refuses the write.
"""

import asyncio
import json
import os
import time
from contextlib import contextmanager

import apsw
import pytest
from msgspec import structs

from support.eventually import wait_until
from tidegate.app import App
from tidegate.audit import log as log_module
from tidegate.audit.event import Event
from tidegate.audit.log import AuditLog
from tidegate.audit.server_events import ServerEvent
from tidegate.audit.verify import verify
from tidegate.config.model import AuditSettings, Config
from tidegate.config.sources import SourceSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Call, Query
from tidegate.model.statements import Statement
from tidegate.store.records import ApprovalBounds, PendingApproval, Subject, TokenRights

WRITER = Actor("tok_1", "writer", Scope.FULL_ACCESS)
INSERT = "INSERT INTO t(n) VALUES (1)"
SELECT = "SELECT count(*) FROM t"


class Harness:
    """A gate over one SQLite file, whose audit disk can be filled."""

    def __init__(self, directory, mode, **rules):
        self.file = directory / "shop.db"
        with apsw.Connection(str(self.file)) as made:
            made.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, n)")
        self.app = App.open(
            Config(
                state=str(directory / "state"),
                sources=(
                    SourceSettings("shop", f"sqlite:///{self.file}", access="write", **rules),
                ),
                allow_writes=True,
                audit=AuditSettings(failure_mode=mode),
            )
        )
        self.audit = directory / "state" / "audit"
        self.keys = directory / "state" / "audit-key"

    def ask(self, text, scope=Scope.READ_ONLY, **fields):
        call = Call(WRITER, "test", "tool", Query(Statement(text)), "shop", scope=scope, **fields)
        return self.app.gateway.handle(call)

    async def refusal(self, text, scope=Scope.READ_ONLY, **fields):
        with pytest.raises(TidegateError) as caught:
            await self.ask(text, scope, **fields)
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


def scenario(directory, mode, play):
    async def whole():
        harness = Harness(directory, mode)
        try:
            await harness.ask(SELECT)
            await harness.ask(INSERT, Scope.FULL_ACCESS)
            with full_disk(harness.app.audit):
                await play(harness)
            await harness.ask(SELECT)
        finally:
            await harness.app.close()
        assert verify(harness.audit, harness.keys).faults == ()
        return harness

    return asyncio.run(whole())


def gaps(harness):
    return [line["missed"] for line in harness.lines() if line["phase"] == "gap"]


def test_strict_runs_nothing_and_answers_nothing_unrecorded(tmp_path):
    async def play(harness):
        assert await harness.refusal(SELECT) is Code.AUDIT_UNAVAILABLE
        assert await harness.refusal(INSERT, Scope.FULL_ACCESS) is Code.AUDIT_UNAVAILABLE
        assert await harness.refusal("SELEC") is Code.AUDIT_UNAVAILABLE

    harness = scenario(tmp_path, "strict", play)
    assert harness.rows() == 1
    assert gaps(harness) == []


def test_strict_mutations_answers_reads_and_counts_them_but_changes_nothing(tmp_path):
    async def play(harness):
        for _ in range(3):
            await harness.ask(SELECT)
        assert await harness.refusal(INSERT, Scope.FULL_ACCESS) is Code.AUDIT_UNAVAILABLE
        assert await harness.refusal("DROP") is not Code.AUDIT_UNAVAILABLE

    harness = scenario(tmp_path, "strict_mutations", play)
    assert harness.rows() == 1
    assert len(gaps(harness)) == 1
    assert gaps(harness)[0] >= 4


def test_best_effort_goes_on_and_says_how_much_is_missing(tmp_path):
    async def play(harness):
        await harness.ask(SELECT)
        await harness.ask(INSERT, Scope.FULL_ACCESS)

    harness = scenario(tmp_path, "best_effort", play)
    assert harness.rows() == 2
    # The read's outcome, the change's intent and its outcome.
    assert gaps(harness) == [3]


def test_the_gap_stands_before_what_was_recorded_after_it(tmp_path):
    async def play(harness):
        await harness.ask(SELECT)

    harness = scenario(tmp_path, "best_effort", play)
    phases = [line["phase"] for line in harness.lines()]
    assert phases[-3:] == ["gap", "outcome", "checkpoint"]


def test_after_a_failed_sync_another_segment_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(log_module, "RECOVER_S", 0.01)
    log = AuditLog(tmp_path / "audit", keys=tmp_path / "keys")
    log.append(Event(call_id="before", phase="outcome", actor="a"))
    first = log.path
    reading, writing = os.pipe()
    os.dup2(writing, log._writer.descriptor)  # a pipe cannot be synced
    number = log.append(Event(call_id="lost", phase="outcome", actor="a"))

    async def wait():
        await log.durable(number)

    with pytest.raises(TidegateError):
        asyncio.run(wait())

    def noted():
        try:
            return log.record_event(ServerEvent(name="back"))
        except TidegateError:
            return None

    after = wait_until(noted, "another segment")
    with pytest.raises(TidegateError):
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


def test_b2_a_change_whose_outcome_cannot_be_recorded_says_that_it_ran(tmp_path):
    async def play(harness):
        filled = full_disk_after_the_intent(harness.app.audit)
        with filled, pytest.raises(TidegateError) as caught:
            await harness.ask(INSERT, Scope.FULL_ACCESS)
        assert caught.value.code is Code.AUDIT_OUTCOME
        assert "The call ran" in caught.value.message
        assert "before you send it again" in caught.value.hint
        assert "retry" not in caught.value.hint

    async def whole():
        harness = Harness(tmp_path, "strict")
        try:
            await play(harness)
            await harness.ask(SELECT)
        finally:
            await harness.app.close()
        return harness

    harness = asyncio.run(whole())
    assert harness.rows() == 1
    calls = [(line["call_id"], line["phase"]) for line in harness.lines() if "call_id" in line]
    intent = next(id for id, phase in calls if phase == "intent")
    assert (intent, "outcome") in calls
    assert verify(harness.audit, harness.keys).intact


@contextmanager
def full_disk_after_the_intent(log):
    """The disk is full from the moment on that the intent of the next change is durable."""
    durable, filled = log.durable, []

    async def durable_then_full(number):
        await durable(number)
        if not filled:
            filled.append(full_disk(log))
            filled[0].__enter__()

    log.durable = durable_then_full
    try:
        yield
    finally:
        log.durable = durable
        filled[0].__exit__(None, None, None)


def test_b7_taking_a_right_away_works_while_the_audit_disk_is_full(tmp_path):
    harness = Harness(tmp_path, "strict")
    app = harness.app
    plaintext, _ = app.tokens.create("claude", TokenRights(Scope.READ_ONLY))
    with full_disk(app.audit):
        with pytest.raises(TidegateError) as caught:
            app.tokens.create("another", TokenRights(Scope.READ_ONLY))
        assert caught.value.code is Code.AUDIT_UNAVAILABLE
        app.tokens.revoke("claude")
        with pytest.raises(TidegateError) as caught:
            app.tokens.verify(plaintext)
        assert caught.value.code is Code.AUTH_INVALID
    asyncio.run(app.close())
    later = App.open(app.config)
    later.note("settings.read", {})
    asyncio.run(later.close())
    events = [line for line in harness.lines() if line["phase"] == "event"]
    (revoked,) = [line for line in events if line["name"] == "token.revoked"]
    assert revoked["details"]["name"] == "claude"
    assert "happened_at" in revoked["details"]
    assert verify(harness.audit, harness.keys).faults == ()


def test_b7_an_approval_is_denied_while_the_audit_disk_is_full_and_none_is_given(tmp_path):
    harness = Harness(tmp_path, "strict")
    bounds = ApprovalBounds(0.0, 0.0, 9, 9)
    subject = Subject("writer", "", "test", "tool", "shop", "id", INSERT, "write", "r", "why")
    for id in ("a1", "b2"):
        harness.app.state.approvals.admit(
            PendingApproval(id, id, "pending", "tok_1", subject, time.time()), bounds
        )
    with full_disk(harness.app.audit):
        assert harness.app.approvals.resolve("a1", "denied", "cli:ann").state == "denied"
        with pytest.raises(TidegateError) as caught:
            harness.app.approvals.resolve("b2", "allowed", "cli:ann")
        assert caught.value.code is Code.AUDIT_UNAVAILABLE
        assert harness.app.approvals.find("b2").state == "pending"
    harness.app.note("settings.read", {})
    asyncio.run(harness.app.close())
    names = [line["name"] for line in harness.lines() if line["phase"] == "event"]
    assert names == ["settings.read", "approval.denied"]


def test_b7_a_token_is_revoked_even_where_the_log_cannot_be_opened(tmp_path):
    harness = Harness(tmp_path, "strict")
    harness.app.tokens.create("claude", TokenRights(Scope.READ_ONLY))
    asyncio.run(harness.app.close())
    harness.audit.rename(tmp_path / "aside")
    harness.audit.write_text("a file in the place of the directory")
    without = App.open(harness.app.config)
    assert without.tokens.revoke("claude").revoked_at
    with pytest.raises(TidegateError) as caught:
        without.tokens.create("another", TokenRights(Scope.READ_ONLY))
    assert caught.value.code is Code.AUDIT_UNAVAILABLE
    asyncio.run(without.close())
    harness.audit.unlink()
    (tmp_path / "aside").rename(harness.audit)
    later = App.open(harness.app.config)
    later.note("settings.read", {})
    asyncio.run(later.close())
    assert [line["name"] for line in harness.lines() if line["phase"] == "event"][-2:] == [
        "settings.read",
        "token.revoked",
    ]


def test_b13_calls_of_two_servers_on_one_state_never_share_an_id(tmp_path):
    async def both():
        first = Harness(tmp_path, "strict")
        second = App.open(first.app.config)
        call = Call(WRITER, "test", "tool", Query(Statement(SELECT)), "shop")
        ids = [(await app.gateway.handle(call)).call_id for app in (first.app, second) * 3]
        await second.close()
        await first.app.close()
        return ids

    ids = asyncio.run(both())
    assert len(set(ids)) == 6


@pytest.mark.parametrize("full", [True, False], ids=["full disk", "cancelled"])
def test_a_grant_counts_again_if_the_call_did_not_run(tmp_path, full):
    """Noticed beside B2: the intent could not be recorded, and the person had to be asked again."""

    async def play():
        harness = Harness(tmp_path, "strict", approval_for="writes")
        app = harness.app
        app.approvals.settings = structs.replace(app.approvals.settings, wait_s=0, dry_run=False)
        try:
            assert await harness.refusal(INSERT, Scope.FULL_ACCESS) is Code.APPROVAL_NEEDED
            (asked,) = app.approvals.list()
            app.approvals.resolve(asked.id, "allowed", "cli:ann")
            if full:
                with full_disk(app.audit):
                    code = await harness.refusal(INSERT, Scope.FULL_ACCESS)
                assert code is Code.AUDIT_UNAVAILABLE
            else:
                cancellation = Cancellation()
                cancellation.cancel()
                code = await harness.refusal(INSERT, Scope.FULL_ACCESS, cancellation=cancellation)
                assert code is Code.CALL_CANCELLED
            assert harness.rows() == 0
            assert app.approvals.find(asked.id).state == "allowed"
            await harness.ask(INSERT, Scope.FULL_ACCESS)
            assert app.approvals.find(asked.id).state == "used"
            assert await harness.refusal(INSERT, Scope.FULL_ACCESS) is Code.APPROVAL_NEEDED
        finally:
            await app.close()
        assert harness.rows() == 1

    asyncio.run(play())
