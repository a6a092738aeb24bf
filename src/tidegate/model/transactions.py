"""Requests that begin, use and end a transaction over several statements. Frozen.

A call names its transaction (`Call.transaction`) by the id that answered `BeginTransaction`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec

from tidegate.model.requests import EngineRequest, metadata
from tidegate.model.statements import Effect, Judgement

Isolation = Literal["read uncommitted", "read committed", "repeatable read", "serializable"]

COMMITS = Judgement(Effect.WRITE, "request.commit", "keeps the changes of a transaction")
"""What a commit does that has changes to keep."""
MAKES_TABLE = "text.into"
"""The rule of the judge for SELECT … INTO, which makes a table."""
_VERBS = frozenset({"select", "values", "insert", "update", "delete", "merge", "replace"})
"""What may change data in a transaction. Of all else the judge asks the catalog as other
connections see it, and could not see what the transaction itself made of it."""


def runs_in_transaction(judgement: Judgement) -> bool:
    """Whether a statement runs in a transaction over several."""
    if judgement.effect is Effect.READ:
        return True
    is_change = judgement.effect is Effect.WRITE and judgement.verb in _VERBS
    return is_change and judgement.rule != MAKES_TABLE


class TransactionModes(msgspec.Struct, frozen=True):
    """What was asked of a transaction; None: nothing."""

    isolation: Isolation | None = None
    reads_only: bool | None = None
    deferrable: bool | None = None


class TransactionBounds(msgspec.Struct, frozen=True):
    """How long a transaction may be idle and last in all, in seconds, and how many one actor may
    have open at a source."""

    idle_s: float = 60.0
    total_s: float = 1_800.0
    per_actor: int = 3


class TransactionRequest(EngineRequest, frozen=True):
    """The base of the requests about a transaction. No person is asked to approve one: each of its
    statements is decided on by itself."""

    judgement: ClassVar[Judgement | None] = metadata(
        "transaction", "begins, marks or ends a transaction"
    )
    asks_person: ClassVar[bool] = False
    costs: ClassVar[bool] = False


class BeginTransaction(TransactionRequest, frozen=True):
    """Open a transaction for the caller; the answer is a `replies.BegunTransaction`. Its first
    statement begins it in the database. `on_end` is called if it is ended from here."""

    kind: ClassVar[str] = "begin"

    modes: TransactionModes = TransactionModes()
    bounds: TransactionBounds = TransactionBounds()
    on_end: Callable[[Exception], Any] | None = None

    def recorded_text(self) -> str | None:
        modes = self.modes
        words = ["BEGIN"]
        if modes.isolation is not None:
            words.append(f"ISOLATION LEVEL {modes.isolation.upper()}")
        if modes.reads_only is not None:
            words.append("READ ONLY" if modes.reads_only else "READ WRITE")
        if modes.deferrable is not None:
            words.append("DEFERRABLE" if modes.deferrable else "NOT DEFERRABLE")
        return " ".join(words)


class MarkTransaction(TransactionRequest, frozen=True):
    """Set a savepoint, let go of one, go back to one, or change nothing from here on."""

    kind: ClassVar[str] = "savepoint"

    action: Literal["savepoint", "release", "rollback to", "read only"] = "savepoint"
    name: str = ""

    def recorded_text(self) -> str | None:
        return f"{self.action.upper()} {self.name}".strip()


class CommitTransaction(TransactionRequest, frozen=True):
    """Keep what the transaction changed. One in which a statement has failed is rolled back. The
    answer is a `replies.EndedTransaction`."""

    kind: ClassVar[str] = "commit"

    def recorded_text(self) -> str | None:
        return "COMMIT"


class RollbackTransaction(TransactionRequest, frozen=True):
    """Undo what the transaction changed. The answer is a `replies.EndedTransaction`."""

    kind: ClassVar[str] = "rollback"

    def recorded_text(self) -> str | None:
        return "ROLLBACK"
