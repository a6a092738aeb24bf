"""Decides in which order things happen to a statement: what it may be, a session, rows.

`session.py` has the fence, `opinion.py` what a text may do, `engines/errand.py` how a statement is
told to end.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar

from msgspec import structs

from tidegate.calls import Explain
from tidegate.cancellation import Cancellation
from tidegate.engines.api import Capabilities, Cursor
from tidegate.engines.mysql import catalog, queries
from tidegate.engines.mysql.cursor import MysqlCursor
from tidegate.engines.mysql.faults import ServerError
from tidegate.engines.mysql.grants import warnings_of
from tidegate.engines.mysql.opinion import Opinions, check_change
from tidegate.engines.mysql.params import check_count, encode_statement, pack
from tidegate.engines.mysql.persona import check_run_as
from tidegate.engines.mysql.rehearsal import rehearse
from tidegate.engines.mysql.session import Session
from tidegate.engines.mysql.target import Target, parse_target
from tidegate.engines.rehearsal import UNREAD, unfit
from tidegate.engines.requests import check_wanted, describable, rehearsable, runnable
from tidegate.engines.server import Server
from tidegate.errors import GateError
from tidegate.metadata import Catalog, Description, Status
from tidegate.permits import Permit
from tidegate.sources import Source
from tidegate.sql.outline import outline
from tidegate.statements import Effect, Judgement, Rehearsal, Statement

_STARTED_WITHIN_S = 3

_MAY_LEAVE = re.compile(r"(?i)@|\b(?:set|lock|into|use|prepare|call|temporary)\b|_id\s*\(")
"""What could leave something on the session behind a statement that reads; then it is reset."""


class MysqlEngine:
    """One MySQL or MariaDB server. A schema is a database."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        inspects=True, schemas=False, several_databases=True, rehearses=True, identities=True
    )

    def __init__(self, target: Target, first: Session, warnings: tuple[str, ...]) -> None:
        self._setting = first.setting
        self._server = Server(
            lambda _: Session.open(target), target.pool, first, first.setting.database
        )
        self._opinions = Opinions(first.setting.database)
        self._started = 0
        self._status = Status(
            first.setting.database or "",
            first.setting.database,
            first.setting.server_version,
            warnings,
        )

    @classmethod
    async def open(cls, source: Source) -> MysqlEngine:
        check_run_as(source.run_as)
        target = parse_target(source.url)
        first = await Session.open(target)
        try:
            grants = [str(row[0]) for row in await first.own(b"SHOW GRANTS")]
        except ServerError:
            grants = []
        return cls(target, first, warnings_of(grants))

    @property
    def status(self) -> Status:
        return self._status

    async def inspect(self, statement: Statement) -> Judgement | None:
        """The server's opinion, from preparing the text and from the views it reads; None on what
        it cannot prepare. Raises: GateError."""
        self._server.check_open()
        return await self._opinions.inspect(statement.text, self._server.borrowed())

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        request = runnable(permit)
        self._server.check_open()
        check_wanted(cancellation)
        explains = isinstance(request, Explain)
        text, params = request.statement.text, request.statement.params
        if explains:
            text = f"EXPLAIN {text}"
        encoded = encode_statement(text)
        reads = explains or permit.effect is Effect.READ
        database = request.schema or request.database
        timeout_s = permit.limits.timeout_s
        if reads:
            borrowed = self._server.borrowed(timeout_s, cancellation)
            reads = await self._opinions.check_read(
                text, encoded, database, borrowed, permit.identity, explains=explains
            )
        else:
            check_change(text, permit)
        errand = await self._server.errand(timeout_s, cancellation, writes=not reads)
        try:
            async with errand:
                session = errand.held()
                session.dirty = session.dirty or not reads or _may_leave(text)
                await session.assume(permit.identity)
                await session.prelude(errand.timeout_ms, database)
                if not reads:
                    await session.open_transaction()
                binary = await _send(session, encoded, params, explains)
                head = await errand.held().line.answer()
                cursor = MysqlCursor(errand, head, binary=binary, keeps=not explains)
                await cursor.begin(head)
                return cursor
        finally:
            if not reads:
                self._opinions.forget()

    async def rehearse(self, permit: Permit, cancellation: Cancellation) -> Rehearsal:
        request = rehearsable(permit)
        self._server.check_open()
        found = outline(request.statement.text, "mysql")
        if isinstance(found, str):
            return Rehearsal(reason=found)
        refused = unfit(found, request.statement.params)
        if refused is not None:
            return refused
        encoded = encode_statement(request.statement.text)
        check_change(request.statement.text, permit)
        if found.query.text:
            opinion = await self._opinions.inspect(found.query.text, self._server.borrowed())
            if opinion is None or opinion.effect is not Effect.READ:
                return UNREAD
        database = request.schema or request.database
        limits = permit.limits
        async with self._server.borrowed(limits.timeout_s, cancellation) as session:
            await session.assume(permit.identity)
            await session.prelude(max(1, round(limits.timeout_s * 1000)), database)
            return await rehearse(
                session,
                encoded,
                request.statement.params or (),
                found,
                database or self._setting.database,
                limits.max_rows,
            )

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        request = describable(permit)
        self._server.check_open()
        if request.aspect == "status":
            return self._status
        check_wanted(cancellation)
        timeout_s = permit.limits.timeout_s
        async with self._server.borrowed(timeout_s, cancellation) as session:
            if request.aspect in ("counts", "ddl"):  # the rest is kept for all callers
                await session.assume(permit.identity)
            await session.prelude(max(1, round(timeout_s * 1000)), None)
            mark = await self._mark(session)
            described = await catalog.describe(session, request)
        if isinstance(described, Catalog):
            return structs.replace(described, stamp=mark)
        return described

    async def stamp(self) -> str:
        self._server.check_open()
        async with self._server.borrowed() as session:
            return await self._mark(session)

    async def close(self) -> None:
        await self._server.close()

    async def _mark(self, session: Session) -> str:
        """When the server started, and how often schemas were changed since then."""
        rows = await session.own(queries.counters(session.setting.mariadb))
        started, counts = 0, 0
        for name, value, now in rows:
            if str(name).lower() == "uptime":
                started = int(now) - int(value)
            else:
                counts += int(value)
        if abs(started - self._started) > _STARTED_WITHIN_S:
            self._started = started
        return f"{self._started}.{counts}"


@lru_cache(maxsize=1024)
def _may_leave(text: str) -> bool:
    return _MAY_LEAVE.search(text) is not None


async def _send(
    session: Session, encoded: bytes, params: tuple[object, ...] | None, explains: bool
) -> bool:
    """Send a statement. Returns whether its rows come by the binary protocol."""
    line = session.line
    if params is None and not (explains and b"?" in encoded):
        line.query(encoded)
        return False
    statement, _, count = await line.prepare(encoded)
    if explains and params is None:
        params = (None,) * count
    try:
        check_count(count, params)
        line.execute(statement, pack(params or ()))
    except GateError:
        line.forget(statement)
        raise
    return True
