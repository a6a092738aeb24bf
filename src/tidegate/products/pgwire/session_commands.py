"""Answers the commands that a session carries out itself: settings, transactions, cursors, COPY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Column
from tidegate.model.transactions import MarkTransaction, TransactionModes
from tidegate.products.pgwire import messages
from tidegate.products.pgwire.completions import Completions
from tidegate.products.pgwire.errors import refused, warning
from tidegate.products.pgwire.parsed_commands import (
    Begin,
    Characteristics,
    CloseCursor,
    Command,
    CopyOut,
    Deallocate,
    Declare,
    Discard,
    End,
    Fetch,
    Refused,
    Reset,
    Savepoint,
    SetConfig,
    Setting,
    SetValue,
    Show,
    UnlockAll,
)
from tidegate.products.pgwire.placeholders import place_parameters
from tidegate.products.pgwire.portals import Portal, PreparedStatement, SessionObjects
from tidegate.products.pgwire.row_encoder import RowEncoder
from tidegate.products.pgwire.rows import Client, CopySender, RowSender
from tidegate.products.pgwire.session_settings import ISOLATIONS, SessionSettings
from tidegate.products.pgwire.setting_changes import SettingChanges
from tidegate.products.pgwire.setting_defaults import REPORTED
from tidegate.products.pgwire.setting_values import is_on, shown_as
from tidegate.products.pgwire.statement_runner import StatementRunner
from tidegate.products.pgwire.transaction import NO_MODES, TransactionBlock
from tidegate.sql.dialects import find

_TEXT = Column("", "text", "text")


class SessionCommands:
    """The commands of one session. All methods but `columns` raise TidegateError."""

    def __init__(
        self,
        client: Client,
        completions: Completions,
        dialect: str,
        settings: SessionSettings,
        block: TransactionBlock,
        objects: SessionObjects,
        runner: StatementRunner,
    ) -> None:
        self._client = client
        self._completions = completions
        self._dialect = dialect
        self._settings = settings
        self._block = block
        self._changes = SettingChanges(settings, runner.ask)
        self._objects = objects
        self._runner = runner

    def columns(self, command: Command) -> tuple[Column, ...]:
        """The columns of a command's result; none if it has no rows."""
        if isinstance(command, Show):
            if command.name == "all":
                names = ("name", "setting", "description")
                return tuple([structs.replace(_TEXT, name=each) for each in names])
            return (structs.replace(_TEXT, name=REPORTED.get(command.name, command.name)),)
        if isinstance(command, SetConfig):
            return tuple([structs.replace(_TEXT, name=each.label) for each in command.settings])
        if isinstance(command, UnlockAll):
            return (Column("pg_advisory_unlock_all", "text", "text"),)
        if isinstance(command, Fetch) and not command.move:
            cursor = self._objects.cursors.get(command.name)
            return () if cursor is None else cursor.statement.columns or ()
        return ()

    async def answer(
        self,
        command: Command,
        formats: Sequence[int],
        *,
        describes: bool,
        extended: bool = False,
        parameters: tuple[Any, ...] = (),
    ) -> None:
        """Carry out a command and send its answer. With `describes` the columns go first; in the
        `extended` protocol also that there are none. `parameters` are those of a cursor's
        statement, in the order of its placeholders."""
        client = self._client
        has_rows = isinstance(command, (Show, UnlockAll, SetConfig, Fetch))
        if extended and describes and not has_rows:
            client.write(messages.NO_DATA)
        if isinstance(command, Refused):
            raise refused(*command)
        if isinstance(command, CopyOut):
            sender = CopySender(client, self._dialect, command)
            await self._runner.run(command.text, None, sender, whole=False)
        elif isinstance(command, Show):
            await self._show(command, formats, describes)
        elif isinstance(command, UnlockAll):
            await self._send(self.columns(command), [("",)], formats, describes, "SELECT 1")
        elif isinstance(command, SetConfig):
            await self._set_config(command, formats, describes)
        elif isinstance(command, Declare):
            await self._declare(command, parameters)
        elif isinstance(command, Fetch):
            await self._fetch(command, formats, describes)
        elif isinstance(command, CloseCursor):
            await self._close_cursor(command.name)
        elif isinstance(command, (Begin, End, Savepoint, Characteristics)):
            await self._transaction(command)
        elif isinstance(command, SetValue):
            await self._set(command)
        elif isinstance(command, Reset):
            await self._reset(command.name)
        elif isinstance(command, Discard):
            await self._discard(command)
        elif isinstance(command, Deallocate):
            self._deallocate(command.name)
        else:
            self._completions.send("UNLISTEN")

    async def _send(
        self,
        columns: tuple[Column, ...],
        rows: Sequence[Sequence[Any]],
        formats: Sequence[int],
        describes: bool,
        tag: str,
    ) -> None:
        sender = RowSender(self._client, "postgres", formats, describes=describes)
        sender.begin(columns)
        await sender.write(rows)
        sender.finish()
        self._completions.send(tag)

    # Settings

    async def _show(self, command: Show, formats: Sequence[int], describes: bool) -> None:
        columns = self.columns(command)
        if command.name == "all":
            await self._send(columns, await self._changes.show_all(), formats, describes, "SHOW")
            return
        value = await self._changes.show(command.name)
        if value is not None:
            await self._send(columns, [(value,)], formats, describes, "SHOW")
        elif find(self._dialect).is_postgres:
            raise _unknown_setting(command.name)
        else:
            # What is no setting may be a statement of the source: SHOW TABLES, SHOW PROVIDERS.
            sender = RowSender(self._client, self._dialect, formats, describes=describes)
            try:
                await self._runner.run(f"SHOW {command.name}", None, sender, whole=False)
            except TidegateError as error:
                if error.code is Code.SQL_UNKNOWN:  # the source has no SHOW
                    raise _unknown_setting(command.name) from None
                raise

    async def _set_config(
        self, command: SetConfig, formats: Sequence[int], describes: bool
    ) -> None:
        row: list[str] = []
        for each in command.settings:
            value = await self._set_one(each)
            if value is None:
                raise _unknown_setting(each.name)
            row.append(value)
        await self._send(self.columns(command), [row], formats, describes, "SELECT 1")

    async def _set_one(self, setting: Setting) -> str | None:
        """Set a setting, if it has to be set; what it is shown as then, None if there is none."""
        name, value = setting.name, setting.value
        if value is not None and name in _MODES:
            return await self._set_mode(name, value)
        if value is not None and setting.local and not self._block.is_open:
            return await self._changes.check(name, value)  # it ends with this statement
        if value is not None:
            self._report(await self._changes.set(name, value, local=setting.local))
        return await self._changes.show(name)

    async def _set_mode(self, name: str, value: str) -> str:
        """Set a mode of the transaction of a SELECT; the value that it shows. Raises: TidegateError
        25001: a SELECT sees data, after which its isolation level is fixed."""
        shown = shown_as(name, value)
        if name == "transaction_isolation" and shown != self._settings.get(name):
            raise refused(
                "25001",
                "The isolation level of a transaction must be set before its first statement.",
                "Write SET TRANSACTION ISOLATION LEVEL.",
            )
        if self._block.is_open:
            await self._set_modes(_MODES[name](shown))
        return shown

    async def _set(self, command: SetValue) -> None:
        name, value = command.name, command.value
        modes = _MODES.get(name.lower())
        if modes is not None and value is not None:
            asked = modes(shown_as(name.lower(), value))
            if self._block.is_open:  # else they hold for this statement alone
                await self._set_modes(asked)
        elif command.local and not self._block.is_open:
            self._warn_outside("SET LOCAL")
            await self._changes.check(name, value)
        else:
            self._report(await self._changes.set(name, value, local=command.local))
        self._completions.send("SET")

    async def _reset(self, name: str) -> None:
        if name == "all":
            self._reset_all()
        else:
            self._report(await self._changes.set(name, None))
        self._completions.send("RESET")

    def _reset_all(self) -> None:
        for each in self._settings.reset():
            self._report(each)

    def _report(self, changed: tuple[str, str] | None) -> None:
        if changed is not None:
            self._client.write(messages.parameter_status(*changed))

    # Transactions

    async def _transaction(self, command: Begin | End | Savepoint | Characteristics) -> None:
        if isinstance(command, Begin):
            await self._begin(command)
        elif isinstance(command, Characteristics):
            await self._characterize(command)
        elif isinstance(command, Savepoint):
            await self._savepoint(command)
        else:
            await self._end(command)

    def open_implicit(self) -> None:
        """Open a block that ends with the text, or at the Sync."""
        self._open(NO_MODES, implicit=True)

    def stands_outside(self, command: Command | None) -> bool:
        """Whether a command that comes first before a Sync is carried out, or refused, as outside
        of a block. One that lasts for a block is warned of, and lasts to the Sync."""
        if isinstance(command, SetValue) and command.local:
            self._warn_outside("SET LOCAL")
        elif isinstance(command, Characteristics) and not command.session:
            self._warn_outside("SET TRANSACTION")
        if isinstance(command, Discard):
            return command.what == "ALL"
        return isinstance(command, Declare) and not command.hold

    def _warn_outside(self, words: str) -> None:
        self._warn("25P01", f"{words} can only be used in transaction blocks.")

    def _warn(self, sqlstate: str, text: str) -> None:
        if self._settings.shows("WARNING"):
            self._client.write(warning(sqlstate, text))

    async def close_block(self, *, commit: bool) -> bool:
        """End the block, with its cursors and what was set in it. Returns whether it was
        committed."""
        committed = False
        try:
            try:
                await self._objects.leave_block(commit=commit)
            except TidegateError:
                await self._objects.leave_block(commit=False)
                await self._runner.end(commit=False)
                raise
            committed = await self._runner.end(commit=commit)
        finally:
            for each in self._settings.end_block(commit=committed):
                self._report(each)
        return committed

    async def _begin(self, command: Begin) -> None:
        block = self._block
        if block.is_implicit:
            # What came before it belongs to the block that it opens.
            if command.modes != NO_MODES:
                await self._set_modes(command.modes)
            block.is_implicit = False
        elif block.is_open:
            self._warn("25001", "There is already a transaction in progress.")
        else:
            self._open(command.modes)
        self._completions.send(command.tag)

    def _open(self, modes: TransactionModes, *, implicit: bool = False) -> None:
        self._block.open(modes, implicit=implicit)
        self._settings.begin_block()
        self._show_modes(modes)

    def _show_modes(self, modes: TransactionModes) -> None:
        """Let SHOW say what holds in the block."""
        settings = self._settings
        isolation = modes.isolation or settings.get("default_transaction_isolation")
        settings.set("transaction_isolation", isolation, local=True)
        reads_only = settings.reads_only if modes.reads_only is None else modes.reads_only
        settings.set("transaction_read_only", "on" if reads_only else "off", local=True)

    async def _characterize(self, command: Characteristics) -> None:
        modes, block = command.modes, self._block
        if command.session:
            if modes.deferrable:
                raise refused(
                    "0A000",
                    "A session cannot make all of its transactions DEFERRABLE here.",
                    "Write BEGIN … DEFERRABLE.",
                )
            if modes.reads_only is not None:
                value = "on" if modes.reads_only else "off"
                self._report(self._settings.set("default_transaction_read_only", value))
            if modes.isolation is not None:
                self._settings.set("default_transaction_isolation", modes.isolation)
        elif not block.is_open:
            self._warn_outside("SET TRANSACTION")
        else:
            await self._set_modes(modes)
        self._completions.send("SET")

    async def _set_modes(self, modes: TransactionModes) -> None:
        """Raises: TidegateError 25001 for what has to come before the first statement."""
        block = self._block
        if block.id and modes != TransactionModes(reads_only=True):
            raise refused(
                "25001",
                "The modes of a transaction must be set before its first statement.",
                "Only READ ONLY may come later.",
            )
        if block.id:
            await self._runner.mark(MarkTransaction(action="read only"))
        before = block.modes
        block.modes = TransactionModes(
            modes.isolation or before.isolation,
            before.reads_only if modes.reads_only is None else modes.reads_only,
            before.deferrable if modes.deferrable is None else modes.deferrable,
        )
        self._show_modes(block.modes)

    async def _savepoint(self, command: Savepoint) -> None:
        block, settings, name = self._block, self._settings, command.name
        if not block.is_open or block.is_implicit:
            raise refused("25P01", f"{command.word} needs a transaction block.")
        if command.word != "SAVEPOINT" and not settings.has_mark(name):
            raise refused("3B001", f'There is no savepoint "{name[:80]}".')
        if command.word == "SAVEPOINT":
            await self._runner.mark(MarkTransaction(action="savepoint", name=name))
            settings.mark(name)
        elif command.word == "RELEASE":
            await self._runner.mark(MarkTransaction(action="release", name=name))
            settings.release(name)
        else:
            await self._runner.mark(MarkTransaction(action="rollback to", name=name))
            for each in settings.go_back(name):
                self._report(each)
            block.has_failed = False
        self._completions.send(command.word)

    async def _end(self, command: End) -> None:
        block, modes = self._block, self._block.modes
        was_begun = block.is_open and not block.is_implicit
        if command.chain and not was_begun:
            word = "COMMIT" if command.commit else "ROLLBACK"
            raise refused("25P01", f"{word} AND CHAIN needs a transaction block.")
        if not was_begun:
            self._warn("25P01", "There is no transaction in progress.")
        committed = await self.close_block(commit=command.commit and not block.has_failed)
        if command.chain:
            self._open(modes)
        self._completions.send("COMMIT" if committed else "ROLLBACK")

    # Cursors and prepared statements

    async def _declare(self, command: Declare, parameters: tuple[Any, ...]) -> None:
        """Open a cursor. It lives until the block ends; one WITH HOLD needs no block, and keeps the
        rest of its rows when its block is committed."""
        if not self._block.is_open and not command.hold:
            raise refused("25P01", "DECLARE CURSOR needs a transaction block.")
        self._objects.check_new_cursor(command.name)
        placed = place_parameters(command.text, self._dialect, ())
        cursor = Portal(PreparedStatement(command.text, (), None, placed), parameters, ())
        cursor.holds, cursor.of_block = command.hold, self._block.is_open
        await self._runner.open(cursor)
        try:
            self._objects.keep_cursor(command.name, cursor)
        except TidegateError:
            await cursor.close()
            raise
        self._completions.send("DECLARE CURSOR")

    async def _fetch(self, command: Fetch, formats: Sequence[int], describes: bool) -> None:
        cursor = self._objects.cursor(command.name)
        encoder = RowEncoder(cursor.statement.columns or (), self._dialect, formats)
        if describes:
            self._client.write(
                messages.NO_DATA if command.move else messages.row_description(encoder.fields)
            )
        left, count = command.rows, 0
        page = None
        while cursor.result is not None and (left is None or left > 0):
            rows, page = await self._runner.read(cursor.result, left)
            count += len(rows)
            left = None if left is None else left - len(rows)
            if not command.move:
                await self._runner.send_rows(encoder, rows)
            if page is not None:
                self._objects.end_result(cursor)
        self._completions.send(f"{'MOVE' if command.move else 'FETCH'} {count}", page)

    async def _close_cursor(self, name: str | None) -> None:
        if name is None:
            await self._objects.close_cursors()
        else:
            self._objects.cursor(name)
            await self._objects.drop_cursor(name)
        self._completions.send("CLOSE CURSOR ALL" if name is None else "CLOSE CURSOR")

    async def _discard(self, command: Discard) -> None:
        if command.what == "ALL":
            if self._block.is_open:
                raise refused("25001", "DISCARD ALL does not run in a transaction block.")
            await self._objects.close()
            self._reset_all()
        self._completions.send(f"DISCARD {command.what}")

    def _deallocate(self, name: str | None) -> None:
        if name is None:
            self._objects.drop_statements()
            self._completions.send("DEALLOCATE ALL")
            return
        self._objects.statement(name)
        self._objects.drop_statement(name)
        self._completions.send("DEALLOCATE")


_MODES: dict[str, Callable[[str], TransactionModes]] = {
    "transaction_isolation": lambda value: TransactionModes(isolation=ISOLATIONS[value]),
    "transaction_read_only": lambda value: TransactionModes(reads_only=is_on(value)),
    "transaction_deferrable": lambda value: TransactionModes(deferrable=is_on(value)),
}
"""Settings that are modes of the block."""


def _unknown_setting(name: str) -> TidegateError:
    if name == "password_encryption":  # what psql asks first for \password
        return refused(
            "0A000",
            "No password is changed here: the password is a token.",
            "The operator makes another token: `tidegate token create`.",
        )
    return refused(
        "42704", f'Unrecognized configuration parameter "{name[:80]}".', "SHOW ALL lists them."
    )
