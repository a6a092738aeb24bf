"""What the catalogs of a server's databases say of a text, beside the judge's own judgement.

Each database of a server has its own: its object ids, types and formats mean nothing in another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from psycopg.pq import ExecStatus

from tidegate.engines.common.server_pool import OWN_S, ServerPool
from tidegate.engines.postgres.connection import PostgresSession
from tidegate.engines.postgres.data_rows import BinaryFits, Key
from tidegate.engines.postgres.errors import translate
from tidegate.engines.postgres.inspect import CatalogSafetyCache
from tidegate.engines.postgres.transaction import Tuning
from tidegate.engines.postgres.types import TypeCache
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER, Cancellation
from tidegate.model.decisions import Permit
from tidegate.model.statements import Effect, Judgement


def is_approved_as_is(judgement: Judgement) -> bool:
    """Whether a person approves what a statement names, functions of users included: the catalog is
    not asked about it."""
    administration = judgement.administration
    return administration is not None and not administration.runs_query


class Database(NamedTuple):
    """What is known of one database of the server."""

    watch: CatalogSafetyCache
    types: TypeCache
    binary: BinaryFits

    def key(self, encoded: bytes, schema: bytes | None) -> Key:
        """Of a statement, as long as the names in this database mean the same."""
        return encoded, schema, self.watch.names_state


class Databases:
    """The databases of one server that were asked for, with `home` as the one of the source."""

    def __init__(
        self,
        server: ServerPool[PostgresSession],
        open_session: Callable[[str | None], Awaitable[PostgresSession]],
        home: str,
        functions: tuple[str, ...] = (),
    ) -> None:
        """`functions` of users are those that reads may call."""
        self._functions = functions
        self._server = server
        self._open_session = open_session
        self.home = self._unknown(None)
        """The database of the source."""
        self.asked: dict[str | None, Database] = {None: self.home, home: self.home}
        """Those that were asked for, by name; None: the one of the source."""

    def of(self, name: str | None) -> Database:
        """What is known of a database; of one that can be connected to, so that few are kept."""
        known = self.asked.get(name)
        if known is None:
            known = self.asked[name] = self._unknown(name)
        return known

    def _unknown(self, name: str | None) -> Database:
        """A database of which nothing is known yet."""
        types = TypeCache(lambda: self._open_session(name))
        return Database(CatalogSafetyCache(self._functions), types, BinaryFits())

    async def joined(
        self,
        text: str,
        judgement: Judgement,
        timeout_s: float = OWN_S,
        cancellation: Cancellation = NEVER,
        *,
        database: str | None = None,
        schema: bytes | None = None,
        tuning: Tuning = (),
    ) -> Judgement:
        """The judgement of a text, raised by what one database says, whose catalog is surveyed
        before."""
        self._server.check_open()
        if is_approved_as_is(judgement):
            return judgement
        known = self.asked.get(database)
        if (
            known is not None
            and not known.watch.is_due
            and not (known.watch.needs_analysis(judgement))
        ):
            return await known.watch.joined(text, judgement)
        timeout_ms = max(1, round(timeout_s * 1000))
        async with self._server.borrowed(timeout_s, cancellation, database) as session:
            watch = self.of(database).watch
            if watch.is_due:
                await watch.look(session, timeout_ms)
            if watch.needs_analysis(judgement):
                return await watch.analysed(session, text, judgement, schema, timeout_ms, tuning)
            return await watch.joined(text, judgement)

    async def refuse(
        self, encoded: bytes, opinion: Judgement, permit: Permit, database: str | None
    ) -> None:
        """Refuse what is more than the permit allows; if the server cannot even read it, with the
        server's own words. Raises: TidegateError, always."""
        async with self._server.borrowed(database=database) as session:
            parsed = await session.parse(encoded)
            if parsed.status != ExecStatus.COMMAND_OK:
                raise translate(parsed)
        if not encoded.strip(b" \t\r\n;") or opinion.code == Code.SQL_EMPTY.value:
            raise TidegateError(Code.SQL_EMPTY, "The text holds no statement.")
        if opinion.code == Code.SQL_FUNCTION.value:
            code = Code.SQL_FUNCTION
        else:
            code = Code.POLICY_READ_ONLY if permit.effect is Effect.READ else Code.POLICY_DENIED
        details = {"effect": opinion.effect.label, "rule": opinion.rule}
        raise TidegateError(code, opinion.reason, hint=opinion.hint, details=details)
