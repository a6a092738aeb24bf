"""The transaction block of a session: what its client asked for, and the gate's transaction for it.

The gate is asked for one when the first statement of the block comes, so an empty block costs
nothing. A source without transactions over several statements gives none: then each read sees the
data as they are when it runs, and a statement that would change data is refused with SQLSTATE
0A000.
"""

from __future__ import annotations

from tidegate.edges.pgwire.commands import Command, End, Savepoint
from tidegate.edges.pgwire.errors import refused
from tidegate.errors import Code, TidegateError
from tidegate.model.transactions import TransactionModes

NO_MODES = TransactionModes()


class TransactionBlock:
    """Whether a block is open, and whether a statement in it has failed. `modes` are what its
    client asked of it. `id` is the gate's transaction: None before it was asked for, empty if the
    source has none."""

    def __init__(self) -> None:
        self.is_open = False
        self.has_failed = False
        self.modes = NO_MODES
        self.id: str | None = None

    @property
    def status(self) -> bytes:
        """The transaction status of ReadyForQuery."""
        return b"E" if self.has_failed else b"T" if self.is_open else b"I"

    def open(self, modes: TransactionModes) -> None:
        """A block begins."""
        self.is_open, self.has_failed, self.modes, self.id = True, False, modes, None

    def close(self) -> None:
        """The block has ended."""
        self.is_open, self.has_failed, self.modes, self.id = False, False, NO_MODES, None

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
        transactions says so, unless the client asked to read only: by the block, or by the session
        (`reads_only`)."""
        asked_for_reading = self.modes.reads_only or reads_only
        lacks = self.is_open and self.id == ""
        if error.code is not Code.POLICY_READ_ONLY or not lacks or asked_for_reading:
            return error
        explained = TidegateError(
            Code.UNSUPPORTED,
            "This source has no transactions over several statements here: a statement that changes"
            " data does not run in a transaction block. It was not run.",
            hint="Switch autocommit on, and send it outside BEGIN and COMMIT.",
            details={"sqlstate": "0A000"},
        )
        explained.call_id = error.call_id
        return explained
