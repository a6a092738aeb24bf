"""State of what people supervise: requests for approval, messages about them, changes to take back,
calls that go on after their reply.

`api.py` says what holds of every area.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf
from typing import Literal, Protocol

from tidegate.model.changes import ChangeEntry
from tidegate.model.statements import DryRun
from tidegate.model.tasks import TaskRecord
from tidegate.store.records import (
    ApprovalBounds,
    ApprovalState,
    ApprovedRun,
    PendingApproval,
    WebhookMessage,
)


class ApprovalStore(Protocol):
    """Requests for approval and their answers.

    A request is found by its `id`, which people use, or by its digest, which identifies the call.
    A grant is used up by the statement that finds it, so that no two callers can use it.
    """

    def admit(self, question: PendingApproval, bounds: ApprovalBounds) -> PendingApproval:
        """The answer to the request as far as there is one, else the request that is pending.

        In this order: a grant, which is used up now (state `used`); a denial that still counts
        (`denied`); an equal request that is pending; this one, which is pending from now on.
        Raises: TidegateError LIMIT_RATE if too many are pending.
        """
        ...

    def answer(self, digest: str, bounds: ApprovalBounds, now: float) -> PendingApproval | None:
        """A grant, used up now, or a denial that still counts; None if there is neither."""
        ...

    def give_back(self, id: str) -> None:
        """Let a use of a grant not count, with the time at which it was given."""
        ...

    def resolve(
        self,
        id: str,
        state: Literal["allowed", "denied"],
        by: str,
        reason: str,
        now: float,
        *,
        until: float | None = None,
        most_uses: int = 1,
    ) -> bool:
        """Answer a pending request; False if it is not pending. A grant with `until` ends then, and
        is used `most_uses` times at most."""
        ...

    def revoke(self, id: str, now: float) -> bool:
        """End a grant, which expires; False if it is not a grant, or used up."""
        ...

    def set_waiting(self, id: str, until: float | None) -> None:
        """Keep until when the caller waits for the answer; None: it does not."""
        ...

    def attach_run(self, id: str, run: ApprovedRun) -> None:
        """Keep what became of the call that used the grant."""
        ...

    def note_refused(self, id: str, at: float, message: str) -> None:
        """Count a call that came again after the answer and was refused."""
        ...

    def attach_dry_run(self, id: str, dry_run: DryRun) -> None:
        """Keep what a dry run showed with the request."""
        ...

    def find(self, id: str) -> PendingApproval | None:
        """The request of that id."""
        ...

    def answered(self, ids: Collection[str]) -> frozenset[str]:
        """Those of `ids` that wait for no answer any more, or are not kept."""
        ...

    def starting(self, start: str) -> tuple[PendingApproval, ...]:
        """Requests whose id starts so, two at most: enough to see that there are several."""
        ...

    def list(self, states: Sequence[ApprovalState] | None = None) -> tuple[PendingApproval, ...]:
        """Requests in these states, or in any, oldest first."""
        ...

    def spans(self, since: float) -> tuple[tuple[str, float, float | None], ...]:
        """Source, when it was asked, and when it was answered or expired (None: it waits) of the
        requests that waited after a time."""
        ...

    def expire_old(
        self, now: float, *, grants: float, questions: float, ended: float, latest: float = inf
    ) -> tuple[PendingApproval, ...]:
        """Expire grants given and requests made before those times, and grants given after
        `latest`, and return them; remove what ended before `ended`."""
        ...


class WebhookStore(Protocol):
    """Messages about questions, which several processes on one state send each once."""

    def newest_question(self) -> int:
        """The number of the newest question; 0 if there is none."""
        ...

    def new_questions(self, after: int, limit: int) -> tuple[tuple[int, PendingApproval], ...]:
        """Questions that no message is about, with their numbers: those that wait, and those of a
        number above `after`."""
        ...

    def answered(self, limit: int) -> tuple[PendingApproval, ...]:
        """Questions that are followed and wait no more."""
        ...

    def add(self, message: WebhookMessage) -> bool:
        """Keep a message; False if there is one of that id."""
        ...

    def settle(self, approval: str, message: WebhookMessage | None) -> None:
        """Follow a question no more, drop what was to be sent about it, and keep this message."""
        ...

    def take(self, now: float, until: float) -> WebhookMessage | None:
        """The message that is due and was made first, for one attempt of this caller's; it is due
        again at `until`. None if none is due."""
        ...

    def close_message(self, id: str, state: Literal["sent", "dropped"]) -> None:
        """Send a message no more."""
        ...

    def postpone(self, id: str, until: float) -> None:
        """Let a message be due then."""
        ...

    def drop_before(self, before: float) -> int:
        """Drop the messages that were made before and not sent; how many."""
        ...

    def listed(self) -> tuple[PendingApproval, ...]:
        """The questions of the next digest that still wait, oldest first."""
        ...

    def send_listed(self, digest: WebhookMessage, questions: Collection[str]) -> bool:
        """Keep a digest of these questions, and list them and what waits no more no longer. False,
        and no digest, if another process has sent one of them."""
        ...

    def last_made(self, type: str) -> float | None:
        """When the newest message of a type was made."""
        ...

    def waiting(self) -> int:
        """How many messages wait to be sent, listed ones included."""
        ...

    def forget(self, before: float) -> None:
        """Remove messages that were made before."""
        ...


class ChangeStore(Protocol):
    """Changes whose rows can be put back. The rows are encrypted, each change with a key of its
    own, which the store gets encrypted as well; what is forgotten is overwritten. A change that was
    written past the gates is as if it were not there."""

    def prepare(self, entry: ChangeEntry, key: bytes, image: bytes, total_bytes: int) -> None:
        """Keep a change that is about to be committed, durably. The oldest changes are forgotten
        as far as all would be larger than `total_bytes`."""
        ...

    def confirm(self, entry: ChangeEntry) -> bool:
        """The change was committed: it is `done`, and the change whose rows it put back is
        `undone`. False if it was not `prepared`."""
        ...

    def mark_undone(self, entry: ChangeEntry, by: str) -> None:
        """The rows of the change were put back by that one; empty if that was not kept."""
        ...

    def discard(self, entry: ChangeEntry) -> None:
        """Forget a change, as one that was rolled back."""
        ...

    def find(self, id: str) -> ChangeEntry | None:
        """The change of that id."""
        ...

    def of_call(self, call_id: str) -> ChangeEntry | None:
        """The change that a call made."""
        ...

    def starting(self, start: str) -> tuple[ChangeEntry, ...]:
        """Changes whose id starts so, two at most: enough to see that there are several."""
        ...

    def current(self, entry: ChangeEntry) -> ChangeEntry | None:
        """The change with what became of it, though its row was put back to what it was; None if
        it was discarded. Raises: TidegateError STATE_FAILED where that is not known."""
        ...

    def has_foreign(self, id: str) -> bool:
        """Whether there is a row of that id which no gate has left so."""
        ...

    def image(self, id: str) -> tuple[bytes, bytes] | None:
        """The encrypted key and rows of a change; None if there are none."""
        ...

    def list(
        self,
        source_ids: Collection[str],
        *,
        limit: int,
        actor: str | None = None,
        approval: str | None = None,
        before: float | None = None,
    ) -> tuple[ChangeEntry, ...]:
        """Changes of these sources, newest first: of one actor, of one approval, made before a
        time (Unix seconds), where these are given."""
        ...

    def forget(self, now: float) -> int:
        """Forget the changes that have expired; how many went."""
        ...


class TaskStore(Protocol):
    """Calls that go on after their request was answered, without their results."""

    def add(self, record: TaskRecord) -> None:
        """Keep a new task. One with a `call` changes the topic `tasks`."""
        ...

    def update(self, record: TaskRecord) -> None:
        """Keep what became of a task; nothing happens to one that is not kept any more."""
        ...

    def find(self, id: str) -> TaskRecord | None:
        """The task of that id."""
        ...

    def calls(self, most: int) -> tuple[TaskRecord, ...]:
        """Tasks that are found by their `call`, newest first, and `most` of them."""
        ...

    def renew(self, server: str, until: float) -> None:
        """Let the tasks of a process say that it is there until a time."""
        ...

    def forget(self, before: float) -> None:
        """Drop the tasks that were made before a time."""
        ...
