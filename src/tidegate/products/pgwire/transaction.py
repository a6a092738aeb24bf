"""The transaction block of a session: what its client asked for, and the gate's transaction for it.

The gate is asked for one when the first statement of the block comes, so an empty block costs
nothing. A source without transactions over several statements gives none: then each read sees the
data as they are when it runs, and a statement that would change data is refused with SQLSTATE
0A000.

Several statements of one text, and several Execute messages before one Sync, are a block that no
BEGIN has opened: an implicit one. It ends with the text, or at the Sync (PostgreSQL documentation,
"Multiple Statements in a Simple Query" and "Pipelining").
"""

from __future__ import annotations

from tidegate.errors import Code, TidegateError
from tidegate.model.transactions import TransactionModes
from tidegate.products.pgwire.errors import refused
from tidegate.products.pgwire.parsed_commands import Command, End, Savepoint

NO_MODES = TransactionModes()


class TransactionBlock:
    """Whether a block is open, and whether a statement in it has failed. `modes` are what its
    client asked of it. `id` is the gate's transaction: None before it was asked for, empty if the
    source has none. `is_implicit`: no BEGIN has opened it; then `has_changed` says that one of its
    statements changes something, `runs_alone` that the one that is left needs no transaction, and
    `kept` counts the changes that a source without transactions has made."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.close()

    @property
    def lacks(self) -> bool:
        """Whether the block has no transaction, because its source has none."""
        return self.is_open and self.id == ""

    @property
    def kept_note(self) -> str:
        """What is reported if a statement fails that others came before: they are not undone."""
        if not self.kept:
            return ""
        one = self.kept == 1
        return (
            f"The {'change' if one else f'{self.kept} changes'} sent with it before"
            f" {'is' if one else 'are'} kept: this source has no transactions over several"
            " statements."
        )

    @property
    def status(self) -> bytes:
        """The transaction status of ReadyForQuery."""
        return b"E" if self.has_failed else b"T" if self.is_open else b"I"

    def open(self, modes: TransactionModes, *, implicit: bool = False) -> None:
        """A block begins."""
        self.close()
        self.is_open, self.is_implicit, self.modes = True, implicit, modes

    def close(self) -> None:
        """The block has ended."""
        self.is_open = self.is_implicit = self.has_failed = False
        self.has_changed = self.runs_alone = False
        self.kept = 0
        self.modes, self.id = NO_MODES, None

    def fail(self) -> None:
        """A statement has failed: the block, if there is one, can only be rolled back."""
        self.has_failed = self.is_open

    def check(self, command: Command | None) -> None:
        """Raises: TidegateError 25P02 for anything but its end in a block that has failed."""
        ends = isinstance(command, End) or (
            isinstance(command, Savepoint) and command.word == "ROLLBACK"
        )
        if self.has_failed and not ends:
            raise refused(
                "25P02",
                "The transaction block has failed: its commands are ignored until its end.",
                "Send ROLLBACK.",
            )

    def explain(self, error: TidegateError, *, reads_only: bool) -> TidegateError:
        """The error of a statement. That of a change that is refused because the source has no
        transactions tells that, unless the client asked to read only: by the block, or by the
        session (`reads_only`)."""
        asked_for_reading = self.modes.reads_only or reads_only
        refuses = self.lacks and not self.is_implicit
        if error.code is not Code.POLICY_READ_ONLY or not refuses or asked_for_reading:
            return error
        explained = _does_not_run_in_block()
        explained.call_id = error.call_id
        return explained


def does_not_run_together() -> TidegateError:
    """The error of a statement that cannot be in one transaction with others, as it would have to
    be."""
    return refused(
        "0A000",
        "The statements of one text, or before one Sync, are one transaction, and this one does not"
        " run in a transaction here. It was not run, and nothing of the others is kept.",
        "Send it by itself, or last, after statements that only read.",
    )


def _does_not_run_in_block() -> TidegateError:
    return refused(
        "0A000",
        "This source has no transactions over several statements here: a statement that changes"
        " data does not run in a transaction block. It was not run.",
        "Switch autocommit on, and send it outside BEGIN and COMMIT.",
    )
