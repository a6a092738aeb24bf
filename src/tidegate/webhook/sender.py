"""Sees in the state which questions were asked and answered, and sends the messages about them.

The state is the source, since other processes ask and answer, too, and it is read once a
second, by a separate task: no call waits for a message. Messages that wait are kept in the state,
so they outlive a restart, and of several servers on one state one sends each. What is in memory
alone: the pause after failures, and that the receiver wants no more.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from tidegate.config.webhook import WebhookSettings
from tidegate.errors import TidegateError
from tidegate.store.calls import change_state
from tidegate.store.records import WebhookMessage
from tidegate.store.supervision import WebhookStore

if TYPE_CHECKING:
    from tidegate.webhook.delivery import Attempt

logger = logging.getLogger("tidegate.webhook")

LOOK_S = 1.0
DRY_RUN_S = 3.0
"""How long the message about a question waits for what its dry run shows."""
MOST_ATTEMPTS = 10
KEPT_S = 86_400.0
"""A message that could not be sent in so many attempts, or for so long, is given up."""
FIRST_PAUSE_S = 5.0
MOST_PAUSE_S = 3_600.0
MOST_QUIET_S = 300.0
"""After a failure nothing is sent for some time, which is at most this, or what the receiver asks
for."""
_LEASE_S = 60.0
"""After so long another process may send a message that one has begun to send."""
_SWEEP_S = 60.0
_REMEMBERED_S = 40 * 86_400.0
"""Longer than any question is kept, so that none is announced twice."""
_BATCH = 100

NoteDone = Callable[[str, Mapping[str, str]], None]


class WebhookHealth(msgspec.Struct, frozen=True):
    """`off`: there is no webhook; `stopped`: the receiver wants no more. `since` is when it began
    to fail; `waiting` counts messages that wait, `dropped` those that this process gave up."""

    state: Literal["off", "ok", "failing", "stopped"] = "off"
    message: str = ""
    since: float | None = None
    sent_at: float | None = None
    waiting: int = 0
    dropped: int = 0
    digest_minutes: int = 0


class WebhookSender:
    """The webhook of one process. `address` gives where the console is; `note` puts on record."""

    def __init__(
        self,
        store: WebhookStore,
        settings: WebhookSettings | None,
        *,
        address: Callable[[], str],
        note: NoteDone,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._settings: WebhookSettings | None = settings
        self._address = address
        self._note = note
        self._clock = clock
        self._seen: int | None = None
        self._failures = 0
        self._quiet_until = 0.0
        self._swept_at = 0.0
        self._health = WebhookHealth() if settings is None else _begun(settings)

    @property
    def health(self) -> WebhookHealth:
        """How it goes, without the URL."""
        return self._health

    def use(self, settings: WebhookSettings | None) -> None:
        """Take other settings; one that was stopped begins again."""
        if settings == self._settings:
            return
        self._settings = settings
        self._failures, self._quiet_until = 0, 0.0
        self._health = WebhookHealth() if settings is None else _begun(settings)

    async def run(self) -> None:
        """Send until the task is cancelled."""
        while True:
            try:
                await self.step()
            except TidegateError as error:  # a state that cannot be read is read again
                logger.debug("the state cannot be read: %s", error.message)
            except Exception:
                logger.exception("a fault; the next look comes")
            await asyncio.sleep(LOOK_S)

    async def step(self) -> None:
        """Look once, and send what is due. Raises: TidegateError STATE_FAILED."""
        settings = self._settings
        if settings is None or self._health.state == "stopped":
            return
        from tidegate.webhook.delivery import deliver  # who has no webhook does not pay for it

        waiting = await change_state(self._collect, settings)
        self._change_health(waiting=waiting)
        while self._settings is settings and self._clock() >= self._quiet_until:
            now = self._clock()
            message = await change_state(self._store.take, now, now + _LEASE_S)
            if message is None:
                return
            attempt = await deliver(settings, message.id, message.body)
            if self._settings is not settings:
                return  # it is sent again when its lease is over, as the new settings say
            await change_state(self._note_attempt, message, attempt)
            if not attempt.is_sent:
                return

    # On a thread

    def _collect(self, settings: WebhookSettings) -> int:
        """Make the messages about what has happened; how many wait."""
        from tidegate.webhook import messages  # as above

        now, address, store = self._clock(), self._address(), self._store
        if self._seen is None:
            self._seen = store.newest_question()
        late: int | None = None
        seen = self._seen
        for serial, question in store.new_questions(self._seen, _BATCH):
            if question.state == "pending":
                if question.dry_run is None and now - question.asked_at < DRY_RUN_S:
                    late = serial if late is None else late
                    continue
                state = "dropped" if "asked" not in settings.events else "waiting"
                if state == "waiting" and settings.digest_minutes:
                    state = "listed"
                store.add(messages.asked(question, address, now, state))
            elif not settings.digest_minutes and "decided" in settings.events:
                store.add(messages.decided(question, address, now))
            else:
                store.add(messages.decided(question, address, now, "dropped"))
            seen = max(seen, serial)
        self._seen = seen if late is None else min(seen, late - 1)
        for question in store.answered(_BATCH):
            wanted = "decided" in settings.events and not settings.digest_minutes
            message = messages.decided(question, address, now) if wanted else None
            store.settle(question.id, message)
        if self._is_digest_due(settings, now) and (questions := store.listed()):
            store.send_listed(
                messages.digest(questions, address, now), [each.id for each in questions]
            )
        if not 0 <= now - self._swept_at < _SWEEP_S:
            self._swept_at = now
            store.forget(now - _REMEMBERED_S)
            if dropped := store.drop_before(now - KEPT_S):
                self._note_dropped("", f"{dropped} messages were older than a day", dropped)
        return store.waiting()

    def _is_digest_due(self, settings: WebhookSettings, now: float) -> bool:
        """Whether what is listed must be sent now: also when there are no digests any more."""
        if not settings.digest_minutes:
            return True
        last = self._store.last_made("approval.digest")
        return last is None or not 0 <= now - last < 60.0 * settings.digest_minutes

    def _note_attempt(self, message: WebhookMessage, attempt: Attempt) -> None:
        """Note what came of an attempt."""
        now = self._clock()
        if attempt.is_sent:
            self._store.close_message(message.id, "sent")
            if self._health.state == "failing":
                self._note("webhook.works", {"messages": str(self._health.waiting)})
            self._failures = 0
            self._change_health(state="ok", message="", since=None, sent_at=now)
            return
        self._failures += 1
        wait_s = max(pause_s(message.attempts), attempt.retry_after_s or 0.0)
        quiet_s = max(min(pause_s(self._failures), MOST_QUIET_S), attempt.retry_after_s or 0.0)
        self._quiet_until = now + min(quiet_s, KEPT_S)
        if attempt.is_gone:
            self._store.close_message(message.id, "dropped")
            self._note("webhook.stopped", {"reason": attempt.reason})
            self._change_health(state="stopped", message=attempt.reason, since=now)
            return
        if self._health.state != "failing":
            self._note("webhook.failed", {"reason": attempt.reason})
            self._change_health(state="failing", since=now)
        self._change_health(message=attempt.reason)
        if message.attempts >= MOST_ATTEMPTS or now + wait_s > message.made_at + KEPT_S:
            self._store.close_message(message.id, "dropped")
            self._note_dropped(message.approval, attempt.reason, 1)
        else:
            self._store.postpone(message.id, now + wait_s)

    def _note_dropped(self, approval: str, reason: str, count: int) -> None:
        details = {"reason": reason, "approval": approval}
        self._note("webhook.dropped", {key: value for key, value in details.items() if value})
        self._change_health(dropped=self._health.dropped + count)

    def _change_health(self, **changes: object) -> None:
        self._health = msgspec.structs.replace(self._health, **changes)


def pause_s(attempts: int) -> float:
    """How long to wait after so many failures: three times longer each time, and not for all
    servers alike."""
    longest = min(FIRST_PAUSE_S * 3 ** min(attempts - 1, 20), MOST_PAUSE_S)
    return longest * (0.75 + random.random() / 2)


def _begun(settings: WebhookSettings) -> WebhookHealth:
    return WebhookHealth("ok", digest_minutes=settings.digest_minutes)
