"""The contract of `WebhookStore`: each message is made once and sent by one process at a time."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from tidegate.store.records import ApprovalBounds, PendingApproval, Subject, WebhookMessage

BOUNDS = ApprovalBounds(0.0, 0.0, 1_000, 1_000)


def ask(state, id, at=100.0):
    subject = Subject("agent", "", "core", "query", "shop", "s1", "SELECT 1", "write", "r", "")
    question = PendingApproval(id, f"digest {id}", "pending", "actor", subject, at)
    return state.approvals.admit(question, BOUNDS)


def message(id, approval="", **changes):
    made = WebhookMessage(id, "approval.asked", approval, b"{}", "waiting", 100.0, 100.0)
    return msgspec.structs.replace(made, **changes)


def ids(questions):
    return [each.id for each in questions]


def test_a_question_is_new_until_a_message_is_about_it(state):
    first = ask(state, "a")
    ask(state, "b")
    found = state.webhook.new_questions(0, 10)
    assert ids(question for _, question in found) == ["a", "b"]
    assert state.webhook.newest_question() == found[-1][0]
    state.webhook.add(message("m", first.id))
    assert ids(question for _, question in state.webhook.new_questions(0, 10)) == ["b"]


def test_what_was_answered_before_anyone_looked_is_new_only_behind_the_number(state):
    ask(state, "a")
    state.approvals.resolve("a", "denied", "ada", "", 101.0)
    assert ids(question for _, question in state.webhook.new_questions(0, 10)) == ["a"]
    assert state.webhook.new_questions(state.webhook.newest_question(), 10) == ()


def test_a_message_is_made_once(state, other):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda one: one.webhook.add(message("m", "a")), [state, other] * 8))
    assert made.count(True) == 1


def test_a_message_is_taken_once_until_its_time_is_over(state, other):
    state.webhook.add(message("m"))
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda one: one.webhook.take(100.0, 160.0), [state, other] * 8))
    assert [each.id for each in taken if each is not None] == ["m"]
    assert other.webhook.take(159.0, 220.0) is None
    again = other.webhook.take(160.0, 220.0)
    assert again is not None and again.attempts == 2 and again.body == b"{}"


def test_the_oldest_message_goes_first_and_closed_ones_never(state):
    for id in ("a", "b", "c"):
        state.webhook.add(message(id))
    first = state.webhook.take(100.0, 160.0)
    assert first is not None and first.id == "a"
    state.webhook.close_message("a", "sent")
    state.webhook.close_message("b", "dropped")
    last = state.webhook.take(200.0, 260.0)
    assert last is not None and last.id == "c"
    assert state.webhook.waiting() == 1


def test_a_postponed_message_is_due_later(state):
    state.webhook.add(message("m"))
    state.webhook.postpone("m", 500.0)
    assert state.webhook.take(499.0, 600.0) is None
    assert state.webhook.take(500.0, 600.0) is not None


def test_an_answer_drops_what_was_not_sent_and_is_sent_once(state, other):
    ask(state, "a")
    state.webhook.add(message("asked", "a", followed=True))
    assert state.webhook.answered(10) == ()
    state.approvals.resolve("a", "allowed", "ada", "", 101.0)
    assert ids(state.webhook.answered(10)) == ["a"]
    state.webhook.settle("a", message("first", "a", type="approval.decided"))
    other.webhook.settle("a", message("second", "a", type="approval.decided"))
    assert state.webhook.answered(10) == ()
    taken = state.webhook.take(100.0, 160.0)
    assert taken is not None and taken.id == "first"
    assert state.webhook.take(100.0, 160.0) is None


def test_a_digest_lists_what_still_waits_once(state):
    for id in ("a", "b"):
        ask(state, id)
        state.webhook.add(message(f"m{id}", id, state="listed", followed=True))
    state.approvals.resolve("b", "denied", "ada", "", 101.0)
    assert ids(state.webhook.listed()) == ["a"]
    assert state.webhook.last_made("approval.digest") is None
    digest = message("d", type="approval.digest", made_at=300.0)
    assert state.webhook.send_listed(digest, ["a"])
    assert not state.webhook.send_listed(message("again", type="approval.digest"), ["a"])
    assert state.webhook.listed() == ()
    assert state.webhook.last_made("approval.digest") == 300.0
    taken = state.webhook.take(300.0, 400.0)
    assert taken is not None and taken.id == "d"


def test_what_was_listed_after_a_digest_was_made_is_in_the_next_one(state, other):
    for id in ("a", "b"):
        ask(state, id)
        state.webhook.add(message(f"m{id}", id, state="listed"))
    assert other.webhook.send_listed(message("d", type="approval.digest"), ["a"])
    assert ids(state.webhook.listed()) == ["b"]


def test_old_messages_are_dropped_and_forgotten(state):
    state.webhook.add(message("old", made_at=50.0))
    state.webhook.add(message("new", made_at=150.0))
    assert state.webhook.drop_before(100.0) == 1
    taken = state.webhook.take(200.0, 260.0)
    assert taken is not None and taken.id == "new"
    state.webhook.forget(1_000.0)
    assert state.webhook.waiting() == 0
    assert state.webhook.add(message("old"))


def test_messages_outlive_a_restart(state, open_state):
    state.webhook.add(message("m"))
    state.close()
    assert open_state().webhook.take(100.0, 160.0) is not None


@pytest.mark.parametrize("limit", [1, 3])
def test_no_more_questions_are_read_than_asked_for(state, limit):
    for id in "abcde":
        ask(state, id)
    assert len(state.webhook.new_questions(0, limit)) == limit
