"""Questions to a person and what became of them. Asks nobody itself: that is an edge's business.

A call that needs approval leaves a question. Whoever answers it, and whenever, leaves a grant or a
denial, and the next call for exactly the same finds that. A grant is used once.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Literal

from msgspec import structs

from tidegate.approvals.petition import Petition
from tidegate.calls import Call
from tidegate.cancellation import Cancellation
from tidegate.config.model import ApprovalSettings
from tidegate.errors import Code, GateError
from tidegate.statements import Rehearsal
from tidegate.store.approvals import ApprovalBook, Bounds, Question

Rehearse = Callable[[], Awaitable[Rehearsal]]
Note = Callable[[str, str, Mapping[str, str]], None]
"""Puts on record what happened: a name, who did it, details."""

COOL_OFF_S = 60.0
"""For so long after a denial the same question is not asked again."""
QUESTION_TTL_S = 7 * 86_400.0
KEPT_S = 30 * 86_400.0
"""How long a question waits, and how long one that has ended is shown."""
MOST = 1_000
MOST_OF_ACTOR = 50
_SWEEP_S = 60.0
_LOOK_S = 0.25
_WAITING = 0.1


class ApprovalNeeded(GateError):
    """APPROVAL_NEEDED with the question. `askable`: the caller's client may show it to a person."""

    def __init__(self, question: Question, *, askable: bool, message: str = "") -> None:
        super().__init__(
            Code.APPROVAL_NEEDED,
            message or "A person must approve this call",
            hint=f"Ask the operator to run `tidegate approvals allow {question.id}`,"
            " then send the same call again.",
            details={
                "approval": question.id,
                "effect": question.subject.effect,
                "rule": question.subject.rule,
            },
        )
        self.question = question
        self.askable = askable


class Approvals:
    """Questions kept in `book`, which processes share. `note` puts on record what is decided."""

    def __init__(
        self,
        book: ApprovalBook,
        settings: ApprovalSettings | None = None,
        *,
        note: Note | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._book = book
        self.settings = settings or ApprovalSettings()
        self._note = note or _note_nothing
        self._clock = clock
        self._swept_at = 0.0

    async def approve(self, petition: Petition, call: Call, rehearse: Rehearse) -> str:
        """The id of the grant that this call has now used up; empty if it needs none.

        Raises: ApprovalNeeded, GateError APPROVAL_DECLINED, LIMIT_RATE.
        """
        anywhere = petition.source.approval == "any"
        askable = call.can_ask and anywhere
        if anywhere and not askable and petition.source.unattended == "allow":
            answer = await self.answered(petition)
            return answer.id if answer else ""
        question = await self.consult(petition)
        if question.state == "used":
            return question.id
        if question.askers == 1 and self.settings.dry_run:
            question = await self.attach(question, await rehearse())
        if askable or not self.settings.wait_s:
            raise ApprovalNeeded(question, askable=askable)
        if call.progress is not None:
            call.progress(_WAITING, "Waiting for approval")
        if not await self.wait(question, call.cancellation):
            raise ApprovalNeeded(question, askable=False)
        answer = await self.answered(petition)
        if answer is None:
            message = "What a person approved was used by another call like this one"
            raise ApprovalNeeded(question, askable=False, message=message)
        return answer.id

    async def consult(self, petition: Petition) -> Question:
        """The question of this petition: state `used` if a person allowed it, which uses that up;
        else `pending`, asked now (`askers` is 1) or before.

        Raises: GateError APPROVAL_DECLINED while a denial cools off, LIMIT_RATE if too many
        questions wait.
        """
        return await asyncio.to_thread(self._consult, petition)

    async def answered(self, petition: Petition) -> Question | None:
        """As `consult`, but asks nothing: None if there is no answer."""
        return await asyncio.to_thread(self._answered, petition)

    async def attach(self, question: Question, rehearsal: Rehearsal) -> Question:
        """The question with what a rehearsal showed, also kept so."""
        await asyncio.to_thread(self._book.attach, question.id, rehearsal)
        return structs.replace(question, rehearsal=rehearsal)

    async def wait(self, question: Question, cancellation: Cancellation) -> bool:
        """Wait `wait_s` at most for an answer; whether there is one. Ends when the call does."""
        gone = asyncio.Event()
        cancellation.listen(gone.set)
        loop = asyncio.get_running_loop()
        until = loop.time() + self.settings.wait_s
        try:
            while not gone.is_set() and (left := until - loop.time()) > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(gone.wait(), min(left, _LOOK_S))
                now = await asyncio.to_thread(self._book.find, question.id)
                if now is None or now.state != "pending":
                    return True
        finally:
            cancellation.forget(gone.set)
        return False

    def decide(
        self, id: str, state: Literal["allowed", "denied"], by: str, reason: str = ""
    ) -> Question:
        """Answer a question for good. `by` names the person for the record.

        Raises: GateError ARGUMENT_INVALID if there is no such question or it waits no more.
        """
        question = self.find(id)
        if question.state == "pending":
            self._tell(state, question, by, reason)
            if self._book.decide(question.id, state, by, reason, self._clock()):
                return self.find(question.id)
            self._tell("late", question, by)
            question = self.find(question.id)
        by_whom = f" by {question.decided_by}" if question.decided_by else ""
        raise GateError(
            Code.ARGUMENT_INVALID,
            f"The question {question.id} waits no more: it was {question.state}{by_whom}",
            hint="`tidegate approvals list` shows those that wait.",
        )

    async def settle(
        self, question: Question, actor: str, allow: bool, by: str, reason: str = ""
    ) -> None:
        """Take the answer that a person gave where the caller's client showed the question.

        An answer to a question that has one already changes nothing: the first counts.
        Raises: GateError APPROVAL_NEEDED if it is not this caller's question.
        """
        if question.actor != actor:
            raise GateError(Code.APPROVAL_NEEDED, "The answer is to another caller's question")
        try:
            await asyncio.to_thread(
                self.decide, question.id, "allowed" if allow else "denied", by, reason
            )
        except GateError as error:
            if error.code is not Code.ARGUMENT_INVALID:
                raise

    def find(self, start: str) -> Question:
        """The question whose id is this or alone starts so.

        Raises: GateError ARGUMENT_INVALID if there is none, or more than one.
        """
        self.sweep()
        exact = self._book.find(start)
        found = (exact,) if exact else self._book.starting(start) if start else ()
        if len(found) == 1:
            return found[0]
        raise GateError(
            Code.ARGUMENT_INVALID,
            f"Several questions start with {start!r}" if found else f"There is no question {start}",
            hint="`tidegate approvals list` shows those that wait.",
        )

    def list(self, *, everything: bool = False) -> tuple[Question, ...]:
        """The questions that wait, or all that are kept; oldest first."""
        self.sweep()
        return self._book.list(None if everything else ("pending",))

    def sweep(self) -> None:
        """Expire what lay unanswered or unused for too long."""
        now = self._swept_at = self._clock()
        expired = self._book.sweep(
            now,
            grants=now - self.settings.grant_ttl_s,
            questions=now - QUESTION_TTL_S,
            ended=now - KEPT_S,
        )
        for question in expired:
            self._tell("expired", question, "")

    def close(self) -> None:
        self._book.close()

    def _consult(self, petition: Petition) -> Question:
        now = self._clock()
        if not 0 <= now - self._swept_at < _SWEEP_S:
            self.sweep()
        asked = Question(
            id=os.urandom(5).hex(),
            digest=petition.digest,
            state="pending",
            actor=petition.actor.id,
            subject=petition.subject(),
            asked_at=now,
        )
        question = self._book.admit(asked, self._bounds(now))
        if question.id == asked.id:
            self._tell("asked", question, petition.actor.id)
        return self._heeded(question, now)

    def _answered(self, petition: Petition) -> Question | None:
        now = self._clock()
        question = self._book.answer(petition.digest, self._bounds(now), now)
        return question and self._heeded(question, now)

    def _heeded(self, question: Question, now: float) -> Question:
        if question.state == "denied":
            decided_at = question.decided_at or now
            raise GateError(
                Code.APPROVAL_DECLINED,
                "A person declined this call",
                hint=question.reason or None,
                retry_after_s=max(0.0, decided_at + COOL_OFF_S - now),
                details={"approval": question.id},
            )
        if question.state == "used":
            self._tell("used", question, question.actor)
        return question

    def _bounds(self, now: float) -> Bounds:
        return Bounds(now - self.settings.grant_ttl_s, now - COOL_OFF_S, MOST, MOST_OF_ACTOR)

    def _tell(self, what: str, question: Question, actor: str, reason: str = "") -> None:
        subject = question.subject
        details = {"approval": question.id, "source": subject.source, "caller": question.actor}
        if reason:
            details["reason"] = reason
        self._note(f"approval.{what}", actor, details)


def _note_nothing(name: str, actor: str, details: Mapping[str, str]) -> None:
    return None
