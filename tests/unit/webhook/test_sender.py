"""What is sent about questions, how often, and what happens while the receiver does not take it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.webhook_receiver import PATH, SECRET, Answer, Receiver, receiving, status
from tidegate.config.webhook import WebhookSettings
from tidegate.model.statements import DryRun
from tidegate.store.records import ApprovalBounds, PendingApproval, Subject
from tidegate.store.sqlite.state import SqliteState
from tidegate.webhook.sender import (
    DRY_RUN_S,
    KEPT_S,
    MOST_ATTEMPTS,
    MOST_PAUSE_S,
    MOST_QUIET_S,
    WebhookSender,
    pause_s,
)

BOUNDS = ApprovalBounds(0.0, 0.0, 1_000, 1_000)
LITERAL = "Lviv-4111-1111"


class Place:
    """A state, a receiver, and a sender whose clock the test moves."""

    def __init__(self, folder: Path, receiver: Receiver, **settings: Any) -> None:
        self.folder = folder
        self.receiver = receiver
        self.given = settings
        self.now = 1_700_000_000.0
        self.noted: list[tuple[str, dict[str, str]]] = []
        self.state = SqliteState(folder / "state.db")
        self.sender = self.another()

    def another(self) -> WebhookSender:
        """A sender of another process, or of this one after it was started again."""

        def note(name: str, details: Mapping[str, str]) -> None:
            self.noted.append((name, dict(details)))

        sender = WebhookSender(
            self.state.webhook,
            msgspec.convert(self.receiver.settings(**self.given), WebhookSettings),
            address=lambda: "https://gate.example.com",
            note=note,
            clock=lambda: self.now,
        )
        asyncio.run(sender.step())  # what was there before it began
        return sender

    def step(self, *senders: WebhookSender) -> None:
        async def steps() -> None:
            await asyncio.gather(*(each.step() for each in senders or (self.sender,)))

        asyncio.run(steps())

    def ask(self, id: str = "q1", *, tried: bool = True, **changes: Any) -> None:
        subject = Subject(
            *("agent", "claude-code/1.0", "core", "query", "shop", "s1"),
            *(f"UPDATE towns SET name = '{LITERAL}'", "write", "source.approval", "why"),
            params=f'["{LITERAL}"]',
            tables=("towns",),
            agent_reason=f"because {LITERAL}",
        )
        question = PendingApproval(
            *(id, f"digest {id}", "pending", "actor"),
            msgspec.structs.replace(subject, **changes),
            self.now,
        )
        self.state.approvals.admit(question, BOUNDS)
        if tried:
            shown = DryRun(3, ("name",), before=((LITERAL,),), after=((LITERAL,),))
            self.state.approvals.attach_dry_run(id, shown)

    def answer(self, id: str = "q1", answer: Any = "denied") -> None:
        assert self.state.approvals.resolve(id, answer, "operator:ada", "no", self.now)


Make = Callable[..., Place]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(*answers: Answer, **settings: Any) -> Place:
            receiver = stack.enter_context(receiving(tmp_path / "hooks", *answers))
            place = Place(tmp_path, receiver, **settings)
            stack.callback(place.state.close)
            return place

        yield make


def test_a_question_and_its_answer_are_one_signed_message_each(make: Make) -> None:
    place = make()
    place.ask()
    place.step()
    asked = place.receiver.next()
    assert asked.is_signed and asked.json["type"] == "approval.asked"
    assert asked.data == {
        "id": "q1",
        "sentence": "claude-code wants to change 3 rows of towns on shop",
        "source": "shop",
        "state": "pending",
        "asked_at": "2023-11-14T22:13:20Z",
        "decided_at": None,
        "expires_at": "2023-11-21T22:13:20Z",
        "link": "https://gate.example.com/console#/inbox/q1",
    }
    place.step()
    assert place.receiver.is_quiet
    place.now += 60
    place.answer()
    place.step()
    decided = place.receiver.next()
    assert decided.is_signed and decided.json["type"] == "approval.decided"
    assert (decided.data["state"], decided.data["decided_at"]) == (
        *("denied",),
        "2023-11-14T22:14:20Z",
    )
    place.step()
    assert place.receiver.is_quiet and not place.noted


def test_no_message_holds_a_value_a_statement_or_what_the_agent_says(make: Make) -> None:
    place = make()
    place.ask()
    place.step()
    place.answer(answer="allowed")
    place.step()
    for message in (place.receiver.next(), place.receiver.next()):
        assert LITERAL not in message.body.decode()
        assert "UPDATE" not in message.body.decode()


def test_names_that_turn_text_around_or_look_like_keys_are_made_plain(make: Make) -> None:
    place = make()
    place.ask(client="a\u202eb\ngh", tables=("t\u0000", "ghp_0123456789abcdefABCD"))
    place.step()
    sentence = place.receiver.next().data["sentence"]
    assert sentence.isprintable() and "\\u{202e}" in sentence and "ghp_" not in sentence
    place.ask("q2", client="x" * 200, tables=("y" * 1_000,))
    place.step()
    assert len(place.receiver.next().data["sentence"]) <= 300


def test_a_question_waits_for_what_its_dry_run_shows_but_not_for_long(make: Make) -> None:
    place = make()
    place.ask(tried=False)
    place.step()
    assert place.receiver.is_quiet
    place.now += DRY_RUN_S
    place.step()
    assert "write" in place.receiver.next().data["sentence"]


def test_a_question_that_was_answered_before_it_was_seen_is_one_message(make: Make) -> None:
    place = make()
    place.ask(tried=False)
    place.step()
    place.answer()
    place.step()
    assert place.receiver.next().json["type"] == "approval.decided"
    place.step()
    assert place.receiver.is_quiet


def test_what_was_answered_before_there_was_a_webhook_is_not_sent(make: Make) -> None:
    place = make()
    place.sender.use(None)
    place.ask()
    place.answer()
    place.ask("q2")
    later = place.another()
    assert place.receiver.next().data["id"] == "q2"
    place.step(later)
    assert place.receiver.is_quiet


def test_an_expired_question_is_named_so(make: Make) -> None:
    place = make()
    place.ask()
    place.step()
    place.receiver.next()
    place.now += 60
    place.state.approvals.expire_old(
        place.now, grants=0.0, questions=place.now - 30, ended=place.now - 3_600
    )
    place.step()
    assert place.receiver.next().data["state"] == "expired"


@pytest.mark.parametrize(
    ("events", "types"),
    [(["asked"], ["approval.asked"]), (["decided"], ["approval.decided"])],
)
def test_only_the_events_of_the_settings_are_sent(
    make: Make, events: list[str], types: list[str]
) -> None:
    place = make(events=events)
    place.ask()
    place.step()
    place.answer()
    place.step()
    assert [place.receiver.next().json["type"]] == types
    assert place.receiver.is_quiet


def test_a_failed_message_comes_again_the_same_and_later_each_time(make: Make) -> None:
    place = make(status(500), status(503), status(204))
    place.ask()
    place.step()
    first = place.receiver.next()
    place.step()
    assert place.receiver.is_quiet  # it is too early
    assert place.sender.health.state == "failing" and "500" in place.sender.health.message
    place.now += 8
    place.step()
    second = place.receiver.next()
    place.now += 24
    place.step()
    third = place.receiver.next()
    assert {each.id for each in (first, second, third)} == {first.id}
    assert {each.body for each in (first, second, third)} == {first.body}
    assert all(each.is_signed for each in (first, second, third))
    assert place.sender.health.state == "ok"
    assert [name for name, _ in place.noted] == ["webhook.failed", "webhook.works"]


def test_a_message_is_given_up_after_so_many_attempts_and_that_is_on_record(make: Make) -> None:
    place = make(status(500))
    place.ask()
    for _ in range(MOST_ATTEMPTS):
        place.step()
        assert place.receiver.next().is_signed
        place.now += MOST_PAUSE_S * 1.3
        assert place.now < 1_700_000_000.0 + KEPT_S
    place.step()
    assert place.receiver.is_quiet
    assert [name for name, _ in place.noted] == ["webhook.failed", "webhook.dropped"]
    assert place.noted[1][1] == {
        "reason": "it answered with HTTP status 500",
        "approval": "q1",
    }
    assert place.sender.health.dropped == 1 and place.sender.health.waiting == 0


def test_no_message_is_sent_a_day_after_it_was_made(make: Make) -> None:
    place = make(status(500), status(204))
    place.ask()
    place.step()
    place.receiver.next()
    place.now += KEPT_S + 1
    place.step()
    assert place.receiver.is_quiet
    assert [name for name, _ in place.noted] == ["webhook.failed", "webhook.dropped"]


def test_the_receiver_says_when_to_come_again(make: Make) -> None:
    place = make(status(429, retry_after="1000"), status(204))
    place.ask()
    place.step()
    place.receiver.next()
    place.ask("q2")
    place.now += 999
    place.step()
    assert place.receiver.is_quiet
    place.now += 1
    place.step()
    assert {place.receiver.next().data["id"] for _ in range(2)} == {"q1", "q2"}


def test_a_receiver_that_says_to_wait_for_weeks_gets_no_message_of_today(make: Make) -> None:
    place = make(status(503, retry_after="2000000"), status(204))
    place.ask()
    place.step()
    place.receiver.next()
    assert place.sender.health.dropped == 1
    place.now += KEPT_S + 1
    place.ask("q2")
    place.step()
    assert place.receiver.next().data["id"] == "q2"


def test_a_receiver_that_is_gone_gets_nothing_more_until_the_settings_change(make: Make) -> None:
    place = make(status(410), status(204))
    place.ask()
    place.step()
    place.receiver.next()
    place.ask("q2")
    place.now += MOST_PAUSE_S * 2
    place.step()
    assert place.receiver.is_quiet and place.sender.health.state == "stopped"
    assert [name for name, _ in place.noted] == ["webhook.stopped"]
    changed = place.receiver.settings(events=["asked"])
    place.sender.use(msgspec.convert(changed, WebhookSettings))
    place.step()
    assert place.receiver.next().data["id"] == "q2"


def test_one_message_that_is_refused_does_not_hold_up_the_others(make: Make) -> None:
    place = make(status(400), status(204))
    place.ask()
    place.step()
    place.receiver.next()
    place.ask("q2")
    place.now += pause_s(1) + 2.5
    place.step()
    assert {place.receiver.next().data["id"] for _ in range(2)} == {"q1", "q2"}


def test_a_receiver_that_is_down_is_asked_seldom_however_much_waits(make: Make) -> None:
    place = make(status(500))
    for number in range(50):
        place.ask(f"q{number}")
    attempts = 0
    for _ in range(3_600):
        place.step()
        place.now += 1.0
        while not place.receiver.is_quiet:
            place.receiver.next()
            attempts += 1
    # The pauses grow to MOST_QUIET_S, less a quarter at random.
    assert attempts <= 6 + 3_600 / (0.75 * MOST_QUIET_S)
    assert place.sender.health.waiting == 50


def test_an_answer_makes_what_was_not_sent_needless(make: Make) -> None:
    place = make(status(500), status(204))
    place.ask()
    place.step()
    assert place.receiver.next().json["type"] == "approval.asked"
    place.answer()
    place.now += 60
    place.step()
    assert place.receiver.next().json["type"] == "approval.decided"
    place.now += 3_600
    place.step()
    assert place.receiver.is_quiet


def test_messages_outlive_a_restart_with_their_id(make: Make) -> None:
    place = make(status(500), status(204))
    place.ask()
    place.step()
    first = place.receiver.next()
    place.now += 60
    later = place.another()
    second = place.receiver.next()
    assert (second.id, second.body) == (first.id, first.body)
    place.step(later)
    assert place.receiver.is_quiet


def test_an_answer_that_came_while_no_server_ran_is_sent_at_the_next_start(make: Make) -> None:
    place = make()
    place.ask()
    place.step()
    place.receiver.next()
    place.answer()
    place.another()
    assert place.receiver.next().json["type"] == "approval.decided"


def test_of_several_servers_on_one_state_one_sends_each_message(make: Make) -> None:
    place = make()
    senders = [place.sender, place.another(), place.another()]
    for number in range(10):
        place.ask(f"q{number}")
    for _ in range(3):
        place.step(*senders)
    got = {place.receiver.next().data["id"] for _ in range(10)}
    assert len(got) == 10 and place.receiver.is_quiet


def test_a_digest_is_one_message_in_so_many_minutes(make: Make) -> None:
    place = make(digest_minutes=10)
    place.ask()
    place.step()
    first = place.receiver.next()
    assert first.is_signed and first.json["type"] == "approval.digest"
    assert first.data["count"] == 1
    for number in range(2, 32):
        place.ask(f"q{number}")
    place.answer("q2")
    place.now += 599
    place.step()
    assert place.receiver.is_quiet
    place.now += 1
    place.step()
    second = place.receiver.next()
    assert (second.data["count"], len(second.data["questions"]), second.data["more"]) == (29, 20, 9)
    assert second.data["link"] == "https://gate.example.com/console#/inbox"
    assert second.body.count(b"https://") == 1
    assert second.data["questions"][0]["sentence"].startswith("claude-code wants to")
    assert LITERAL not in second.body.decode()
    place.now += 600
    place.step()
    assert place.receiver.is_quiet


def test_a_digest_comes_once_also_from_several_servers(make: Make) -> None:
    place = make(digest_minutes=10)
    senders = [place.sender, place.another()]
    place.ask()
    for _ in range(3):
        place.step(*senders)
    assert place.receiver.next().json["type"] == "approval.digest"
    assert place.receiver.is_quiet


def test_neither_the_record_nor_the_health_holds_the_secret_or_the_path(make: Make) -> None:
    place = make(status(500), status(302), status(410))
    place.ask()
    for _ in range(3):
        place.step()
        place.now += 100
        shown = repr((place.noted, place.sender.health))
        assert SECRET not in shown and PATH not in shown


def test_pauses_grow_and_differ(make: Make) -> None:
    for attempts in range(1, 40):
        pauses = {pause_s(attempts) for _ in range(20)}
        assert len(pauses) > 1 and max(pauses) <= MOST_PAUSE_S * 1.25
    assert max(pause_s(1) for _ in range(100)) < min(pause_s(3) for _ in range(100))
