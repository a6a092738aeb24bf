"""A clock that is set back lengthens nothing that was given for some time: in the process that saw
it given by the seconds that went by, and in another one if it was given in what is the future now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.approvals.approvals import Approvals
from tidegate.errors import Code, TidegateError
from tidegate.identity.lockout import Lockout
from tidegate.identity.operators import IDLE_S, LINK_S, SESSION_S, Operators
from tidegate.identity.pairing import PairingService, Refused, challenge_of, make_verifier
from tidegate.identity.tokens import NO_RECORDS, Tokens
from tidegate.model.actors import Actor, RoleGrant, Scope
from tidegate.model.deadlines import AHEAD_S, Clocks, Deadlines
from tidegate.model.decisions import Verdict
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.store.records import TokenRights
from tidegate.store.sqlite.state import SqliteState

BEGIN = 1_000_000.0
ASKED = ApprovalRequest(
    Actor("t1", "claude", Scope.READ_WRITE),
    Source("s1", "shop", "sqlite:////shop.db", "sqlite", "sqlite"),
    Statement("DELETE FROM t WHERE id = 1"),
    Judgement(Effect.WRITE, "sql.write", "It deletes rows", tables=("t",)),
    Verdict("ask", "source.approval_for", "A person must approve this call"),
)


class Process:
    """One process on a state, with the time of day and the seconds that went by."""

    def __init__(self, state: SqliteState, now: float = BEGIN) -> None:
        self.now, self.counted = now, 0.0
        clocks = Clocks(lambda: self.now, lambda: self.counted)
        self.approvals = Approvals(state.approvals, clocks=clocks)
        self.operators = Operators(
            state.operators, note=_drop, note_done=_drop, note_anonymous=_drop, clocks=clocks
        )
        self.tokens = Tokens(state.tokens, lambda: self.now)
        self.pairings = PairingService(
            state.pairings, self.tokens, records=NO_RECORDS, tell=_drop, clocks=clocks
        )
        self.lockout = Lockout(shared=state.shared)

    def go_on(self, seconds: float, *, clock: float | None = None) -> None:
        """Seconds go by; the clock says as many, or others."""
        self.counted += seconds
        self.now += seconds if clock is None else clock


def _drop(*_: str | Mapping[str, str]) -> None:
    return None


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteState]:
    state = SqliteState(tmp_path / "state.db")
    yield state
    state.close()


def grant(one: Process, state: SqliteState) -> tuple[Callable[[Process], bool], float]:
    question = asyncio.run(one.approvals.request(ASKED))
    asyncio.run(one.approvals.attach_dry_run(question, DryRun(1)))
    one.approvals.resolve(question.id, "allowed", "cli:ann", minutes=5)
    return lambda other: asyncio.run(other.approvals.find_answer(ASKED)) is not None, 300.0


def link(one: Process, state: SqliteState) -> tuple[Callable[[Process], bool], float]:
    one.operators.add("ada", "a passphrase", (RoleGrant("admin"),), "cli")
    secret = one.operators.make_link("ada", "cli")

    def works(other: Process) -> bool:
        try:
            other.operators.sign_in_by_link(secret, "127.0.0.1", "")
        except TidegateError as error:
            assert error.code is Code.AUTH_INVALID
            return False
        return True

    return works, LINK_S


def session(one: Process, state: SqliteState) -> tuple[Callable[[Process], bool], float]:
    one.operators.add("ada", "a passphrase", (RoleGrant("admin"),), "cli")
    _, secret = one.operators.sign_in("ada", "a passphrase", "127.0.0.1", "")
    assert one.operators.find_session(secret)
    return lambda other: other.operators.find_session(secret) is not None, IDLE_S


GIVEN = {each.__name__: each for each in (grant, link, session)}


@pytest.mark.parametrize("given", GIVEN)
def test_it_ends_in_its_process_when_its_time_has_gone_by(state: SqliteState, given: str) -> None:
    one = Process(state)
    works, lasts_s = GIVEN[given](one, state)
    one.go_on(lasts_s - 1, clock=-AHEAD_S)
    one.go_on(2, clock=0)
    assert not works(one)


@pytest.mark.parametrize("given", GIVEN)
def test_it_lasts_as_long_as_ever_while_the_clock_goes_on(state: SqliteState, given: str) -> None:
    one = Process(state)
    works, lasts_s = GIVEN[given](one, state)
    one.go_on(lasts_s - 1)
    assert works(one)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("back_s", [3_600.0 + 2 * AHEAD_S, 10 * 86_400.0])
def test_it_has_ended_in_another_process_whose_clock_does_not_know_its_beginning(
    state: SqliteState, given: str, back_s: float
) -> None:
    works, _ = GIVEN[given](Process(state), state)
    assert not works(Process(state, BEGIN - back_s))


@pytest.mark.parametrize("given", GIVEN)
def test_a_clock_that_is_corrected_by_seconds_ends_nothing(state: SqliteState, given: str) -> None:
    works, _ = GIVEN[given](Process(state), state)
    assert works(Process(state, BEGIN - AHEAD_S / 2))


def test_a_session_that_is_used_ends_after_its_hours_whatever_the_clock_says(
    state: SqliteState,
) -> None:
    one = Process(state)
    one.operators.add("ada", "a passphrase", (RoleGrant("admin"),), "cli")
    _, secret = one.operators.sign_in("ada", "a passphrase", "127.0.0.1", "")
    used = 0
    while one.operators.find_session(secret) is not None:
        one.go_on(IDLE_S / 2, clock=IDLE_S / 2 - (AHEAD_S if used % 2 else 0))
        used += 1
        assert used < 100
    assert one.counted == SESSION_S


def test_a_request_for_a_token_ends_by_the_seconds_that_went_by(state: SqliteState) -> None:
    one, verifier = Process(state), make_verifier()
    asked = one.pairings.ask("laptop", challenge_of(verifier), TokenRights(), "127.0.0.1")
    assert [each.id for each in one.pairings.waiting()] == [asked.id]
    one.go_on(301.0, clock=-30.0)
    assert one.pairings.waiting() == ()
    with pytest.raises(TidegateError):
        one.pairings.approve(asked.id)
    with pytest.raises(Refused):
        one.pairings.exchange(asked.code, verifier, "127.0.0.1")
    assert Process(state, BEGIN - 2 * AHEAD_S).pairings.waiting() == ()
    assert one.tokens.list() == ()


def test_a_lock_lasts_no_longer_than_its_time_after_the_clock_was_set_back(
    state: SqliteState,
) -> None:
    one = Process(state)
    for _ in range(5):
        one.lockout.failed("10.0.0.1", BEGIN)
    for other in (one.lockout, Process(state).lockout):
        with pytest.raises(TidegateError) as caught:
            other.check("10.0.0.1", BEGIN - 86_400)
        assert caught.value.retry_after_s == 300.0
        with pytest.raises(TidegateError):
            other.check("10.0.0.1", BEGIN - 86_400 + 299)
    for other in (one.lockout, Process(state).lockout):
        other.check("10.0.0.1", BEGIN - 86_400 + 301)


def test_a_denial_of_the_future_does_not_go_on_denying(state: SqliteState) -> None:
    one = Process(state)
    question = asyncio.run(one.approvals.request(ASKED))
    one.approvals.resolve(question.id, "denied", "cli:ann")
    later = Process(state, BEGIN - 3_600)
    assert asyncio.run(later.approvals.request(ASKED)).state == "pending"


def test_a_grant_that_is_over_is_shown_as_ended(state: SqliteState) -> None:
    one = Process(state)
    question = asyncio.run(one.approvals.request(ASKED))
    asyncio.run(one.approvals.attach_dry_run(question, DryRun(1)))
    one.approvals.resolve(question.id, "allowed", "cli:ann", minutes=5)
    one.go_on(301.0, clock=1.0)
    one.approvals.expire_old()
    assert one.approvals.find(question.id).state == "expired"


def test_ends_are_counted_apart_and_the_ones_that_were_looked_at_last_are_kept() -> None:
    now, counted = BEGIN, 0.0
    ends = Deadlines(Clocks(lambda: now, lambda: counted))
    assert not ends.has_passed("a", BEGIN + 10) and not ends.is_over("never seen")
    counted = 9.0
    assert not ends.has_passed("b", BEGIN + 10) and not ends.is_over("a")
    for at in range(9_998):
        ends.has_passed(at, BEGIN + 10)
    counted = 10.0
    assert ends.is_over("a")  # looked at now: it is the newest
    ends.has_passed("one more", BEGIN + 10)
    assert ends.is_over("a") and not ends.is_over("b")
    # Another end of the same thing begins to count again.
    assert not ends.has_passed("a", BEGIN + 20)
    now = BEGIN + 20
    assert ends.is_over("a")
