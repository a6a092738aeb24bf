"""Decides in which order things happen to a statement: what it may be, a session, rows.

Everything that runs does so in a transaction of its own: `session.py` has the fence, `hazards.py`
what the catalogue says, `engines/errand.py` how a statement is told to end.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from time import monotonic
from typing import ClassVar

from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from tidegate.calls import Explain
from tidegate.cancellation import NEVER, Cancellation
from tidegate.engines.api import Capabilities, Cursor
from tidegate.engines.errand import Errand
from tidegate.engines.postgres import catalog, queries
from tidegate.engines.postgres.cursor import PostgresCursor
from tidegate.engines.postgres.faults import translate
from tidegate.engines.postgres.hazards import CATALOG_RULE
from tidegate.engines.postgres.kinds import Kinds
from tidegate.engines.postgres.line import FAILED
from tidegate.engines.postgres.params import dump, encode_statement
from tidegate.engines.postgres.pin import check_run_as
from tidegate.engines.postgres.rehearsal import rehearse
from tidegate.engines.postgres.session import Session
from tidegate.engines.postgres.target import Target, parse_target
from tidegate.engines.postgres.watch import Watch
from tidegate.engines.rehearsal import UNREAD, unfit
from tidegate.engines.requests import check_wanted, describable, rehearsable, runnable
from tidegate.engines.server import LEAST_S, OWN_S, Server
from tidegate.errors import Code, GateError
from tidegate.metadata import Description, Status
from tidegate.permits import Permit
from tidegate.sources import Source
from tidegate.sql.outline import outline
from tidegate.statements import Effect, Judgement, Rehearsal, Statement

SUPERUSER = (
    "the account is a superuser: no privilege that was not granted stops it, so give this source a"
    " role with CONNECT, USAGE and SELECT alone",
)

_PLACEHOLDER = re.compile(r"\$(\d+)")


class PostgresEngine:
    """One PostgreSQL server, and the databases on it that are asked for."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        inspects=True, several_databases=True, rehearses=True, identities=True
    )

    def __init__(self, target: Target, first: Session) -> None:
        self._setting = first.setting

        def open_session(database: str | None) -> Awaitable[Session]:
            return Session.open(target, **({} if database is None else {"dbname": database}))

        self._server = Server(open_session, target.pool, first, first.setting.database)
        self._kinds = Kinds(lambda: Session.open(target))
        self._watch = Watch()
        self._stamp: tuple[str, str] | None = None
        self._server_version = first.line.server_version
        self._status = Status(
            first.setting.database,
            first.setting.schema,
            first.setting.server_version,
            SUPERUSER if first.line.parameter(b"is_superuser") == "on" else (),
        )

    @classmethod
    async def open(cls, source: Source) -> PostgresEngine:
        check_run_as(source.run_as)
        target = parse_target(source.url)
        return cls(target, await Session.open(target))

    @property
    def status(self) -> Status:
        return self._status

    async def inspect(self, statement: Statement) -> Judgement | None:
        """The catalogue's opinion, joined with the judge's; None on what neither can read.

        Raises: GateError.
        """
        judgement = await self._judgement(statement.text)
        unread = judgement.effect is Effect.UNKNOWN and judgement.rule != CATALOG_RULE
        return None if unread else judgement

    async def _judgement(
        self, text: str, timeout_s: float = OWN_S, cancellation: Cancellation = NEVER
    ) -> Judgement:
        self._server.check_open()
        if self._watch.is_due:
            async with self._server.borrowed(timeout_s, cancellation) as session:
                await self._watch.look(session, max(1, round(timeout_s * 1000)))
        return self._watch.judgement(text)

    async def run(self, permit: Permit, cancellation: Cancellation) -> Cursor:
        request = runnable(permit)
        self._server.check_open()
        check_wanted(cancellation)
        explains = isinstance(request, Explain)
        text, params = request.statement.text, dump(request.statement.params)
        if explains:
            text, params = self._explanation(text, params)
        encoded = encode_statement(text)
        until = monotonic() + permit.limits.timeout_s
        opinion = await self._judgement(text, permit.limits.timeout_s, cancellation)
        if opinion.effect > (Effect.READ if explains else permit.effect) or (
            permit.identity is not None and opinion.effect is Effect.SESSION
        ):
            await self._refuse(encoded, opinion, permit)
        writes = not explains and permit.effect > Effect.READ
        schema = None if request.schema is None else self._path(request.schema)
        left_s = max(LEAST_S, until - monotonic())
        errand = await self._server.errand(left_s, cancellation, request.database, writes=writes)
        try:
            async with errand:
                session = errand.held()
                session.dirty = writes
                first = await session.begin(
                    encoded,
                    params,
                    errand.timeout_ms,
                    schema,
                    permit.identity,
                    writes=writes,
                )
                if first.status in FAILED:
                    raise translate(first)
                return await self._cursor(errand, first, request.statement.text)
        finally:
            if writes:
                self._watch.wake()

    async def _cursor(self, errand: Errand[Session], first: PGresult, text: str) -> PostgresCursor:
        columns, reader = await self._kinds.columns(first)
        cursor = PostgresCursor(errand, first, columns, reader, text)
        await cursor.begin(first)
        return cursor

    async def rehearse(self, permit: Permit, cancellation: Cancellation) -> Rehearsal:
        request = rehearsable(permit)
        self._server.check_open()
        found = outline(request.statement.text, "postgres")
        if isinstance(found, str):
            return Rehearsal(reason=found)
        refused = unfit(found, request.statement.params)
        if refused is not None:
            return refused
        encoded = encode_statement(request.statement.text)
        opinion = await self._judgement(
            request.statement.text, permit.limits.timeout_s, cancellation
        )
        if opinion.effect > permit.effect:
            await self._refuse(encoded, opinion, permit)
        query = found.query.text
        if query and (await self._judgement(query)).effect is not Effect.READ:
            return UNREAD
        limits = permit.limits
        async with self._server.borrowed(
            limits.timeout_s, cancellation, request.database
        ) as session:
            session.dirty = True
            return await rehearse(
                session,
                encoded,
                dump(request.statement.params),
                found,
                timeout_ms=max(1, round(limits.timeout_s * 1000)),
                schema=None if request.schema is None else self._path(request.schema),
                identity=permit.identity,
                max_rows=limits.max_rows,
            )

    async def describe(self, permit: Permit, cancellation: Cancellation) -> Description:
        request = describable(permit)
        self._server.check_open()
        if request.aspect == "status":
            return self._status
        check_wanted(cancellation)
        timeout_s = permit.limits.timeout_s
        async with self._server.borrowed(timeout_s, cancellation, request.database) as session:
            timeout_ms = max(1, round(timeout_s * 1000))
            return await catalog.describe(session, request, timeout_ms, permit.identity)

    async def stamp(self) -> str:
        self._server.check_open()
        async with self._server.borrowed() as session:
            kept = self._stamp
            if kept is not None:
                ((moment,),) = await session.own(queries.SNAPSHOT)
                if moment == kept[0]:
                    return kept[1]
            self._stamp = kept = await catalog.stamp(session, round(OWN_S * 1000))
            return kept[1]

    async def close(self) -> None:
        await self._server.close()

    def _path(self, schema: str) -> bytes:
        quoted = schema.replace('"', '""')
        return f'"{quoted}", {self._setting.path}'.encode()

    def _explanation(self, text: str, params: list[bytes | None]) -> tuple[str, list[bytes | None]]:
        """EXPLAIN before a statement; placeholders without values are planned for any value."""
        count = max([int(number) for number in _PLACEHOLDER.findall(text)], default=0)
        if params or not 0 < count < 1000:
            return f"EXPLAIN {text}", params
        how = " (GENERIC_PLAN)" if self._server_version >= 160000 else ""
        return f"EXPLAIN{how} {text}", [None] * count

    async def _refuse(self, encoded: bytes, opinion: Judgement, permit: Permit) -> None:
        """Refuse what is more than the permit allows; if the server cannot even read it, with the
        server's own words. Raises: GateError, always."""
        async with self._server.borrowed() as session:
            parsed = await session.parse(encoded)
            if parsed.status != ExecStatus.COMMAND_OK:
                raise translate(parsed)
        if not encoded.strip(b" \t\r\n;") or opinion.code == Code.SQL_EMPTY.value:
            raise GateError(Code.SQL_EMPTY, "The text holds no statement.")
        if opinion.code == Code.SQL_FUNCTION.value:
            code = Code.SQL_FUNCTION
        else:
            code = Code.POLICY_READ_ONLY if permit.effect is Effect.READ else Code.POLICY_DENIED
        details = {"effect": opinion.effect.label, "rule": opinion.rule}
        raise GateError(code, opinion.reason, hint=opinion.hint, details=details)
