"""Cloud providers of a backing server: a Tidegate that serves its source of them on the wire, a
StackQL, or for SELECT alone a PostgreSQL.

What runs was judged, approved and recorded here. A backing Tidegate learns for whom it runs, and
sends no other requests than those that were approved. Masks and row filters are for the
backing server: here nothing could apply them, so a caller who has some is refused.
"""

from __future__ import annotations

import asyncio
import re

import msgspec

from tidegate.engines.api import INSPECT_S, Capabilities, Cursor, StatementDescription
from tidegate.engines.common.errors import closed
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    prepare_of,
    query_of,
)
from tidegate.engines.common.renewed_login import RenewedLogin
from tidegate.engines.common.roles import refuse_identity
from tidegate.engines.registry import resolve_options
from tidegate.errors import Code, TidegateError, masking_refused
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Explain, Query
from tidegate.model.results import Document, Limits
from tidegate.model.schema import (
    Catalog,
    ColumnInfo,
    Counts,
    Databases,
    Description,
    Status,
    Table,
)
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.model.worker_share import own_share
from tidegate.products.cloud.engine.resource_table import quoted
from tidegate.products.cloud.engine.statement_text import parameter_count, with_literals
from tidegate.products.cloud.language.data_rules import HiddenData
from tidegate.products.cloud.language.statements import (
    ExecStatement,
    ReadStatement,
    SqlStatement,
    read_judged_statement,
)
from tidegate.products.cloud.proxy.connection import BackingConnection, literal
from tidegate.products.cloud.proxy.cursor import BackingCursor
from tidegate.products.cloud.proxy.url import Target, read_target
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge
from tidegate.sql.lex import NAME, lex
from tidegate.typed_values import decode_json

_PLAN_S = 10.0
_DOUBTFUL = re.compile(r"[;\\]|--|/\*(?!\+)")
"""What parts or hides text by the grammar of MySQL, and not by ours or in other places."""
_MOST_CALLER = 256


def _target_of(source: Source) -> Target:
    return read_target(source.url, resolve_options(source))


class CloudProxyEngine:
    """One backing server, and a few connections to it that callers share."""

    def __init__(
        self, login: RenewedLogin[Target], first: BackingConnection, *, writable: bool
    ) -> None:
        self._login = login
        self._target = target = login.target
        self._writable = writable
        self._idle = [first]
        self._used: set[BackingConnection] = set()
        self._outdated: set[BackingConnection] = set()
        places = own_share().of(target.pool)
        self._places = asyncio.Semaphore(places)
        self._closed = False
        login.watch_lease(self._renew_connections)
        self._kind = first.kind
        self._version = first.version
        self.capabilities = Capabilities(
            upstream=True,
            transactions=False,
            schemas=True,
            explains=True,
            explains_changes=first.kind != "plain",
            explains_as_json=False,
            primary_keys=False,
            foreign_keys=False,
            row_counts=False,
            prepares=first.kind == "tidegate",
            max_concurrency=places,
            dry_runs=first.kind == "tidegate",
            plans=first.kind == "tidegate",
        )

    @classmethod
    async def open(cls, source: Source) -> CloudProxyEngine:
        login = RenewedLogin(source, _target_of)
        return cls(login, await login.open(BackingConnection.open), writable=source.writable)

    @property
    def status(self) -> Status:
        return Status(self._target.database, None, f"{self._version} at {self._target.place}")

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        self._check_open()
        return None

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor | Document:
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        request, judgement = query_of(permit)
        writing = judgement.effect is not Effect.READ
        if writing and (permit.effect < Effect.WRITE or not self._writable):
            raise TidegateError(
                Code.POLICY_READ_ONLY, "The statement changes something at a provider."
            )
        text = request.statement.text
        read = read_judged_statement(text)
        if isinstance(read.statement, (SqlStatement, ExecStatement)) and read.explained != "plan":
            _refuse_hidden(permit)
        if self._kind == "plain":
            self._check_plain(read)
        if isinstance(read.statement, SqlStatement):
            text = with_literals(text, request.statement.params)
            if self._kind == "plain":
                self._check_alike(with_literals(read.statement.text, request.statement.params))
        if isinstance(request, Explain):
            text = f"EXPLAIN {text}"
        if self._kind == "stackql":
            text = _undivided(text)
        rows = _most_rows(request, permit.limits)
        connection = await self._take(permit.limits, permit, rows, writing=writing)
        cursor = BackingCursor(
            connection,
            self._target.place,
            permit.limits.timeout_s,
            self._give_back,
            writing=writing,
        )

        def cancel() -> None:
            connection.cancel(cancellation.reason or "cancelled")

        cursor.on_close = lambda: cancellation.forget(cancel)
        try:
            check_cancelled(cancellation)
            cancellation.listen(cancel)
            await cursor.begin(text, alone=self._kind == "plain")
        except BaseException:
            await cursor.close()
            raise
        return cursor

    def _check_plain(self, read: ReadStatement) -> None:
        """Raises: TidegateError UNSUPPORTED for what is no statement of PostgreSQL."""
        if not isinstance(read.statement, SqlStatement) or read.statement_class != "select":
            raise TidegateError(
                Code.UNSUPPORTED,
                f"The backing server {self._target.place} is a PostgreSQL: only SELECT runs there.",
                hint="Send a SELECT.",
            )

    def _check_alike(self, text: str) -> None:
        """Refuse a query that PostgreSQL reads in another way than SQLite, by whose grammar it was
        judged: `[f()]` is a name to one, and a call to the other. Raises: TidegateError
        UNSUPPORTED."""
        ours, theirs = judge(text, "cloud"), judge(text, "postgres")
        if theirs.effect is Effect.READ and _names(ours) == _names(theirs):
            return
        reason = "" if theirs.effect is Effect.READ else f" {theirs.reason}."
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The backing server {self._target.place} is a PostgreSQL, and the statement is no"
            f" plain query there.{reason}",
            hint="Write names without brackets, and use functions that both SQLite and PostgreSQL"
            " have.",
        )

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        """Columns as the backing server describes them. A parameter counts as bound."""
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        request, _ = prepare_of(permit)
        _refuse_hidden(permit)
        text = request.statement.text
        read = read_judged_statement(text)
        if read.statement_class != "select":
            raise TidegateError(Code.UNSUPPORTED, "Only a query is prepared.")
        if isinstance(read.statement, SqlStatement):
            text = with_literals(text, ("",) * parameter_count(text))
        connection = await self._take(permit.limits, permit, 0, writing=False)
        try:
            return await connection.describe(text, permit.limits.timeout_s)
        finally:
            await self._give_back(connection, connection.is_alive())

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        """What would be sent, and what is there now, as the backing server sees it. Changes
        nothing.

        Raises: TidegateError, as planning the change.
        """
        refuse_identity(permit)
        self._check_open()
        check_cancelled(cancellation)
        request, _ = query_of(permit)
        _refuse_hidden(permit)
        seconds = permit.limits.timeout_s
        found = await self._explain_change("PREVIEW", request.statement, seconds, permit.actor)
        try:
            return decode_json(found, DryRun)
        except (msgspec.DecodeError, RecursionError):
            raise self._unknown_answer("PREVIEW") from None

    async def plan(self, statement: Statement, source: Source) -> str:
        """A digest of the requests that a change means; empty if its values come from other
        requests. Sends nothing to a provider.

        Raises: TidegateError, as planning the change.
        """
        self._check_open()
        return await self._explain_change("DIGEST", statement, _PLAN_S)

    async def _explain_change(
        self, what: str, statement: Statement, seconds: float, actor: Actor | None = None
    ) -> str:
        text = statement.text
        if isinstance(read_judged_statement(text).statement, SqlStatement):
            text = with_literals(text, statement.params)
        connection = await self._take(Limits(timeout_s=seconds), actor, 0, writing=False)
        try:
            rows = await connection.ask(f"EXPLAIN {what} {text}", seconds)
        finally:
            await self._give_back(connection, connection.is_alive())
        if len(rows) != 1 or len(rows[0]) != 1 or not isinstance(rows[0][0], str):
            raise self._unknown_answer(what)
        return rows[0][0]

    def _unknown_answer(self, what: str) -> TidegateError:
        return TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"The backing server {self._target.place} does not answer EXPLAIN {what} as this"
            " version does. Nothing was sent to a provider.",
            hint="Use one version of Tidegate on both servers.",
        )

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        refuse_identity(permit)
        request = describe_of(permit)
        self._check_open()
        check_cancelled(cancellation)
        if request.aspect == "databases":
            return Databases((self._target.database,))
        if request.aspect == "counts":
            return Counts({})
        if request.aspect == "catalog":
            return await self._catalog(request.schema, permit)
        raise TidegateError(
            Code.UNSUPPORTED,
            "A provider's resources have no definition in SQL.",
            hint="DESCRIBE provider.service.resource lists the columns.",
        )

    async def _catalog(self, schema: str | None, permit: Permit) -> Catalog:
        """The services as schemas, and the resources of `schema` alone; nothing of a PostgreSQL."""
        if self._kind == "plain":
            return Catalog(self._target.database, "", (), (), "")
        connection = await self._take(permit.limits, permit, 0, writing=False)
        try:
            schemas, tables = await _listed(connection, schema, permit.limits.timeout_s)
        finally:
            await self._give_back(connection, connection.is_alive())
        return Catalog(self._target.database, "", schemas, tables, "")

    async def schema_version(self) -> str:
        self._check_open()
        return ""

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._login.close()
        self._drop_idle()
        for connection in tuple(self._used):
            connection.cancel("closed")

    # Connections

    async def _take(
        self, limits: Limits, caller: Permit | Actor | None, rows: int, *, writing: bool
    ) -> BackingConnection:
        """A connection that is alive, and that knows for whom it is used. Nothing has been sent on
        it, so one that turns out to be dead is replaced.

        Raises: TidegateError SOURCE_BUSY, SOURCE_UNREACHABLE.
        """
        try:
            await asyncio.wait_for(self._places.acquire(), self._target.connect_s)
        except TimeoutError:
            raise TidegateError(
                Code.SOURCE_BUSY,
                f"All {self._target.pool} connections to the backing server are in use.",
            ) from None
        try:
            connection = await self._ready(self._greeting(limits, caller, rows, writing=writing))
        except BaseException:
            self._places.release()
            raise
        self._used.add(connection)
        return connection

    async def _ready(self, greeting: str) -> BackingConnection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_alive():
                connection.close()
                continue
            try:
                await connection.ask(greeting, self._target.connect_s)
            except TidegateError as error:
                connection.close()
                if error.code not in (Code.SOURCE_UNREACHABLE, Code.LIMIT_TIME):
                    raise
                if error.code is Code.LIMIT_TIME:
                    self._drop_idle()  # they lead to the same server, and each would wait as long
            else:
                return connection
        connection = await self._login.open(BackingConnection.open)
        if connection.kind != self._kind:
            connection.close()
            raise TidegateError(
                Code.SOURCE_UNREACHABLE,
                f"The backing server {self._target.place} is another one than when this server was"
                f" started: {connection.version}.",
                hint="Start this server again.",
            )
        try:
            await connection.ask(greeting, self._target.connect_s)
        except BaseException:
            connection.close()
            raise
        return connection

    def _greeting(
        self, limits: Limits, caller: Permit | Actor | None, rows: int, *, writing: bool
    ) -> str:
        """What is set before a statement: what it may do, for how long, and for whom it is."""
        milliseconds = max(1, round(limits.timeout_s * 1_000))
        if self._kind == "plain":
            return f"BEGIN READ ONLY; SET LOCAL statement_timeout = {milliseconds}"
        if self._kind == "stackql":
            return ""
        plan = caller.plan if isinstance(caller, Permit) else ""
        actor = caller.actor if isinstance(caller, Permit) else caller
        name = "the gate" if actor is None else f"{actor.name} ({actor.id})"
        settings = {
            "statement_timeout": str(milliseconds),
            "default_transaction_read_only": "off" if writing else "on",
            "tidegate.max_rows": str(rows),
            "tidegate.on_behalf_of": literal(name[:_MOST_CALLER]),
            "tidegate.plan": literal(plan),
        }
        return "; ".join(f"SET {setting} = {value}" for setting, value in settings.items())

    async def _give_back(self, connection: BackingConnection, usable: bool) -> None:
        self._used.discard(connection)
        usable = usable and connection not in self._outdated
        self._outdated.discard(connection)
        if usable and self._kind == "plain":
            try:
                await connection.ask("ROLLBACK", self._target.connect_s)
            except TidegateError:
                usable = False
        if usable and not self._closed:
            self._idle.append(connection)
        else:
            connection.close()
        self._places.release()

    def _renew_connections(self) -> None:
        """Replace every connection: idle ones now, the others when they are given back."""
        self._outdated |= self._used
        self._drop_idle()

    def _drop_idle(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise closed()


def _names(judgement: Judgement) -> set[str]:
    return {each.casefold() for each in judgement.tables}


def _undivided(text: str) -> str:
    """The text without what ends it. StackQL runs each piece between semicolons, and it is not
    known whether it sees those in strings and comments as we do; nor where these end, if there are
    backslashes, comments or brackets, which mean something else to MySQL, whose grammar it has.

    Raises: TidegateError UNSUPPORTED for a text with another semicolon, or with one of these.
    """
    found = text.rstrip("; \t\r\n\f\v")
    try:
        tokens = lex(found, find("cloud").lexical_rules)
        in_brackets = any(each.kind == NAME and found[each.at] == "[" for each in tokens)
    except Refusal:  # EXEC has words that are not SQL
        in_brackets = "[" in found
    if not (_DOUBTFUL.search(found) or in_brackets):
        return found
    raise TidegateError(
        Code.UNSUPPORTED,
        "A statement for a backing StackQL holds no semicolon, backslash, bracket around a name or"
        " comment, also not in a string.",
        hint="Write the statement without it.",
    )


def _refuse_hidden(permit: Permit) -> None:
    """Raises: TidegateError POLICY_MASKED if anything of the source is hidden from the caller."""
    given = permit.request.engine_rules
    if given is None or not HiddenData(given.rules, given.key).resources:
        return
    raise masking_refused(
        "Masks and filters for resources cannot be applied before a backing server",
        "source.masking",
        "The operator can set them in the settings of the backing server.",
    )


def _most_rows(request: Query | Explain, limits: Limits) -> int:
    """How many rows the backing server need send; 0 for all that it gives."""
    if isinstance(request, Query) and not request.keep_rest:
        return limits.max_rows + request.offset
    return 0


async def _listed(
    connection: BackingConnection, schema: str | None, seconds: float
) -> tuple[tuple[str, ...], tuple[Table, ...]]:
    """The services of all providers, and the resources of one of them with their columns."""
    schemas: list[str] = []
    for provider, *_ in await connection.ask("SHOW PROVIDERS", seconds):
        services = await connection.ask(f"SHOW SERVICES IN {quoted(str(provider))}", seconds)
        schemas += [f"{provider}.{name}" for _, name, *_ in services]
    tables: list[Table] = []
    if schema is not None and schema in schemas:
        path = ".".join(quoted(part) for part in schema.split(".", 1))
        for name, *_ in await connection.ask(f"SHOW RESOURCES IN {path}", seconds):
            columns = await connection.ask(f"DESCRIBE {path}.{quoted(str(name))}", seconds)
            shown = tuple([ColumnInfo(str(each[0]), str(each[1])) for each in columns])
            tables.append(Table(schema, str(name), "table", shown))
    return tuple(schemas), tuple(tables)
