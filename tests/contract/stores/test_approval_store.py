"""The contract of `ApprovalStore`."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import DryRun
from tidegate.store.records import (
    ApprovalBounds,
    ApprovedRun,
    PendingApproval,
    RefusedRetry,
    Subject,
)

SUBJECT = Subject(
    *("claude", "client/1", "core", "query", "shop", "id-shop", "UPDATE t SET a = 1"),
    *("write", "source.approval", "A person must approve this call."),
    tables=("t",),
)
BOUNDS = ApprovalBounds(grants_since=0.0, denials_since=0.0, most=3, most_of_actor=2)


def asked(id="a1", digest="d", **fields):
    values = {"state": "pending", "actor": "tok_1", "subject": SUBJECT, "asked_at": 100.0}
    return PendingApproval(id, digest, **{**values, **fields})


def test_a_request_comes_back_as_it_was_made(state, other):
    assert state.approvals.admit(asked(), BOUNDS) == asked()
    assert other.approvals.find("a1") == asked()
    assert other.approvals.starting("a") == other.approvals.list(["pending"]) == (asked(),)
    assert other.approvals.find("a2") is None


def test_an_equal_request_joins_the_pending_one(state, other):
    state.approvals.admit(asked(), BOUNDS)
    joined = other.approvals.admit(asked("a2"), BOUNDS)
    assert (joined.id, joined.askers) == ("a1", 2)
    assert len(state.approvals.list()) == 1


def test_a_grant_is_used_by_one_of_all_who_ask_at_once(state, other):
    state.approvals.admit(asked(), BOUNDS)
    assert state.approvals.resolve("a1", "allowed", "ada", "", 110.0)
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda one: one.approvals.answer("d", BOUNDS, 120.0), [state, other] * 8)
        )
    assert [one.state for one in found if one] == ["used"]
    assert state.approvals.find("a1").ended_at == 120.0


def test_a_request_is_decided_once(state, other):
    state.approvals.admit(asked(), BOUNDS)
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(
                lambda one: one[0].approvals.resolve("a1", one[1], "ada", "", 110.0),
                [(state, "allowed"), (other, "denied")] * 8,
            )
        )
    assert done.count(True) == 1
    assert not other.approvals.resolve("unknown", "allowed", "ada", "", 110.0)


def test_a_denial_counts_until_its_bound_and_is_not_used_up(state, other):
    state.approvals.admit(asked(), BOUNDS)
    state.approvals.resolve("a1", "denied", "ada", "not today", 110.0)
    for _ in range(2):
        denied = other.approvals.answer("d", BOUNDS, 120.0)
        assert (denied.state, denied.reason) == ("denied", "not today")
    late = structs.replace(BOUNDS, denials_since=110.0)
    assert other.approvals.answer("d", late, 200.0) is None


def test_calls_that_came_again_and_were_refused_are_counted(state, other):
    state.approvals.admit(asked(), BOUNDS)
    state.approvals.note_refused("a1", 120.0, "The source is read-only.")
    other.approvals.note_refused("a1", 130.0, "It is read-only now.")
    state.approvals.note_refused("unknown", 130.0, "")
    assert other.approvals.find("a1").refused == RefusedRetry(130.0, "It is read-only now.", 2)


def test_a_grant_does_not_outlive_its_bound(state):
    state.approvals.admit(asked(), BOUNDS)
    state.approvals.resolve("a1", "allowed", "ada", "", 110.0)
    late = structs.replace(BOUNDS, grants_since=110.0)
    assert state.approvals.answer("d", late, 200.0) is None
    assert state.approvals.find("a1").state == "allowed"


def test_pending_requests_are_bounded_per_actor_and_in_all(state):
    for number in range(2):
        state.approvals.admit(asked(f"a{number}", f"d{number}"), BOUNDS)
    for refused in (asked("a2", "d2"),):
        with pytest.raises(TidegateError) as caught:
            state.approvals.admit(refused, BOUNDS)
        assert caught.value.code is Code.LIMIT_RATE
    state.approvals.admit(asked("b1", "d3", actor="tok_2"), BOUNDS)
    with pytest.raises(TidegateError):
        state.approvals.admit(asked("c1", "d4", actor="tok_3"), BOUNDS)
    assert len(state.approvals.list()) == 3


def test_a_dry_run_is_kept_with_its_request(state, other):
    state.approvals.admit(asked(), BOUNDS)
    state.approvals.attach_dry_run("a1", DryRun(affected=3, reason="no key"))
    assert other.approvals.find("a1").dry_run == DryRun(affected=3, reason="no key")


def test_old_grants_and_requests_expire_and_what_ended_is_removed(state, other):
    state.approvals.admit(asked("old", "d1", asked_at=10.0), BOUNDS)
    state.approvals.admit(asked("given", "d2", asked_at=50.0), BOUNDS)
    state.approvals.resolve("given", "allowed", "ada", "", 60.0)
    state.approvals.admit(asked("new", "d3", actor="tok_2"), BOUNDS)
    expired = other.approvals.expire_old(200.0, grants=60.0, questions=10.0, ended=0.0)
    assert sorted(one.id for one in expired) == ["given", "old"]
    assert [one.id for one in state.approvals.list(["pending"])] == ["new"]
    other.approvals.expire_old(300.0, grants=60.0, questions=10.0, ended=250.0)
    assert [one.id for one in state.approvals.list()] == ["new"]


def test_a_grant_that_is_given_back_counts_once_more(state, other):
    state.approvals.admit(asked(), BOUNDS)
    state.approvals.give_back("a1")  # a pending one is no grant
    assert other.approvals.find("a1").state == "pending"
    assert state.approvals.resolve("a1", "allowed", "ada", "", 110.0)
    assert state.approvals.answer("d", BOUNDS, 120.0).state == "used"
    other.approvals.give_back("a1")
    assert state.approvals.find("a1").state == "allowed"
    assert state.approvals.find("a1").ended_at is None
    assert state.approvals.answer("d", BOUNDS, 121.0).state == "used"
    assert other.approvals.answer("d", BOUNDS, 122.0) is None


def test_a_grant_for_some_minutes_is_used_until_it_ends_or_is_used_up(state, other):
    state.approvals.admit(asked(), BOUNDS)
    assert state.approvals.resolve("a1", "allowed", "ada", "", 110.0, until=200.0, most_uses=2)
    first, second = (other.approvals.answer("d", BOUNDS, 120.0) for _ in range(2))
    assert (first.state, first.uses) == ("used", 1)
    assert (second.state, second.uses) == ("used", 2)
    assert other.approvals.answer("d", BOUNDS, 120.0) is None
    assert state.approvals.find("a1").state == "used"


def test_a_grant_for_some_minutes_counts_no_more_when_they_are_over(state):
    state.approvals.admit(asked(), BOUNDS)
    state.approvals.resolve("a1", "allowed", "ada", "", 110.0, until=200.0, most_uses=9)
    assert state.approvals.answer("d", BOUNDS, 200.0) is None
    expired = state.approvals.expire_old(200.0, grants=0.0, questions=0.0, ended=0.0)
    assert [(one.id, one.state) for one in expired] == [("a1", "expired")]


def test_a_use_that_is_given_back_does_not_count(state):
    state.approvals.admit(asked(), BOUNDS)
    state.approvals.resolve("a1", "allowed", "ada", "", 110.0, until=200.0, most_uses=2)
    for _ in range(5):
        assert state.approvals.answer("d", BOUNDS, 120.0) is not None
        state.approvals.give_back("a1")
    state.approvals.give_back("a1")
    assert state.approvals.find("a1").uses == 0


def test_a_grant_that_is_revoked_counts_no_more(state, other):
    state.approvals.admit(asked(), BOUNDS)
    assert not state.approvals.revoke("a1", 105.0)
    state.approvals.resolve("a1", "allowed", "ada", "", 110.0, until=200.0, most_uses=2)
    assert other.approvals.revoke("a1", 120.0)
    assert state.approvals.answer("d", BOUNDS, 130.0) is None
    assert state.approvals.find("a1").state == "expired"


def test_what_became_of_the_call_and_how_long_the_caller_waits_are_kept(state, other):
    state.approvals.admit(asked(), BOUNDS)
    run = ApprovedRun("done", 120.0, "call-1", 3, change_id="c1")
    state.approvals.set_waiting("a1", 160.0)
    state.approvals.attach_run("a1", run)
    found = other.approvals.find("a1")
    assert (found.waits_until, found.run) == (160.0, run)
    state.approvals.set_waiting("a1", None)
    assert other.approvals.find("a1").waits_until is None


def test_of_all_who_use_a_grant_for_some_minutes_at_once_as_many_get_it_as_it_has_uses(
    state, other
):
    state.approvals.admit(asked(), BOUNDS)
    state.approvals.resolve("a1", "allowed", "ada", "", 110.0, until=200.0, most_uses=3)
    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda one: one.approvals.answer("d", BOUNDS, 120.0), [state, other] * 8)
        )
    assert [one.state for one in found if one] == ["used"] * 3
    kept = state.approvals.find("a1")
    assert (kept.state, kept.uses) == ("used", 3)
