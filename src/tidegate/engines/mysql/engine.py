"""Decides in which order things happen to a statement: what it may be, a session, rows.

`session.py` has the fence, `study.py` what the server says of a text, `views.py` what lies behind a
view, `errand.py` how a statement is told to end.
"""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache
from typing import ClassVar

from msgspec import structs

from tidegate.engines.api import Capabilities, Cursor
from tidegate.engines.mysql import catalog, queries
from tidegate.engines.mysql.cursor import MysqlCursor, not_utf8
from tidegate.engines.mysql.errand import Borrowed, Errand
from tidegate.engines.mysql.faults import ServerError, stopped, translate
from tidegate.engines.mysql.grants import warnings_of
from tidegate.engines.mysql.params import check_count, encode_statement, pack
from tidegate.engines.mysql.pool import Pool
from tidegate.engines.mysql.session import Session
from tidegate.engines.mysql.study import (
    POOLED_WORDS,
    Studies,
    Study,
    as_judgement,
    first_word,
    study,
)
from tidegate.engines.mysql.target import Target, parse_target
from tidegate.engines.mysql.views import Views
from tidegate.errors import Code, GateError
from tidegate.sql.judge import judge
from tidegate.sql.template import template
from tidegate.types import (
    NEVER,
    Browse,
    Cancellation,
    Catalog,
    Description,
    Effect,
    Explain,
    Judgement,
    Permit,
    Query,
    Source,
    Statement,
    Status,
)

VIEW_RULE = "mysql.view"

OWN_S = 10.0
"""The time limit of what we ask for ourselves."""

OWN_MS = round(OWN_S * 1000)
_STARTED_WITHIN_S = 3

_MAY_LEAVE = re.compile(r"(?i)@|\b(?:set|lock|into|use|prepare|call|temporary)\b|_id\s*\(")
"""What could leave something on the session behind a statement that reads; then it is reset."""


class MysqlEngine:
    """One MySQL or MariaDB server. A schema is a database."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        inspects=True, schemas=False, several_databases=True
    )

    def __init__(self, target: Target, first: Session, warnings: tuple[str, ...]) -> None:
        self._setting = first.setting
        self._pool = Pool(lambda: Session.open(target), target.pool, first)
        self._studies = Studies()
        self._views = Views()
        self._running: set[Errand] = set()
        self._closed = False
        self._started = 0
        self._status = Status(
            first.setting.database or "",
            first.setting.database,
            first.setting.server_version,
            warnings,
        )

    @classmethod
    async def open(cls, source: Source) -> MysqlEngine:
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
        self._check_open()
        text = statement.text
        read = judge(text, "mysql")
        found = await self._study(text, encode_statement(text), None, self._borrowed())
        if found.effect is Effect.UNKNOWN:
            return None
        opinion = as_judgement(found)
        if found.effect is Effect.READ and read.effect is Effect.READ:
            objection = await self._objection(read, None, self._borrowed())
            if objection is not None:
                return structs.replace(
                    opinion,
                    effect=Effect.UNKNOWN,
                    rule=VIEW_RULE,
                    reason=objection,
                    code=Code.SQL_FUNCTION.value,
                    tables=read.tables,
                )
        return structs.replace(opinion, tables=read.tables, functions=read.functions)

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        request = permit.request
        if not isinstance(request, (Query, Explain)):
            raise GateError(Code.UNSUPPORTED, "Only a query or an explanation can be run.")
        self._check_open()
        if cancellation.cancelled:
            raise stopped(cancellation.reason or "cancelled")
        explains = isinstance(request, Explain)
        text, params = request.statement.text, request.statement.params
        if explains:
            text = f"EXPLAIN {text}"
        encoded = encode_statement(text)
        reads = explains or permit.effect is Effect.READ
        database = None if explains else request.schema or request.database
        timeout_s = permit.limits.timeout_s
        if reads:
            reads = await self._check_read(
                text, encoded, database, self._borrowed(timeout_s, cancellation), explains=explains
            )
        else:
            _check_change(text, permit)
        session = await self._pool.take(timeout_s)
        errand = Errand(
            self._pool, session, timeout_s, cancellation, self._running, writes=not reads
        )
        errand.keeps = not explains
        try:
            session.dirty = session.dirty or not reads or _may_leave(text)
            await session.prelude(max(1, round(timeout_s * 1000)), database)
            if not reads:
                await session.open_transaction()
            binary = await _send(session, encoded, params, explains)
            head = await errand.held().line.answer()
            cursor = MysqlCursor(errand, head, binary=binary)
            await cursor.begin(head)
            return cursor
        except UnicodeDecodeError as error:
            await errand.close()
            raise not_utf8() from error
        except (GateError, ServerError) as error:
            failure = errand.failure(error)
            await errand.close()
            raise failure from error
        except BaseException:
            await errand.close()
            raise
        finally:
            if not reads:
                self._views.forget()

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        request = permit.request
        if not isinstance(request, Browse):
            raise GateError(Code.UNSUPPORTED, "Only metadata can be described.")
        self._check_open()
        if request.aspect == "status":
            return self._status
        if cancellation.cancelled:
            raise stopped(cancellation.reason or "cancelled")
        timeout_s = permit.limits.timeout_s
        async with self._borrowed(timeout_s, cancellation) as session:
            await session.prelude(max(1, round(timeout_s * 1000)), None)
            mark = await self._mark(session)
            described = await catalog.describe(session, request)
        if isinstance(described, Catalog):
            return structs.replace(described, stamp=mark)
        return described

    async def stamp(self) -> str:
        self._check_open()
        async with self._borrowed() as session:
            return await self._mark(session)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._pool.refuse()
        running = list(self._running)
        for errand in running:
            errand.stop("closed")
        if running:
            await asyncio.gather(*[errand.end() for errand in running])
        await self._pool.close()

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

    async def _check_read(
        self,
        text: str,
        encoded: bytes,
        database: str | None,
        borrowed: Borrowed,
        *,
        explains: bool,
    ) -> bool:
        """Refuse what neither we nor the server take for a read. Raises: GateError.

        Returns False for the explanation of a change, which the server gives only where a change
        would be allowed: in a transaction that is rolled back.
        """
        read = judge(text, "mysql")
        if read.code in (Code.SQL_EMPTY.value, Code.SQL_MULTIPLE.value):
            raise GateError(Code(read.code), read.reason, hint=read.hint)
        found = await self._study(text, encoded, database, borrowed)
        if found.error is not None:
            raise translate(found.error)
        if found.effect is Effect.READ and read.effect is Effect.READ:
            objection = await self._objection(read, database, borrowed)
            if objection is not None:
                raise GateError(Code.SQL_FUNCTION, objection, details={"rule": VIEW_RULE})
            return True
        if explains and found.changes and read.effect is Effect.READ:
            return False
        worse = read if read.effect > Effect.READ else as_judgement(found)
        function = worse.code == Code.SQL_FUNCTION.value
        raise GateError(
            Code.SQL_FUNCTION if function else Code.POLICY_READ_ONLY,
            worse.reason,
            hint=worse.hint,
            details={"effect": worse.effect.label, "rule": worse.rule},
        )

    async def _study(
        self, text: str, encoded: bytes, database: str | None, borrowed: Borrowed
    ) -> Study:
        """What the server says of a text, of texts that differ in plain values only once."""
        alike = (template(text), database)
        found = self._studies.get(alike)
        if found is None:
            async with borrowed as session:
                await session.prelude(OWN_MS, database)
                found = await study(session, text, encoded)
            self._studies.put(alike, found)
        return found

    async def _objection(
        self, read: Judgement, database: str | None, borrowed: Borrowed
    ) -> str | None:
        """Why what seems to read may do more, as far as the server's catalogue tells."""
        home = database or self._setting.database
        known, objection = self._views.recall(read, home)
        if known:
            return objection
        async with borrowed as session:
            return await self._views.objection(session, read, home)

    def _borrowed(self, timeout_s: float = OWN_S, cancellation: Cancellation = NEVER) -> Borrowed:
        return Borrowed(self._pool, timeout_s, cancellation, self._running)

    def _check_open(self) -> None:
        if self._closed:
            raise GateError(Code.SOURCE_NOT_CONNECTED, "The source is closed.")


@lru_cache(maxsize=1024)
def _may_leave(text: str) -> bool:
    return _MAY_LEAVE.search(text) is not None


def _check_change(text: str, permit: Permit) -> None:
    """Refuse what no permit allows, and what is more than this one does. Raises: GateError."""
    read = judge(text, "mysql")
    if read.code in (Code.SQL_EMPTY.value, Code.SQL_MULTIPLE.value):
        raise GateError(Code(read.code), read.reason, hint=read.hint)
    word = first_word(text)
    if word in POOLED_WORDS:
        raise GateError(
            Code.POLICY_DENIED,
            f"{word} is about a session, and here every statement has its own.",
            hint="Send the statement alone; a change is committed when it has ended.",
        )
    if permit.effect < read.effect < Effect.UNKNOWN:
        details = {"effect": read.effect.label, "rule": read.rule}
        raise GateError(Code.POLICY_DENIED, read.reason, hint=read.hint, details=details)


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
