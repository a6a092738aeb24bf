"""Decides what one connection is set to, and how a statement is fenced in on it.

Every session is set to `TRANSACTION READ ONLY`: not one transaction but each, also that of a single
statement. The server then refuses changes of data, and of schemas and accounts as well; a
transaction begun with `START TRANSACTION READ ONLY` would not, since a CREATE or DROP ends it first
and goes on without. What still passes (INTO OUTFILE, SET GLOBAL, ANALYZE, GET_LOCK) is met by
`study.py` and by the account's privileges. A change is run in a transaction of its own, after which
the connection is reset.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from tidegate.engines.faults import lost
from tidegate.engines.identities import not_let
from tidegate.engines.mysql.faults import ServerError, unreachable
from tidegate.engines.mysql.line import (
    COM_INIT_DB,
    COM_QUERY,
    COM_RESET_CONNECTION,
    Fields,
    Line,
    Rows,
)
from tidegate.engines.mysql.params import pack
from tidegate.engines.mysql.persona import assumption, return_home
from tidegate.engines.mysql.target import Target
from tidegate.engines.mysql.types import read_fields
from tidegate.errors import Code, GateError
from tidegate.sources import Identity

READ_WRITE = b"SET SESSION TRANSACTION READ WRITE"
BEGIN = b"START TRANSACTION"
ROLLBACK = b"ROLLBACK"
COMMIT = b"COMMIT"

_KEPT_MODES = frozenset(
    """
    ALLOW_INVALID_DATES ERROR_FOR_DIVISION_BY_ZERO IGNORE_BAD_TABLE_OPTIONS NO_AUTO_CREATE_USER
    NO_AUTO_VALUE_ON_ZERO NO_DIR_IN_CREATE NO_ENGINE_SUBSTITUTION NO_FIELD_OPTIONS NO_KEY_OPTIONS
    NO_TABLE_OPTIONS NO_UNSIGNED_SUBTRACTION NO_ZERO_DATE NO_ZERO_IN_DATE ONLY_FULL_GROUP_BY
    PAD_CHAR_TO_FULL_LENGTH REAL_AS_FLOAT SIMULTANEOUS_ASSIGNMENT STRICT_ALL_TABLES
    STRICT_TRANS_TABLES TIME_ROUND_FRACTIONAL TIME_TRUNCATE_FRACTIONAL TRADITIONAL
    """.split()  # noqa: SIM905 - a paragraph of words is easier to read and to change
)
"""SQL modes of the server that a session keeps: they are about values. Under any other, known or
not, a text might mean something else than the judge reads in it."""

_SECRET = frozenset({"mysql", "performance_schema", "sys"})
"""Databases in which an unqualified name would be one of the server's own tables."""

_TWO = b"SELECT 1; SELECT 2"
_ARRIVAL = b"SELECT @@sql_mode, @@version, @@version_comment, DATABASE()"
_CHECK = b"""SHOW SESSION VARIABLES WHERE Variable_name IN
  ('sql_mode', 'tx_read_only', 'transaction_read_only', 'autocommit', 'character_set_client')"""
_SYNTAX_ERROR = 1064


class Setting(msgspec.Struct, frozen=True):
    """What a session found where it came; `modes` is the SQL mode it is given."""

    database: str | None
    modes: str
    server_version: str
    mariadb: bool


class Session:
    """One connection with our settings. `dirty`: a statement may have changed more than data;
    `shaken`: a request to end a statement was sent, and may still be on its way."""

    __slots__ = (
        "_changes",
        "_database",
        "_home_role",
        "_target",
        "_timeout_ms",
        "dirty",
        "line",
        "setting",
        "shaken",
    )

    def __init__(self, target: Target, line: Line, setting: Setting) -> None:
        self._target = target
        self.line = line
        self.setting = setting
        self.dirty = False
        self.shaken = False
        self._database = setting.database
        self._timeout_ms = 0
        self._changes = False
        self._home_role: tuple[str | None] | None = None

    @classmethod
    async def open(cls, target: Target) -> Session:
        """Connect and set up. Raises: GateError SOURCE_UNREACHABLE, SOURCE_BUSY, UNSUPPORTED."""
        line = await Line.connect(target)
        session = cls(target, line, Setting(None, "", "", False))
        try:
            ((modes, version, comment, database),) = await session.own(_ARRIVAL)
            mariadb = "MariaDB" in line.greeting or "MariaDB" in comment
            kept = [mode for mode in modes.split(",") if mode in _KEPT_MODES]
            name = "MariaDB" if mariadb else "MySQL"
            session.setting = Setting(database, ",".join(kept), f"{name} {version}", mariadb)
            session._database = database
            if _is_secret(database):
                raise GateError(
                    Code.SOURCE_URL,
                    f"The database `{database}` is the server's own and no source.",
                    hint="Name the application's database, or none.",
                )
            await session._pin()
        except ServerError as error:
            line.close()
            raise unreachable(error.said, error.number) from error
        except BaseException:
            line.close()
            raise
        return session

    async def _pin(self, *before: tuple[int, bytes]) -> None:
        """Set what must be so, and see that it is. Raises: GateError, ServerError."""
        line = self.line
        if before:
            line.send(*before)
        line.query(*self._settings(), _TWO)
        for _ in (*before, *self._settings()):
            await line.done()
        try:
            await line.done()
        except ServerError as error:
            if error.number != _SYNTAX_ERROR:
                raise
        else:
            raise GateError(Code.UNSUPPORTED, "The server takes several statements at once.")
        found = {str(name).lower(): str(value) for name, value in await self.own(_CHECK)}
        read_only = found.get("transaction_read_only") or found.get("tx_read_only")
        if (
            read_only != "ON"
            or set(found.get("sql_mode", "?").split(",")) != set(self.setting.modes.split(","))
            or found.get("autocommit") != "ON"
            or found.get("character_set_client") != "utf8mb4"
        ):
            raise GateError(
                Code.UNSUPPORTED,
                "The server does not keep the settings that the gate relies on.",
                hint="Look for an init_connect or a proxy that changes sql_mode or read-only.",
            )
        self._timeout_ms = 0
        self.dirty = False

    def _settings(self) -> tuple[bytes, ...]:
        return (
            b"SET NAMES utf8mb4",
            f"SET SESSION sql_mode = '{self.setting.modes}', time_zone = '+00:00', autocommit = 1,"
            " sql_auto_is_null = 0, sql_select_limit = DEFAULT, lc_messages = 'en_US'".encode(),
            b"SET SESSION TRANSACTION READ ONLY",
        )

    async def own(self, text: bytes, *params: Any) -> Rows:
        """Run a statement of ours; its rows. Raises: ServerError, GateError."""
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
        """Run statements of ours, sent in one breath; rows each. Raises: ServerError, GateError."""
        self.line.query(*texts)
        return [await self._rows(binary=False) for _ in texts]

    async def prelude(self, timeout_ms: int, database: str | None) -> None:
        """Set the time limit and the database of what follows, where they are other than before.

        Raises: ServerError; GateError POLICY_DENIED for a database of the server's own.
        """
        if _is_secret(database):
            raise GateError(
                Code.POLICY_DENIED,
                f"Statements do not run in `{database}`, which holds the server's inner state.",
                hint="Name the application's database.",
            )
        wanted = database or self.setting.database
        if wanted is not None and wanted != self._database:
            self.line.send((COM_INIT_DB, wanted.encode()))
            await self.line.done()
            self._database = wanted
        if timeout_ms != self._timeout_ms:
            self.line.query(self._limit(timeout_ms))
            await self.line.done()
            self._timeout_ms = timeout_ms

    async def assume(self, identity: Identity | None) -> None:
        """Be the caller until the session is given back. Raises: GateError POLICY_IDENTITY."""
        if identity is None:
            return
        self.dirty = True
        try:
            if self._home_role is None:
                ((role,),) = await self.own(b"SELECT CURRENT_ROLE()")
                self._home_role = (role,)
            texts = assumption(identity)
            self.line.query(*texts)
            for _ in texts:
                await self.line.done()
        except ServerError as error:
            raise not_let(
                f"The database does not let the source's account act for this caller: {error}",
                mysql=error.number,
            ) from error

    def _limit(self, timeout_ms: int) -> bytes:
        if self.setting.mariadb:
            return f"SET max_statement_time = {timeout_ms / 1000:.3f}".encode()
        return f"SET max_execution_time = {timeout_ms}".encode()

    async def open_transaction(self) -> None:
        """Begin a transaction in which changes are allowed. Raises: ServerError, GateError."""
        self.dirty = self._changes = True
        self.line.query(READ_WRITE, BEGIN)
        await self.line.done()
        await self.line.done()

    async def end(self, how: bytes) -> None:
        """COMMIT or ROLLBACK. Raises: ServerError, GateError."""
        await self.line.settle()
        self._changes = False
        self.line.query(how)
        await self.line.done()

    def settle_now(self) -> bool:
        """Whether nothing is left to read and no transaction is open."""
        return not self.line.unanswered and not self._changes

    async def settle(self) -> None:
        """Read the rest of the last reply and leave no transaction open. Raises: GateError."""
        await self.line.settle()
        if self._changes:
            with suppress(ServerError):
                await self.end(ROLLBACK)
            await self.line.settle()

    async def interrupt(self) -> None:
        """Ask the server, on a connection of its own, to end what runs. Never raises GateError."""
        try:
            other = await Line.connect(self._target)
            try:
                other.query(b"KILL QUERY %d" % self.line.thread)
                await other.settle()
            finally:
                other.close()
                await other.closed()
        except GateError:
            self.line.close()

    async def reset(self) -> None:
        """Forget whatever statements have set or made. Raises: GateError."""
        line = self.line
        await self.settle()
        try:
            if self.shaken:
                line.query(b"DO 0")  # feels a request that came too late
                await line.settle()
                self.shaken = False
            if self.dirty:
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


def _is_secret(database: str | None) -> bool:
    return database is not None and database.lower() in _SECRET
