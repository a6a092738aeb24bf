"""One session of the wire protocol: what each message does, through the gate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.gateway.concurrency import ConcurrencyLimiter
from tidegate.model.results import Column
from tidegate.model.statements import Effect, Judgement
from tidegate.products.pgwire import messages
from tidegate.products.pgwire.catalog.catalogs import SystemCatalogs
from tidegate.products.pgwire.catalog.shared import SharedCatalogs
from tidegate.products.pgwire.catalog.translation import reads_catalogs
from tidegate.products.pgwire.command_reader import MOST_READ, read_command, split
from tidegate.products.pgwire.completions import Completions
from tidegate.products.pgwire.errors import refused
from tidegate.products.pgwire.gate import WireGate
from tidegate.products.pgwire.logins import Login
from tidegate.products.pgwire.memory_quota import MemoryQuota, SessionMemory
from tidegate.products.pgwire.parameters import read_parameter
from tidegate.products.pgwire.parsed_commands import Begin, Command, CopyOut, Declare
from tidegate.products.pgwire.placeholders import place_parameters
from tidegate.products.pgwire.portals import (
    MAX_EACH,
    Portal,
    PreparedStatement,
    SessionObjects,
    weight_of,
)
from tidegate.products.pgwire.reading import StatementReader
from tidegate.products.pgwire.row_encoder import RowEncoder
from tidegate.products.pgwire.rows import Client, RowSender
from tidegate.products.pgwire.session_commands import SessionCommands
from tidegate.products.pgwire.session_settings import SessionSettings
from tidegate.products.pgwire.spellings import spell
from tidegate.products.pgwire.statement_runner import SessionLimits, StatementRunner
from tidegate.products.pgwire.tags import may_return_rows
from tidegate.products.pgwire.transaction import TransactionBlock
from tidegate.products.pgwire.values import TEXT_OID, TEXT_OIDS, oid_of, type_name
from tidegate.sql.dialects import find

CATALOG_CHUNK = 500
"""Rows of a query on the catalogs that are sent at once."""


class SessionTurns(NamedTuple):
    """What the sessions of one caller do in turns, so that those of others wait for one of them at
    most."""

    reading: ConcurrencyLimiter
    catalogs: ConcurrencyLimiter
    shared_catalogs: SharedCatalogs


class Session:
    """The state of one client after its login. The methods are called one at a time; `cancel` may
    be called meanwhile. All raise TidegateError, which the connection sends as an error."""

    def __init__(
        self,
        gateway: WireGate,
        client: Client,
        login: Login,
        settings: SessionSettings,
        limits: SessionLimits,
        held: MemoryQuota,
        turns: SessionTurns,
    ) -> None:
        """`held` counts what the sessions of each caller hold, `turns` who reads long texts and
        asks the catalogs."""
        self.actor = actor = login.actor
        self.source = source = login.source
        self.settings = settings
        self._client = client
        self._completions = completions = Completions(client, settings)
        self._block = TransactionBlock()
        self.memory = SessionMemory(held, actor.id)
        self._objects = SessionObjects(self.memory)
        self._runner = StatementRunner(
            gateway, client, completions, login, settings, self._block, limits
        )
        self._commands = SessionCommands(
            client, completions, source.dialect, settings, self._block, self._objects, self._runner
        )
        self._reading = StatementReader(turns.reading, actor.id)
        self._catalogs = SystemCatalogs(
            self._runner.ask,
            self._reading,
            login,
            settings,
            turns=turns.catalogs,
            shared=turns.shared_catalogs,
        )
        self._described: Portal | None = None
        """The portal whose description is due: Execute sends it before the rows, which saves
        preparing the statement."""

    @property
    def status(self) -> bytes:
        """The transaction status of ReadyForQuery."""
        return self._block.status

    @property
    def most_idle_s(self) -> float | None:
        """How long nothing may go on, if a transaction is held; None: for as long as it likes."""
        return self._runner.most_idle_s

    def cancel(self, reason: str) -> None:
        """End what runs now."""
        self._runner.cancel(reason)
        self._reading.cancel(reason)
        self._catalogs.cancel(reason)

    async def fail(self) -> str:
        """A statement has failed: a block can only be rolled back, and an implicit one is. Raises
        nothing. Returns what is reported with the error."""
        self._completions.drop()
        if self._block.is_implicit:
            note = self._block.kept_note
            with suppress(TidegateError):  # it is gone whatever is said of its end
                await self._commands.close_block(commit=False)
            return note
        if self._block.is_open and not self._block.has_failed:
            for each in self.settings.fail_block():
                self._client.write(messages.parameter_status(*each))
        self._block.fail()
        return ""

    # Simple queries

    async def query(self, text: str) -> None:
        """Run the statements of a text, one after the other, as one transaction. All are judged
        before the first runs."""
        await self._objects.drop_portal("")
        parts = await self._reading.compute(text, split, text, self.source.dialect)
        if len(parts) > MAX_EACH:
            raise refused("54000", f"A text has at most {MAX_EACH} statements.")
        if not parts:
            self._client.write(messages.EMPTY_QUERY)
            return
        read = [await self._read_part(part) for part in parts]
        is_one = len(read) == 1
        judged = {} if is_one else await self._judge(read)
        for at, (part, command, asks_catalog) in enumerate(read):
            await self._client.drain()
            self._block.check(command)
            is_last = at == len(read) - 1
            if not is_one:
                await self._enter_implicit(command, judged.get(at), is_last=is_last)
            elif not asks_catalog and await self._enter_level(command, part):
                self._completions.keep()
            if command is None and asks_catalog:
                await self._answer_catalog(part, (), (), describes=True)
            elif command is None:
                sender = RowSender(self._client, self.source.dialect, (), describes=True)
                await self._runner.run(part, None, sender, whole=parts == [part])
            else:
                await self._commands.answer(command, (), describes=True)
        await self._client.drain()  # a session that was ended meanwhile keeps nothing
        await self._leave_implicit()

    async def _enter_implicit(
        self, command: Command | None, judgement: Judgement | None, *, is_last: bool
    ) -> None:
        """What comes now is one of several statements: outside of a block they are one of their
        own."""
        if not self._block.is_open and not isinstance(command, Begin):
            self._commands.open_implicit()
        if not self._block.is_implicit:
            return
        if is_last:
            self._completions.keep()
        if judgement is not None:
            await self._runner.enter_implicit(judgement, is_last=is_last)

    async def _enter_level(self, command: Command | None, text: str) -> bool:
        """Let a statement that comes alone run at the isolation level that its session has set, if
        it has: in a transaction of its own that has it. Whether it does."""
        has_none = self.settings.isolation is None or self._block.is_open
        if has_none or not (command is None or isinstance(command, (CopyOut, Declare))):
            return False
        if not await self._runner.may_be_in_transaction(text if command is None else command.text):
            return False
        self._commands.open_implicit()
        return True

    async def _leave_implicit(self) -> None:
        """The text, or what was sent before a Sync, has ended. Raises: TidegateError, and nothing
        of it is kept then."""
        if self._block.is_implicit:
            await self._commands.close_block(commit=True)
        self._completions.release()

    async def _read_part(self, text: str) -> tuple[str, Command | None, bool]:
        """The text as the source's dialect writes it, the command that it is, and whether it is
        about PostgreSQL's catalogs."""
        dialect = self.source.dialect
        text = await self._spelled(text)
        command = await self._read_command(text)
        placed = None
        if command is None or isinstance(command, (CopyOut, Declare)):
            placed = await self._reading.compute(text, place_parameters, text, dialect, ())
            if placed.most:
                raise refused(
                    "42P02",
                    f"There is no parameter ${placed.most}.",
                    "A simple query has none: send it with its parameters by the extended"
                    " protocol, as a driver does.",
                )
        if command is None and await self._is_catalog(text):
            return text, None, True
        if command is None and placed is not None and not find(dialect).is_postgres:
            text = placed.text
        return text, command, False

    async def _spelled(self, text: str) -> str:
        """A statement without what its source does not spell as PostgreSQL does."""
        dialect = self.source.dialect
        if not find(dialect).path_schemas or await self._is_catalog(text):
            return text
        return await self._reading.compute(text, spell, text, dialect, self.source.name)

    async def _read_command(self, text: str) -> Command | None:
        """The command that the text is; the query of a COPY as the source's dialect writes it."""
        command = await self._reading.compute(text, read_command, text)
        dialect = self.source.dialect
        if not isinstance(command, CopyOut) or find(dialect).is_postgres:
            return command
        placed = await self._reading.compute(text, place_parameters, command.text, dialect, ())
        return command._replace(text=placed.text)

    async def _judge(
        self, read: Sequence[tuple[str, Command | None, bool]]
    ) -> dict[int, Judgement]:
        """What each statement of the source in a text would do, by its place.

        Raises: TidegateError for one that is denied, and 0A000 for several changes that could not
        be one transaction."""
        judged: dict[int, Judgement] = {}
        for at, (part, command, asks_catalog) in enumerate(read):
            if isinstance(command, (CopyOut, Declare)):
                judged[at] = await self._runner.judge(command.text)
            elif command is None and not asks_catalog:
                judged[at] = await self._runner.judge(part)
        changes = sum([each.effect > Effect.READ for each in judged.values()])
        if changes > 1 and not self._block.is_open and not await self._runner.has_transactions():
            raise TidegateError(
                Code.SQL_MULTIPLE,
                f"{changes} statements of one text would change data, and this source has no"
                " transactions over several statements. None of them was run.",
                hint="Send each of them by itself.",
                details={"sqlstate": "0A000"},
            )
        return judged

    # The extended protocol

    async def parse(self, message: messages.Parse) -> None:
        """Keep a statement under a name. Nothing is asked of the source."""
        self._objects.check_new_statement(message.name)
        if len(message.text) > MOST_READ:
            raise TidegateError(
                Code.SQL_TOO_LONG,
                f"A prepared statement has at most {MOST_READ:,} characters.",
                hint="Send long values as parameters.",
            )
        dialect = self.source.dialect
        parts = await self._reading.compute(message.text, split, message.text, dialect)
        if len(parts) > 1:
            raise TidegateError(
                Code.SQL_MULTIPLE, "A prepared statement is one statement.",
                hint="Send each of them by itself, or all by a simple query.",
            )  # fmt: skip
        text = await self._spelled(parts[0]) if parts else ""
        names = tuple([type_name(oid) for oid in message.types])
        command = await self._read_command(text) if text else None
        statement = PreparedStatement(
            text,
            message.types,
            command,
            await self._reading.compute(text, place_parameters, text, dialect, names),
            asks_catalog=command is None and await self._is_catalog(text),
        )
        self._objects.keep_statement(message.name, statement)
        self._client.write(messages.PARSE_COMPLETE)

    async def bind(self, message: messages.Bind) -> None:
        """Make a portal."""
        statement = self._objects.statement(message.statement)
        self._block.check(statement.command)
        self._objects.check_new_portal(message.portal)
        given, wanted = len(message.parameters), max(statement.placed.most, len(statement.types))
        if given != wanted:
            raise refused(
                "08P01", f"The statement takes {wanted} parameters, and Bind has {given}."
            )
        size = statement.size + sum([len(each) for each in message.parameters if each is not None])
        self._objects.check_size(size)
        formats = message.parameter_formats
        forms = formats * given if len(formats) == 1 else formats or (0,) * given
        if 1 in forms and not all(statement.types) and statement.columns is None:
            await self._prepare(statement)  # the types of binary values are the source's to say
        types = self._parameter_types(statement, given)
        texts = {
            at
            for at, declared in enumerate(statement.types if statement.placed.types else ())
            if declared in TEXT_OIDS and declared and types[at] != declared
        }
        dialect = self.source.dialect
        values = [
            # A text that a cast makes another type is the same in both formats.
            read_parameter(data, oid, 0 if at in texts else form, dialect)
            for at, (data, oid, form) in enumerate(
                zip(message.parameters, types, forms, strict=True)
            )
        ]
        order = () if statement.asks_catalog else statement.placed.order
        placed = [values[at - 1] for at in order] if order else values
        await self._objects.drop_portal(message.portal)
        portal = Portal(statement, tuple(placed), message.result_formats, size)
        self._objects.keep_portal(message.portal, portal)
        self._client.write(messages.BIND_COMPLETE)

    async def describe(self, target: messages.Target) -> None:
        """Send the parameters and columns of a statement, or the columns of a portal."""
        cursor = self._objects.cursors.get(target.name) if target.kind == "P" else None
        if cursor is not None:
            self._send_columns(cursor.statement.columns, ())
            return
        if target.kind == "P":
            self._described = self._objects.portal(target.name)
            return
        statement = self._objects.statement(target.name)
        await self._prepare(statement)
        count = max(statement.placed.most, len(statement.types))
        types = self._parameter_types(statement, count)
        self._client.write(messages.parameter_description([each or TEXT_OID for each in types]))
        self._send_columns(statement.columns, ())

    async def settle(self) -> None:
        """Send the description that is due, before any message but the Execute that it is for."""
        portal, self._described = self._described, None
        if portal is None:
            return
        await self._prepare(portal.statement)
        self._send_columns(portal.statement.columns, portal.formats)

    async def execute(self, message: messages.Execute, *, is_last: bool) -> None:
        """Run a portal, or go on with it. `is_last`: a Sync comes next."""
        portal = self._objects.portal(message.portal)
        describes = self._described is portal
        if not describes:
            await self.settle()
        self._described = None
        statement = portal.statement
        self._block.check(statement.command)
        if not is_last or self._block.is_implicit:
            await self._enter_pipeline(statement, is_last=is_last)
        elif statement.text and not statement.asks_catalog:
            await self._enter_level(statement.command, statement.placed.text)
        if not statement.text:
            self._client.write((messages.NO_DATA if describes else b"") + messages.EMPTY_QUERY)
        elif statement.command is not None:
            await self._commands.answer(
                statement.command,
                portal.formats,
                describes=describes,
                extended=True,
                parameters=portal.parameters,
            )
        elif statement.asks_catalog:
            await self._answer_catalog(
                statement.text,
                portal.parameters,
                portal.formats,
                describes=describes,
                expected=None if describes else statement.columns,
            )
        elif message.max_rows == 0 and portal.result is None:
            sender = RowSender(
                self._client,
                self.source.dialect,
                portal.formats,
                describes=describes,
                says_nothing=True,
            )
            expected = None if describes else statement.columns
            await self._runner.run(
                statement.placed.text, portal.parameters, sender, whole=True, expected=expected
            )
        else:
            await self._runner.run_part(portal, message.max_rows, describes=describes)

    async def _enter_pipeline(self, statement: PreparedStatement, *, is_last: bool) -> None:
        """A statement is one of several before a Sync."""
        command = statement.command
        if not self._block.is_open and not isinstance(command, Begin):
            if self._commands.stands_outside(command):
                return
            self._commands.open_implicit()
        asks_source = command is None or isinstance(command, (CopyOut, Declare))
        if self._block.is_implicit and asks_source and not statement.asks_catalog:
            await self._runner.enter_implicit(None, is_last=is_last)

    async def close_target(self, target: messages.Target) -> None:
        """Forget a statement or a portal; one that is not there is no error."""
        if target.kind == "S":
            self._objects.drop_statement(target.name)
        else:
            await self._objects.drop_portal(target.name)
        self._client.write(messages.CLOSE_COMPLETE)

    async def sync(self) -> None:
        """The end of a series of messages: outside a block its portals end, and what they did is
        kept. Raises: TidegateError."""
        self._described = None
        await self._leave_implicit()
        if not self._block.is_open:
            await self._objects.drop_portals()

    async def close(self, reason: str) -> None:
        """The client has gone, or has to: its transaction is rolled back."""
        self.cancel("the client has disconnected")
        try:
            await self._objects.close()
        finally:
            await self._runner.abandon(reason)
        self._catalogs.close()

    # Descriptions

    def _parameter_types(self, statement: PreparedStatement, count: int) -> list[int]:
        """The types that the client gave, else those that the source names; 0: unknown. A cast
        says what a text is."""
        if not statement.placed.types and len(statement.types) == count and all(statement.types):
            return list(statement.types)
        found: list[int] = []
        for at in range(count):
            given, cast, inferred = (
                types[at] if at < len(types) else 0
                for types in (statement.types, statement.placed.types, statement.inferred)
            )
            found.append(cast if cast and given in TEXT_OIDS else given or inferred)
        return found

    async def _prepare(self, statement: PreparedStatement) -> None:
        """Find the columns and parameters of a statement, as often as it is described: the schema
        may have changed."""
        if statement.command is not None:
            statement.columns = self._commands.columns(statement.command)
            return
        if not statement.text:
            statement.columns = ()
            return
        if statement.asks_catalog:
            described, names = await self._catalogs.describe(statement.text)
            self._objects.keep_columns(statement, described)
            statement.inferred = tuple([oid_of(name) for name in names])
            return
        prepared = await self._runner.prepare(statement.placed.text)
        columns = prepared.columns
        if columns is None and prepared.effect == "write" and not may_return_rows(statement.text):
            columns = ()
        if columns is None:
            raise refused(
                "0A000",
                f"The source {self.source.name!r} cannot describe a statement before it runs.",
                "Send it as a simple query.",
            )
        self._objects.keep_columns(statement, columns)
        statement.inferred = tuple([oid_of(name) for name in prepared.parameters or ()])

    def _send_columns(self, columns: tuple[Column, ...] | None, formats: Sequence[int]) -> None:
        if not columns:
            self._client.write(messages.NO_DATA)
            return
        encoder = RowEncoder(columns, self.source.dialect, formats)
        self._client.write(messages.row_description(encoder.fields))

    # PostgreSQL's catalogs

    async def _is_catalog(self, text: str) -> bool:
        """Whether a text is about PostgreSQL's catalogs of a source that has none."""
        rules = find(self.source.dialect)
        if rules.is_postgres:
            return False
        has_own = rules.has_information_schema
        return await self._reading.compute(
            text, reads_catalogs, text, has_information_schema=has_own
        )

    async def _answer_catalog(
        self,
        text: str,
        parameters: tuple[Any, ...],
        formats: Sequence[int],
        *,
        describes: bool,
        expected: tuple[Column, ...] | None = None,
    ) -> None:
        """Run a query on the catalogs. `expected` are the columns that it was described with."""
        columns, rows = await self._catalogs.run(text, parameters)
        size = weight_of(rows)  # a client that does not read keeps them in memory
        self.memory.take(size)
        try:
            await self._send_answer(columns, rows, formats, describes=describes, expected=expected)
        finally:
            self.memory.give_back(size)

    async def _send_answer(
        self,
        columns: tuple[Column, ...],
        rows: list[tuple[Any, ...]],
        formats: Sequence[int],
        *,
        describes: bool,
        expected: tuple[Column, ...] | None,
    ) -> None:
        if expected is not None and len(expected) == len(columns):
            columns = expected
        sender = RowSender(self._client, "postgres", formats, describes=describes)
        sender.begin(columns)
        for at in range(0, len(rows), CATALOG_CHUNK):
            await sender.write(rows[at : at + CATALOG_CHUNK])
        sender.finish()
        self._completions.send(f"SELECT {len(rows)}")
