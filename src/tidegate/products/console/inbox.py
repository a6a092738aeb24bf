"""The inbox: what waits for a person, and the answers.

A yes is bound to the digest of the card that was shown. The first one of a session that began with
a link, and each one to what cannot be undone, needs the operator's passphrase.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from tidegate.approvals.approvals import Approvals
from tidegate.approvals.render import alike
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import Operators, SignedIn
from tidegate.model.actors import Actor
from tidegate.model.changes import ChangeEntry
from tidegate.model.sources import Source
from tidegate.policy.data_rules import (
    digest_of,
    hides_something,
    is_filtered_table,
    masked_names,
    rules_by_name,
    rules_for_people,
)
from tidegate.products.console.cards import Rights, card_of
from tidegate.products.console.sign_in import actor_of, place_of
from tidegate.store.records import PendingApproval

RECENT = 20
_NOT_FOR_VIEWERS = "The rows are shown to approvers of this source."
_UNKNOWN = "The rows are not shown: what their source hides is not known now, or it was removed."
_FILTERED = "The rows are not shown: rows of this table are hidden from you."
_INSEPARABLE = (
    "The rows are not shown: the change touches what is hidden from you or other operators."
)


class Allow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `allow`: the digest of the card that was shown."""

    digest: str
    passphrase: str = ""
    minutes: Annotated[int, msgspec.Meta(ge=0, le=1_440)] = 0


class Deny(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `deny`: a word to the caller."""

    digest: str
    reason: Annotated[str, msgspec.Meta(max_length=500)] = ""


class Inbox:
    """Cards by operator: each sees those of the sources on which it has a role."""

    def __init__(
        self,
        approvals: Approvals,
        operators: Operators,
        sources: Callable[[], Sequence[Source]],
        find_change: Callable[[str], ChangeEntry | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._approvals = approvals
        self._operators = operators
        self._sources = sources
        self._find_change = find_change
        self._clock = clock

    def list(self, signed_in: SignedIn) -> dict[str, Any]:
        """What waits, oldest first, and what was answered last. Reads the state."""
        seen = [
            question
            for question in self._approvals.list(everything=True)
            if self.is_visible(question, signed_in)
        ]
        pending = [each for each in seen if each.state == "pending"]
        ended = [each for each in seen if each.state != "pending"]
        ended.sort(key=lambda each: each.ended_at or each.decided_at or each.asked_at, reverse=True)
        cards = self.cards
        return {
            "pending": cards(pending, signed_in),
            "recent": cards(ended[:RECENT], signed_in),
        }

    def grants(self, signed_in: SignedIn) -> list[dict[str, Any]]:
        """The grants that still count. Reads the state."""
        self._approvals.expire_old()
        open = [each for each in self._approvals.open() if each.state == "allowed"]
        return self.cards([each for each in open if self.is_visible(each, signed_in)], signed_in)

    def find(self, id: str, signed_in: SignedIn) -> PendingApproval:
        """A question that the operator may see. Raises: TidegateError ARGUMENT_INVALID."""
        question = self._approvals.find(id)
        if question.id != id or not self.is_visible(question, signed_in):
            raise TidegateError(Code.ARGUMENT_INVALID, f"There is no question {id[:40]}")
        return question

    def card(self, question: PendingApproval, signed_in: SignedIn) -> dict[str, Any]:
        """The card of a question for this operator."""
        return self.cards([question], signed_in)[0]

    def cards(
        self, questions: Sequence[PendingApproval], signed_in: SignedIn
    ) -> list[dict[str, Any]]:
        """The same of several."""
        sources = {source.id: source for source in self._sources()}
        now = self._clock()
        return [
            card_of(
                each,
                self._rights(each, signed_in, sources.get(each.subject.source_id)),
                sources.get(each.subject.source_id),
                now,
            )
            for each in questions
        ]

    def allow(self, id: str, body: Allow, signed_in: SignedIn, address: str) -> PendingApproval:
        """Say yes. Raises: TidegateError OPERATOR_CONSENT, APPROVAL_CHANGED, AUTH_LOCKED_OUT,
        AUDIT_UNAVAILABLE, ARGUMENT_INVALID."""
        question = self._open(id, body.digest, signed_in)
        if body.passphrase:
            signed_in = self._operators.confirm(signed_in, body.passphrase, address)
        elif _needs_passphrase(question, signed_in):
            raise TidegateError(
                Code.OPERATOR_CONSENT,
                "This yes needs your passphrase; nothing was allowed.",
                hint="Type it, and allow again.",
            )
        return self._approvals.resolve(
            question.id,
            "allowed",
            signed_in.actor_id,
            operator=signed_in.operator.name,
            minutes=body.minutes,
            details={
                **place_of(signed_in, address),
                "by": "passphrase" if body.passphrase else "session",
            },
        )

    def deny(self, id: str, body: Deny, signed_in: SignedIn, address: str) -> PendingApproval:
        """Say no. Raises: TidegateError APPROVAL_CHANGED, OPERATOR_CONSENT, ARGUMENT_INVALID."""
        question = self._open(id, body.digest, signed_in)
        return self._approvals.resolve(
            *(question.id, "denied", signed_in.actor_id, body.reason),
            details=place_of(signed_in, address),
        )

    def revoke(self, id: str, signed_in: SignedIn, address: str) -> PendingApproval:
        """End a grant for minutes. Raises: TidegateError as `deny`."""
        question = self.find(id, signed_in)
        self._check_role(question, signed_in)
        place = place_of(signed_in, address)
        return self._approvals.revoke(question.id, signed_in.actor_id, place)

    def is_visible(self, question: PendingApproval, signed_in: SignedIn) -> bool:
        """Whether the operator may see a question."""
        return signed_in.may("viewer", question.subject.source)

    def _open(self, id: str, digest: str, signed_in: SignedIn) -> PendingApproval:
        question = self.find(id, signed_in)
        self._check_role(question, signed_in)
        if question.state != "pending":
            by = question.decided_by.partition(":")[2] or question.decided_by
            raise TidegateError(
                Code.APPROVAL_CHANGED,
                f"The question is no longer open: it was {question.state}"
                + (f" by {by}." if by else "."),
            )
        if question.digest != digest:
            raise TidegateError(
                Code.APPROVAL_CHANGED, "The question is not the one that was shown."
            )
        return question

    @staticmethod
    def _check_role(question: PendingApproval, signed_in: SignedIn) -> None:
        source = question.subject.source
        if not signed_in.may("approver", source):
            raise TidegateError(
                Code.POLICY_DENIED,
                f"You may read {source}, but not answer for it.",
                hint="Ask an admin for the role approver there.",
            )

    def _rights(
        self, question: PendingApproval, signed_in: SignedIn, source: Source | None
    ) -> Rights:
        name = question.subject.source
        approver = signed_in.may("approver", name)
        why_not = f"You may read {name}, but not answer for it."
        if approver:
            why_not = self._approvals.why_not(question, signed_in.operator.name) or ""
        change = None
        if question.run is not None and question.run.change_id:
            change = self._find_change(question.run.change_id)
        actor = actor_of(signed_in)
        # What a source that was removed hid is not known any more.
        hides = source is None or hides_something(actor, source)
        rows_hidden, masks = _NOT_FOR_VIEWERS, frozenset[str]()
        if approver:
            rows_hidden, masks = _hidden_of(question, actor, source)
        return Rights(
            allow=approver and not why_not,
            deny=approver,
            undo=approver and change is not None and change.state == "done",
            undone=change is not None and change.state == "undone",
            minutes=self._approvals.most_minutes(question),
            passphrase=_needs_passphrase(question, signed_in),
            why_not=why_not,
            rows_hidden=rows_hidden,
            masks=masks,
            hides_statement=not approver and hides,
        )


def _hidden_of(
    question: PendingApproval, actor: Actor, source: Source | None
) -> tuple[str, frozenset[str]]:
    """Why none of the rows of a dry run are for an approver, or the columns that are not."""
    dry_run = question.dry_run
    if dry_run is None:
        return "", frozenset()
    if source is None:
        return _UNKNOWN, frozenset()
    rules = rules_by_name(actor, source)
    if rules is None:
        return "", frozenset()
    if dry_run.separable_under != digest_of(rules_for_people(source)):
        return _INSEPARABLE, frozenset()
    masks: set[str] = set()
    for table in question.subject.tables:
        if is_filtered_table(rules, table):
            return _FILTERED, frozenset()
        masks |= masked_names(rules, table)
    return "", frozenset(map(alike, masks))


def _needs_passphrase(question: PendingApproval, signed_in: SignedIn) -> bool:
    return signed_in.session.confirmed_at is None or question.subject.irreversible
