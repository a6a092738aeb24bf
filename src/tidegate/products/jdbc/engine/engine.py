"""A database with a JDBC driver as an engine.

A source has one JVM, which is started when the source is opened, and again if it was lost; each of
its connections is a channel there. Sources may share one (`startup.py`). The gate's judgement, the
driver's or database's own fence (`products.Product.fence`) and a rollback keep reads from writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from tidegate.engines.api import (
    INSPECT_S,
    Capabilities,
    Cursor,
    Lease,
    PoolWaits,
    StatementDescription,
)
from tidegate.engines.common import state_databases
from tidegate.engines.common.errors import PROCESS, closed
from tidegate.engines.common.permit_checks import (
    check_cancelled,
    describe_of,
    prepare_of,
    query_of,
)
from tidegate.engines.common.pool import Pool, waits_of
from tidegate.engines.common.renewed_login import RenewedLogin
from tidegate.engines.common.roles import refuse_identity
from tidegate.engines.common.running_statement import (
    BorrowedConnection,
    RunningStatements,
    end_all,
    start,
)
from tidegate.engines.registry import resolve_options
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.requests import Browse, Explain, Prepare, Query
from tidegate.model.schema import Catalog, Counts, Databases, Ddl, Description, Status, Table
from tidegate.model.sources import Source
from tidegate.model.statements import DryRun, Effect, Judgement, Statement
from tidegate.model.worker_share import own_share
from tidegate.products.jdbc.engine.bare_calls import places_of, refused, unexplained
from tidegate.products.jdbc.engine.catalog import find_table, tables_of
from tidegate.products.jdbc.engine.connection import JdbcConnection
from tidegate.products.jdbc.engine.cursor import JdbcCursor
from tidegate.products.jdbc.engine.errors import FILE_IN_USE, LOCK_S, SESSION
from tidegate.products.jdbc.engine.jvm.process import JvmProcess
from tidegate.products.jdbc.engine.messages import Prepared, TableFacts, fields
from tidegate.products.jdbc.engine.startup import Worker, start_worker
from tidegate.products.jdbc.engine.texts import (
    check_described,
    creates_temporary,
    first_word,
    for_jdbc,
    to_prepare,
    with_values,
    without_end,
)
from tidegate.products.jdbc.engine.types import column_of, parameter_of, parameter_types
from tidegate.products.jdbc.engine.url import JdbcUrl, absolute_url, file_of, parse_jdbc_url
from tidegate.sql import quoting
from tidegate.sql.bare_names import bare_names
from tidegate.sql.dialects import find
from tidegate.sql.finding import Refusal
from tidegate.sql.judge import judge
from tidegate.sql.masking.table_ddl import table_ddl

OWN_S = 30.0
"""The time limit of what we ask for ourselves."""

LOCK_RETRY_S = 1.0
"""How often a database is tried whose file is still locked by a process that was lost."""

Answer = TypeVar("Answer")

PLACES = 4
"""Connections of one source."""

_NEVER = frozenset({Effect.SESSION, Effect.ADMIN, Effect.UNKNOWN})
"""What no permit runs here: such statements run Java code, write files, or outlive their caller."""


class JdbcEngine:
    """One source with a JDBC driver."""

    capabilities: Capabilities

    def __init__(
        self, url: JdbcUrl, login: RenewedLogin[Mapping[str, str]], *, reads_only: bool
    ) -> None:
        self._url = url
        self._login = login
        options = login.target
        self._reads_only = reads_only
        self._product = url.product
        self.capabilities = Capabilities(
            schemas=url.product.schemas,
            explains=bool(url.product.explain),
            explains_changes=False,
            cancels=url.product.cancels,
            explains_as_json=url.product.explains_as_json,
            row_counts=True,
            prepares=url.product.prepares,
            max_concurrency=own_share().of(int(options.get("connections", PLACES))),
        )
        self._worker: Worker | None = None
        self._lost_at = float("-inf")
        self._starting = asyncio.Lock()
        self._readers = Pool(
            lambda: self._connect(False), self.capabilities.max_concurrency, open_s=OWN_S
        )
        # A connection that only reads stays so, where the fence is the connection.
        self._writers = (
            Pool(lambda: self._connect(True), self.capabilities.max_concurrency, open_s=OWN_S)
            if url.product.fence == "connection"
            else self._readers
        )
        login.watch_lease(self._renew_connections)
        self._running: RunningStatements[JdbcConnection] = RunningStatements()
        self._closed = False
        self._status = Status("", None, "")

    @classmethod
    async def open(cls, source: Source) -> JdbcEngine:
        login = RenewedLogin[Mapping[str, str]](source, resolve_options)
        url = parse_jdbc_url(absolute_url(source.url))
        _check_file(url)
        engine = cls(url, login, reads_only=not source.writable)
        try:
            async with engine._borrowed() as connection:
                greeting = connection.greeting
        except BaseException:
            await engine.close()
            raise
        engine._status = Status(
            greeting.catalog or greeting.schema or url.product.title,
            greeting.schema,
            " ".join(filter(None, (greeting.product, greeting.version))),
            fence_warnings(url),
            driver=engine.driver_class,
        )
        return engine

    @property
    def status(self) -> Status:
        return self._status

    @property
    def open_connections(self) -> int:
        return sum(len(pool.connections) for pool in {self._readers, self._writers})

    @property
    def pool_waits(self) -> PoolWaits:
        return waits_of({self._readers, self._writers})

    @property
    def lease(self) -> Lease | None:
        return self._login.lease

    @property
    def process(self) -> JvmProcess:
        """The JVM that it has now, or had last. Raises: TidegateError SOURCE_NOT_CONNECTED."""
        if self._worker is None:
            raise closed()
        return self._worker.process

    @property
    def process_id(self) -> str:
        return self.process.id

    @property
    def driver_class(self) -> str:
        return self._worker.loaded.driver if self._worker is not None else ""

    async def inspect(
        self, statement: Statement, judgement: Judgement, timeout_s: float = INSPECT_S
    ) -> Judgement | None:
        """Refuse names that no column explains, where a name alone may call a function. Of anything
        else drivers have no opinion that could be asked without running something.

        Raises: TidegateError.
        """
        self._check_open()
        if not self._product.calls_bare or judgement.effect is Effect.UNKNOWN:
            return None
        try:
            names = await asyncio.to_thread(bare_names, statement.text, self._product.dialect)
        except Refusal as refusal:
            error = refusal.error()
            return refused(judgement, error.code, error.message, error.hint or "")
        places = places_of(names, self._product)
        if not places:
            return unexplained(judgement, names, (), self._product, None)

        async def ask() -> list[TableFacts]:
            found: list[TableFacts] = []
            async with self._borrowed() as connection:
                for schema, table in places:
                    body = {**self._metadata_body(schema, table), "system_schemas": list[str]()}
                    found += await connection.ask("catalog", body, list[TableFacts])
            return found

        found = await self._reading(ask)
        return unexplained(judgement, names, found, self._product, self._default_schema())

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        refuse_identity(permit)
        request, judgement = query_of(permit)
        self._check_open()
        check_cancelled(cancellation)
        writes = permit.effect > Effect.READ and not isinstance(request, Explain)
        await self._check_judgement(permit, request, judgement)
        body = self._body(permit, request, writes=writes)
        timeout_s = permit.limits.timeout_s
        pool = self._writers if writes else self._readers

        async def begin() -> JdbcCursor:
            running = await start(pool, timeout_s, cancellation, self._running, writes=writes)
            cursor = JdbcCursor(running)
            await cursor.begin(body)
            return cursor

        return await (begin() if writes else self._reading(begin))

    async def prepare(self, permit: Permit, cancellation: Cancellation) -> StatementDescription:
        refuse_identity(permit)
        request, _ = prepare_of(permit)
        self._check_open()
        body = self._body(permit, request, writes=False)

        async def ask() -> Prepared:
            async with self._borrowed(permit.limits.timeout_s, cancellation) as connection:
                return await connection.ask("prepare", body, Prepared)

        prepared = await self._reading(ask)
        columns = tuple([column_of(column) for column in prepared.columns])
        if not columns and isinstance(request, Prepare):
            check_described(request, self._product)
        types = parameter_types(prepared.parameters, self._product)
        return StatementDescription(columns, types)

    async def dry_run(self, permit: Permit, cancellation: Cancellation) -> DryRun:
        raise TidegateError(
            Code.UNSUPPORTED,
            "A JDBC driver does not say whether a change has effects that no rollback undoes, so"
            " there are no dry runs.",
        )

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        refuse_identity(permit)
        request = describe_of(permit)
        self._check_open()
        check_cancelled(cancellation)
        if request.aspect == "databases":
            return Databases((self._status.database,))
        tables = await self._reading(partial(self._tables, permit, request, cancellation))
        if request.aspect == "catalog":
            version = await self.schema_version()
            schemas = tuple(sorted({table.schema for table in tables}))
            default = self._default_schema() or (schemas[0] if schemas else "")
            return Catalog(self._status.database, default, schemas, tables, version)
        if request.aspect == "ddl":
            return Ddl("\n".join([table_ddl(table, self._product.dialect) for table in tables]))
        return await self._counts(permit, tables, cancellation)

    async def schema_version(self) -> str:
        self._check_open()

        async def ask() -> str:
            async with self._borrowed() as connection:
                return await connection.ask("version", self._metadata_body(None, None), str)

        return await self._reading(ask)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._login.close()
        await end_all({self._readers, self._writers}, self._running)
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.leave()
        await self._login.give_back()

    def _renew_connections(self) -> None:
        for pool in {self._readers, self._writers}:
            pool.renew()

    async def _reading(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """What `ask` gives. It is asked once more if the database had ended the session meanwhile:
        it only reads, and a session holds nothing. Raises: TidegateError."""
        try:
            return await ask()
        except TidegateError as error:
            if error.details.get("cause") != SESSION or self._closed:
                raise
        for pool in {self._readers, self._writers}:
            pool.renew()  # a server that was started again has ended all of them
        return await ask()

    async def _check_judgement(
        self, permit: Permit, request: Query | Explain, judgement: Judgement
    ) -> None:
        """Refuse what the gate's judgement puts above the permit: not every database has a fence of
        its own. What cannot be judged is shown to the database, which may say what is wrong.

        Raises: TidegateError POLICY_READ_ONLY, POLICY_DENIED, SQL_FAILED, ...
        """
        if isinstance(request, Explain) and self._changes(request):
            raise TidegateError(
                Code.UNSUPPORTED,
                "Only queries are explained through JDBC.",
                hint="Explain the SELECT that finds the rows to be changed.",
            )
        if permit.effect is not Effect.READ and creates_temporary(
            request.statement.text, self._product.dialect
        ):
            raise TidegateError(
                Code.POLICY_DENIED,
                "A temporary table would be left on a connection that others use next.",
                hint="Use a common table expression (WITH), or an ordinary table.",
            )
        runs = judgement.effect not in _NEVER
        if runs and judgement.effect <= permit.effect:
            return
        if judgement.effect is Effect.UNKNOWN:
            code = Code(judgement.code or Code.SQL_UNKNOWN.value)
            if code in (Code.SQL_EMPTY, Code.SQL_MULTIPLE):
                raise TidegateError(code, judgement.reason, hint=judgement.hint)
            rules = find(self._product.dialect)
            verb = first_word(request.statement.text, self._product.dialect)
            if verb and verb not in (rules.reserved_verbs | rules.roots.keys()):
                await self.prepare(permit, NEVER)
        reads = permit.effect is Effect.READ
        raise TidegateError(
            Code.POLICY_READ_ONLY if reads else Code.POLICY_DENIED,
            judgement.reason,
            hint=judgement.hint,
            details={"effect": judgement.effect.label},
        )

    def _changes(self, request: Explain) -> bool:
        """Whether a statement to be explained does more than read. The gate has judged the EXPLAIN
        of it, which is a read of some dialects whatever is explained."""
        return judge(request.statement.text, self._product.dialect).effect is not Effect.READ

    def _body(
        self, permit: Permit, request: Prepare | Query | Explain, *, writes: bool
    ) -> dict[str, object]:
        statement = request.statement
        dialect = self._product.dialect
        if isinstance(request, Prepare):
            text, params = to_prepare(statement.text, dialect), ()
        elif self._product.writes_values:
            text, params = with_values(statement.text, statement.params, dialect), ()
        else:
            text, params = for_jdbc(statement.text, statement.params, dialect)
        text = without_end(text, dialect)
        if isinstance(request, Explain):
            text = f"{self._product.explain} {text}"
        product = self._product
        reads = product.begin_read if product.fence == "statement" and not writes else ""
        return fields(
            text=text,
            parameters=[parameter_of(value) for value in params],
            exact=product.cuts_fractions,
            writes=writes,
            mark=product.fence == "driver",
            begin=[reads] if reads else [],
            schema=request.schema if product.schemas else None,
            catalog=request.schema if not product.schemas else None,
            seconds=max(1, round(permit.limits.timeout_s + 0.5)),
        )

    async def _tables(
        self, permit: Permit, request: Browse, cancellation: Cancellation
    ) -> tuple[Table, ...]:
        """The tables that are asked for. Raises: TidegateError TABLE_UNKNOWN."""
        async with self._borrowed(permit.limits.timeout_s, cancellation) as connection:
            schema, name = request.schema, request.table
            if name is not None or schema is not None:
                known = await connection.ask(
                    "catalog", self._metadata_body(None, None), list[TableFacts]
                )
                default = self._product.default_schema
                if schema is not None and schema not in {each.schema or default for each in known}:
                    raise TidegateError(Code.TABLE_UNKNOWN, f"There is no schema `{schema}`.")
                if name is not None:
                    # A database without schemas is shown to have one, which it does not know.
                    own = None if default and schema == default else schema
                    table = find_table(known, name, own, self._default_schema())
                    schema, name = table.schema or None, table.name
            body = {**self._metadata_body(schema, name), "keys": True}
            found = await connection.ask("catalog", body, list[TableFacts])
        return tables_of(found, self._product)

    def _default_schema(self) -> str | None:
        product = self._product
        if product.default_schema:
            return product.default_schema
        return self._status.schema if product.schemas else self._status.database

    def _metadata_body(self, schema: str | None, table: str | None) -> dict[str, object]:
        return fields(
            schema=schema if self._product.schemas else None,
            catalogs=not self._product.schemas and not self._product.default_schema,
            table=table,
            system_schemas=list(self._product.system_schemas),
        )

    async def _counts(
        self, permit: Permit, tables: tuple[Table, ...], cancellation: Cancellation
    ) -> Counts:
        rows: dict[tuple[str, str], int] = {}
        for table in tables:
            place = quoting.qualified(table.schema, table.name, self._product.dialect)
            body = {
                "text": f"SELECT count(*) FROM {place}",
                "mark": self._product.fence == "driver",
            }
            timeout_s = permit.limits.timeout_s
            running = await start(self._readers, timeout_s, cancellation, self._running)
            cursor = JdbcCursor(running)
            try:
                await cursor.begin(body)
                rows[table.schema, table.name] = int((await cursor.fetch(1))[0][0])
            except TidegateError as error:
                if error.code is not Code.SQL_FAILED:
                    raise
            finally:
                await cursor.close()
        return Counts(rows)

    def _borrowed(
        self, timeout_s: float = OWN_S, cancellation: Cancellation = NEVER
    ) -> BorrowedConnection[JdbcConnection]:
        return BorrowedConnection(self._readers, timeout_s, cancellation, self._running)

    async def _connect(self, writes: bool) -> JdbcConnection:
        """A new connection. The lock that a process of ours left on the database's file is waited
        for. Raises: TidegateError."""
        while True:
            try:
                return await self._connect_once(writes)
            except TidegateError as error:
                own = asyncio.get_running_loop().time() < self._lost_at + LOCK_S + 1
                if error.details.get("cause") != FILE_IN_USE or not own:
                    raise
            await asyncio.sleep(LOCK_RETRY_S)

    async def _connect_once(self, writes: bool) -> JdbcConnection:
        worker = await self._running_worker()
        return await self._login.open(lambda options: self._log_in(worker, options, writes))

    async def _log_in(
        self, worker: Worker, options: Mapping[str, str], writes: bool
    ) -> JdbcConnection:
        connection = JdbcConnection(worker.process, self._product.name, options.get("user", ""))
        product = self._product
        properties = dict(product.properties)
        if product.fence == "connection" and not writes:
            properties.update(product.read_properties)
        for name in ("user", "password"):
            if name in options:
                properties[name] = options[name]
        for name, value in options.items():
            if name.startswith("property."):
                properties[name.removeprefix("property.")] = value
        try:
            await connection.open(
                {
                    "driver": worker.loaded.driver,
                    "url": _connected_url(self._url, self._reads_only),
                    "properties": properties,
                    "loose": product.loose,
                    "statements": list(product.at_connect),
                }
            )
        except TidegateError as error:
            if self._closed:  # the process was ended under it
                raise closed() from error
            raise
        if product.schemas and state_databases.are_looked_for():
            await self._refuse_state(connection)
        return connection

    async def _refuse_state(self, connection: JdbcConnection) -> None:
        """Raises: TidegateError POLICY_DENIED if the database holds the state of a gate."""
        body = self._metadata_body(state_databases.SCHEMA, None)
        try:
            found = await connection.ask("catalog", body, list[TableFacts])
        except TidegateError:
            return  # it has no such catalog
        if {each.name for each in found} >= state_databases.TABLES:
            connection.close()
            raise state_databases.refused()

    async def _running_worker(self) -> Worker:
        """The JVM of this source, started if there is none. Raises: TidegateError."""
        async with self._starting:
            worker = self._worker
            if worker is None or not worker.process.check():
                self._check_open()
                if worker is not None:
                    self._lost_at = asyncio.get_running_loop().time()
                    if self._login.target.get("restart") == "false":
                        raise _ended()
                    await worker.leave()
                worker = await start_worker(self._login.target, self._url)
                if self._closed:  # meanwhile
                    await worker.leave()
                    raise closed()
                self._worker = worker
            return worker

    def _check_open(self) -> None:
        if self._closed:
            raise closed()


def _ended() -> TidegateError:
    """The error of a source whose process is not started again."""
    return TidegateError(
        Code.SOURCE_NOT_CONNECTED,
        "The Java process of this connection has ended, with all that it held.",
        details={"cause": PROCESS},
    )


def _check_file(url: JdbcUrl) -> None:
    """See that a database in a file is there: some drivers would make one. Raises: TidegateError
    SOURCE_UNREACHABLE."""
    path = file_of(url)
    endings = url.product.file_endings
    if path is None or any(Path(path + ending).exists() for ending in endings):
        return
    raise TidegateError(
        Code.SOURCE_UNREACHABLE,
        f"There is no database at {path}.",
        hint="Check the path in the source's URL; connecting creates no database.",
        details={"path": path},
    )


def _connected_url(url: JdbcUrl, reads_only: bool) -> str:
    """The URL that the driver gets: no database is created, and one that is only read is opened so
    where the database knows that. Raises: TidegateError SOURCE_URL if the URL says otherwise."""
    if url.kind != "file":
        return url.text
    product = url.product
    needed = {**product.file_parameters, **(product.read_file_parameters if reads_only else {})}
    given = {name.upper(): value for name, value in url.parameters.items()}
    for name, value in needed.items():
        if given.get(name.upper(), value).lower() != value.lower():
            why = "no database is created" if name in product.file_parameters else "it is only read"
            raise TidegateError(
                Code.SOURCE_URL,
                f"The URL's parameter `{name}` may only be `{value}` for this source: {why}.",
                hint="Leave the parameter out.",
            )
    return url.with_parameters({k: v for k, v in needed.items() if k.upper() not in given})


def fence_warnings(url: JdbcUrl) -> tuple[str, ...]:
    """What the operator should know of the fences of this source."""
    fenced_file = url.kind == "file" and url.product.read_file_parameters
    if url.product.fence == "none" and not fenced_file:
        return (
            f"{url.product.title} does not refuse changes in a read: give the source an account"
            " that can only read.",
        )
    if url.product.name == "other":
        return (
            "It is not known whether this driver keeps a read from changing data: give the source"
            " an account that can only read.",
        )
    return ()
