"""The transaction block of a session. No transaction of a database is held for it.

A block (BEGIN … COMMIT) is accepted, since most drivers open one by themselves; in it each read
sees the data as they are then, and a statement that would change data is refused with SQLSTATE
0A000.
"""

from __future__ import annotations

from tidegate.edges.pgwire.commands import Command, End, Savepoint
from tidegate.edges.pgwire.errors import refused
from tidegate.errors import Code, TidegateError


class TransactionBlock:
    """Whether a block is open, and whether a statement in it has failed. `reads_only` is what its
    client asked of it; None: nothing."""

    def __init__(self) -> None:
        self.is_open = False
        self.has_failed = False
        self.reads_only: bool | None = None

    @property
    def status(self) -> bytes:
        """The transaction status of ReadyForQuery."""
        return b"E" if self.has_failed else b"T" if self.is_open else b"I"

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
        """The error of a statement. That of a change that is refused because of the block says so,
        unless the client asked to read only: by the block, or by the session (`reads_only`)."""
        asked_for_reading = self.reads_only or reads_only
        if error.code is not Code.POLICY_READ_ONLY or not self.is_open or asked_for_reading:
            return error
        explained = TidegateError(
            Code.UNSUPPORTED,
            "A statement that changes data does not run in a transaction block here."
            " It was not run.",
            hint="Switch autocommit on, and send it outside BEGIN and COMMIT.",
            details={"sqlstate": "0A000"},
        )
        explained.call_id = error.call_id
        return explained
