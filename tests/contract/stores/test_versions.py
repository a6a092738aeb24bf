"""The counters of what has changed in a state, and who learns of it when."""

from __future__ import annotations

import asyncio
import threading

import pytest
from msgspec import structs

from support.eventually import PATIENCE_S
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.model.budgets import Budget
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun
from tidegate.model.tasks import TaskRecord
from tidegate.store.records import (
    ApprovalBounds,
    ApprovedRun,
    OperatorEntry,
    OperatorSession,
    Pairing,
    PendingApproval,
    Subject,
    TokenEntry,
    TokenRights,
)
from tidegate.store.versions import TOPICS, Versions

SUBJECT = Subject(
    *("claude", "client/1", "core", "query", "shop", "id-shop", "UPDATE t SET a = 1"),
    *("write", "source.approval", "A person must approve this call."),
)
BOUNDS = ApprovalBounds(grants_since=0.0, denials_since=0.0, most=9, most_of_actor=9)
SHOP = Source(id="id-shop", name="shop", url="sqlite:///a.db", engine="sqlite", dialect="sqlite")
TOKEN = TokenEntry(
    id="tok_a", name="a", prefix="tg_a", scope=Scope.READ_ONLY, sources=None, created_at=100.0
)
ADA = OperatorEntry("o1", "Ada", b"salt", b"hash", (), 100.0)
SESSION = OperatorSession("s1", "o1", "link", 100.0, 100.0, 1000.0, None, "127.0.0.1", "Chromium")
CALL = TaskRecord("a" * 32, "ada", "core", "query", "one", 100.0, 100.0, 130.0, call="c" * 64)
CALLS = Budget("b1", "calls", "minute", 100)


def ask(state, id="a1"):
    question = PendingApproval(id, id, "pending", "tok_a", SUBJECT, 100.0)
    state.approvals.admit(question, BOUNDS)


def request_token(state):
    pairing = Pairing(
        *("AB12", "claude", "10.0.0.1", "c", TokenRights(Scope.READ_ONLY)),
        asked_at=100.0,
        expires_at=200.0,
    )
    state.pairings.add(pairing, b"d", most=9, most_of_origin=9, origin=str)


CHANGES = {
    "sources": (
        lambda state: state.sources.add(SHOP),
        lambda state: state.sources.change(structs.replace(SHOP, access="write"), SHOP),
        lambda state: state.sources.remove("shop"),
    ),
    "tokens": (
        lambda state: state.tokens.add(TOKEN, b"d" * 32),
        lambda state: state.tokens.revoke("a", 200.0),
    ),
    "budgets": (
        lambda state: state.budgets.add(CALLS),
        lambda state: state.budgets.change(structs.replace(CALLS, amount=7), CALLS),
        lambda state: state.budgets.remove(structs.replace(CALLS, amount=7)),
    ),
    "approvals": (
        ask,
        lambda state: state.approvals.set_waiting("a1", 150.0),
        lambda state: state.approvals.attach_dry_run("a1", DryRun()),
        lambda state: state.approvals.resolve("a1", "allowed", "ada", "", 110.0),
        lambda state: state.approvals.answer("a1", BOUNDS, 120.0),
        lambda state: state.approvals.attach_run("a1", ApprovedRun("done", 130.0, "call")),
        lambda state: state.approvals.expire_old(900.0, grants=0, questions=0, ended=800.0),
    ),
    "operators": (
        lambda state: state.operators.add(ADA),
        lambda state: state.operators.add_session(SESSION, b"d"),
        lambda state: state.operators.touch_session("s1", 110.0, 110.0),
        lambda state: state.operators.end_sessions(id="s1"),
        lambda state: state.operators.remove("o1"),
    ),
    "pairings": (
        request_token,
        lambda state: state.pairings.resolve("AB12", "denied", 110.0),
        lambda state: state.pairings.forget(900.0),
    ),
    "messages": (lambda state: state.messages.send("a", "", "hello", b"", 100.0),),
    "tasks": (lambda state: state.tasks.add(CALL),),
    "tabs": (lambda state: state.windows.open_window("ada", "id-shop", "Query", 1.0, by="a"),),
}


@pytest.mark.parametrize("topic", TOPICS)
def test_each_change_of_a_topic_raises_its_number_and_no_other(state, other, topic):
    before = other.read_versions()
    assert set(before) == set(TOPICS)
    for change in CHANGES[topic]:
        change(state)
        now = other.read_versions()
        assert now[topic] > before[topic]
        assert {name for name in TOPICS if now[name] != before[name]} == {topic}
        assert state.versions.of(topic) == now[topic]  # without a look: it has changed it itself
        before = now


def test_uses_and_reads_change_no_number(state, other):
    state.tokens.add(TOKEN, b"d" * 32)
    state.budgets.add(CALLS)
    state.operators.add(ADA)
    state.operators.add_session(SESSION, b"d")
    before = other.read_versions()
    state.tokens.touch({"tok_a": 150.0})
    state.budgets.take("b1", 60, 1)
    state.operators.touch_session("s1", 120.0, None)
    state.tasks.add(structs.replace(CALL, call=""))
    state.tasks.update(CALL)
    state.shared.use_once("k", "n", 900.0, 100.0)
    state.tokens.list(), state.operators.sessions(), state.approvals.list()
    assert other.read_versions() == before


def test_who_has_read_a_number_sees_every_change_up_to_it(state, open_state):
    """Numbers are in order of commit, whatever the order in which transactions begin."""
    most, writers = 12, 3
    start = state.read_versions()["approvals"]

    def write(each, name):
        for n in range(most):
            each.approvals.admit(
                PendingApproval(f"{name}{n}", f"{name}{n}", "pending", name, SUBJECT, 100.0),
                ApprovalBounds(grants_since=0.0, denials_since=0.0, most=99, most_of_actor=99),
            )

    opened = [open_state() for _ in range(writers)]
    threads = [
        threading.Thread(target=write, args=(each, f"w{n}")) for n, each in enumerate(opened)
    ]
    for thread in threads:
        thread.start()
    before = start
    for _ in range(200):
        alive = any(thread.is_alive() for thread in threads)
        number = state.read_versions()["approvals"]
        assert number >= before
        assert len(state.approvals.list()) >= number - start
        before = number
        if not alive:
            break
    for thread in threads:
        thread.join(PATIENCE_S)
    assert state.read_versions()["approvals"] == start + most * writers


def test_what_another_process_changes_is_learned_by_one_thread_for_all_who_wait(state, other):
    state.sources.add(SHOP)
    state.versions.follow()
    number = state.versions.of("sources")
    called = threading.Event()
    forget = state.versions.listen("sources", called.set)

    async def wait_for_change():
        waiting = [
            asyncio.create_task(state.versions.changed("sources", number, PATIENCE_S))
            for _ in range(50)
        ]
        await asyncio.sleep(0)
        changed = structs.replace(SHOP, access="write")
        await asyncio.to_thread(other.sources.change, changed, SHOP)
        assert all(await asyncio.gather(*waiting))

    asyncio.run(wait_for_change())
    assert called.is_set()
    forget()
    assert state.sources.find("shop").access == "write"
    assert state.versions.of("sources") > number


def test_who_waits_is_told_when_nothing_changed(state):
    number = state.versions.of("tokens")

    async def wait_for_change():
        return await state.versions.changed("tokens", number, 0.01)

    assert asyncio.run(wait_for_change()) is False


def test_a_followed_state_that_cannot_be_read_answers_nothing(state, monkeypatch):
    state.sources.add(SHOP)
    state.versions.follow()
    state.versions.check()
    state.close()
    for ask_it in (
        state.versions.check,
        state.sources.generation,
        state.tokens.generation,
        state.budgets.generation,
        state.sources.list,
        lambda: state.sources.find("shop"),
    ):
        with pytest.raises(TidegateError) as caught:
            ask_it()
        assert caught.value.code is Code.STATE_FAILED
        assert caught.value.retry_after_s


def test_callers_are_told_what_only_a_person_can_mend():
    why = TidegateError(Code.STATE_FAILED, "It is newer.", hint="Upgrade Tidegate on this machine.")
    failures = [why]

    def read():
        if failures:
            raise failures[0]
        return dict.fromkeys(TOPICS, 1)

    versions = Versions(read)
    with pytest.raises(TidegateError):
        versions.look()
    error = versions.stale_error()
    assert "It is newer." in error.message
    assert error.hint == why.hint and error.retry_after_s
    failures[0] = TidegateError(Code.STATE_FAILED, "It is busy.", hint="Look.", retry_after_s=9.0)
    with pytest.raises(TidegateError):
        versions.look()
    assert versions.stale_error().hint == "Retry in a moment."
    assert versions.stale_error().retry_after_s


def test_questions_that_wait_no_more_are_told_from_the_others(state, other):
    ask(state)
    ask(state, "a2")
    assert other.approvals.answered(["a1", "a2", "gone"]) == {"gone"}
    state.approvals.resolve("a1", "denied", "ada", "", 110.0)
    assert other.approvals.answered({"a1", "a2"}) == {"a1"}
