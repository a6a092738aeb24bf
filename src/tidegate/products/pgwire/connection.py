"""One connection: frames messages, logs the client in, and hands each message to its session.

Nothing is kept that the client does not read: what it sends ahead is bounded by `READ_AHEAD` and
the largest message, what it leaves unread by the transport's high-water mark.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, cast

from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor
from tidegate.products.pgwire import messages
from tidegate.products.pgwire.authentication import ScramExchange, mechanisms
from tidegate.products.pgwire.errors import error_fields
from tidegate.products.pgwire.messages import ProtocolError
from tidegate.products.pgwire.packers import UINT32
from tidegate.products.pgwire.session import Session
from tidegate.products.pgwire.tls import common_name, feed

if TYPE_CHECKING:
    from tidegate.products.pgwire.server import WireServer

logger = logging.getLogger("tidegate.pgwire")

READ_AHEAD = 65_536
"""Bytes that a client may send before it is read: then its socket waits."""
WRITE_AHEAD = 262_144
"""Bytes that may wait for the client to read; the statement waits then."""
LOGIN_S = 15.0
"""How long a client may take to log in."""
FLUSH_BYTES = 32_768
TURN_S = 0.002
"""How long messages of one client are answered before the event loop serves others."""
CLOSE_S = 5.0
"""How long a client may take to read the last of what was written for it."""
LINGER_S = 0.5
"""How long what a client sends is read and dropped after its session was ended. With bytes of it
unread the system would reset the connection, and a proxy on the way would drop the last message."""
HEAR_S = 2.0
"""How long the end of a session waits for the client's next message after an answer. libpq takes an
error that it reads with an answer for a notice, and then finds a closed connection."""
ALPN = "postgresql"
"""The protocol that TLS without a request for it must name: else it may be meant for a server of
another one (PostgreSQL documentation, "SSL Session Encryption")."""

_HEAD_BYTES = 5
_CLOSE, _SYNC = b"CS"
_ENDS_SERIES = (b"Q", b"S")
"""The messages after whose answers nothing is left of what was sent together."""
_TLS_HELLO = 0x16


class _Execute(NamedTuple):
    """An Execute; `is_last`: nothing more comes before the Sync."""

    message: messages.Execute
    is_last: bool


class Disconnected(Exception):
    """The client has gone."""


class WireConnection(asyncio.Protocol):
    """One client, from its first byte to its last."""

    def __init__(self, server: WireServer, client: str = "") -> None:
        """`client` is the address of the client, if the connection has another one."""
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._out = bytearray()
        self._gone = False
        self._held = False
        self._turn_ends = 0.0
        self._counted = 0
        self._ending: TidegateError | None = None
        self._finishing: TidegateError | None = None
        self._parting: TidegateError | None = None
        self._answered_at = -inf
        self._busy = False
        self._lingers = False
        self._task: asyncio.Task[None] | None = None
        self.address = client
        self.session: Session | None = None
        self.actor: Actor | None = None
        """Who is logged in, or would be if the login succeeds: a login takes time, in which the
        token may be revoked."""
        self.number = 0
        self.secret = b""
        self.version = messages.PROTOCOL_3_0
        self.tls_name: str | None = None
        self._is_tls = False
        self._end_point = b""

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_AHEAD)
        peer = transport.get_extra_info("peername")
        if not self.address and peer:
            self.address = peer[0]
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._server.admit(self)

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            return
        self._buffer += data
        if self._parting is not None:
            self.end(self._parting)
        self._arrived.set()
        if len(self._buffer) > READ_AHEAD and not self._held and self._transport is not None:
            self._held = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self._arrived.set()
        self._writable.set()
        if self.session is not None:
            self.session.cancel("the client has disconnected")

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # What a session writes (`rows.Client`)

    def write(self, data: bytes | bytearray) -> None:
        self._out += data
        if len(self._out) >= FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send what has been written so far."""
        if self._out and self._transport is not None and not self._gone and not self._lingers:
            self._transport.write(bytes(self._out))
        self._out.clear()

    async def drain(self) -> None:
        if len(self._out) >= FLUSH_BYTES:
            self.flush()
        await self._pause()
        if (ending := self._ending) is not None:
            details = dict(ending.details)
            raise TidegateError(ending.code, ending.message, hint=ending.hint, details=details)
        if self._gone:
            raise TidegateError(Code.CALL_CANCELLED, "The client has disconnected.")

    async def _pause(self) -> None:
        """Wait until the client has read enough, and let others have their turn after its own."""
        if not self._writable.is_set():
            await self._wait_for_reader()
        if perf_counter() > self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = perf_counter() + TURN_S

    async def _wait_for_reader(self) -> None:
        """Wait until the client has read enough. In a transaction that would hold its locks for as
        long as the client likes: there it may take no longer than it may be idle."""
        most_s = None if self.session is None else self.session.most_idle_s
        try:
            async with asyncio.timeout(most_s):
                await self._writable.wait()
        except TimeoutError:
            self.end(_not_read(most_s or 0.0))

    # The end

    def end(self, error: TidegateError) -> None:
        """Say why, once what runs has ended, and close. What runs is cancelled, also if it waits
        for its reader."""
        is_first = self._ending is None
        self._ending = self._ending or error
        self._parting = None
        if self.session is not None:
            self.session.cancel(error.message)
        if self._busy:
            self._writable.set()
        elif is_first:
            self._refuse(error)
            self._linger()

    def finish(self, error: TidegateError) -> None:
        """The same, but let what runs go on to its end, and with it what was sent before the same
        Sync. A client that was answered just now learns of it by its next message."""
        if self._busy:
            self._finishing = error
        else:
            self._end_with_next(error)

    def _end_with_next(self, error: TidegateError) -> None:
        """End when the client sends its next message, which may be here, or when it had the time to
        read its last answer."""
        loop = asyncio.get_running_loop()
        left_s = self._answered_at + HEAR_S - loop.time()
        if self._buffer or left_s <= 0:
            self.end(error)
        else:
            self._parting = error
            loop.call_later(left_s, self.end, error)

    def _linger(self) -> None:
        """Close when what was written has been sent, and the client had time to read it."""
        self.flush()
        transport = self._transport
        if transport is None or transport.is_closing() or not transport.can_write_eof():
            self.abort_softly()  # the end of TLS reads on by itself
        elif not self._lingers:
            self._lingers = True
            transport.write_eof()
            self._read_on()
            asyncio.get_running_loop().call_later(LINGER_S, transport.abort)

    async def _wait_closed(self) -> None:
        """Return when the connection is closed, if it is closed later."""
        while self._lingers and not self._gone:
            self._arrived.clear()
            await self._arrived.wait()

    def abort_softly(self) -> None:
        """Close when what was written has been sent."""
        self.flush()
        transport = self._transport
        if transport is not None and not transport.is_closing() and not self._lingers:
            transport.close()
            if transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(CLOSE_S, transport.abort)

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()

    def give_up(self, error: TidegateError) -> None:
        """Close now, and say why if something runs, which does not end."""
        if self._busy:
            self._refuse(error)
        self.abort()
        self.cancel_task()

    async def wait_ended(self) -> None:
        """Return when the connection's task has ended."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def cancel_task(self) -> None:
        """End the connection's task."""
        if self._task is not None:
            self._task.cancel()

    # Messages

    async def _read(self, count: int) -> bytes:
        """That many bytes. Raises: Disconnected."""
        while len(self._buffer) < count:
            await self._more()
        return self._take(count)

    async def _more(self) -> None:
        """Wait until something has arrived. Raises: Disconnected."""
        if self._gone:
            raise Disconnected
        if self._finishing is not None:
            self.end(self._finishing)
        self._arrived.clear()
        self._read_on()
        await self._arrived.wait()
        self._turn_ends = perf_counter() + TURN_S

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        if len(self._buffer) <= READ_AHEAD:
            self._read_on()
        return taken

    def _read_on(self) -> None:
        if self._held and self._transport is not None:
            self._held = False
            self._transport.resume_reading()

    async def _message(self, most: int, session: Session | None = None) -> tuple[bytes, bytes]:
        """The type and body of the next message. A long one is counted as what its session holds.
        Raises: ProtocolError, Disconnected, TidegateError 53200."""
        while len(self._buffer) < _HEAD_BYTES:
            await self._more()
        length = UINT32.unpack_from(self._buffer, 1)[0] - 4
        if not 0 <= length <= most:
            raise ProtocolError(f"a message of {length} bytes, and the limit is {most}")
        if session is not None and length > READ_AHEAD:
            session.memory.take(length)
            self._counted = length
        while len(self._buffer) < _HEAD_BYTES + length:
            await self._more()
        taken = self._take(_HEAD_BYTES + length)
        return taken[:1], taken[_HEAD_BYTES:]

    async def _more_before_sync(self) -> bool:
        """Whether the client sends more than a Sync after an Execute: then both are one
        transaction. What it closes is nothing more. Raises: Disconnected."""
        at = 0
        while True:
            while len(self._buffer) < at + _HEAD_BYTES:
                await self._more()
            kind, length = self._buffer[at], UINT32.unpack_from(self._buffer, at + 1)[0]
            at += 1 + length
            if kind != _CLOSE or at > READ_AHEAD:  # no more than that is kept unread
                return kind != _SYNC

    async def _run(self) -> None:
        try:
            try:
                async with asyncio.timeout(LOGIN_S):
                    entered = await self._enter()
            except TimeoutError:
                raise ProtocolError(f"no login within {LOGIN_S:.0f} seconds") from None
            if entered is not None:
                self.session = entered
                await self._serve(entered)
        except (Disconnected, ConnectionError, ssl.SSLError):
            pass
        except ProtocolError as error:
            self._refuse(
                TidegateError(
                    Code.ARGUMENT_INVALID,
                    f"This is not PostgreSQL's protocol: {error}.",
                    details={"sqlstate": "08P01"},
                )
            )
        except TidegateError as error:
            self._refuse(error.without_secrets())
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("a fault in the connection of %s", self.address)
            self._refuse(TidegateError(Code.INTERNAL, "A fault of the server."))
        finally:
            try:
                if self.session is not None:
                    self.session.memory.give_back(self._counted)
                    ending = self._ending
                    await self.session.close(
                        "the client has disconnected" if ending is None else ending.message
                    )
            finally:  # whatever is wrong with its session, the client is let go
                if self._ending is None:
                    self.abort_softly()
                else:
                    self._linger()
                self._server.forget(self)
                await self._wait_closed()

    def _refuse(self, error: TidegateError) -> None:
        if not self._gone:
            self.write(messages.error(error_fields(error, "FATAL")))
            self.flush()

    # The login

    async def _enter(self) -> Session | None:
        """The session, once the client is known; None if it asked for something else. Raises:
        TidegateError, ProtocolError, Disconnected."""
        asked: set[int] = set()
        while True:
            while len(self._buffer) < UINT32.size:
                await self._more()
            if self._buffer[0] == _TLS_HELLO:
                await self._take_direct_tls()
                continue
            head = self._take(UINT32.size)
            length = UINT32.unpack(head)[0] - 4
            if not 4 <= length <= messages.MAX_STARTUP:
                self._server.header_warnings.note_unexpected(self.address, head)
                raise Disconnected  # another protocol, which an error message would not reach
            body = await self._read(length)
            code = UINT32.unpack_from(body)[0]
            if code in asked:
                raise ProtocolError("a request for encryption that was answered before")
            asked.add(code)
            if code == messages.CANCEL_REQUEST:
                self._server.cancel(*messages.read_cancel(body[4:]))
                return None
            if code == messages.GSSENC_REQUEST:
                self._send_byte(b"N")
            elif code == messages.SSL_REQUEST:
                await self._start_tls()
            elif code >> 16 == 3:
                return await self._log_in(code, messages.read_startup(body[4:]))
            else:
                raise ProtocolError(f"version {code >> 16}.{code & 0xFFFF} is not spoken here")

    def _send_byte(self, byte: bytes) -> None:
        if self._transport is not None and not self._gone:
            self._transport.write(byte)

    async def _start_tls(self) -> None:
        context = self._server.tls.context
        if context is None:
            self._send_byte(b"N")
            return
        if self._buffer or self._is_tls:
            # Bytes that came in plain text before the handshake have no sender that is known.
            raise ProtocolError("data before the handshake of TLS")
        self._send_byte(b"S")
        await self._shake_hands(context, b"")

    async def _take_direct_tls(self) -> None:
        """TLS without a request for it (`sslnegotiation=direct`): what has come is its beginning.
        Raises: Disconnected, ssl.SSLError, OSError."""
        context = self._server.tls.context
        if context is None or self._is_tls:
            raise Disconnected  # nothing here could answer
        connection = await self._shake_hands(context, bytes(self._buffer))
        if connection.selected_alpn_protocol() != ALPN:
            raise ProtocolError(f"TLS without a request for it that does not name {ALPN} by ALPN")

    async def _shake_hands(self, context: ssl.SSLContext, arrived: bytes) -> ssl.SSLObject:
        """Go on with TLS, of which `arrived` has come. Raises: Disconnected, ssl.SSLError,
        OSError."""
        transport = self._transport
        if transport is None or self._gone:
            raise Disconnected
        transport.pause_reading()
        self._buffer.clear()
        self._held = False
        loop = asyncio.get_running_loop()
        upgrade = loop.create_task(
            loop.start_tls(
                transport, self, context, server_side=True, ssl_handshake_timeout=LOGIN_S
            )
        )
        try:
            if arrived:
                # First `start_tls` exchanges the protocol, then the event loop connects it. Nothing
                # is read before both have happened.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                feed(transport.get_protocol(), arrived)
            upgraded = await upgrade
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            upgrade.cancel()
            transport.abort()
            raise
        if upgraded is None:
            raise Disconnected
        self._transport, self._is_tls = upgraded, True
        self._transport.set_write_buffer_limits(high=WRITE_AHEAD)
        self.tls_name = common_name(upgraded.get_extra_info("peercert"))
        connection = cast("ssl.SSLObject", upgraded.get_extra_info("ssl_object"))
        self._end_point = self._server.tls.end_point(connection)
        return connection

    async def _log_in(self, version: int, startup: dict[str, str]) -> Session:
        user = startup.pop("user", "")
        if not user:
            raise TidegateError(
                Code.AUTH_MISSING,
                "The startup message names no user.",
                hint="The user is the name of a token.",
                details={"sqlstate": "28000"},
            )
        self._server.check_protected(self._is_tls)
        options = [name for name in startup if name.startswith("_pq_.")]
        self.version = min(version, messages.PROTOCOL_3_2)
        if version > messages.PROTOCOL_3_2 or options:
            self.write(messages.negotiate_version(options))
        if startup.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise TidegateError(
                Code.UNSUPPORTED,
                "There is no replication here.",
                hint="Connect without `replication`.",
            )
        actor = await self._authenticate(user)
        self._server.take_place(self, actor)
        self.write(messages.AUTHENTICATION_OK)
        database = startup.pop("database", "") or user
        session = await self._server.open_session(self, actor, database, user, startup)
        for name, value in session.settings.reported():
            self.write(messages.parameter_status(name, value))
        self._server.register(self)
        self.write(messages.backend_key(self.number, self.secret))
        self._ready(session)
        return session

    async def _authenticate(self, user: str) -> Actor:
        logins = self._server.logins
        if logins is None:
            return self._server.anonymous
        if self.tls_name is not None and self.tls_name == user:
            self.actor = await logins.of_certificate(user)
            return self.actor
        verifier, actor = await logins.find(user, self.address)
        self.actor = actor
        offered = mechanisms(self._end_point)
        try:
            self.write(messages.authentication_sasl(offered))
            self.flush()
            mechanism, first = messages.read_sasl_start(await self._password_message())
            if mechanism not in offered:
                raise ProtocolError("the client chose a mechanism that was not offered")
            exchange = ScramExchange(
                verifier,
                user,
                self._server.decoy,
                mechanism=mechanism,
                end_point=self._end_point,
            )
            self.write(messages.authentication_sasl_continue(exchange.first(first)))
            self.flush()
            last = exchange.final(await self._password_message())
        except TidegateError as error:
            raise await logins.rejected(error, self.address) from None
        if actor is None:
            raise AssertionError("a proof without an actor")
        self.write(messages.authentication_sasl_final(last))
        return actor

    async def _password_message(self) -> bytes:
        kind, body = await self._message(messages.MAX_STARTUP)
        if kind != b"p":
            raise ProtocolError("a password was expected")
        return body

    # The session

    async def _serve(self, session: Session) -> None:
        most = self._server.max_message
        skipping = False
        while self._ending is None:
            await self._pause()
            if not self._is_served:
                return
            kind, body = await self._message(most, session)
            if not self._is_served:  # it came while the session was ended
                return
            if kind == b"X":
                return
            execute = None
            if kind == b"E" and not skipping:
                portal = messages.read_execute(body)  # a broken one is answered at once
                execute = _Execute(portal, not await self._more_before_sync())
                if not self._is_served:
                    return
            if not skipping or kind == b"S":
                self._busy = True
                try:
                    skipping = not await self._answer(session, kind, body, execute)
                finally:
                    self._busy = False
                finishing = self._finishing
                if finishing is not None and kind in _ENDS_SERIES and self._is_served:
                    self._finishing = None
                    self._end_with_next(finishing)
                    if not self._is_served:
                        return
            if self._counted:
                session.memory.give_back(self._counted)
                self._counted = 0
        self._refuse(self._ending)

    @property
    def _is_served(self) -> bool:
        """Whether the session goes on: if not, `end` has said why."""
        return self._ending is None

    async def _answer(
        self, session: Session, kind: bytes, body: bytes, execute: _Execute | None
    ) -> bool:
        """Whether the messages up to the next Sync must be read. Raises: ProtocolError."""
        try:
            if kind == b"Q":
                try:
                    await session.query(messages.read_query(body))
                except TidegateError as error:
                    await self._send_error(session, error)
                self._ready(session)
            elif kind == b"S":
                for end in (session.settle, session.sync):
                    try:
                        await end()
                    except TidegateError as error:
                        await self._send_error(session, error)
                self._ready(session)
            elif execute is not None:
                await session.execute(execute.message, is_last=execute.is_last)
            else:
                await session.settle()
                await self._extended(session, kind, body)
        except TidegateError as error:
            await self._send_error(session, error)
            return False
        return True

    async def _extended(self, session: Session, kind: bytes, body: bytes) -> None:
        if kind == b"P":
            await session.parse(messages.read_parse(body))
        elif kind == b"B":
            await session.bind(messages.read_bind(body))
        elif kind == b"D":
            await session.describe(messages.read_target(body))
        elif kind == b"C":
            await session.close_target(messages.read_target(body))
        elif kind == b"H":
            self.flush()
        elif kind in (b"d", b"c", b"f"):
            pass  # data of a COPY that has failed or was never begun: PostgreSQL skips it, too
        elif kind == b"F":
            raise TidegateError(
                Code.UNSUPPORTED, "There are no function calls here.", hint="Use SELECT."
            )
        else:
            raise ProtocolError(f"there is no message of the type {kind!r}")

    async def _send_error(self, session: Session, error: TidegateError) -> None:
        note = await session.fail()
        shown = error if session.actor.kind == "human" else error.without_secrets()
        self.write(messages.error(error_fields(shown, note=note)))
        self.flush()  # a client that sent Flush and no Sync waits for it

    def _ready(self, session: Session) -> None:
        self.write(messages.ready(session.status))
        self.flush()
        self._answered_at = asyncio.get_running_loop().time()


def _not_read(most_s: float) -> TidegateError:
    return TidegateError(
        Code.CALL_CANCELLED,
        f"The session was ended: its client has not read on for {most_s:g} s in a transaction. Its"
        " changes were rolled back.",
        hint="Read results as they come, or ask the operator to raise `pg.idle_in_transaction_s`.",
        details={"sqlstate": "25P03"},
    )
