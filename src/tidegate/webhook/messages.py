"""What messages say: that a question waits or was answered, in one sentence, and where to answer.

No text of a statement, no value and no row is in them, and the link lets in only people who sign
in.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from tidegate.approvals.approvals import QUESTION_TTL_S
from tidegate.approvals.place import link_inbox
from tidegate.approvals.sentence import sentence_of
from tidegate.secrets.redaction import mask_shapes
from tidegate.store.records import PendingApproval, WebhookMessage, WebhookState
from tidegate.webhook.names import show_name

ASKED, DECIDED, DIGEST, TEST = (
    "approval.asked", "approval.decided", "approval.digest", "webhook.test",
)  # fmt: skip
MOST_LISTED = 20
"""Questions that a digest names; the others are counted."""
_MOST_SENTENCE = 300


def asked(
    question: PendingApproval, address: str, now: float, state: WebhookState
) -> WebhookMessage:
    """That a question waits. `address` is where the console is, empty if it is not known."""
    return _about(ASKED, question, address, now, state)


def decided(
    question: PendingApproval, address: str, now: float, state: WebhookState = "waiting"
) -> WebhookMessage:
    """That a question waits no more."""
    return _about(DECIDED, question, address, now, state)


def digest(questions: Sequence[PendingApproval], address: str, now: float) -> WebhookMessage:
    """All that wait and were in no digest yet."""
    listed = [
        {key: value for key, value in _fields(each).items() if key != "decided_at"}
        for each in questions[:MOST_LISTED]
    ]
    data = {
        "count": len(questions),
        "questions": listed,
        "more": max(0, len(questions) - MOST_LISTED),
        "link": _link(address, ""),
    }
    # The same from every process that makes it now: one of them keeps it.
    return _message(_id(DIGEST, *(each.id for each in questions)), DIGEST, "", data, now, "waiting")


def test(address: str, now: float) -> WebhookMessage:
    """A message by which the operator sees that messages arrive."""
    data = {
        "sentence": "This is a test: no question waits because of it.",
        "link": _link(address, ""),
    }
    return _message(f"msg_{os.urandom(16).hex()}", TEST, "", data, now, "waiting")


def _about(
    type: str, question: PendingApproval, address: str, now: float, state: WebhookState
) -> WebhookMessage:
    # The same from every process and after a restart: the receiver sees one that comes twice.
    id = _id(type, question.id)
    data = {**_fields(question), "link": _link(address, question.id)}
    made = _message(id, type, question.id, data, now, state)
    return msgspec.structs.replace(made, followed=type == ASKED)


def _message(
    id: str, type: str, approval: str, data: dict[str, Any], now: float, state: WebhookState
) -> WebhookMessage:
    body = msgspec.json.encode({"type": type, "timestamp": _time(now), "data": data})
    return WebhookMessage(id, type, approval, body, state, now, now)


def _id(*names: str) -> str:
    return f"msg_{sha256(' '.join(names).encode()).hexdigest()[:32]}"


def _fields(question: PendingApproval) -> dict[str, Any]:
    state = _state(question)
    ends_at = question.asked_at + QUESTION_TTL_S if state == "pending" else question.until
    decided_at = question.decided_at or question.ended_at
    return {
        "id": question.id,
        "sentence": mask_shapes(sentence_of(question, show_name))[:_MOST_SENTENCE],
        "source": question.subject.source,
        "state": state,
        "asked_at": _time(question.asked_at),
        "decided_at": None if state == "pending" or decided_at is None else _time(decided_at),
        "expires_at": None if ends_at is None else _time(ends_at),
    }


def _state(question: PendingApproval) -> str:
    """`pending`, `allowed`, `denied`, or `expired` without an answer."""
    if question.state in ("pending", "denied"):
        return question.state
    return "expired" if question.decided_at is None else "allowed"


def _link(address: str, id: str) -> str | None:
    return link_inbox(address, id) if address else None


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
