"""Questions to a person and their answers. Does not prompt the user: edges do that.

A call that needs approval leaves a question. An answer, at any time, leaves a grant or a
denial, and the next call for exactly the same finds that. A grant is used once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from math import inf
from types import MappingProxyType
from typing import Literal

import msgspec
from msgspec import structs

from tidegate.approvals.approval_request import ApprovalRequest
from tidegate.approvals.awaited_answers import AwaitedAnswers
from tidegate.approvals.four_eyes import NO_OTHER, counts_still, why_not
from tidegate.approvals.place import OPENED, name_inbox
from tidegate.config.model import ApprovalSettings
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import Cancellation
from tidegate.model.deadlines import AHEAD_S, CLOCKS, Clocks, Deadlines
from tidegate.model.requests import Call
from tidegate.model.statements import DryRun, Effect, NewState
from tidegate.store.calls import change_state, read_state
from tidegate.store.records import (
    ApprovalBounds,
    ApprovedRun,
    OperatorEntry,
    PendingApproval,
)
from tidegate.store.supervision import ApprovalStore
from tidegate.store.versions import Versions

RunDryRun = Callable[[], Awaitable[DryRun]]
RecordEvent = Callable[[str, str, Mapping[str, str]], None]
"""Puts on record what happened: a name, who did it, details."""

COOL_OFF_S = 60.0
"""For so long after a denial the same question is not asked again."""
QUESTION_TTL_S = 7 * 86_400.0
KEPT_S = 30 * 86_400.0
"""How long a question waits, and how long one that has ended is shown."""
MAX_PENDING = 1_000
MAX_PENDING_PER_ACTOR = 50
NO_DETAILS: Mapping[str, str] = MappingProxyType({})
_SWEEP_S = 60.0
MANY_WAIT = "They wait in "
"""How the advice begins where too many questions wait."""
_WAITING = 0.1
_LEASE_S = 60.0


FORM_S = 300.0
"""For how long a form in the caller's client waits for an answer, if `approvals.wait_s` is 0."""


class ApprovalNeeded(TidegateError):
    """APPROVAL_NEEDED with the question. `client_may_ask`: the caller's client may show it to a
    person. `dismissed`: it was shown there and closed without an answer; `problem`: why it was not
    answered there, and `unexpected_action` what the client sent in place of an answer. `form_s` is
    for how long it may be shown there.

    What the caller reads holds neither the question's id nor a command: an agent with a shell
    under the operator's own account must not learn here how to answer itself.
    """

    def __init__(
        self,
        question: PendingApproval,
        *,
        client_may_ask: bool,
        form_s: float = FORM_S,
        message: str = "",
        place: str = OPENED,
    ) -> None:
        """`place` is where a person can answer, as `name_inbox` says it."""
        super().__init__(
            Code.APPROVAL_NEEDED,
            message or "A person must approve this call",
            hint=f"The question waits in {place}. Ask the user to answer it there, then send the"
            " same call again.",
            details={"effect": question.subject.effect, "rule": question.subject.rule},
        )
        self.question = question
        self.place = place
        self.client_may_ask = client_may_ask
        self.form_s = form_s
        self.dismissed = False
        self.problem = ""
        self.unexpected_action: str | None = None


class ApprovalDeclined(TidegateError):
    """APPROVAL_DECLINED with the question that was denied, which the caller does not read."""

    def __init__(self, question: PendingApproval, retry_after_s: float) -> None:
        super().__init__(
            Code.APPROVAL_DECLINED,
            "A person declined this call",
            hint=question.reason or None,
            retry_after_s=retry_after_s,
        )
        self.question = question


def _no_name(actor: str) -> str:
    return ""


def _none_of(ids: Collection[str]) -> Collection[str]:
    return ()


class Identities(msgspec.Struct, frozen=True):
    """The one who asked and those who may answer, as the accounts and tokens say when they are
    read.

    `name_of` gives the name of a caller by its id, empty if that is unknown. `operators` gives the
    people with accounts, and `revoked` those of some callers' ids whose token was revoked.
    """

    name_of: Callable[[str], str] = _no_name
    operators: Callable[[], Sequence[OperatorEntry]] = tuple
    revoked: Callable[[Collection[str]], Collection[str]] = _none_of


NO_IDENTITIES = Identities()


class Approvals:
    """Questions kept in `book`, which processes share. `note` puts on record what is decided
    before that takes effect, and `note_done`, which must not raise, what happens in any case.
    `console` gives the address of the console, empty if this process serves none."""

    def __init__(
        self,
        book: ApprovalStore,
        settings: ApprovalSettings | None = None,
        *,
        note: RecordEvent | None = None,
        note_done: RecordEvent | None = None,
        identities: Identities = NO_IDENTITIES,
        console: Callable[[], str] = str,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._store = book
        self._awaited = AwaitedAnswers(book)
        self.versions: Versions | None = None
        """Say when something about approvals has changed, if the state is followed."""
        self.settings = settings or ApprovalSettings()
        self._note = note or _note_nothing
        self._identities = identities
        self._console = console
        self._note_done = note_done or self._note
        self._clock = clocks.wall
        self._deadlines = Deadlines(clocks)
        self._swept_at = 0.0

    def follow(self, versions: Versions) -> None:
        """Have calls that wait learn of answers by what is known of changes."""
        self.versions = versions
        self._awaited = AwaitedAnswers(self._store, versions)

    def _needed(
        self, question: PendingApproval, *, client_may_ask: bool = False, message: str = ""
    ) -> ApprovalNeeded:
        return ApprovalNeeded(
            question,
            client_may_ask=client_may_ask,
            form_s=self.settings.wait_s or FORM_S,
            message=message,
            place=self.place,
        )

    @property
    def place(self) -> str:
        """Where a person can answer, for the middle of a sentence."""
        return name_inbox(self._console())

    async def approve(
        self,
        approval_request: ApprovalRequest,
        call: Call,
        dry_run: RunDryRun,
        *,
        may_wait: bool,
    ) -> str:
        """The id of the grant that this call has now used up; empty if it needs none. A call that
        holds locks of a database may not wait (`may_wait`): no person is asked.

        Raises: ApprovalNeeded, ApprovalDeclined, TidegateError APPROVAL_NEEDED, LIMIT_RATE.
        """
        anywhere = approval_request.source.approval == "any"
        administers = approval_request.judgement.effect is Effect.ADMIN
        client_may_ask = call.can_ask and anywhere
        unattended = approval_request.source.unattended == "allow" and not administers
        if anywhere and not client_may_ask and unattended:
            answer = await self.find_answer(approval_request)
            return answer.id if answer else ""
        if not may_wait:
            raise TidegateError(
                Code.APPROVAL_NEEDED,
                "A person must approve this statement, and its transaction has begun: it would hold"
                " its locks while it waits. No person was asked.",
                hint="Send it by itself, or first in its block.",
            )
        question = await self.request(approval_request)
        while question.state == "used":
            if question.until is None or await self._still_fits(
                question, approval_request, dry_run
            ):
                return question.id
            question = await self.request(approval_request)
        if question.askers == 1 and self.settings.dry_run:
            question = await self.attach_dry_run(question, await dry_run())
        if client_may_ask and await read_state(self.why_not, question, "") is not None:
            client_may_ask = False  # no yes from there counts: it is not asked
        waiter = call.waiter
        patience_s = None if waiter is None else waiter.patience_s
        wait_s = self.settings.wait_s if patience_s is None else patience_s
        if client_may_ask or not call.waits or not wait_s:
            raise self._needed(question, client_may_ask=client_may_ask)
        if call.progress is not None:
            call.progress(_WAITING, "Waiting for approval")
        if waiter is not None:
            await waiter.begin_wait(f"It waits for a person's approval in {self.place}")
        if not await self.wait(question, call.cancellation, wait_s, lease_s=_LEASE_S):
            if call.cancellation.cancelled:
                raise TidegateError(Code.CALL_CANCELLED, "The call was cancelled")
            raise self._needed(question)
        if waiter is not None:
            await waiter.end_wait()
        answer = await self.find_answer(approval_request)
        if answer is None:
            message = "What a person approved was used by another call like this one"
            raise self._needed(question, message=message)
        return answer.id

    async def _still_fits(
        self, question: PendingApproval, approval_request: ApprovalRequest, dry_run: RunDryRun
    ) -> bool:
        """Whether a grant for some minutes holds for this call: the rights are those under which it
        was given, and the change is about no more rows than the person saw. If not, it ends."""
        shown = None if question.dry_run is None else question.dry_run.affected
        if question.subject.circumstances == approval_request.circumstances and shown is not None:
            affected = (await dry_run()).affected
            if affected is not None and affected <= shown:
                return True
        await self.give_back(question.id)
        await change_state(self.revoke, question.id, "")
        return False

    async def request(self, approval_request: ApprovalRequest) -> PendingApproval:
        """The question of this request: state `used` if a person allowed it, which uses that up;
        else `pending`, asked now (`askers` is 1) or before.

        Raises: TidegateError APPROVAL_DECLINED while a denial cools off, LIMIT_RATE if too many
        questions wait.
        """
        return await change_state(self._consult, approval_request)

    async def find_answer(self, approval_request: ApprovalRequest) -> PendingApproval | None:
        """As `request`, but asks nothing: None if there is no answer."""
        return await change_state(self._answered, approval_request)

    async def give_back(self, id: str) -> None:
        """Let a grant that was used up count again, for a call that did not run."""
        await change_state(self._give_back, id)

    async def attach_dry_run(self, question: PendingApproval, dry_run: DryRun) -> PendingApproval:
        """The question with what a dry run showed, also kept so."""
        await change_state(self._store.attach_dry_run, question.id, dry_run)
        return structs.replace(question, dry_run=dry_run)

    async def attach_new_state(self, id: str, state: NewState) -> None:
        """Keep what was there after the approved change had run."""

        def attach() -> None:
            question = self._store.find(id)
            if question is not None:
                dry_run = structs.replace(question.dry_run or DryRun(), state=state)
                self._store.attach_dry_run(id, dry_run)

        await change_state(attach)

    async def wait(
        self,
        question: PendingApproval,
        cancellation: Cancellation,
        wait_s: float,
        *,
        lease_s: float = inf,
    ) -> bool:
        """Wait `wait_s` at most for an answer; whether there is one. Ends when the call does. The
        question says for `lease_s` at a time that the caller waits, so that it does not claim this
        for long if the process is killed."""
        gone = asyncio.Event()
        cancellation.listen(gone.set)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        try:
            while not gone.is_set() and (left := until - loop.time()) > 0:
                waits_until = self._clock() + min(left, lease_s)
                await change_state(self._store.set_waiting, question.id, waits_until)
                if await self._awaited.wait(question.id, gone, min(left, lease_s / 2)):
                    return True
        finally:
            cancellation.forget(gone.set)
            with suppress(TidegateError):  # the card says for longer that the caller waits
                await change_state(self._store.set_waiting, question.id, None)
        return False

    def resolve(
        self,
        id: str,
        state: Literal["allowed", "denied"],
        by: str,
        reason: str = "",
        *,
        operator: str = "",
        minutes: int = 0,
        details: Mapping[str, str] = NO_DETAILS,
    ) -> PendingApproval:
        """Answer a question. The answer is final. `by` names the person for the record, `details`
        say from where and how, and `operator` is the account in which it was given, if it was in
        one. With `minutes` the grant counts for so long, for calls like this one.

        Raises: TidegateError ARGUMENT_INVALID if there is no such question, it is not pending, or
        its grant cannot be for minutes; OPERATOR_CONSENT if another person must answer.
        """
        question = self.find(id)
        if question.state == "pending":
            until, most_uses = None, 1
            # A denial takes a right away: nothing may prevent it, not even a full disk.
            if state == "allowed":
                if (why := self.why_not(question, operator)) is not None:
                    alone = NO_OTHER in why
                    hint = "Ask an admin." if alone else "Ask another operator to answer."
                    raise TidegateError(Code.OPERATOR_CONSENT, why, hint=hint)
                if minutes:
                    until, most_uses = self._bounds_of(question, minutes)
                    details = {**details, "uses": str(most_uses)}
                self._record(state, question, by, reason, minutes=minutes, more=details)
            if self._store.resolve(
                *(question.id, state, by, reason, self._clock()), until=until, most_uses=most_uses
            ):
                if state == "denied":
                    self._record(state, question, by, reason, done=True, more=details)
                answered = self.find(question.id)
                self._is_over(answered)  # from now on the seconds are counted
                return answered
            self._record("late", question, by, done=True, more=details)
            question = self.find(question.id)
        by_whom = f" by {question.decided_by}" if question.decided_by else ""
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The question {question.id} is no longer open: it was {question.state}{by_whom}",
            hint="`tidegate approvals list` shows the open questions.",
        )

    def why_not(self, question: PendingApproval, operator: str) -> str | None:
        """Why a yes of this operator does not count; empty is one that was given in no account, at
        the command line or in the caller's client. None if it counts."""
        return why_not(
            self.settings.four_eyes, question.subject, operator, self._identities.operators()
        )

    def most_minutes(self, question: PendingApproval) -> int:
        """For how many minutes a grant of this question can be given at most; 0: for one call."""
        tried = question.dry_run is not None and question.dry_run.affected is not None
        return self.settings.grant_minutes if tried and not question.subject.irreversible else 0

    def _bounds_of(self, question: PendingApproval, minutes: int) -> tuple[float, int]:
        most = self.most_minutes(question)
        if not 0 < minutes <= most:
            message = (
                f"This can be allowed for {most} minutes at most"
                if most
                else "This can be allowed for one call only: either its rows are not known, or it"
                " cannot be undone"
            )
            raise TidegateError(Code.ARGUMENT_INVALID, message)
        return self._clock() + 60.0 * minutes, self.settings.grant_uses

    def revoke(self, id: str, by: str, details: Mapping[str, str] = NO_DETAILS) -> PendingApproval:
        """End a grant. Works without a record.

        Raises: TidegateError ARGUMENT_INVALID if there is no such question, or no grant of it.
        """
        question = self.find(id)
        if not self._store.revoke(question.id, self._clock()):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The question {question.id} has no grant: it was {question.state}",
                hint="`tidegate approvals list --all` shows the state of each.",
            )
        self._record("revoked", question, by, done=True, more=details)
        return self.find(question.id)

    def save_refusal(self, actor: str, source_id: str, statement: str, message: str) -> None:
        """Keep with the grant for this statement of a caller that the call came again and was
        refused before the grant could count. Raises: TidegateError STATE_FAILED."""
        for question in self._store.list(("allowed",)):
            subject = question.subject
            if (question.actor, subject.source_id, subject.statement) == (
                actor,
                source_id,
                statement,
            ):
                self._store.note_refused(question.id, self._clock(), message)

    def attach_run(self, id: str, run: ApprovedRun) -> None:
        """Keep what became of the call that used a grant. Raises: TidegateError STATE_FAILED."""
        self._store.attach_run(id, run)

    async def record_client_answer(
        self, question: PendingApproval, actor: str, allow: bool, by: str, reason: str = ""
    ) -> None:
        """Take the answer that a person gave where the caller's client showed the question.

        An answer to a question that has one already changes nothing: the first counts.
        Raises: TidegateError APPROVAL_NEEDED if it is not this caller's question.
        """
        if question.actor != actor:
            raise TidegateError(Code.APPROVAL_NEEDED, "The answer is to another caller's question")
        try:
            await change_state(
                self.resolve, question.id, "allowed" if allow else "denied", by, reason
            )
        except TidegateError as error:
            if error.code is not Code.ARGUMENT_INVALID:
                raise

    def find(self, start: str) -> PendingApproval:
        """The question whose id is this or alone starts so.

        Raises: TidegateError ARGUMENT_INVALID if there is none, or more than one.
        """
        self.expire_old()
        exact = self._store.find(start)
        found = (exact,) if exact else self._store.starting(start) if start else ()
        if len(found) == 1:
            return found[0]
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"Several questions start with {start!r}" if found else f"There is no question {start}",
            hint="`tidegate approvals list` shows the open questions.",
        )

    def list(self, *, everything: bool = False) -> tuple[PendingApproval, ...]:
        """The questions that wait, or all that are kept; oldest first."""
        self.expire_old()
        return self._store.list(None if everything else ("pending",))

    def open(self) -> tuple[PendingApproval, ...]:
        """The questions that wait and the grants that count, as they are kept: only reads."""
        return self._store.list(("pending", "allowed"))

    def spans(self, since: float) -> tuple[tuple[str, float, float | None], ...]:
        """Source, begin and end (None: none yet) of the waits that went on after a time: only
        reads."""
        return self._store.spans(since)

    def look_up(self, id: str) -> PendingApproval | None:
        """The question of that id, as it is kept: only reads."""
        return self._store.find(id)

    def expire_old(self) -> None:
        """Expire what lay unanswered or unused for too long, and grants of revoked tokens."""
        now = self._swept_at = self._clock()
        expired = self._store.expire_old(
            now,
            grants=now - self.settings.grant_ttl_s,
            latest=now + AHEAD_S,
            questions=now - QUESTION_TTL_S,
            ended=now - KEPT_S,
        )
        for question in expired:
            self._record("expired", question, "", done=True)
        grants = self._store.list(("allowed",))
        revoked = self._identities.revoked({each.actor for each in grants}) if grants else ()
        for question in grants:
            if self._is_over(question) or question.actor in revoked:
                self._end(question, "expired")

    def _consult(self, approval_request: ApprovalRequest) -> PendingApproval:
        now = self._clock()
        if not 0 <= now - self._swept_at < _SWEEP_S:
            self.expire_old()
        asked = PendingApproval(
            id=os.urandom(5).hex(),
            digest=approval_request.digest,
            state="pending",
            actor=approval_request.actor.id,
            subject=approval_request.subject(),
            asked_at=now,
        )
        while True:
            try:
                question = self._store.admit(asked, self._bounds(now))
            except TidegateError as error:
                if error.code is Code.LIMIT_RATE:
                    raise error.with_hint(
                        f"{MANY_WAIT}{self.place}. Ask the user to have some answered there."
                    ) from None
                raise
            if question.id == asked.id:
                self._record("asked", question, approval_request.actor.id)
            elif question.state == "denied":
                with suppress(TidegateError):  # the answer does not hang on it
                    self._store.note_refused(question.id, now, "")
            if self._counts_still(question):
                return self._raise_if_denied(question, now)

    def _answered(self, approval_request: ApprovalRequest) -> PendingApproval | None:
        now = self._clock()
        while True:
            question = self._store.answer(approval_request.digest, self._bounds(now), now)
            if question is None:
                return None
            if self._counts_still(question):
                return self._raise_if_denied(question, now)

    def _counts_still(self, question: PendingApproval) -> bool:
        """Whether the yes by which a grant was given would count now. If not, the grant ends: it
        was given before there were two operators, or by an operator who may not answer any more."""
        if question.state != "used":
            return True
        over = self._is_over(question)
        if not over and counts_still(
            self.settings.four_eyes, question, self._identities.operators()
        ):
            return True
        self._store.give_back(question.id)
        self._end(question, "expired" if over else "revoked")
        return False

    def _is_over(self, question: PendingApproval) -> bool:
        """Whether the time of a grant is over. The store reports this by the clock alone, too."""
        end = (question.decided_at or 0.0) + self.settings.grant_ttl_s
        end = end if question.until is None else min(end, question.until)
        return self._deadlines.has_passed(question.id, end)

    def _end(self, question: PendingApproval, what: str) -> None:
        """End a grant, unless another call has it: that call checks it itself."""
        if self._store.revoke(question.id, self._clock()):
            self._record(what, question, "", done=True)

    def _raise_if_denied(self, question: PendingApproval, now: float) -> PendingApproval:
        if question.state == "denied":
            decided_at = question.decided_at or now
            raise ApprovalDeclined(question, max(0.0, decided_at + COOL_OFF_S - now))
        if question.state == "used":
            try:
                self._record("used", question, question.actor)
            except TidegateError:
                self._store.give_back(question.id)  # nothing runs that is not on record
                raise
        return question

    def _give_back(self, id: str) -> None:
        self._store.give_back(id)
        question = self._store.find(id)
        if question is not None:
            self._record("returned", question, question.actor, done=True)

    def _bounds(self, now: float) -> ApprovalBounds:
        return ApprovalBounds(
            *(now - self.settings.grant_ttl_s, now - COOL_OFF_S),
            *(MAX_PENDING, MAX_PENDING_PER_ACTOR),
            latest=now + AHEAD_S,
        )

    def _record(
        self,
        what: str,
        question: PendingApproval,
        actor: str,
        reason: str = "",
        *,
        done: bool = False,
        minutes: int = 0,
        more: Mapping[str, str] = NO_DETAILS,
    ) -> None:
        subject = question.subject
        details = {"approval": question.id, "source": subject.source, "caller": question.actor}
        details |= more
        if minutes:
            details["minutes"] = str(minutes)
        name = self._identities.name_of(question.actor)
        if name:
            details["caller_name"] = name
        if reason:
            details["reason"] = reason
        note = self._note_done if done else self._note
        note(f"approval.{what}", actor, details)


def _note_nothing(name: str, actor: str, details: Mapping[str, str]) -> None:
    return None
