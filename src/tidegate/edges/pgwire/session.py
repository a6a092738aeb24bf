"""One session of the wire protocol: what each message does, through the gate.

The edge holds no transaction of a database. A block (BEGIN … COMMIT) is accepted, since most
drivers open one by themselves; in it each read sees the data as they are then, and a statement that
would change data is refused with SQLSTATE 0A000.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from tidegate.config.model import LimitSettings
from tidegate.edges.pgwire import commands, messages
from tidegate.edges.pgwire.catalog.catalogs import SystemCatalogs
from tidegate.edges.pgwire.catalog.translation import reads_catalogs
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
from tidegate.edges.pgwire.portals import Portal, PreparedStatement, RunningResult
from tidegate.edges.pgwire.rows import Client, CopySender, RowSender, with_kinds_of
from tidegate.edges.pgwire.settings import SessionSettings
from tidegate.edges.pgwire.values import TEXT_OID, RowEncoder, oid_of, read_parameter, type_name
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.judging_thread import compute
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.model.replies import Prepared, Reply
from tidegate.model.requests import Call, Prepare, Query, Request
from tidegate.model.results import Column, Document, Limits, Page, RowSink
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.lex import WORD, lex

SURFACE = "pgwire"
MAX_STATEMENTS = 1_000
"""Prepared statements and portals that one session may hold, each."""
MAX_HELD = 67_108_864
"""Bytes of parameters that its portals may hold."""
_TEXT = Column("", "text", "text")
_WITH_INFORMATION_SCHEMA = frozenset({"mysql", "duckdb", "h2", "hsqldb"})
_CHANGES = frozenset({Code.POLICY_READ_ONLY})


class Session:
    """The state of one client after its login. The methods are called one at a time; `cancel` may
    be called meanwhile. All raise TidegateError, which the connection sends as an error."""

    def __init__(
        self,
        gateway: Gateway,
        client: Client,
        actor: Actor,
        source: Source,
        settings: SessionSettings,
        limits: LimitSettings,
        *,
        max_rows: int,
        address: str,
    ) -> None:
        self.actor = actor
        self.source = source
        self.settings = settings
        self._gateway = gateway
        self._client = client
        self._limits = limits
        self._max_rows = max_rows
        self._address = address
        self._catalogs = SystemCatalogs(self._ask, source, settings, actor.name)
        self._statements: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}
        self._cursors: dict[str, Portal] = {}
        self._running: Cancellation | None = None
        self._in_block = False
        self._failed = False
        self._block_reads: bool | None = None
        self._described: Portal | None = None
        """The portal whose description is due: Execute sends it before the rows, which saves
        preparing the statement."""

    @property
    def status(self) -> bytes:
        """The transaction status of ReadyForQuery."""
        return b"E" if self._failed else b"T" if self._in_block else b"I"

    def cancel(self, reason: str) -> None:
        """End what runs now."""
        if self._running is not None:
            self._running.cancel(reason)

    def failed(self) -> None:
        """A statement has failed: the block, if there is one, can only be rolled back."""
        self._failed = self._in_block

    # Simple queries

    async def query(self, text: str) -> None:
        """Run the statements of a text, one after the other. All are judged before the first runs,
        and one of them at most may change data."""
        await self._drop_portals(("",))
        parts = await compute(text, commands.split, text, self.source.dialect)
        if len(parts) > MAX_STATEMENTS:
            raise _refused("54000", f"A text has at most {MAX_STATEMENTS} statements.")
        if not parts:
            self._client.write(messages.EMPTY_QUERY)
            return
        read = [await self._read_part(part) for part in parts]
        if len(parts) > 1:
            inner = [each.text for _, each, _ in read if isinstance(each, (CopyOut, Declare))]
            whole = [part for part, command, asks in read if command is None and not asks]
            await self._judge([*inner, *whole])
        for part, command, asks_catalog in read:
            self._check_block(command)
            if command is None and asks_catalog:
                await self._answer_catalog(part, (), (), describes=True)
            elif command is None:
                sender = RowSender(self._client, self.source.dialect, (), describes=True)
                await self._run(part, None, sender, (), whole=len(parts) == 1)
            else:
                await self._command(command, (), describes=True)

    async def _read_part(self, text: str) -> tuple[str, Command | None, bool]:
        """The text, the command that it is, and whether it is about PostgreSQL's catalogs."""
        command = await compute(text, commands.read_command, text)
        return text, command, command is None and await self._is_catalog(text)

    async def _judge(self, statements: Sequence[str]) -> None:
        changes = 0
        for text in statements:
            judgement, explanation = await self._gateway.explain(self._call(self._query(text)))
            if explanation.verdict.kind == "deny":
                # The call itself gives the refusal its words and its record; nothing has run yet.
                await self._handle(self._query(text))
            changes += judgement.effect > Effect.READ
        if changes > 1:
            raise TidegateError(
                Code.SQL_MULTIPLE,
                f"{changes} statements of one text would change data. None of them was run.",
                hint="Send each of them by itself.",
                details={"sqlstate": "0A000"},
            )

    # The extended protocol

    async def parse(self, message: messages.Parse) -> None:
        """Keep a statement under a name. Nothing is asked of the source."""
        if message.name and message.name in self._statements:
            raise _refused("42P05", f'The prepared statement "{message.name[:80]}" exists already.')
        if len(self._statements) >= MAX_STATEMENTS:
            raise _refused("53400", f"A session holds {MAX_STATEMENTS} prepared statements.")
        if len(message.text) > commands.MOST_READ:
            raise TidegateError(
                Code.SQL_TOO_LONG,
                f"A prepared statement has at most {commands.MOST_READ:,} characters.",
                hint="Send long values as parameters.",
            )
        dialect = self.source.dialect
        parts = await compute(message.text, commands.split, message.text, dialect)
        if len(parts) > 1:
            raise TidegateError(
                Code.SQL_MULTIPLE, "A prepared statement is one statement.",
                hint="Send each of them by itself, or all by a simple query.",
            )  # fmt: skip
        text = parts[0] if parts else ""
        names = tuple([type_name(oid) for oid in message.types])
        self._statements[message.name] = PreparedStatement(
            text,
            message.types,
            await compute(text, commands.read_command, text) if text else None,
            await compute(text, commands.place_parameters, text, dialect, names),
        )
        self._client.write(messages.PARSE_COMPLETE)

    async def bind(self, message: messages.Bind) -> None:
        """Make a portal."""
        statement = self._statement(message.statement)
        self._check_block(statement.command)
        if message.portal and message.portal in self._portals:
            raise _refused("42P03", f'The portal "{message.portal[:80]}" exists already.')
        if len(self._portals) >= MAX_STATEMENTS:
            raise _refused("53400", f"A session holds {MAX_STATEMENTS} portals.")
        given, wanted = len(message.parameters), max(statement.placed.most, len(statement.types))
        if given != wanted:
            raise _refused(
                "08P01", f"The statement takes {wanted} parameters, and Bind has {given}."
            )
        size = sum([len(each) for each in message.parameters if each is not None])
        if size + sum([each.size for each in self._portals.values()]) > MAX_HELD:
            raise _refused("53200", f"The portals of a session hold {MAX_HELD:,} bytes at most.")
        formats = message.parameter_formats
        forms = formats * given if len(formats) == 1 else formats or (0,) * given
        if 1 in forms and not all(statement.types) and statement.columns is None:
            await self._prepare(statement)  # the types of binary values are the source's to say
        types = self._parameter_types(statement, given)
        dialect = self.source.dialect
        values = [
            read_parameter(data, oid, form, dialect)
            for data, oid, form in zip(message.parameters, types, forms, strict=True)
        ]
        order = statement.placed.order
        placed = [values[at - 1] for at in order] if order else values
        await self._drop_portals((message.portal,))
        self._portals[message.portal] = Portal(
            statement, tuple(placed), message.result_formats, size
        )
        self._client.write(messages.BIND_COMPLETE)

    async def describe(self, target: messages.Target) -> None:
        """Send the parameters and columns of a statement, or the columns of a portal."""
        if target.kind == "P" and target.name in self._cursors:
            self._send_columns(self._cursors[target.name].statement.columns, ())
            return
        if target.kind == "P":
            self._described = self._portal(target.name)
            return
        statement = self._statement(target.name)
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

    async def execute(self, message: messages.Execute) -> None:
        """Run a portal, or go on with it."""
        portal = self._portal(message.portal)
        describes = self._described is portal
        if not describes:
            await self.settle()
        self._described = None
        statement = portal.statement
        self._check_block(statement.command)
        if not statement.text:
            self._client.write((messages.NO_DATA if describes else b"") + messages.EMPTY_QUERY)
        elif statement.command is not None:
            await self._command(
                statement.command, portal.formats, describes=describes, extended=True
            )
        elif await self._is_catalog(statement.text):
            await self._answer_catalog(
                statement.text, portal.parameters, portal.formats, describes=describes
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
            await self._run(
                statement.placed.text, portal.parameters, sender, (), whole=True, expected=expected
            )
        else:
            await self._run_part(portal, message.max_rows, describes)

    async def close_target(self, target: messages.Target) -> None:
        """Forget a statement or a portal; one that is not there is no error."""
        if target.kind == "S":
            self._statements.pop(target.name, None)
        else:
            await self._drop_portals((target.name,))
        self._client.write(messages.CLOSE_COMPLETE)

    async def sync(self) -> None:
        """The end of a series of messages: outside a block its portals end."""
        self._described = None
        if not self._in_block and self._portals:
            await self._drop_portals(tuple(self._portals))

    async def close(self) -> None:
        """The client has gone."""
        self.cancel("the client has disconnected")
        await self._drop_portals(tuple(self._portals))
        for cursor in self._cursors.values():
            await cursor.close()
        self._cursors.clear()
        self._statements.clear()
        self._catalogs.close()

    # Statements

    async def _run(
        self,
        text: str,
        parameters: tuple[Any, ...] | None,
        sender: RowSender | CopySender,
        formats: Sequence[int],
        *,
        whole: bool,
        expected: tuple[Column, ...] | None = None,
    ) -> None:
        """Run a statement and send its rows and its tag. `whole`: a place in the statement is a
        place in what the client sent. `expected` are the columns that it was described with."""
        reply = await self._handle(self._query(text, parameters or None, sender), whole=whole)
        payload = reply.payload
        if isinstance(payload, Document):
            columns = (Column("result", "json", "json"),)
            sender.begin(columns)
            await sender.write([(payload.json.decode(),)])
            payload = Page(columns, b"[]", 1, payload.affected)
        if expected is not None and _shape(expected) != _shape(payload.columns):
            raise _refused(
                "0A000",
                "The columns of the result are others than those that were described.",
                "Prepare the statement again.",
            )
        sender.finish()
        if isinstance(sender, CopySender):
            self._complete(f"COPY {payload.row_count}", payload)
        else:
            self._complete(self._tag(text, payload), payload)

    async def _run_part(self, portal: Portal, max_rows: int, describes: bool) -> None:
        """Send some rows of a portal, which stays open."""
        statement = portal.statement
        if portal.result is None:
            portal.result = self._start(statement.placed.text, portal.parameters)
        result = portal.result
        left = max_rows or None
        rows, page = await self._read(result, left)
        columns = result.channel.columns
        if describes:
            columns = with_kinds_of(columns, rows, self.source.dialect)
        encoder = RowEncoder(columns, self.source.dialect, portal.formats)
        if describes:
            self._client.write(
                messages.row_description(encoder.fields) if columns else messages.NO_DATA
            )
        await self._send_rows(encoder, rows)
        left = left and left - len(rows)
        while page is None and left != 0:
            rows, page = await self._read(result, left)
            await self._send_rows(encoder, rows)
            left = left and left - len(rows)
        if page is None:
            self._client.write(messages.PORTAL_SUSPENDED)
            return
        portal.result = None
        self._complete(self._tag(statement.text, page), page)

    def _start(self, text: str, parameters: tuple[Any, ...] | None) -> RunningResult:
        cancellation = Cancellation()
        return RunningResult(
            lambda channel: self._gateway.handle(
                self._call(self._query(text, parameters or None, channel), cancellation)
            ),
            cancellation,
        )

    async def _read(
        self, result: RunningResult, count: int | None
    ) -> tuple[Sequence[Sequence[Any]], Page | None]:
        """Rows, and the page if they were the last."""
        self._running = result.cancellation
        try:
            rows, more = await result.read(count)
            return rows, None if more else await result.page() or Page((), b"[]", 0)
        except TidegateError as error:
            raise self._in_words_of_block(error) from None
        finally:
            self._running = None

    async def _send_rows(self, encoder: RowEncoder, rows: Sequence[Sequence[Any]]) -> None:
        buffer = bytearray()
        encoder.append(buffer, rows)
        self._client.write(buffer)
        await self._client.drain()

    def _parameter_types(self, statement: PreparedStatement, count: int) -> list[int]:
        """The types that the client gave, else those that the source said; 0 where neither did."""
        given, said = statement.types, statement.inferred
        return [
            (given[at] if at < len(given) else 0) or (said[at] if at < len(said) else 0)
            for at in range(count)
        ]

    async def _prepare(self, statement: PreparedStatement) -> None:
        """Find the columns and parameters of a statement, as often as it is described: the schema
        may have changed."""
        if statement.command is not None:
            statement.columns = self._columns_of(statement.command)
            return
        if not statement.text:
            statement.columns = ()
            return
        if await self._is_catalog(statement.text):
            nothing = (None,) * max(statement.placed.most, len(statement.types))
            statement.columns, _ = await self._catalogs.run(statement.text, nothing)
            return
        request = Prepare(
            statement=Statement(statement.placed.text),
            changes=True,
            limits=self._bounds(),
            schema=self.settings.schema,
        )
        reply = await self._handle(request, whole=True)
        prepared = reply.payload
        if not isinstance(prepared, Prepared):
            raise TypeError(type(prepared).__name__)
        columns = prepared.columns
        if columns is None:
            raise _refused(
                "0A000",
                f"The source {self.source.name!r} cannot describe a statement before it runs.",
                "Send it as a simple query.",
            )
        statement.columns = columns
        statement.inferred = tuple([oid_of(name) for name in prepared.parameters or ()])

    def _send_columns(self, columns: tuple[Column, ...] | None, formats: Sequence[int]) -> None:
        if not columns:
            self._client.write(messages.NO_DATA)
            return
        encoder = RowEncoder(columns, self.source.dialect, formats)
        self._client.write(messages.row_description(encoder.fields))

    def _query(
        self,
        text: str,
        parameters: tuple[Any, ...] | None = None,
        sink: RowSink | None = None,
    ) -> Query:
        return Query(
            statement=Statement(text, parameters),
            sink=sink,
            limits=self._bounds(),
            schema=self.settings.schema,
        )

    def _bounds(self) -> Limits:
        limits = self._limits
        asked = self.settings.timeout_s
        timeout_s = limits.timeout_s if asked is None else min(asked, limits.max_timeout_s)
        return Limits(self._max_rows, limits.max_bytes, timeout_s)

    def _call(self, request: Request, cancellation: Cancellation | None = None) -> Call:
        reads_only = self._in_block or self.settings.reads_only
        return Call(
            self.actor,
            SURFACE,
            SURFACE,
            request,
            self.source.name,
            client=self.settings.get("application_name") or "",
            cancellation=cancellation or Cancellation(),
            reads_only=reads_only,
            address=self._address,
        )

    async def _ask(self, request: Request) -> Any:
        """The payload of a reply."""
        return (await self._handle(request)).payload

    async def _handle(self, request: Request, *, whole: bool = False) -> Reply:
        cancellation = self._running = Cancellation()
        try:
            return await self._gateway.handle(self._call(request, cancellation))
        except TidegateError as error:
            if not whole:
                error.details.pop("position", None)
            raise self._in_words_of_block(error) from None
        finally:
            self._running = None

    def _in_words_of_block(self, error: TidegateError) -> TidegateError:
        """A change that is refused because of the block says so, unless it was to read only."""
        asked_for_reading = self._block_reads or self.settings.reads_only
        if error.code not in _CHANGES or not self._in_block or asked_for_reading:
            return error
        refused = TidegateError(
            Code.UNSUPPORTED,
            "A statement that changes data does not run in a transaction block here."
            " It was not run.",
            hint="Switch autocommit on, and send it outside BEGIN and COMMIT.",
            details={"sqlstate": "0A000"},
        )
        refused.call_id = error.call_id
        return refused

    def _complete(self, tag: str, page: Page | None = None) -> None:
        if page is not None:
            for cut in page.truncations:
                note = (
                    f"The result was cut at {cut.limit} {cut.kind}: {cut.returned} were returned."
                )
                self._client.write(_notice("01004", note))
        self._client.write(messages.command_complete(tag))

    def _tag(self, text: str, page: Page) -> str:
        verb = self._verb(text)
        if verb == "INSERT":
            return f"INSERT 0 {page.affected or page.row_count}"
        if verb in ("UPDATE", "DELETE", "MERGE"):
            return f"{verb} {page.affected or page.row_count}"
        if page.columns:
            return f"SELECT {page.row_count}"
        return verb

    def _verb(self, text: str) -> str:
        """The command that a text is, as in PostgreSQL's tags."""
        head = text[:2_000]
        words = [word.upper() for word in head.split(None, 3)[:2]]
        first = words[0].strip("(;") if words else ""
        if first in ("WITH",) or not first.isalpha():
            rules = commands.find(self.source.dialect).lexical_rules
            try:
                keys = [
                    token.key
                    for token in lex(text[: commands.MOST_READ], rules)
                    if token.kind == WORD
                ]
            except Exception:  # noqa: BLE001 - a tag only; the statement has run
                keys = []
            changes = [key for key in keys if key in ("INSERT", "UPDATE", "DELETE", "MERGE")]
            return changes[0] if changes else (keys[0] if keys else "OK")
        if first in ("CREATE", "DROP", "ALTER") and len(words) > 1:
            return f"{first} {words[1].strip(';')}"
        return first

    # Commands of the session

    def _check_block(self, command: Command | None) -> None:
        ends = isinstance(command, End) or (
            isinstance(command, Savepoint) and command.word == "ROLLBACK"
        )
        if self._failed and not ends:
            raise _refused(
                "25P02",
                "The transaction block has failed: its commands are ignored until its end.",
                "Send ROLLBACK.",
            )

    def _columns_of(self, command: Command) -> tuple[Column, ...]:
        if isinstance(command, Show):
            if command.name == "all":
                return tuple([structs.replace(_TEXT, name=each) for each in ("name", "setting")])
            return (structs.replace(_TEXT, name=command.name),)
        if isinstance(command, SetConfig):
            return tuple([structs.replace(_TEXT, name=each.label) for each in command.settings])
        if isinstance(command, UnlockAll):
            return (Column("pg_advisory_unlock_all", "text", "text"),)
        if isinstance(command, Fetch) and not command.move and command.name in self._cursors:
            return self._cursors[command.name].statement.columns or ()
        return ()

    async def _command(
        self,
        command: Command,
        formats: Sequence[int],
        *,
        describes: bool,
        extended: bool = False,
    ) -> None:
        """Carry out a command of the edge and send its answer."""
        client = self._client
        rowless = (
            extended and describes and not isinstance(command, (Show, UnlockAll, SetConfig, Fetch))
        )
        if rowless:
            client.write(messages.NO_DATA)
        if isinstance(command, CopyOut):
            sender = CopySender(client, self.source.dialect, command)
            await self._run(command.text, None, sender, (), whole=False)
        elif isinstance(command, Show):
            await self._show(command, formats, describes)
        elif isinstance(command, UnlockAll):
            await self._answer(self._columns_of(command), [("",)], formats, describes, "SELECT 1")
        elif isinstance(command, SetConfig):
            await self._set_config(command, formats, describes)
        elif isinstance(command, Declare):
            await self._declare(command)
        elif isinstance(command, Fetch):
            await self._fetch(command, formats, describes)
        elif isinstance(command, CloseCursor):
            await self._close_cursors(command.name)
            self._complete("CLOSE CURSOR" if command.name else "CLOSE CURSOR ALL")
        elif isinstance(command, (Begin, End, Savepoint, Characteristics)):
            await self._transaction(command)
        elif isinstance(command, SetValue):
            self._report(self.settings.set(command.name, command.value))
            self._complete("SET")
        elif isinstance(command, Reset):
            if command.name == "all":
                for each in self.settings.reset():
                    self._report(each)
            else:
                self._report(self.settings.set(command.name, None))
            self._complete("RESET")
        elif isinstance(command, Discard):
            await self._discard(command)
        elif isinstance(command, Deallocate):
            self._deallocate(command.name)
        else:
            self._complete("UNLISTEN")

    async def _show(self, command: Show, formats: Sequence[int], describes: bool) -> None:
        columns = self._columns_of(command)
        if command.name == "all":
            rows = self.settings.items()
            await self._answer(columns, rows, formats, describes, "SHOW")
            return
        value = self.settings.get(command.name)
        if value is None:
            # What is no setting may be a statement of the source: SHOW TABLES, SHOW PROVIDERS.
            if self.source.dialect != "postgres":
                sender = RowSender(self._client, self.source.dialect, formats, describes=describes)
                await self._run(f"SHOW {command.name}", None, sender, (), whole=False)
                return
            raise _refused("42704", f'Unrecognized configuration parameter "{command.name[:80]}".')
        await self._answer(columns, [(value,)], formats, describes, "SHOW")

    async def _is_catalog(self, text: str) -> bool:
        """Whether a text is about PostgreSQL's catalogs of a source that has none."""
        dialect = self.source.dialect
        if dialect == "postgres":
            return False
        has_own = dialect in _WITH_INFORMATION_SCHEMA
        return await compute(text, reads_catalogs, text, has_information_schema=has_own)

    async def _answer_catalog(
        self,
        text: str,
        parameters: tuple[Any, ...],
        formats: Sequence[int],
        *,
        describes: bool,
    ) -> None:
        columns, rows = await self._catalogs.run(text, parameters)
        sender = RowSender(self._client, "", formats, describes=describes)
        sender.begin(columns)
        await sender.write(rows)
        sender.finish()
        self._complete(f"SELECT {len(rows)}")

    async def _set_config(
        self, command: SetConfig, formats: Sequence[int], describes: bool
    ) -> None:
        row: list[str] = []
        for each in command.settings:
            if each.value is not None:
                self._report(self.settings.set(each.name, each.value))
            value = self.settings.get(each.name)
            if value is None:
                raise _refused("42704", f'Unrecognized configuration parameter "{each.name[:80]}".')
            row.append(value)
        columns = self._columns_of(command)
        await self._answer(columns, [row], formats, describes, "SELECT 1")

    async def _answer(
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
        self._complete(tag)

    def _report(self, changed: tuple[str, str] | None) -> None:
        if changed is not None:
            self._client.write(messages.parameter_status(*changed))

    async def _transaction(self, command: Begin | End | Savepoint | Characteristics) -> None:
        if isinstance(command, Begin):
            if self._in_block:
                self._client.write(_notice("25001", "There is already a transaction in progress."))
            else:
                self._in_block, self._block_reads = True, command.read_only
            self._complete("BEGIN")
        elif isinstance(command, Characteristics):
            if command.read_only is not None and command.session:
                value = "on" if command.read_only else "off"
                self._report(self.settings.set("default_transaction_read_only", value))
            elif command.read_only is not None:
                self._block_reads = command.read_only
            self._complete("SET")
        elif isinstance(command, Savepoint):
            if not self._in_block:
                raise _refused("25P01", f"{command.word} needs a transaction block.")
            if command.word == "ROLLBACK":
                self._failed = False
            self._complete(command.word)
        else:
            if not self._in_block:
                self._client.write(_notice("25P01", "There is no transaction in progress."))
            undone = self._failed or not command.commit
            self._in_block = self._in_block and command.chain
            self._failed = False
            await self._drop_portals(tuple(self._portals))
            for name, cursor in list(self._cursors.items()):
                await cursor.close()
                del self._cursors[name]
            self._complete("ROLLBACK" if undone else "COMMIT")

    async def _declare(self, command: Declare) -> None:
        """Open a cursor. It lives until the block ends; one WITH HOLD needs no block."""
        if not self._in_block and not command.hold:
            raise _refused("25P01", "DECLARE CURSOR needs a transaction block.")
        if command.name in self._cursors:
            raise _refused("42P03", f'The cursor "{command.name[:80]}" exists already.')
        if len(self._cursors) >= MAX_STATEMENTS:
            raise _refused("53400", f"A session holds {MAX_STATEMENTS} cursors.")
        placed = commands.place_parameters(command.text, self.source.dialect, ())
        statement = PreparedStatement(command.text, (), None, placed)
        cursor = Portal(statement, (), ())
        cursor.result = self._start(command.text, None)
        try:
            columns = await cursor.result.columns()
            statement.columns = with_kinds_of(columns, cursor.result.ahead, self.source.dialect)
        except TidegateError as error:
            await cursor.close()
            raise self._in_words_of_block(error) from None
        self._cursors[command.name] = cursor
        self._complete("DECLARE CURSOR")

    async def _fetch(self, command: Fetch, formats: Sequence[int], describes: bool) -> None:
        cursor = self._cursors.get(command.name)
        if cursor is None:
            raise _refused("34000", f'There is no cursor "{command.name[:80]}".')
        columns = cursor.statement.columns or ()
        encoder = RowEncoder(columns, self.source.dialect, formats)
        if describes:
            self._client.write(
                messages.NO_DATA if command.move else messages.row_description(encoder.fields)
            )
        left, count = command.rows, 0
        while cursor.result is not None and (left is None or left > 0):
            rows, page = await self._read(cursor.result, left)
            count += len(rows)
            left = None if left is None else left - len(rows)
            if not command.move:
                await self._send_rows(encoder, rows)
            if page is not None:
                cursor.result = None
        self._complete(f"{'MOVE' if command.move else 'FETCH'} {count}")

    async def _close_cursors(self, name: str | None) -> None:
        if name is not None and name not in self._cursors:
            raise _refused("34000", f'There is no cursor "{name[:80]}".')
        for each in [name] if name is not None else list(self._cursors):
            await self._cursors.pop(each).close()

    async def _discard(self, command: Discard) -> None:
        if command.what == "ALL":
            if self._in_block:
                raise _refused("25001", "DISCARD ALL does not run in a transaction block.")
            await self._close_cursors(None)
            await self._drop_portals(tuple(self._portals))
            self._statements.clear()
            for each in self.settings.reset():
                self._report(each)
        self._complete(f"DISCARD {command.what}")

    def _deallocate(self, name: str | None) -> None:
        if name is None:
            self._statements.clear()
            self._complete("DEALLOCATE ALL")
            return
        if self._statements.pop(name, None) is None:
            raise _refused("26000", f'There is no prepared statement "{name[:80]}".')
        self._complete("DEALLOCATE")

    # What the session holds

    def _statement(self, name: str) -> PreparedStatement:
        found = self._statements.get(name)
        if found is None:
            raise _refused("26000", f'There is no prepared statement "{name[:80]}".')
        return found

    def _portal(self, name: str) -> Portal:
        found = self._portals.get(name)
        if found is None:
            raise _refused("34000", f'There is no portal "{name[:80]}".')
        return found

    async def _drop_portals(self, names: Sequence[str]) -> None:
        for name in names:
            portal = self._portals.pop(name, None)
            if portal is not None:
                await portal.close()


def _shape(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]


def _notice(sqlstate: str, text: str) -> bytes:
    return messages.notice({"S": "WARNING", "V": "WARNING", "C": sqlstate, "M": text})


def _refused(sqlstate: str, message: str, hint: str | None = None) -> TidegateError:
    return TidegateError(Code.ARGUMENT_INVALID, message, hint=hint, details={"sqlstate": sqlstate})


def error_fields(error: TidegateError, severity: str = "ERROR") -> dict[str, str]:
    """The fields of an ErrorResponse: SQLSTATE from the database or from the table of codes."""
    state = error.details.get("sqlstate")
    fields = {
        "S": severity,
        "V": severity,
        "C": state if isinstance(state, str) and len(state) == 5 else error.fate.sqlstate,
        "M": error.message,
    }
    detail = f"{error.code.value}" + (f", call {error.call_id}" if error.call_id else "")
    fields["D"] = detail
    if error.hint:
        fields["H"] = error.hint
    position = error.details.get("position")
    if isinstance(position, int) and position > 0:
        fields["P"] = str(position)
    return fields
