"""Answers the commands that a session carries out itself: settings, transactions, cursors, COPY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from tidegate.edges.pgwire import messages
from tidegate.edges.pgwire.commands import (
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
    Reset,
    Savepoint,
    SetConfig,
    SetValue,
    Show,
    UnlockAll,
)
from tidegate.edges.pgwire.errors import refused, warning
from tidegate.edges.pgwire.placeholders import place_parameters
from tidegate.edges.pgwire.portals import Portal, PreparedStatement, SessionObjects
from tidegate.edges.pgwire.rows import Client, CopySender, RowSender
from tidegate.edges.pgwire.settings import SessionSettings
from tidegate.edges.pgwire.statement_runner import StatementRunner, send_complete
from tidegate.edges.pgwire.transaction import TransactionBlock
from tidegate.edges.pgwire.values import RowEncoder
from tidegate.errors import TidegateError
from tidegate.model.results import Column
from tidegate.sql.dialects import find

_TEXT = Column("", "text", "text")


class SessionCommands:
    """The commands of one session. All methods but `columns` raise TidegateError."""

    def __init__(
        self,
        client: Client,
        dialect: str,
        settings: SessionSettings,
        block: TransactionBlock,
        objects: SessionObjects,
        runner: StatementRunner,
    ) -> None:
        self._client = client
        self._dialect = dialect
        self._settings = settings
        self._block = block
        self._objects = objects
        self._runner = runner

    def columns(self, command: Command) -> tuple[Column, ...]:
        """The columns of a command's result; none if it has no rows."""
        if isinstance(command, Show):
            if command.name == "all":
                return tuple([structs.replace(_TEXT, name=each) for each in ("name", "setting")])
            return (structs.replace(_TEXT, name=command.name),)
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
    ) -> None:
        """Carry out a command and send its answer. With `describes` the columns go first; in the
        `extended` protocol also that there are none."""
        client = self._client
        has_rows = isinstance(command, (Show, UnlockAll, SetConfig, Fetch))
        if extended and describes and not has_rows:
            client.write(messages.NO_DATA)
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
            await self._declare(command)
        elif isinstance(command, Fetch):
            await self._fetch(command, formats, describes)
        elif isinstance(command, CloseCursor):
            await self._close_cursor(command.name)
        elif isinstance(command, (Begin, End, Savepoint, Characteristics)):
            await self._transaction(command)
        elif isinstance(command, SetValue):
            self._report(self._settings.set(command.name, command.value))
            send_complete(client, "SET")
        elif isinstance(command, Reset):
            self._reset(command.name)
        elif isinstance(command, Discard):
            await self._discard(command)
        elif isinstance(command, Deallocate):
            self._deallocate(command.name)
        else:
            send_complete(client, "UNLISTEN")

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
        send_complete(self._client, tag)

    # Settings

    async def _show(self, command: Show, formats: Sequence[int], describes: bool) -> None:
        columns = self.columns(command)
        if command.name == "all":
            await self._send(columns, self._settings.items(), formats, describes, "SHOW")
            return
        value = self._settings.get(command.name)
        if value is not None:
            await self._send(columns, [(value,)], formats, describes, "SHOW")
        elif find(self._dialect).is_postgres:
            raise _unknown_setting(command.name)
        else:
            # What is no setting may be a statement of the source: SHOW TABLES, SHOW PROVIDERS.
            sender = RowSender(self._client, self._dialect, formats, describes=describes)
            await self._runner.run(f"SHOW {command.name}", None, sender, whole=False)

    async def _set_config(
        self, command: SetConfig, formats: Sequence[int], describes: bool
    ) -> None:
        row: list[str] = []
        for each in command.settings:
            if each.value is not None:
                self._report(self._settings.set(each.name, each.value))
            value = self._settings.get(each.name)
            if value is None:
                raise _unknown_setting(each.name)
            row.append(value)
        await self._send(self.columns(command), [row], formats, describes, "SELECT 1")

    def _reset(self, name: str) -> None:
        if name == "all":
            self._reset_all()
        else:
            self._report(self._settings.set(name, None))
        send_complete(self._client, "RESET")

    def _reset_all(self) -> None:
        for each in self._settings.reset():
            self._report(each)

    def _report(self, changed: tuple[str, str] | None) -> None:
        if changed is not None:
            self._client.write(messages.parameter_status(*changed))

    # Transactions

    async def _transaction(self, command: Begin | End | Savepoint | Characteristics) -> None:
        client, block = self._client, self._block
        if isinstance(command, Begin):
            if block.is_open:
                client.write(warning("25001", "There is already a transaction in progress."))
            else:
                block.is_open, block.reads_only = True, command.read_only
            send_complete(client, "BEGIN")
        elif isinstance(command, Characteristics):
            if command.read_only is not None and command.session:
                value = "on" if command.read_only else "off"
                self._report(self._settings.set("default_transaction_read_only", value))
            elif command.read_only is not None:
                block.reads_only = command.read_only
            send_complete(client, "SET")
        elif isinstance(command, Savepoint):
            if not block.is_open:
                raise refused("25P01", f"{command.word} needs a transaction block.")
            if command.word == "ROLLBACK":
                block.has_failed = False
            send_complete(client, command.word)
        else:
            if not block.is_open:
                client.write(warning("25P01", "There is no transaction in progress."))
            undone = block.has_failed or not command.commit
            block.is_open = block.is_open and command.chain
            block.has_failed = False
            await self._objects.drop_portals()
            await self._objects.close_cursors()
            send_complete(client, "ROLLBACK" if undone else "COMMIT")

    # Cursors and prepared statements

    async def _declare(self, command: Declare) -> None:
        """Open a cursor. It lives until the block ends; one WITH HOLD needs no block."""
        if not self._block.is_open and not command.hold:
            raise refused("25P01", "DECLARE CURSOR needs a transaction block.")
        self._objects.check_new_cursor(command.name)
        placed = place_parameters(command.text, self._dialect, ())
        cursor = Portal(PreparedStatement(command.text, (), None, placed), (), ())
        await self._runner.open(cursor)
        self._objects.cursors[command.name] = cursor
        send_complete(self._client, "DECLARE CURSOR")

    async def _fetch(self, command: Fetch, formats: Sequence[int], describes: bool) -> None:
        cursor = self._objects.cursor(command.name)
        encoder = RowEncoder(cursor.statement.columns or (), self._dialect, formats)
        if describes:
            self._client.write(
                messages.NO_DATA if command.move else messages.row_description(encoder.fields)
            )
        left, count = command.rows, 0
        while cursor.result is not None and (left is None or left > 0):
            rows, page = await self._runner.read(cursor.result, left)
            count += len(rows)
            left = None if left is None else left - len(rows)
            if not command.move:
                await self._runner.send_rows(encoder, rows)
            if page is not None:
                cursor.result = None
        send_complete(self._client, f"{'MOVE' if command.move else 'FETCH'} {count}")

    async def _close_cursor(self, name: str | None) -> None:
        if name is None:
            await self._objects.close_cursors()
        else:
            cursor = self._objects.cursor(name)
            del self._objects.cursors[name]
            await cursor.close()
        send_complete(self._client, "CLOSE CURSOR ALL" if name is None else "CLOSE CURSOR")

    async def _discard(self, command: Discard) -> None:
        if command.what == "ALL":
            if self._block.is_open:
                raise refused("25001", "DISCARD ALL does not run in a transaction block.")
            await self._objects.close()
            self._reset_all()
        send_complete(self._client, f"DISCARD {command.what}")

    def _deallocate(self, name: str | None) -> None:
        if name is None:
            self._objects.statements.clear()
            send_complete(self._client, "DEALLOCATE ALL")
            return
        self._objects.statement(name)
        del self._objects.statements[name]
        send_complete(self._client, "DEALLOCATE")


def _unknown_setting(name: str) -> TidegateError:
    return refused("42704", f'Unrecognized configuration parameter "{name[:80]}".')
