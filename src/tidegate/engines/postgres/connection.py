"""The settings of one connection, and the transactions in which everything runs.

A read is one group of four commands, sent at once: BEGIN READ ONLY; a first query, which pins the
snapshot (after it nothing can make the transaction writable), sets the time limit and takes on the
caller's role if it has one; the statement; ROLLBACK. Whatever was set, made or locked in the
transaction goes with it. Commands that come again are prepared (`prepared_statements.py`): that the
first one still is this BEGIN is seen by its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

import msgspec
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from tidegate.engines.api import SchemaChangedError
from tidegate.engines.common import state_databases
from tidegate.engines.common.errors import lost
from tidegate.engines.common.server_session import ServerSession
from tidegate.engines.postgres.command_protocol import (
    CAN_FORGET,
    FAILED,
    Command,
    CommandProtocol,
    Params,
)
from tidegate.engines.postgres.errors import is_stale_plan, is_unknown_name, rejected, translate
from tidegate.engines.postgres.prepared_statements import PreparedStatements
from tidegate.engines.postgres.schema_state import (
    RULES_CHANGED,
    SCHEMA_STATE,
    PinnedSchema,
    RulesChangedError,
    guarded,
    version_of,
)
from tidegate.engines.postgres.search_path import pinned_path
from tidegate.engines.postgres.transaction import (
    TransactionSettings,
    Tuning,
    milliseconds_of,
    settings_query,
)
from tidegate.engines.postgres.types import Reader, Rows
from tidegate.engines.postgres.url import Conninfo
from tidegate.errors import TidegateError
from tidegate.model.sources import Identity

BEGIN_READ = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BEGIN_WRITE = b"BEGIN READ WRITE"
ROLLBACK = b"ROLLBACK"
COMMIT = b"COMMIT"

_BEFORE = 2
"""Commands before the statement: BEGIN, and what `transaction.py` sets."""

MAX_TRIES = 4
"""How often a read is sent whose plan or whose snapshot turns out to be another one."""

CHUNK_ROWS = 32
"""Rows that libpq passes on at once: so few that wide ones do not add up, and already quick."""

PINNED = {
    "standard_conforming_strings": "on",  # the judge reads backslashes so
    "backslash_quote": "safe_encoding",
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
    "timezone_abbreviations": "Default",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "xmloption": "content",
    "xmlbinary": "base64",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "quote_all_identifiers": "off",
    "gin_fuzzy_search_limit": "0",
    "row_security": "on",
    "client_min_messages": "notice",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "default_transaction_read_only": "on",
}
"""Settings by which the same text means the same, and the same value is written alike, whatever the
server, the database and the account are set to."""

_SETUP = "SELECT {}, pg_catalog.current_database(), pg_catalog.current_schema()".format(
    ", ".join(
        [
            *[
                f"pg_catalog.set_config('{name}', '{value}', false)"
                for name, value in PINNED.items()
            ],
            "pg_catalog.set_config('search_path', $1, false)",
        ]
    )
).encode()

_PRINT_TREES = (
    b"SELECT pg_catalog.set_config('client_min_messages', 'log', true),"
    b" pg_catalog.set_config('debug_pretty_print', 'off', true),"
    b" pg_catalog.set_config('debug_print_rewritten', 'on', true)"
)

ARRIVING = ("search_path", "TimeZone", "DateStyle", "row_security", "lock_timeout")
"""What a session of the account begins with that its callers' sessions begin with as well."""

_ARRIVAL = "SELECT pg_catalog.quote_ident(session_user), {}".format(
    ", ".join(f"pg_catalog.current_setting('{name}')" for name in (*ARRIVING, "statement_timeout"))
).encode()

_IDENTITY = (
    b"SELECT c.system_identifier::text, d.oid::text FROM pg_catalog.pg_control_system() AS c,"
    b" pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()"
)

_ALONE = (
    b"SELECT pg_catalog.set_config('statement_timeout', $1, false),"
    b" pg_catalog.set_config('search_path', $2, false),"
    b" pg_catalog.set_config('default_transaction_read_only', 'off', false)"
)

_SET_ALONE = b"SELECT pg_catalog.set_config($1, $2, false)"

_CHECK_CLIENT = b"SELECT pg_catalog.set_config('client_connection_check_interval', '1000', false)"
"""From version 14 on the server checks whether we are still connected, and ends what runs if
not."""


class Setting(msgspec.Struct, frozen=True):
    """What a session found where it came: `path` is the search path as it is pinned, `user` the
    account, as a quoted name, `arrived` what `ARRIVING` were set to, and `limit_ms` the account's
    own time limit of statements; 0: none."""

    database: str
    schema: str | None
    path: str
    server_version: str
    user: str = ""
    arrived: tuple[tuple[str, str], ...] = ()
    limit_ms: float = 0


class CatalogRules(Protocol):
    """By which rules of the catalog a statement was judged (`inspect.CatalogSafetyCache`)."""

    moving: bool
    """Whether the snapshot was another one the last time."""

    @property
    def seen(self) -> tuple[str, str] | None:
        """The snapshot and the state in which they were last seen."""
        ...

    def note(self, moment: str, state: str) -> None:
        """Another snapshot has the same state."""
        ...


class _Read(NamedTuple):
    """A read and all that its transaction is given."""

    text: bytes
    params: Params
    settings: TransactionSettings
    pin: PinnedSchema | None
    form: int
    rules: CatalogRules | None

    @property
    def scope(self) -> Hashable:
        """What a plan depends on in addition to the text."""
        _, schema, identity, tuning = self.settings
        return schema, identity, tuning


def guarded_by(
    rules: CatalogRules | None, query: tuple[bytes, Params], *, quick: bool = False
) -> tuple[bytes, Params]:
    """The first query of a transaction, which fails if the catalog has other rules there; if it is
    to be quick, also if others have written."""
    seen = None if rules is None else rules.seen
    if seen is None:
        return query
    settings, values = query
    given = values or ()
    moment, state = seen
    text = guarded(settings, len(given), quick=quick)
    return text, (*given, moment.encode(), *(() if quick else (state.encode(),)))


def note_rules(rules: CatalogRules, settings: PGresult) -> None:
    """Note that the rules are the same in another snapshot, as a guarded query says."""
    seen = rules.seen
    moment = settings.get_value(0, 0)
    rules.moving = moment is not None
    if seen is not None and moment is not None:
        rules.note(moment.decode(), seen[1])


def _says_changed(result: PGresult) -> bool:
    return RULES_CHANGED.encode() in (result.error_message or b"")


def rejected_or_changed(result: PGresult, identity: Identity | None) -> TidegateError:
    """What a failure of the first queries of a transaction means."""
    if _says_changed(result):
        return RulesChangedError()
    return rejected(result, identity)


class PostgresSession(ServerSession[CommandProtocol]):
    """One connection with our settings (`pool.PooledConnection`).

    `needs_reset`: a statement may have changed more than data. `interrupted`: a cancel request was
    sent, and may still be on its way. `prepared`: what the server keeps prepared, for reads only;
    it forgets all of it when the session is reset after a change. `in_block`: a transaction over
    several statements goes on when one of them has ended.
    """

    __slots__ = ("chunk_rows", "in_block", "interrupted", "needs_reset", "prepared", "setting")

    def __init__(self, line: CommandProtocol, *, prepares: bool) -> None:
        super().__init__(line)
        self.needs_reset = False
        self.interrupted = False
        self.in_block = False
        self.chunk_rows = CHUNK_ROWS
        """How many rows of a read come at once."""
        self.prepared = PreparedStatements(enabled=prepares)
        self.setting = Setting("", None, "", "")

    @classmethod
    async def open(cls, target: Conninfo, **others: str) -> PostgresSession:
        """Connect and set up. Raises: TidegateError SOURCE_UNREACHABLE, SOURCE_BUSY."""
        line = await CommandProtocol.connect(target, **others)
        session = cls(line, prepares=target.prepared_statements and CAN_FORGET)
        try:
            await session._set_up()
        except BaseException:
            session.line.close()
            raise
        return session

    async def _set_up(self) -> None:
        line = self.line
        ((user, *arrived, limit),) = await self.query_internal(_ARRIVAL)
        pinned = pinned_path(arrived[0] or "", user)
        (row,) = await self.query_internal(_SETUP, [pinned.encode()])
        if line.server_version >= 140000:
            line.send((_CHECK_CLIENT, None))
            await line.sync()
            await self.settle()  # some systems lack it
        version = line.parameter(b"server_version")
        self.setting = Setting(
            row[-2] or "",
            row[-1],
            pinned,
            f"PostgreSQL {version}",
            user,
            tuple(zip(ARRIVING, [str(value) for value in arrived], strict=True)),
            milliseconds_of(str(limit)),
        )
        if state_databases.are_looked_for():
            await self._refuse_state()

    async def _refuse_state(self) -> None:
        """Raises: TidegateError POLICY_DENIED if the database holds the state of a gate."""
        try:
            ((found,),) = await self.query_internal(state_databases.FIND)
        except TidegateError:
            return  # it has no such catalog, so it is no PostgreSQL and holds no state
        if found in (True, "t"):
            raise state_databases.refused()

    async def identity(self) -> str:
        """What tells this database from every other, also over another address or of a standby;
        empty if the server does not say."""
        try:
            ((server, database),) = await self.query_internal(_IDENTITY)
        except TidegateError:
            return ""
        return f"postgresql:{server}:{database}"

    async def query_internal(self, text: bytes, params: Params = None) -> Rows:
        """Run a statement of ours outside a transaction; its rows. Raises: TidegateError."""
        self.line.send((text, params))
        await self.line.sync()
        return (await self._answers(1))[0]

    async def prepare_plan(self, text: bytes, count: int, schema: bytes | None) -> bytes:
        """Prepare a statement with `count` placeholders, to be planned; returns the EXPLAIN of it.
        It is planned and run by nothing else, and gone when the session is reset. Raises:
        TidegateError."""
        self.needs_reset = True
        if schema is not None:
            await self.query_internal(
                b"SELECT pg_catalog.set_config('search_path', $1, false)", [schema]
            )
        await self.query_internal(b"PREPARE tidegate_plan AS " + text)
        return b"EXPLAIN EXECUTE tidegate_plan (" + b", ".join([b"NULL"] * count) + b")"

    async def change(self, *texts: bytes) -> None:
        """Run statements of ours in one transaction that may change, all of them or none.

        Raises: TidegateError.
        """
        group = (BEGIN_WRITE, *texts, COMMIT)
        self.line.send(*((text, None) for text in group))
        await self.line.sync()
        await self._answers(len(group))

    async def ask(
        self,
        *queries: bytes | tuple[bytes, Params],
        timeout_ms: int,
        identity: Identity | None = None,
    ) -> list[Rows]:
        """Run queries of ours in one read transaction, in one round trip; rows each.

        Raises: TidegateError.
        """
        line = self.line
        line.send(
            (BEGIN_READ, None),
            settings_query(TransactionSettings(timeout_ms, identity=identity)),
            *[query if isinstance(query, tuple) else (query, None) for query in queries],
            (ROLLBACK, None),
        )
        await line.sync()
        answers = await self._answers(len(queries) + 3, identity)
        return answers[2:-1]

    async def _answers(self, commands: int, identity: Identity | None = None) -> list[Rows]:
        answers: list[Rows] = []
        for place in range(commands):
            result = await self.only_result()
            if result.status in FAILED:
                await self.settle()
                raise rejected(result, identity) if place < _BEFORE else translate(result)
            answers.append(Reader.of(result).rows(result))
        await self.settle()
        return answers

    async def begin_read(
        self,
        text: bytes,
        params: Params,
        settings: TransactionSettings,
        *,
        pin: PinnedSchema | None = None,
        form: int = 0,
        rules: CatalogRules | None = None,
    ) -> PGresult:
        """Send a read in its transaction; its first result, which may be a failure. `form` is the
        format code of what it gives.

        Raises: TidegateError SOURCE_UNREACHABLE; POLICY_IDENTITY if the server does not let us be
        who the caller is; what it says to BEGIN; SchemaChangedError where the schema is not the one
        that is pinned; RulesChangedError where the catalog has other `rules` in the transaction
        than when the statement was judged.
        """
        read = _Read(text, params, settings, pin, form, rules)
        for _ in range(MAX_TRIES):
            result = await self._try(read)
            if result is not None:
                return result
            # Nothing of it is shown, and the transaction could only read.
            await self.settle()
            if self.interrupted:
                break
        raise lost()

    async def begin_change(
        self,
        text: bytes,
        params: Params,
        settings: TransactionSettings,
        *,
        before: tuple[bytes, Callable[[PGresult], None]] | None = None,
        rules: CatalogRules | None = None,
    ) -> PGresult:
        """Send a change in its transaction; its first result, which may be a failure. `before` is a
        query that it comes after, and what takes its result. Raises: as `begin_read`."""
        line = self.line
        first = guarded_by(rules, settings_query(settings))
        ours = () if before is None else ((before[0], None),)
        line.send((BEGIN_WRITE, None), first, *ours, (text, params))
        await line.sync()
        begun = await line.pass_over(_BEFORE, begins=True)
        if begun.status in FAILED:
            raise rejected_or_changed(begun, settings.identity)
        if before is not None:
            before[1](await line.pass_over(1))
        line.stream(CHUNK_ROWS)
        return await self._next_result()

    async def enter_block(self, begin: bytes) -> None:
        """Begin a transaction over several statements. Raises: TidegateError."""
        self.in_block = self.needs_reset = True
        await self.query_internal(begin)

    async def be_ready_in_block(self) -> None:
        """Read what is left of the last statement. Raises: TidegateError."""
        await self._drain()
        if self.interrupted:
            self.line.send((b"SELECT", None))  # after this the server has seen every request
            await self.line.sync()
            await self._drain()
            self.interrupted = False

    async def begin_in_block(
        self,
        *commands: tuple[bytes, Params],
        before: int,
        after: int = 0,
        identity: Identity | None = None,
        form: int = 0,
    ) -> PGresult:
        """Send a group of commands in the transaction; the first result of the one that follows
        `before` others, which may be a failure. `after` more follow it, and are read when the
        statement has ended. `form` is the format code of their results.

        Raises: TidegateError SOURCE_UNREACHABLE, and what the server says to those before.
        """
        line = self.line
        await self.be_ready_in_block()
        line.send(*commands, form=form)
        await line.sync()
        if before:
            begun = await line.pass_over(before)
            if begun.status in FAILED:
                await self._drain()
                raise rejected(begun, identity)
        if len(commands) > before + after:
            line.stream(CHUNK_ROWS)
        return await self._next_result()

    async def begin_outside(
        self,
        text: bytes,
        params: Params,
        settings: TransactionSettings,
    ) -> PGresult:
        """Send a statement that PostgreSQL runs in no transaction, and as the account itself; its
        first result. What is set for it lasts until the session is reset. Raises: TidegateError."""
        path = settings.schema or self.setting.path.encode()
        await self.query_internal(_ALONE, [b"%d" % settings.timeout_ms, path])
        for each in settings.tuning:
            await self.query_internal(_SET_ALONE, [part.encode() for part in each])
        self.line.send((text, params))  # the only command of its group: it refuses to have others
        await self.line.sync()
        self.line.stream(CHUNK_ROWS)
        return await self._next_result()

    async def begin_copy(self, text: bytes, settings: TransactionSettings) -> PGresult:
        """Send a COPY ... TO STDOUT in a transaction that reads; its first result. The connection
        is of no further use. Raises: TidegateError."""
        await self.settle()
        self.line.leave_pipeline()
        for before in ((BEGIN_READ, None), settings_query(settings)):
            result = await self.line.run_alone(*before)
            if result.status in FAILED:
                raise translate(result)
        return await self.line.run_alone(text)

    async def _try(self, read: _Read) -> PGresult | None:
        """The first result of a read; None if it must be sent again. Raises: as `begin`."""
        line, prepared, pin = self.line, self.prepared, read.pin
        asks_state = pin is not None and pin.version.moving
        before, is_new = self._send_read(read, asks_state=asks_state)
        if not line.end_group():
            await line.flushed()
        result = await line.pass_over(before, begins=True)
        if result.status in FAILED:
            if read.rules is not None and not read.rules.moving and _says_changed(result):
                read.rules.moving = True
                prepared.withdraw()
                return None  # nothing of it has run: ask what was written
            if not is_unknown_name(result):
                raise rejected_or_changed(result, read.settings.identity)
            prepared.disable()
            return None
        if read.rules is not None and read.rules.moving:
            note_rules(read.rules, result)
        if pin is not None and not await self._fits(pin, result, asks_state=asks_state):
            return None
        if is_new:
            result = await line.pass_over(1)
        if result.status not in FAILED:
            line.stream(self.chunk_rows)
            result = line.ready_result() or await self._next_result()
        if result.status not in FAILED:
            prepared.confirm()
            return result
        prepared.withdraw()
        if is_unknown_name(result):
            prepared.disable()
        elif is_stale_plan(result):
            prepared.forget(read.text, read.scope)
        else:
            return result
        return None

    def _send_read(self, read: _Read, *, asks_state: bool) -> tuple[int, bool]:
        """Send a read in its transaction. Returns how many results come with the last setting, and
        whether another one comes before those of the statement."""
        line, prepared = self.line, self.prepared
        prepared.withdraw()  # what an earlier read left unanswered
        before = _BEFORE
        if prepared.closing:
            before += len(prepared.closing)
            line.forget(*prepared.closing)
            prepared.closing.clear()
        settings, values = guarded_by(
            read.rules,
            settings_query(read.settings, with_snapshot=read.pin is not None),
            quick=read.rules is not None and not read.rules.moving,
        )
        begin, first, named, end = prepared.names_of(
            (BEGIN_READ, None), (settings, None), (read.text, read.scope), (ROLLBACK, None)
        )
        commands: list[Command] = [
            (BEGIN_READ, None, *begin, 0),
            (settings, values, *first, 0),
            (read.text, read.params, *named, read.form),
            (ROLLBACK, None, *end, 0),
        ]
        if asks_state:
            commands.insert(2, (SCHEMA_STATE, None, None, False, 0))
        line.send_named(commands)
        return before + begin[1] + first[1], named[1]

    async def _fits(self, pin: PinnedSchema, settings: PGresult, *, asks_state: bool) -> bool:
        """Whether the transaction sees the pinned schema; False if it has to be asked again.

        Raises: SchemaChangedError, TidegateError.
        """
        snapshot = (settings.get_value(0, settings.nfields - 1) or b"").decode()
        if asks_state:
            found = await self.line.pass_over(1)
            if found.status in FAILED:
                raise translate(found)
            state = (found.get_value(0, 0) or b"").decode()
            version = pin.version.note(snapshot, version_of(self.setting.database, state))
        else:
            version = pin.version.at(snapshot)
        if version is not None and version != pin.wanted:
            raise SchemaChangedError
        return version is not None

    async def _next_result(self) -> PGresult:
        result = await self.line.result()
        if result is None:
            raise lost()
        return result

    async def only_result(self) -> PGresult:
        """The one result of the next command."""
        result = await self.line.result()
        if result is None:
            raise lost()
        if result.status != ExecStatus.PIPELINE_SYNC:
            await self.line.result()
        return result

    async def end(self, how: bytes) -> PGresult:
        """COMMIT or ROLLBACK; its result."""
        return await self.run_internal(how)

    async def run_internal(self, text: bytes) -> PGresult:
        """Run a statement of ours in the open transaction; its result, which may be a failure."""
        await self._drain()
        self.line.send((text, None))
        await self.line.sync()
        result = await self.only_result()
        await self._drain()
        return result

    async def parse(self, text: bytes) -> PGresult:
        """Have the server parse a statement without running it."""
        self.line.prepare(text)
        await self.line.sync()
        result = await self.only_result()
        await self._drain()
        return result

    async def analysed(
        self, text: bytes, schema: bytes | None, timeout_ms: int, tuning: Tuning = ()
    ) -> bytes | None:
        """A statement as the server understands it, with views and policies expanded: the tree
        that `debug_print_rewritten` prints, with the oid of all that it calls. None if the server
        printed none. Nothing is planned or run. Raises: TidegateError.
        """
        line = self.line
        path, params = settings_query(TransactionSettings(timeout_ms, schema, tuning=tuning))
        line.send((BEGIN_READ, None), (path, params), (_PRINT_TREES, None))
        line.prepare(text)
        line.send((ROLLBACK, None))
        await line.sync()
        with line.notices() as trees:
            for _ in range(5):
                result = await self.only_result()
                if result.status in FAILED:
                    await self.settle()
                    raise translate(result)
            await self.settle()
        return trees[0] if trees else None

    async def described(self, text: bytes, settings: TransactionSettings) -> PGresult:
        """The parameters and the columns of a statement. Nothing is planned or run.
        Raises: TidegateError."""
        line = self.line
        line.send((BEGIN_READ, None), settings_query(settings))
        line.prepare(text)
        line.describe_prepared()
        line.send((ROLLBACK, None))
        await line.sync()
        results: list[PGresult] = []
        for place in range(5):
            result = await self.only_result()
            if result.status in FAILED:
                await self.settle()
                raise rejected(result, settings.identity) if place < _BEFORE else translate(result)
            results.append(result)
        await self.settle()
        return results[3]

    def settle_now(self) -> bool:
        """Read the rest of the last group if it has come; whether the session is free for use."""
        if self.needs_reset or self.interrupted:
            return False
        if self.line.buffer_is_large or (self.line.open and not self.line.pipelined):
            self.line.close()
        try:
            return self.line.settle() and not self.line.in_transaction
        except TidegateError:
            return False

    async def settle(self) -> None:
        """Read the rest of the last group and leave no transaction open. Raises: TidegateError."""
        if self.line.open and not self.line.pipelined:
            self.close()  # after a copy there is no way back
        await self._drain()
        if self.in_block:
            return
        for _ in range(3):  # a late cancel may still hit the first ROLLBACK
            if not self.line.in_transaction:
                return
            await self.end(ROLLBACK)
        raise lost()

    async def interrupt(self, cause: str) -> None:
        """Ask the server, on a connection of its own, to end what runs. Never raises
        TidegateError."""
        self.interrupted = True
        await self.line.cancel()

    async def reset(self) -> None:
        """Forget whatever statements have set or made. Raises: TidegateError."""
        await self.settle()
        if self.interrupted:
            self.line.send((b"SELECT", None))  # after this the server has seen every request
            await self.line.sync()
            await self.settle()
            self.interrupted = False
        if self.needs_reset:
            await self.query_internal(b"DISCARD ALL")
            self.prepared.clear()
            await self._set_up()
            self.needs_reset = False

    async def _drain(self) -> None:
        line = self.line
        while line.unanswered:
            await line.result()
