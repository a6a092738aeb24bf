"""A question is asked once, an answer is used once, and time ends what no one uses."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from hypothesis.strategies import sampled_from
from msgspec import structs

from support.eventually import HANG_S
from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.approvals.approvals import (
    COOL_OFF_S,
    KEPT_S,
    MAX_PENDING_PER_ACTOR,
    QUESTION_TTL_S,
    Approvals,
    Identities,
)
from tidegate.config.model import ApprovalSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.deadlines import Clocks
from tidegate.model.decisions import Verdict
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Judgement, Statement
from tidegate.store.records import ApprovalBounds, PendingApproval
from tidegate.store.sqlite.state import SqliteState

DAY = 86_400.0
WRITER = Actor("tok_1", "writer", Scope.READ_WRITE)
OTHER = Actor("tok_2", "writer", Scope.READ_WRITE)
SHOP = Source("s1", "shop", "sqlite:////shop.db", "sqlite", "sqlite")


def approval_request(
    text: str = "DELETE FROM t WHERE id = 1",
    params: tuple[Any, ...] | None = None,
    actor: Actor = WRITER,
    source: Source = SHOP,
    **place: str,
) -> ApprovalRequest:
    judgement = Judgement(Effect.WRITE, "sql.write", "It deletes rows", tables=("t",))
    verdict = Verdict("ask", "source.approval_for", "A person must approve this call")
    return ApprovalRequest(actor, source, Statement(text, params), judgement, verdict, **place)


class Inbox:
    """Approvals over a file of their own, with a clock that is set by hand."""

    def __init__(self, path: Path, settings: ApprovalSettings | None = None) -> None:
        self.state = SqliteState(path)
        self.now = 1_000_000.0
        self.reported: list[tuple[str, str, Mapping[str, str]]] = []
        self.path = path
        self.approvals = Approvals(
            self.state.approvals, settings, note=self._note, clocks=Clocks(lambda: self.now)
        )

    def _note(self, name: str, actor: str, details: Mapping[str, str]) -> None:
        self.reported.append((name, actor, details))

    def ask(self, wanted: ApprovalRequest) -> PendingApproval:
        return asyncio.run(self.approvals.request(wanted))

    def refused(self, wanted: ApprovalRequest) -> TidegateError:
        with pytest.raises(TidegateError) as refusal:
            self.ask(wanted)
        return refusal.value


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    inbox = Inbox(tmp_path / "state.db")
    yield inbox
    inbox.state.close()


def test_the_same_question_asked_five_times_at_once_is_one_question(inbox: Inbox) -> None:
    async def five() -> list[PendingApproval]:
        return await asyncio.gather(
            *(inbox.approvals.request(approval_request()) for _ in range(5))
        )

    asked = asyncio.run(five())
    assert len({question.id for question in asked}) == 1
    assert sorted(question.askers for question in asked) == [1, 2, 3, 4, 5]
    assert [question.askers for question in inbox.approvals.list()] == [5]
    assert [name for name, _, _ in inbox.reported] == ["approval.asked"]


@pytest.mark.parametrize(
    "other",
    [
        approval_request("DELETE FROM t WHERE id = 2"),
        approval_request("DELETE FROM t WHERE id = 1 "),
        approval_request(params=()),
        approval_request(params=(None,)),
        approval_request(actor=OTHER),
        approval_request(source=Source("s2", "shop", SHOP.url, "sqlite", "sqlite")),
        approval_request(source=Source("s1", "shop", "sqlite:////other.db", "sqlite", "sqlite")),
        approval_request(database="elsewhere"),
        approval_request(schema="elsewhere"),
    ],
)
def test_a_grant_is_for_exactly_what_was_asked(inbox: Inbox, other: ApprovalRequest) -> None:
    asked = inbox.ask(approval_request())
    inbox.approvals.resolve(asked.id, "allowed", "cli:ann")
    assert inbox.ask(other).state == "pending"
    assert inbox.ask(approval_request()).state == "used"


@pytest.mark.parametrize(
    ("one", "two"), [("AA==", b"\0"), (1, True), (1, 1.0), ("1", 1), ("None", None)]
)
def test_parameters_that_look_alike_are_distinguished(one: Any, two: Any) -> None:
    assert approval_request(params=(one,)).digest != approval_request(params=(two,)).digest


_DIGESTS = """
from msgspec import structs
from unit.approvals.test_approvals import SHOP, approval_request
from tidegate.model.actors import Actor, RoleGrant, Scope
names = frozenset({"towns", "orders", "people", "prices"})
actor = Actor("t1", "claude", Scope.READ_WRITE, names, tags=names, tables=names,
              roles=(RoleGrant("viewer", names),))
asked = structs.replace(approval_request(params=(1, "x")), actor=actor)
print(asked.digest, asked.circumstances)
"""


def test_what_a_grant_is_bound_to_has_one_digest_in_every_process() -> None:
    """Each process orders sets in its own way."""
    tests = Path(__file__).parents[2]
    seen = {
        subprocess.run(
            [sys.executable, "-c", _DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(tests)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1 and len(seen.pop().split()) == 2


def test_a_grant_is_used_once(inbox: Inbox) -> None:
    first = inbox.ask(approval_request())
    inbox.approvals.resolve(first.id, "allowed", "cli:ann")
    assert inbox.ask(approval_request()).id == first.id
    again = inbox.ask(approval_request())
    assert (again.state, again.id == first.id) == ("pending", False)
    assert [name for name, _, _ in inbox.reported] == [
        "approval.asked", "approval.allowed", "approval.used", "approval.asked",
    ]  # fmt: skip
    assert inbox.reported[1][1:] == (
        "cli:ann",
        {"approval": first.id, "source": "shop", "caller": "tok_1"},
    )


def test_a_late_answer_counts_and_outlives_the_process(inbox: Inbox) -> None:
    asked = inbox.ask(approval_request())
    inbox.now += 6 * DAY
    later = Approvals(SqliteState(inbox.path).approvals, clocks=Clocks(lambda: inbox.now))
    later.resolve(asked.id, "allowed", "cli:ann")
    inbox.now += DAY - 1
    reopened = Approvals(SqliteState(inbox.path).approvals, clocks=Clocks(lambda: inbox.now))
    used = asyncio.run(reopened.request(approval_request()))
    assert (used.id, used.state, used.decided_by) == (asked.id, "used", "cli:ann")


def test_a_denial_cools_off_and_then_it_may_be_asked_again(inbox: Inbox) -> None:
    asked = inbox.ask(approval_request())
    inbox.approvals.resolve(asked.id, "denied", "cli:ann", "not on a Friday")
    inbox.now += COOL_OFF_S - 1
    refusal = inbox.refused(approval_request())
    assert refusal.code is Code.APPROVAL_DECLINED
    assert (refusal.retry_after_s, refusal.hint) == (1.0, "not on a Friday")
    assert inbox.ask(approval_request("DELETE FROM t WHERE id = 2")).state == "pending"
    inbox.now += 2
    assert inbox.ask(approval_request()).state == "pending"


def test_an_unused_grant_expires(inbox: Inbox) -> None:
    asked = inbox.ask(approval_request())
    inbox.approvals.resolve(asked.id, "allowed", "cli:ann")
    inbox.now += DAY
    assert inbox.ask(approval_request()).state == "pending"
    assert inbox.approvals.find(asked.id).state == "expired"
    assert "approval.expired" in [name for name, _, _ in inbox.reported]


def test_the_grants_of_a_revoked_token_end(inbox: Inbox) -> None:
    gone: set[str] = set()
    approvals = Approvals(
        inbox.state.approvals,
        identities=Identities(revoked=lambda ids: gone & set(ids)),
        clocks=Clocks(lambda: inbox.now),
    )
    ids = [inbox.ask(approval_request(actor=actor)).id for actor in (WRITER, OTHER)]
    for id in ids:
        approvals.resolve(id, "allowed", "cli:ann")
    approvals.expire_old()
    assert [approvals.find(id).state for id in ids] == ["allowed", "allowed"]
    gone.add(WRITER.id)
    approvals.expire_old()
    assert [approvals.find(id).state for id in ids] == ["expired", "allowed"]


def test_what_no_one_answers_expires_and_is_forgotten_in_the_end(inbox: Inbox) -> None:
    asked = inbox.ask(approval_request())
    inbox.now += QUESTION_TTL_S
    assert inbox.approvals.list() == ()
    assert [each.state for each in inbox.approvals.list(everything=True)] == ["expired"]
    inbox.now += KEPT_S + 1
    assert inbox.approvals.list(everything=True) == ()
    with pytest.raises(TidegateError, match="no question"):
        inbox.approvals.resolve(asked.id, "allowed", "cli:ann")


def test_an_answer_stands(inbox: Inbox) -> None:
    asked = inbox.ask(approval_request())
    inbox.approvals.resolve(asked.id, "denied", "cli:ann")
    with pytest.raises(TidegateError, match="denied by cli:ann"):
        inbox.approvals.resolve(asked.id, "allowed", "cli:bob")
    assert inbox.approvals.find(asked.id).state == "denied"


def test_one_caller_cannot_fill_the_inbox(inbox: Inbox) -> None:
    for number in range(MAX_PENDING_PER_ACTOR):
        inbox.ask(approval_request(f"DELETE FROM t WHERE id = {number}"))
    assert inbox.refused(approval_request("DELETE FROM t WHERE id = 999")).code is Code.LIMIT_RATE
    assert (
        inbox.ask(approval_request("DELETE FROM t WHERE id = 999", actor=OTHER)).state == "pending"
    )
    assert inbox.ask(approval_request("DELETE FROM t WHERE id = 0")).askers == 2


def test_all_callers_together_fill_the_inbox_with_a_thousand_questions(inbox: Inbox) -> None:
    first = inbox.ask(approval_request())
    unbounded = ApprovalBounds(0.0, 0.0, most=10_000, most_of_actor=10_000)
    for number in range(998):
        other = {"id": f"q{number}", "digest": f"d{number}", "actor": f"tok_{number + 10}"}
        inbox.state.approvals.admit(structs.replace(first, **other), unbounded)
    assert inbox.ask(approval_request("DELETE FROM t WHERE id = 2")).state == "pending"
    late = approval_request("DELETE FROM t WHERE id = 3", actor=OTHER)
    assert inbox.refused(late).code is Code.LIMIT_RATE
    inbox.approvals.resolve(first.id, "denied", "cli:ann")
    assert inbox.ask(late).state == "pending"


def test_a_start_that_fits_two_questions_is_refused(inbox: Inbox) -> None:
    ids = {inbox.ask(approval_request(f"DELETE FROM t WHERE id = {n}")).id for n in range(20)}
    start = next(a[0] for a in ids if sum(b[0] == a[0] for b in ids) > 1)
    with pytest.raises(TidegateError, match="Several"):
        inbox.approvals.find(start)
    one = ids.pop()
    assert inbox.approvals.find(one[:9]).id == one
    with pytest.raises(TidegateError):
        inbox.approvals.find("")


def test_a_client_answers_for_its_own_caller_alone(inbox: Inbox) -> None:
    asked = inbox.ask(approval_request())
    with pytest.raises(TidegateError, match="another caller"):
        asyncio.run(inbox.approvals.record_client_answer(asked, OTHER.id, True, "somebody"))
    assert inbox.approvals.find(asked.id).state == "pending"
    inbox.approvals.resolve(asked.id, "denied", "cli:ann")
    asyncio.run(inbox.approvals.record_client_answer(asked, WRITER.id, True, "somebody"))
    assert inbox.approvals.find(asked.id).state == "denied"


def test_what_cannot_be_recorded_is_not_decided(inbox: Inbox) -> None:
    asked = inbox.ask(approval_request())

    def fail(name: str, actor: str, details: Mapping[str, str]) -> None:
        raise TidegateError(Code.AUDIT_UNAVAILABLE, "The disk is full")

    without_record = Approvals(inbox.state.approvals, note=fail, clocks=Clocks(lambda: inbox.now))
    with pytest.raises(TidegateError, match="disk"):
        without_record.resolve(asked.id, "allowed", "cli:ann")
    assert inbox.approvals.find(asked.id).state == "pending"


def test_a_secret_is_shown_to_no_one_and_kept_nowhere(inbox: Inbox) -> None:
    inbox.ask(approval_request("ALTER USER x PASSWORD 'hunter2-hunter2'"))
    inbox.ask(approval_request("UPDATE t SET a = ?", ("Bearer tg_" + "x" * 43,)))
    inbox.ask(approval_request("UPDATE t SET password = ?", ("hunter2-hunter2",)))
    asked = inbox.approvals.list()
    assert [question.subject.withheld for question in asked] == [True, True, True]
    kept = b"".join(path.read_bytes() for path in inbox.path.parent.iterdir())
    assert b"hunter2" not in kept and b"xxxxx" not in kept


_RACE = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from test_approvals import Inbox, approval_request
inbox = Inbox(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
used = 0
for number in range(int(sys.argv[2])):
    used += inbox.ask(approval_request(f"DELETE FROM t WHERE id = {number}")).state == "used"
print(used, flush=True)
"""


def test_two_processes_never_use_one_grant_both(inbox: Inbox) -> None:
    grants = 30
    for number in range(grants):
        asked = inbox.ask(approval_request(f"DELETE FROM t WHERE id = {number}"))
        inbox.approvals.resolve(asked.id, "allowed", "cli:ann")
    words = [sys.executable, "-c", _RACE, str(inbox.path), str(grants), *sys.path]
    words.append(str(Path(__file__).parent))
    racers = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    outputs = [racer.communicate("go\n", timeout=HANG_S)[0] for racer in racers]
    assert sum(int(output) for output in outputs) == grants
    states = [question.state for question in inbox.approvals.list(everything=True)]
    assert states.count("used") == grants


def test_who_answered_is_named_and_of_a_question_that_expired_no_one_is(inbox: Inbox) -> None:
    answered = inbox.ask(approval_request())
    inbox.approvals.resolve(answered.id, "allowed", "cli:ann")
    expired = inbox.ask(approval_request("DELETE FROM t WHERE id = 2"))
    said: list[str] = []
    for question in (answered, expired):
        if question is expired:
            inbox.now += QUESTION_TTL_S + 1
        with pytest.raises(TidegateError) as refused:
            inbox.approvals.resolve(question.id, "allowed", "cli:bob")
        said.append(refused.value.message)
    assert said[0].endswith("it was allowed by cli:ann")
    assert said[1].endswith("it was expired")


def test_a_wait_that_ended_listens_to_the_call_no_more(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "state.db", ApprovalSettings())
    cancellation = Cancellation()
    question = inbox.ask(approval_request())
    assert not asyncio.run(inbox.approvals.wait(question, cancellation, 0.01))
    assert cancellation._listeners == []
    inbox.state.close()


def test_a_wait_says_so_for_a_lease_at_a_time_and_no_more_when_it_ends(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "state.db", ApprovalSettings())
    question = inbox.ask(approval_request())
    seen = set[float | None]()

    def waits_until() -> float | None:
        found = inbox.state.approvals.find(question.id)
        assert found is not None
        return found.waits_until

    async def wait() -> None:
        waiting = asyncio.create_task(
            inbox.approvals.wait(question, Cancellation(), 3_600, lease_s=0.02)
        )
        while len(seen) < 3:
            inbox.now += 1  # another lease is written at another time
            await asyncio.sleep(0)
            seen.add(waits_until())
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting

    asyncio.run(wait())
    assert all(each is None or each <= inbox.now + 0.02 for each in seen)
    assert waits_until() is None
    inbox.state.close()


class Life(RuleBasedStateMachine):
    """Whatever people and callers do: no more runs than grants, none after a denial."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.directory = tempfile.TemporaryDirectory()
        self.inbox = Inbox(Path(self.directory.name) / "state.db")
        self.granted: dict[int, int] = {1: 0, 2: 0}
        self.denied_until: dict[int, float] = {1: 0.0, 2: 0.0}

    @rule(key=sampled_from((1, 2)))
    def call(self, key: int) -> None:
        try:
            question = self.inbox.ask(approval_request(params=(key,)))
        except TidegateError as error:
            assert error.code is Code.APPROVAL_DECLINED
            assert self.inbox.now < self.denied_until[key]
            return
        if question.state == "used":
            self.granted[key] -= 1
            assert self.granted[key] >= 0

    @rule(key=sampled_from((1, 2)), state=sampled_from(("allowed", "denied")))
    def answer(self, key: int, state: Any) -> None:
        for question in self.inbox.approvals.list():
            if question.subject.params == f"[{key}]":
                self.inbox.approvals.resolve(question.id, state, "cli:ann")
                if state == "allowed":
                    self.granted[key] += 1
                else:
                    self.denied_until[key] = self.inbox.now + COOL_OFF_S

    @rule(seconds=sampled_from((1.0, COOL_OFF_S, DAY)))
    def pass_time(self, seconds: float) -> None:
        self.inbox.now += seconds
        if seconds >= DAY:
            self.granted = {1: 0, 2: 0}

    @invariant()
    def one_question_waits_for_each_wish(self) -> None:
        waiting = [question.digest for question in self.inbox.approvals.list()]
        assert len(waiting) == len(set(waiting))

    def teardown(self) -> None:
        self.inbox.state.close()
        self.directory.cleanup()


Life.TestCase.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestLife = Life.TestCase
