"""The edge of the wire protocol: accepts clients at an address, and ends them in good order."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from math import inf
from typing import Any, cast

from tidegate.config.model import Config
from tidegate.edges.accepting import Acceptor, Entrance, OneByOne, open_acceptor
from tidegate.edges.listening import Listening
from tidegate.edges.passed_on import HeaderWarnings
from tidegate.errors import Code, TidegateError
from tidegate.gateway.gateway import Gateway
from tidegate.identity.builtin_actors import ANONYMOUS
from tidegate.model.actors import Actor
from tidegate.model.replies import ConnectionState, SourceEntry
from tidegate.model.requests import Call, Connect, ListSources, Request, ShowStatus
from tidegate.model.sources import Source
from tidegate.model.transactions import TransactionBounds
from tidegate.model.worker_share import own_share
from tidegate.products.pgwire import messages
from tidegate.products.pgwire.authentication import decoy_secret
from tidegate.products.pgwire.catalog.catalogs import catalog_turns
from tidegate.products.pgwire.catalog.shared import SharedCatalogs
from tidegate.products.pgwire.connection import WireConnection
from tidegate.products.pgwire.errors import session_ended, warning
from tidegate.products.pgwire.gate import WireGate
from tidegate.products.pgwire.logins import Login, Logins
from tidegate.products.pgwire.memory_quota import MemoryQuota
from tidegate.products.pgwire.reading import reading_turns
from tidegate.products.pgwire.session import Session, SessionTurns
from tidegate.products.pgwire.session_settings import SessionSettings
from tidegate.products.pgwire.setting_changes import SettingChanges
from tidegate.products.pgwire.settings import PgWireSettings
from tidegate.products.pgwire.statement_runner import SURFACE, SessionLimits
from tidegate.products.pgwire.tls import NO_TLS, ServerTls
from tidegate.siblings import Siblings
from tidegate.sql.dialects import find

logger = logging.getLogger("tidegate.pgwire")

BACKLOG = 512
CANCEL_S = 2.0
"""How long cancelled statements may take to answer that they were cancelled."""
SHOWN_SOURCES = 20
SHORT_SECRET = 4
LONG_SECRET = 32
"""Bytes of the key to cancel with: version 3.0 of the protocol has room for four."""
_CANCEL, _NUMBER_BYTES = "pg.cancel", 4
WARNING_S = 60.0
"""Between warnings of a flood."""
_QUIET = frozenset({"client_encoding", "database"})


class WireServer:
    """Serves `gateway` at a bound socket (`edges.edge.Edge`, `identity.revocation.SessionOwner`).

    `logins` None: everyone is let in as the anonymous caller, who may only read. `config` has the
    limits of calls and of what a message may hold. `gate_of` gives the gate for statements on a
    source, where it is another.
    """

    def __init__(
        self,
        gateway: Gateway,
        listening: Listening,
        logins: Logins | None,
        settings: PgWireSettings,
        config: Config,
        *,
        tls: ServerTls = NO_TLS,
        gate_of: Callable[[Source], WireGate] | None = None,
    ) -> None:
        host, port = listening.place
        self.name = f"postgresql://{f'[{host}]' if ':' in host else host}:{port}"
        self.listens = True
        self.logins = logins
        self.anonymous = ANONYMOUS
        self.tls = tls
        self.max_message = config.body_limit_bytes
        self.decoy = decoy_secret()
        self.header_warnings = HeaderWarnings()
        self._gateway = gateway
        self._gate_of = gate_of
        self._listening = listening
        self._siblings = Siblings()
        self._settings = settings
        self._limits = SessionLimits(
            config.limits,
            settings.max_rows,
            TransactionBounds(
                settings.idle_in_transaction_s, settings.transaction_s, settings.max_transactions
            ),
        )
        self._connections: set[WireConnection] = set()
        self._logging_in: dict[WireConnection, None] = {}
        self._logged_in: set[WireConnection] = set()
        self._warned_at = -inf
        self._by_number: dict[int, WireConnection] = {}
        self._accepting: Acceptor | None = None
        self._ended = asyncio.Event()
        self._stopping = False
        self._held = MemoryQuota()
        self._turns = SessionTurns(reading_turns(), catalog_turns(), SharedCatalogs())
        self._most_of_caller = settings.max_connections - settings.max_connections // 4

    @property
    def sessions(self) -> WireServer:
        """This edge owns its sessions."""
        return self

    def join(self, siblings: Siblings) -> None:
        """Serve with others at one socket: any of them may get the request to cancel what another
        one runs."""
        self._siblings = siblings
        siblings.listen(_CANCEL, self._hear_cancel)

    # The edge

    async def start(self) -> None:
        """Accept clients."""
        listener, counts, passed_on = self._listening
        self._accepting = await open_acceptor(
            listener,
            lambda client: WireConnection(self, client),
            self._connections.__len__,
            backlog=BACKLOG,
            entrance=Entrance(passed_on),
            counts=counts,
        )

    async def wait_ended(self) -> None:
        """Return after `stop`."""
        await self._ended.wait()

    async def stop(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Accept no more clients, let running statements end for `grace_s` seconds, then cancel
        them. Safe to call twice."""
        accepting, self._accepting = self._accepting, None
        self._stopping = True
        if accepting is None:
            self._listening.socket.close()
            self._ended.set()
            return
        accepting.close()
        for connection in list(self._connections):
            connection.finish(_stopped())
        await self._wait_idle(grace_s, hurry)
        for connection in list(self._connections):
            connection.end(_stopped())
        await self._wait_idle(CANCEL_S, None)
        for connection in list(self._connections):
            connection.give_up(_unfinished())
        self._ended.set()

    async def _wait_idle(self, seconds: float, hurry: asyncio.Event | None) -> None:
        waiting = [asyncio.ensure_future(each.wait_ended()) for each in self._connections]
        if not waiting:
            return
        ended = asyncio.ensure_future(asyncio.wait(waiting))
        awaited: set[asyncio.Future[Any]] = {ended}
        if hurry is not None:
            awaited.add(asyncio.ensure_future(hurry.wait()))
        await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in (*awaited, *waiting):
            each.cancel()

    # What connections ask

    def admit(self, connection: WireConnection) -> None:
        """Take a connection in. If too many are not logged in, one of them ends for it."""
        if self._stopping:
            connection.end(_stopped())
            connection.cancel_task()
            return
        waiting = self._logging_in
        if len(waiting) >= self._settings.max_logins:
            self._drop_oldest_login()
        waiting[connection] = None
        self._connections.add(connection)

    def _drop_oldest_login(self) -> None:
        """End a connection that is not logged in: the oldest of the address that has most, so that
        a flood ends its own."""
        waiting = self._logging_in
        counts = Counter(each.address for each in waiting)
        address, count = counts.most_common(1)[0]
        oldest = next(each for each in waiting if each.address == address)
        del waiting[oldest]
        oldest.abort()
        if time.monotonic() - self._warned_at > WARNING_S:
            self._warned_at = time.monotonic()
            logger.warning(
                "%d connections have not logged in, %d of them from %s: the oldest are ended"
                " (`pg.max_logins`)",
                len(waiting) + 1,
                count,
                address,
            )

    def take_place(self, connection: WireConnection, actor: Actor) -> None:
        """Count a client that has proved who it is. One caller leaves a quarter of the places to
        others. Raises: TidegateError SOURCE_BUSY if too many are logged in."""
        if len(self._logged_in) >= self._settings.max_connections:
            raise TidegateError(
                Code.SOURCE_BUSY,
                f"{len(self._logged_in)} clients are logged in, which is the most"
                f"{own_share().where}.",
                hint="Raise `pg.max_connections`, or close some.",
                details={"sqlstate": "53300"},
            )
        most = self._most_of_caller
        count = sum(
            [each.actor is not None and each.actor.id == actor.id for each in self._logged_in]
        )
        if count >= most and self.logins is not None:
            raise TidegateError(
                Code.SOURCE_BUSY,
                f"{count} clients are logged in as {actor.name!r}, which is the most for one"
                f" caller{own_share().where}.",
                hint="Close some, use another token, or raise `pg.max_connections`.",
                details={"sqlstate": "53300"},
            )
        self._logging_in.pop(connection, None)
        self._logged_in.add(connection)

    def register(self, connection: WireConnection) -> None:
        """Give a session the number and the secret by which it can be cancelled."""
        number = int.from_bytes(os.urandom(4), "big") & 0x7FFF_FFFF
        while number in self._by_number:
            number = int.from_bytes(os.urandom(4), "big") & 0x7FFF_FFFF
        connection.number = number
        connection.secret = os.urandom(
            LONG_SECRET if connection.version >= messages.PROTOCOL_3_2 else SHORT_SECRET
        )
        self._by_number[number] = connection

    def forget(self, connection: WireConnection) -> None:
        """The connection has ended."""
        self._connections.discard(connection)
        if isinstance(self._accepting, OneByOne):
            self._accepting.show()
        self._logged_in.discard(connection)
        self._logging_in.pop(connection, None)
        if self._by_number.get(connection.number) is connection:
            del self._by_number[connection.number]

    def cancel(self, number: int, secret: bytes) -> None:
        """End what that session runs, if the secret is its own. Says nothing in either case."""
        connection = self._by_number.get(number)
        if connection is None:
            self._siblings.tell(_CANCEL, number.to_bytes(_NUMBER_BYTES, "big") + secret)
            return
        self._cancel(connection, secret)

    def _hear_cancel(self, body: bytes) -> None:
        """Another worker was asked to cancel what may run here."""
        number = int.from_bytes(body[:_NUMBER_BYTES], "big")
        connection = self._by_number.get(number)
        if connection is not None:
            self._cancel(connection, body[_NUMBER_BYTES:])

    def _cancel(self, connection: WireConnection, secret: bytes) -> None:
        if connection.session is None:
            return
        if hmac.compare_digest(connection.secret, secret):
            connection.session.cancel("the client asked for it")

    def check_protected(self, is_tls: bool) -> None:
        """Raises: TidegateError AUTH_INVALID for a client without TLS where it must have it."""
        if self.tls.is_required and not is_tls:
            raise TidegateError(
                Code.AUTH_INVALID,
                "This server wants TLS.",
                hint="Connect with sslmode=require, better verify-full.",
                details={"sqlstate": "28000"},
            )

    async def open_session(
        self,
        connection: WireConnection,
        actor: Actor,
        database: str,
        user: str,
        startup: dict[str, str],
    ) -> Session:
        """A session on the source of that name, opened now. `startup` are the other parameters of
        the startup message. Raises: TidegateError."""
        address = connection.address
        source = await self._find(actor, database, user, address)
        await self._ask(actor, Connect(), source.name, address)
        version, arrived = None, ()
        if find(source.dialect).is_postgres:
            reply = await self._ask(actor, ShowStatus(), source.name, address)
            if isinstance(reply, ConnectionState) and reply.current is not None:
                version, arrived = reply.current.server_version, reply.current.session
        settings = SessionSettings(
            user, version, source.dialect, is_proxy=actor.proxy, arrived=arrived
        )
        encoding = startup.get("client_encoding", "utf8").strip("'").lower()
        if encoding not in ("utf8", "utf-8", "unicode", "auto", "sql_ascii"):
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The client's encoding is {encoding[:40]!r}, and only UTF8 is spoken here.",
                hint="Set client_encoding (PGCLIENTENCODING) to UTF8.",
                details={"sqlstate": "22023"},
            )
        wanted = {
            name: value
            for name, value in startup.items()
            if name not in _QUIET and not name.startswith("_pq_.")
        }

        async def ask(request: Request) -> object:
            return await self._ask(actor, request, source.name, address)

        for note in await SettingChanges(settings, ask).begin_with(wanted):
            connection.write(warning("01000", note))
        return Session(
            self._gateway if self._gate_of is None else self._gate_of(source),
            connection,
            Login(actor, source, address),
            settings,
            self._limits,
            self._held,
            self._turns,
        )

    async def _find(self, actor: Actor, database: str, user: str, address: str) -> Source:
        """The source that the connection's database names; the actor's only one if it names
        none, in which case clients send the user."""
        asked = ListSources(keys=(database,))
        found = await self._sources(actor, asked, address)
        if found:
            return found[0].source
        seen = await self._sources(actor, ListSources(limit=SHOWN_SOURCES), address)
        if database == user and len(seen) == 1:
            return seen[0].source
        names = ", ".join(entry.source.name for entry in seen)
        raise TidegateError(
            Code.SOURCE_UNKNOWN,
            f'The database "{database[:80]}" is no source that {actor.name!r} may see.',
            hint=f"Connect to one of: {names}." if names else "Ask the operator for a source.",
        )

    async def _sources(
        self, actor: Actor, request: ListSources, address: str
    ) -> tuple[SourceEntry, ...]:
        found = await self._ask(actor, request, None, address)
        return cast("tuple[SourceEntry, ...]", found)

    async def _ask(
        self, actor: Actor, request: Request, source: str | None, address: str
    ) -> object:
        call = Call(actor, SURFACE, SURFACE, request, source, address=address)
        return (await self._gateway.handle(call)).payload

    # What a session owner does

    def actors(self) -> Iterator[Actor]:
        """Those who are logged in, and those as whom someone is logging in."""
        for connection in self._connections:
            if connection.actor is not None:
                yield connection.actor

    def end_actors(self, ids: Collection[str], reason: str) -> None:
        """End the sessions of these actors."""
        for connection in list(self._connections):
            if connection.actor is not None and connection.actor.id in ids:
                _end(connection, reason)

    def end_expired(self, now: float, reason: str) -> None:
        """End the sessions whose token has expired."""
        for connection in list(self._connections):
            expires_at = None if connection.actor is None else connection.actor.expires_at
            if expires_at is not None and now >= expires_at:
                _end(connection, reason)


def _end(connection: WireConnection, reason: str) -> None:
    """A client that has not proved who it is learns nothing of the token."""
    if connection.session is None:
        connection.abort()
    else:
        connection.end(session_ended(reason))


def _stopped() -> TidegateError:
    return session_ended("the server stops")


def _unfinished() -> TidegateError:
    return TidegateError(
        Code.CALL_CANCELLED,
        "The session was ended: the server stops. What ran did not end when it was cancelled, and"
        " it is not known what of it is kept.",
        hint="Look at the data before you send it again.",
        details={"sqlstate": "57P01"},
    )
