"""One connection to the backing server, and what kind of server that is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Literal

import psycopg
from psycopg import generators, pq
from psycopg.errors import Diagnostic
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from tidegate.engines.api import Row, StatementDescription
from tidegate.engines.common.errors import stopped
from tidegate.errors import Code, TidegateError
from tidegate.products.cloud.proxy.errors import SETTINGS, lost, refused_connection, translate
from tidegate.products.cloud.proxy.url import Target
from tidegate.products.cloud.proxy.values import RowReader

Kind = Literal["tidegate", "stackql", "plain"]
Notices = list[tuple[str, str]]
"""SQLSTATE and detail of what the server warned of."""

CANCEL_S: Final = 5.0
"""How long a statement that is cancelled may take to end before its connection is given up."""
_DRAIN_S: Final = 2.0
_MOST_ASKED: Final = 67_108_864
"""Characters, about, of what is read whole: lists and previews, which a person or a client sees."""
_MOST_NOTICES: Final = 256
_LONGEST_NOTICE: Final = 1_048_576
_CHUNK_ROWS: Final = 256
_CHUNKS_FROM: Final = 170_000
"""The version of libpq that passes rows on in chunks."""
_ENDS: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY})
_ROWS: Final = frozenset({ExecStatus.TUPLES_OK, ExecStatus.SINGLE_TUPLE, ExecStatus.TUPLES_CHUNK})
_AT_REST: Final = frozenset({
    pq.TransactionStatus.IDLE, pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR,
})  # fmt: skip
_PLAIN_TOOLS: Final = "server_info, validate_select_query and run_select_query"


class BackingConnection:
    """One connection, for one statement at a time. All methods raise TidegateError."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], target: Target) -> None:
        self._connection = connection
        self._target = target
        self._until: asyncio.Timeout | None = None
        self._cancelled = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self.kind: Kind = "tidegate"
        self.notices: Notices = []
        connection.add_notice_handler(self._note)

    @classmethod
    async def open(cls, target: Target) -> BackingConnection:
        """Connect, and find out what the server is.

        Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_URL; those that trying again does not help
        have a `cause` in their details.
        """
        try:
            async with asyncio.timeout(target.connect_s):
                connection = await psycopg.AsyncConnection.connect(
                    target.conninfo.conninfo().decode(), autocommit=True
                )
        except TimeoutError:
            raise refused_connection(
                f"no answer within {target.connect_s:g} s", target.place
            ) from None
        except psycopg.Error as error:
            raise refused_connection(str(error), target.place) from None
        opened = cls(connection, target)
        try:
            await opened._recognize()
        except BaseException:
            opened.close()
            raise
        return opened

    @property
    def _pg(self) -> PGconn:
        return self._connection.pgconn

    @property
    def version(self) -> str:
        """The server's name and version."""
        found = self._parameter("tidegate.version") or self._parameter("server_version")
        names = {"tidegate": "Tidegate", "stackql": "StackQL", "plain": "PostgreSQL"}
        return f"{names[self.kind]} {found}".rstrip()

    def _parameter(self, name: str) -> str:
        return (self._pg.parameter_status(name.encode()) or b"").decode(errors="replace")

    async def _recognize(self) -> None:
        place, database = self._target.place, self._target.database
        dialect = self._parameter("tidegate.dialect")
        if self._parameter("tidegate.version"):
            if dialect != "cloud":
                raise _unfit(
                    f"The database `{database}` of the backing server {place} is no source of cloud"
                    f" providers: its dialect is `{dialect or 'unknown'}`.",
                    "Name the source of cloud providers as the database of the URL.",
                )
            await self._check_right()
            return
        try:
            await self.ask("SHOW PROVIDERS", self._target.connect_s)
        except TidegateError as error:
            if error.code is Code.SOURCE_UNREACHABLE:
                raise
            self.kind = "plain"
            if not self._target.accepts_plain:
                raise _unfit(
                    f"The backing server {place} is a PostgreSQL and no Tidegate or StackQL: it has"
                    f" no SHOW PROVIDERS ({error.message.removesuffix('.')}).",
                    "Name a Tidegate that serves --pg. With `surface.cloud.enabled_tools` of"
                    f" {_PLAIN_TOOLS} alone a PostgreSQL will do.",
                ) from None
        else:
            self.kind = "stackql"

    async def _check_right(self) -> None:
        """Raises: TidegateError SOURCE_URL unless callers can be named."""
        try:
            await self.ask("SET tidegate.on_behalf_of = ''", self._target.connect_s)
        except TidegateError as error:
            if error.details.get("sqlstate") != "42501":
                raise
            raise _unfit(
                f"The backing server {self._target.place} does not take the token"
                f" `{self._target.user}` for a proxy's: it could not know for whom it speaks.",
                "Make a token there with `tidegate token create NAME --scope SCOPE --proxy`.",
            ) from None

    @property
    def is_open(self) -> bool:
        """Whether it has not been closed here."""
        return self._pg.status == pq.ConnStatus.OK

    @property
    def cancelled(self) -> str:
        """Why what runs was asked to end; empty if it was not."""
        return self._cancelled

    def is_alive(self) -> bool:
        """Whether the server has not closed the connection, as far as is known here."""
        try:
            self._pg.consume_input()
        except psycopg.Error:
            return False
        return self._pg.transaction_status in _AT_REST

    def close(self) -> None:
        """Close the connection now. Raises nothing."""
        self._pg.finish()

    # Statements

    @asynccontextmanager
    async def within(self, seconds: float, *, writing: bool) -> AsyncGenerator[None]:
        """Bound what is awaited in the block. What is left of it when the time ends is given up
        with the connection.

        Raises: TidegateError LIMIT_TIME, CALL_CANCELLED, SOURCE_UNREACHABLE, SQL_OUTCOME.
        """
        try:
            async with asyncio.timeout(seconds) as self._until:
                if self._cancelled:
                    self._hurry()
                yield
        except TimeoutError:
            self.close()
            if writing:
                raise lost(self._target.place, writing=True) from None
            raise stopped(self._cancelled or "time") from None
        except asyncio.CancelledError:
            self.close()
            raise
        except psycopg.Error:
            self.close()
            raise lost(self._target.place, writing=writing) from None
        finally:
            self._until = None

    def cancel(self, reason: str) -> None:
        """Ask the server to end what runs. It has `CANCEL_S` for that."""
        if self._cancelled:
            return
        self._cancelled = reason or "cancelled"
        self._hurry()
        task = asyncio.get_running_loop().create_task(self._send_cancel())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hurry(self) -> None:
        if self._until is not None:
            end = asyncio.get_running_loop().time() + CANCEL_S
            self._until.reschedule(min(self._until.when() or end, end))

    async def _send_cancel(self) -> None:
        with suppress(psycopg.Error):
            await self._connection.cancel_safe(timeout=CANCEL_S)

    def send(self, text: str, *, alone: bool = False) -> None:
        """Send a statement. `alone`: the server itself refuses several in the text."""
        self._cancelled = ""
        self.notices.clear()
        if alone:
            self._pg.send_query_params(text.encode(), None)
        else:
            self._pg.send_query(text.encode())
        if pq.version() >= _CHUNKS_FROM:
            self._pg.set_chunked_rows_mode(_CHUNK_ROWS)
        else:
            self._pg.set_single_row_mode()

    async def flush(self) -> None:
        """Wait until what was sent has left."""
        await self._connection.wait(generators.send(self._pg))

    async def result(self) -> PGresult | None:
        """The next result of what was sent; None at its end."""
        return await self._connection.wait(generators.fetch(self._pg))

    async def ask(self, text: str, seconds: float) -> list[Row]:
        """The rows of a statement, or of several, that changes nothing; of no text none."""
        if not text:
            return []
        rows: list[Row] = []
        size = 0
        failure: TidegateError | None = None
        async with self.within(seconds, writing=False):
            self.send(text)
            await self.flush()
            while (result := await self.result()) is not None:
                if result.status in _ROWS:
                    read = RowReader(result).rows(result)
                    size += sum([64 + sum([len(str(cell)) for cell in row]) for row in read])
                    if size > _MOST_ASKED:
                        self.close()
                        raise TidegateError(
                            Code.LIMIT_BYTES,
                            f"The backing server {self._target.place} answers with more than"
                            f" {_MOST_ASKED:,} bytes, which is too much.",
                        )
                    rows += read
                elif result.status not in _ENDS and failure is None:
                    failure = translate(result, self._target.place, writing=False)
        if failure is not None:
            raise failure
        return rows

    async def describe(self, text: str, seconds: float) -> StatementDescription:
        """The columns of a statement, which is not run."""
        async with self.within(seconds, writing=False):
            self._pg.send_prepare(b"", text.encode())
            await self._described()
            self._pg.send_describe_prepared(b"")
            return StatementDescription(RowReader(await self._described()).columns)

    async def _described(self) -> PGresult:
        result = (await self._connection.wait(generators.execute(self._pg)))[-1]
        if result.status not in _ENDS:
            raise translate(result, self._target.place, writing=False)
        return result

    async def drain(self) -> bool:
        """End what still runs and read what comes of it; False if the connection is lost by it."""
        try:
            async with self.within(_DRAIN_S + CANCEL_S, writing=False):
                self.cancel("closed")
                while await self.result() is not None:
                    pass
        except TidegateError:
            return False
        await asyncio.gather(*self._tasks)  # a cancel that comes late would end the next statement
        return self.is_alive()

    async def settled(self) -> bool:
        """Whether the connection can be used again, once no cancel is under way."""
        await asyncio.gather(*self._tasks)
        return self.is_alive()

    def _note(self, diagnostic: Diagnostic) -> None:
        detail = diagnostic.message_detail or ""
        if len(self.notices) < _MOST_NOTICES and len(detail) <= _LONGEST_NOTICE:
            self.notices.append((diagnostic.sqlstate or "", detail))


def is_rows(result: PGresult) -> bool:
    """Whether a result has columns."""
    return result.status in _ROWS


def is_good(result: PGresult) -> bool:
    """Whether a result is not of a failure."""
    return result.status in _ROWS or result.status in _ENDS


def literal(text: str) -> str:
    """A text as a literal of PostgreSQL."""
    return "'" + text.replace("\0", "").replace("'", "''") + "'"


def _unfit(message: str, hint: str) -> TidegateError:
    return TidegateError(Code.SOURCE_URL, message, hint=hint, details={"cause": SETTINGS})
