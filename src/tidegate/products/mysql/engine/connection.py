"""One connection: TLS as the target asks, its settings, and the fence around a statement.

Every session is set to `TRANSACTION READ ONLY`: not one transaction but each, also that of a single
statement. The server then refuses changes of data, and of schemas and accounts as well; a
transaction begun with `START TRANSACTION READ ONLY` would not, since a CREATE or DROP ends it first
and goes on without. What still passes (INTO OUTFILE, SET GLOBAL, ANALYZE, GET_LOCK) is refused by
`inspect.py` and by the account's privileges. A change runs in a transaction of its own, after which
the connection is reset.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tidegate.engines.common.errors import lost
from tidegate.engines.common.renewed_login import RenewedLogin
from tidegate.engines.common.roles import role_refused
from tidegate.engines.common.server_session import ServerSession
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Identity
from tidegate.products.mysql.engine.command_protocol import (
    COM_INIT_DB,
    COM_QUERY,
    COM_RESET_CONNECTION,
    CommandProtocol,
    Fields,
)
from tidegate.products.mysql.engine.errors import ServerError, unreachable
from tidegate.products.mysql.engine.packets import Rows
from tidegate.products.mysql.engine.transaction import (
    ARRIVAL,
    CHECK,
    SessionVariables,
    arrived,
    assumption,
    is_secret,
    return_home,
)
from tidegate.products.mysql.engine.types import pack, read_fields
from tidegate.products.mysql.engine.url import Conninfo

READ_WRITE = b"SET SESSION TRANSACTION READ WRITE"
BEGIN = b"START TRANSACTION"
READ_ONLY = b"START TRANSACTION READ ONLY"
ROLLBACK = b"ROLLBACK"
COMMIT = b"COMMIT"

_TWO = b"SELECT 1; SELECT 2"
_SYNTAX_ERROR = 1064


class MysqlSession(ServerSession[CommandProtocol]):
    """One connection with our settings (`pool.PooledConnection`).

    `needs_reset`: a statement may have changed more than data. `interrupted`: a request to end a
    statement was sent, and may still be on its way. `in_block`: a transaction over several
    statements goes on when one of them has ended.
    """

    __slots__ = (
        "_changes",
        "_database",
        "_home_role",
        "_login",
        "_target",
        "_timeout_ms",
        "in_block",
        "interrupted",
        "limit_s",
        "needs_reset",
        "setting",
        "transactional",
    )

    def __init__(self, target: Conninfo, line: CommandProtocol, setting: SessionVariables) -> None:
        super().__init__(line)
        self._target = target
        self._login: RenewedLogin[Conninfo] | None = None
        self.setting = setting
        self.needs_reset = False
        self.interrupted = False
        self.in_block = False
        self.limit_s = 0.0
        """The account's own time limit of statements; 0: none."""
        self.transactional: set[tuple[str, str]] = set()
        """Tables, as (database, name), that were found to roll back."""
        self._database = setting.database
        self._timeout_ms = 0
        self._changes = False
        self._home_role: tuple[str | None] | None = None

    @classmethod
    async def open(cls, target: Conninfo) -> MysqlSession:
        """Connect and set up. Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_BUSY,
        UNSUPPORTED."""
        line = await CommandProtocol.connect(target)
        session = cls(target, line, SessionVariables())
        try:
            session.setting = arrived(await session.query_internal(ARRIVAL), line.greeting)
            session._database = session.setting.database
            await session._pin()
        except ServerError as error:
            line.close()
            raise unreachable(error.answer, error.number) from error
        except BaseException:
            line.close()
            raise
        return session

    @classmethod
    async def open_renewed(cls, login: RenewedLogin[Conninfo]) -> MysqlSession:
        """As `open`, with what the login is now, also for the requests to end a statement: a
        session outlives its password. Raises: as `open`."""
        session = await login.open(cls.open)
        session._login = login
        return session

    async def _pin(self, *before: tuple[int, bytes]) -> None:
        """Set what must be so, and see that it is. Raises: TidegateError, ServerError."""
        line = self.line
        if before:
            line.send(*before)
        line.query(*self.setting.commands, _TWO)
        for _ in (*before, *self.setting.commands):
            await line.done()
        try:
            await line.done()
        except ServerError as error:
            if error.number != _SYNTAX_ERROR:
                raise
        else:
            raise TidegateError(
                Code.UNSUPPORTED,
                "The server accepts several statements in one command, which the gate turned off.",
                hint="Connect to the server itself, not to a proxy that splits statements.",
            )
        self.limit_s = self.setting.check(await self.query_internal(CHECK))
        self._timeout_ms = 0
        self.needs_reset = False

    async def query_internal(self, text: bytes, *params: Any) -> Rows:
        """Run a statement of ours; its rows. Raises: ServerError, TidegateError."""
        line = self.line
        if params:
            statement, _, _ = await line.prepare(text)
            line.execute(statement, pack(params))
        else:
            line.query(text)
        return await self._rows(binary=bool(params))

    async def _rows(self, *, binary: bool) -> Rows:
        answer = await self.line.answer()
        rows: Rows = []
        if isinstance(answer, Fields):
            _, by_text, by_bytes = read_fields(answer.definitions)
            specs = by_bytes if binary else by_text
            while (more := await self.line.rows(specs, binary=binary)) is not None:
                rows += more
        return rows

    async def ask(self, *texts: bytes) -> list[Rows]:
        """Run statements of ours, sent in one breath; rows each. Raises: ServerError,
        TidegateError."""
        self.line.query(*texts)
        return [await self._rows(binary=False) for _ in texts]

    async def begin(self, timeout_ms: int, database: str | None) -> None:
        """Set the time limit and the database of what follows, where they are other than before.

        Raises: ServerError; TidegateError POLICY_DENIED for a database of the server's own.
        """
        if is_secret(database):
            raise TidegateError(
                Code.POLICY_DENIED,
                f"Statements do not run in `{database}`, which holds the server's internal state.",
                hint="Name the application's database.",
            )
        wanted = database or self.setting.database
        if wanted is not None and wanted != self._database:
            self.line.send((COM_INIT_DB, wanted.encode()))
            await self.line.done()
            self._database = wanted
        if self.limit_s:
            timeout_ms = min(timeout_ms, max(1, round(self.limit_s * 1000)))
        if timeout_ms != self._timeout_ms:
            self.line.query(self.setting.limit(timeout_ms))
            await self.line.done()
            self._timeout_ms = timeout_ms

    async def run_as(self, identity: Identity | None) -> None:
        """Be the caller until the session is given back. Raises: TidegateError POLICY_IDENTITY."""
        if identity is None:
            return
        self.needs_reset = True
        try:
            if self._home_role is None:
                ((role,),) = await self.query_internal(b"SELECT CURRENT_ROLE()")
                self._home_role = (role,)
            texts = assumption(identity)
            self.line.query(*texts)
            for _ in texts:
                await self.line.done()
        except ServerError as error:
            raise role_refused(
                f"The database did not let the source's account take the caller's role: {error}",
                mysql=error.number,
            ) from error

    async def open_transaction(self) -> None:
        """Begin a transaction in which changes are allowed. Raises: ServerError, TidegateError."""
        self.needs_reset = self._changes = True
        self.line.query(READ_WRITE, BEGIN)
        await self.line.done()
        await self.line.done()

    async def open_reading(self) -> None:
        """Begin a transaction that a function of a user cannot make one that changes data, as it
        could the session. Raises: ServerError, TidegateError."""
        self.needs_reset = self._changes = True
        self.line.query(READ_ONLY)
        await self.line.done()

    async def enter_block(self, isolation: bytes, *, writes: bool) -> None:
        """Begin a transaction over several statements. Raises: TidegateError."""
        self.in_block = self.needs_reset = True
        how = b"READ WRITE" if writes else b"WITH CONSISTENT SNAPSHOT, READ ONLY"
        texts = (b"SET TRANSACTION ISOLATION LEVEL " + isolation, b"START TRANSACTION " + how)
        self.line.query(*texts)
        for _ in texts:
            await self.line.done()

    async def be_ready_in_block(self) -> None:
        """Read what is left of the last statement. Raises: TidegateError, also if the server has
        rolled the transaction back by itself."""
        line = self.line
        await line.settle()
        if self.interrupted:
            line.query(b"DO 0")  # feels a request that came too late
            await line.settle()
            self.interrupted = False
        if not line.in_transaction:
            raise TidegateError(
                Code.SQL_FAILED,
                "The database has rolled the transaction back.",
                hint="Begin it again.",
                details={"sqlstate": "40000"},
            )

    async def execute_in_block(self, text: bytes) -> None:
        """Run a statement of ours about savepoints. Raises: TidegateError."""
        await self.be_ready_in_block()
        self.line.query(text)
        await self.line.done()

    async def commit_block(self) -> None:
        """Keep the changes of the transaction. Raises: TidegateError."""
        await self.execute_in_block(COMMIT)

    async def leave_block(self) -> None:
        """Undo what is left of the transaction. Raises: TidegateError."""
        await self.line.settle()
        self.line.query(ROLLBACK)
        await self.line.done()
        self.in_block = False

    async def end(self, how: bytes) -> None:
        """COMMIT or ROLLBACK. Raises: ServerError, TidegateError."""
        await self.line.settle()
        self._changes = False
        self.line.query(how)
        await self.line.done()

    def settle_now(self) -> bool:
        """Whether nothing is left to read, to undo or to forget."""
        changed = self._changes or self.needs_reset or self.interrupted
        return not changed and not self.line.unanswered

    async def settle(self) -> None:
        """Read the rest of the last reply and leave no transaction open. Raises: TidegateError."""
        await self.line.settle()
        if self._changes:
            with suppress(ServerError):
                await self.end(ROLLBACK)
            await self.line.settle()

    async def interrupt(self, cause: str) -> None:
        """Ask the server, on a connection of its own, to end what runs. Never raises
        TidegateError."""
        self.interrupted = True
        try:
            if self._login is None or self._login.is_leased:
                # Another account could not end what this one runs.
                other = await CommandProtocol.connect(self._target)
            else:
                other = await self._login.open(CommandProtocol.connect)
            try:
                other.query(b"KILL QUERY %d" % self.line.thread)
                await other.settle()
            finally:
                other.close()
                await other.closed()
        except TidegateError:
            self.line.close()

    async def reset(self) -> None:
        """Forget whatever statements have set or made. Raises: TidegateError."""
        line = self.line
        await self.settle()
        try:
            if self.interrupted:
                line.query(b"DO 0")  # feels a request that came too late
                await line.settle()
                self.interrupted = False
            if self.needs_reset:
                line.query(ROLLBACK)
                await line.settle()
                await self._pin((COM_RESET_CONNECTION, b""), *self._home())
                self._database = self.setting.database
        except ServerError as error:
            raise lost() from error

    def _home(self) -> tuple[tuple[int, bytes], ...]:
        """The commands that go back to the source's own role and database."""
        database = self.setting.database
        commands = () if database is None else ((COM_INIT_DB, database.encode()),)
        if self._home_role is None:
            return commands
        role = return_home(self._home_role[0], mariadb=self.setting.mariadb)
        return ((COM_QUERY, role), *commands)
