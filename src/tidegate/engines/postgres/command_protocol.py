"""Commands and results of one connection, on top of libpq.

A connection is always in pipeline mode: commands are sent together, replies are read in order, and
`sync` ends a group. `socket_io.py` waits for the socket. Nothing here knows SQL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGcancelConn, PGconn, PGresult

from tidegate.engines.common.errors import MAX_MESSAGE, lost, shortened
from tidegate.engines.postgres.errors import unreachable
from tidegate.engines.postgres.socket_io import SocketIO, wake
from tidegate.engines.postgres.url import Conninfo
from tidegate.errors import TidegateError
from tidegate.model.notices import DatabaseNotice, note

CANCEL_S = 2.0
"""How long a cancel request may take on its own connection."""

_LONGEST_NOTICE = 8_000
"""Bytes of a text of a notice that are kept."""
MAX_MESSAGES = 100
"""How many notices of the server are kept, of what we do ourselves."""

_READING = pq.PollingStatus.READING
_WRITING = pq.PollingStatus.WRITING


async def log_in(target: Conninfo, others: dict[str, str]) -> PGconn:
    """libpq's connection, logged in. Raises: TidegateError SOURCE_UNREACHABLE."""
    addresses = await _resolved(target)
    connection = pq.PGconn.connect_start(target.conninfo(**others, **addresses))
    try:
        await _poll(connection.connect_poll, connection)
    except BaseException:
        connection.finish()
        raise
    return connection


async def ask_to_cancel(connection: PGconn) -> None:
    """Ask the server, on a connection of its own, to end what runs on this one.

    Raises: psycopg.Error, TimeoutError, OSError, TidegateError.
    """
    async with asyncio.timeout(CANCEL_S):
        try:
            request = connection.cancel_conn()
        except psycopg.NotSupportedError:  # libpq before version 17
            old = connection.get_cancel()
            await asyncio.get_running_loop().run_in_executor(None, old.cancel)
            return
        try:
            request.start()
            await _poll(request.poll, request)
        finally:
            request.finish()


_NO_TRANSACTION = "25P01"


def _read(notice: PGresult) -> tuple[DatabaseNotice, int]:
    """A notice, with the beginnings of long texts, and about how many bytes it came in."""
    fields = pq.DiagnosticField
    texts = [
        notice.error_field(field) or b""
        for field in (
            fields.SEVERITY_NONLOCALIZED,
            fields.SQLSTATE,
            fields.MESSAGE_PRIMARY,
            fields.MESSAGE_DETAIL,
            fields.MESSAGE_HINT,
        )
    ]
    severity, state, message, detail, hint = map(_beginning, texts)
    read = DatabaseNotice(severity or "NOTICE", state or "00000", message, detail, hint)
    return read, sum(map(len, texts))


def _beginning(text: bytes) -> str:
    if len(text) <= _LONGEST_NOTICE:
        return text.decode(errors="replace")
    return f"{text[:_LONGEST_NOTICE].decode(errors='ignore')}..."


def _no_answer(target: Conninfo) -> str:
    host, port = (target.parameters.get(name, "") for name in ("host", "port"))
    where = f" from {host} port {port or 5432}" if host else ""
    return f"no answer{where} within {target.connect_s:g} s (`connect_timeout` in the URL)"


async def _poll(step: Callable[[], int], connection: PGconn | PGcancelConn) -> None:
    """Drive one of libpq's state machines to its end. Raises: TidegateError SOURCE_UNREACHABLE."""
    loop = asyncio.get_running_loop()
    state: int = _WRITING
    while state != pq.PollingStatus.OK:
        if connection.status == pq.ConnStatus.BAD or state not in (_READING, _WRITING):
            raise unreachable(connection.get_error_message())
        waiter: asyncio.Future[None] = loop.create_future()
        socket = connection.socket
        if state == _READING:
            loop.add_reader(socket, wake, waiter)
        else:
            loop.add_writer(socket, wake, waiter)
        try:
            await waiter
        finally:
            loop.remove_reader(socket)
            loop.remove_writer(socket)
        state = step()


async def _resolved(target: Conninfo) -> dict[str, str]:
    """Addresses for names: libpq would ask the name server and block everything meanwhile."""
    if not target.hosts:
        return {}
    loop = asyncio.get_running_loop()
    hosts = target.parameters.get("host", "").split(",")
    ports = target.parameters.get("port", "").split(",")
    named: list[tuple[str, str, str]] = []
    for place, host in enumerate(hosts):
        port = ports[place] if len(ports) == len(hosts) else ports[0]
        if host.startswith(("/", "@")) or not host:
            return {}  # a mixture with Unix sockets: libpq has no way to say it
        try:
            found = await loop.getaddrinfo(host, None, proto=6)
        except OSError:
            continue
        named += [(host, str(entry[4][0]), port) for entry in found]
    if not named:
        raise unreachable(f"no address is known for {hosts[0]}")
    return {
        "host": ",".join(host for host, _, _ in named),
        "hostaddr": ",".join(address for _, address, _ in named),
        "port": ",".join(port for _, _, port in named),
    }


Params = Sequence[bytes | None] | None


Command = tuple[bytes, Params, bytes | None, bool, int]
"""A text, its parameters, the name by which the server keeps the text, whether it gets the name
now, which is answered by a result of its own, and the format of the result: 0 text, 1 binary."""

CAN_CHUNK = pq.version() >= 170000
"""libpq passes on several rows at once from version 17 on; before, one by one."""

CAN_FORGET = pq.version() >= 170000
"""From version 17 on libpq can tell the server to let go of a prepared statement."""

FAILED = frozenset({int(pq.ExecStatus.FATAL_ERROR), int(pq.ExecStatus.PIPELINE_ABORTED)})
"""States of a result that is a failure, its own or that of a command before it."""

_OK = pq.ConnStatus.OK
_SYNC = int(pq.ExecStatus.PIPELINE_SYNC)


class CommandProtocol(SocketIO):
    """One connection. One caller at a time sends and reads."""

    __slots__ = ()

    def __init__(self, connection: PGconn) -> None:
        connection.nonblocking = 1
        connection.enter_pipeline_mode()
        super().__init__(connection)
        connection.notice_handler = self._note

    def _note(self, notice: PGresult) -> None:
        """Keep a notice for the statement that runs. It has been passed on whole, and is no part of
        the rows that are to fit into our memory."""
        read, size = _read(notice)
        self.passed(size)
        if read.sqlstate != _NO_TRANSACTION:  # of our COMMIT after what ran outside of one
            note(read)

    @classmethod
    async def connect(cls, target: Conninfo, **others: str) -> CommandProtocol:
        """Connect. Raises: TidegateError SOURCE_UNREACHABLE within the target's time."""
        try:
            async with asyncio.timeout(target.connect_s):
                return cls(await log_in(target, others))
        except TimeoutError:
            raise unreachable(_no_answer(target)) from None

    @property
    def server_version(self) -> int:
        """Like 180006. Raises: TidegateError SOURCE_UNREACHABLE, as all that follows."""
        self._check_open()
        return self._connection.server_version

    def parameter(self, name: bytes) -> str:
        """What the server reports of itself, like `server_version`."""
        self._check_open()
        return (self._connection.parameter_status(name) or b"").decode()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as far as replies have been read."""
        return self._connection.transaction_status != pq.TransactionStatus.IDLE

    def send(self, *commands: tuple[bytes, Params], form: int = 0) -> None:
        """Queue commands by the extended protocol, which takes one statement each. `form` is the
        format of their results: 0 text, 1 binary."""
        self._check_open()
        send = self._connection.send_query_params
        try:
            for text, params in commands:
                send(text, params, result_format=form)
        except psycopg.OperationalError as error:
            raise self._broken() from error

    def prepare(self, text: bytes, name: bytes = b"") -> None:
        """Queue the parsing of a statement, without running it. The server keeps it by its name."""
        self._check_open()
        try:
            self._connection.send_prepare(name, text)
        except psycopg.OperationalError as error:
            raise self._broken() from error

    def describe_prepared(self) -> None:
        """Queue the question what the statement without a name gives and takes."""
        self._check_open()
        try:
            self._connection.send_describe_prepared(b"")
        except psycopg.OperationalError as error:
            raise self._broken() from error

    def send_named(self, commands: Sequence[Command]) -> None:
        """Queue commands, those that the server keeps by their names."""
        if not self.open:
            raise lost()
        connection = self._connection
        try:
            for text, params, name, is_new, form in commands:
                if name is None:
                    connection.send_query_params(text, params, result_format=form)
                    continue
                if is_new:
                    connection.send_prepare(name, text)
                connection.send_query_prepared(name, params, result_format=form)
        except psycopg.OperationalError as error:
            raise self._broken() from error

    def forget(self, *names: bytes) -> None:
        """Have the server let go of statements that it keeps, or may keep: a command each."""
        self._check_open()
        try:
            for name in names:
                self._connection.send_close_prepared(name)
        except psycopg.OperationalError as error:
            raise self._broken() from error

    @property
    def pipelined(self) -> bool:
        """Whether the connection is as all but `run_alone` need it."""
        return self._connection.pipeline_status != pq.PipelineStatus.OFF

    def leave_pipeline(self) -> None:
        """From here on commands run one by one with `run_alone`, until the connection is closed.
        Everything that was sent must have been answered."""
        self._check_open()
        try:
            self._connection.exit_pipeline_mode()
        except psycopg.Error as error:
            raise self._broken() from error

    async def run_alone(self, text: bytes, params: Params = None) -> PGresult:
        """Run one command outside of pipeline mode; its first result. If that begins a copy, its
        lines follow. Raises: TidegateError."""
        self._check_open()
        connection = self._connection
        try:
            self.expect_answer()
            self.unanswered = 1
            connection.send_query_params(text, params)
            while connection.flush():
                await self.until_writable()
        except psycopg.OperationalError as error:
            raise self._broken() from error
        first = await self.result()
        if first is None:
            raise self._broken()
        if first.status != pq.ExecStatus.COPY_OUT:
            while await self.result() is not None:
                pass
            self.unanswered = 0
        return first

    async def copied_line(self) -> bytes | None:
        """The next line of a copy; None at its end, where `result` says how it ended.

        Raises: TidegateError LIMIT_BYTES, SOURCE_UNREACHABLE.
        """
        self._check_open()
        try:
            while True:
                size, data = self._connection.get_copy_data(1)
                if size > 0:
                    self.copied()
                    return bytes(data)
                if size < 0:
                    self.end_copy()
                    return None
                await self.fill_copy()
        except psycopg.Error as error:
            raise self._broken() from error

    def end_group(self) -> bool:
        """End the group and send it. Returns whether all of it is sent; else await `flushed`."""
        connection = self._connection
        try:
            connection.pipeline_sync()
            if not self.unanswered:
                self.expect_answer()
            self.unanswered += 1
            return not connection.flush()
        except psycopg.OperationalError as error:
            raise self._broken() from error

    async def flushed(self) -> None:
        """Wait until all is sent."""
        try:
            while self._connection.flush():
                await self.until_writable()
        except psycopg.OperationalError as error:
            raise self._broken() from error

    async def sync(self) -> None:
        """End the group and see that all of it is sent."""
        if not self.end_group():
            await self.flushed()

    async def result(self) -> PGresult | None:
        """The next result; None ends the results of one command. Raises: TidegateError."""
        self._check_open()
        connection = self._connection
        try:
            if connection.is_busy():
                await self.fill()
            result = connection.get_result()
        except psycopg.OperationalError as error:
            raise self._broken() from error
        if result is not None and result.status == _SYNC:
            self.unanswered -= 1
        if connection.status != _OK:
            self.close()
        return result

    async def pass_over(self, commands: int, *, begins: bool = False) -> PGresult:
        """Read the results of commands that are to succeed; the last one, or the first failure.

        Raises: TidegateError, also if none has begun a transaction although one `begins` it.
        """
        connection = self._connection
        last: PGresult | None = None
        try:
            while commands:
                if connection.is_busy():
                    await self.fill()
                result = connection.get_result()
                if result is None:
                    commands -= 1
                    if connection.status != _OK:
                        raise self._broken()
                elif result.status in FAILED:
                    return result
                else:
                    last = result
                    if begins and result.command_status == b"BEGIN":
                        begins = False
        except psycopg.OperationalError as error:
            raise self._broken() from error
        if begins or last is None:
            raise self._broken()
        return last

    def ready_result(self) -> PGresult | None:
        """The next result if it has arrived; None as well if there is none yet."""
        if not self.open:
            raise lost()
        try:
            if self._connection.is_busy():
                return None
            return self._connection.get_result()
        except psycopg.OperationalError as error:
            raise self._broken() from error

    def settle(self) -> bool:
        """Read, and let go, what has arrived of the groups under way; whether that is all."""
        if not self.open:
            raise lost()
        connection = self._connection
        try:
            while self.unanswered:
                if connection.is_busy():
                    return False
                result = connection.get_result()
                if result is None:
                    if connection.status != _OK:
                        raise self._broken()
                elif result.status == _SYNC:
                    self.unanswered -= 1
        except psycopg.OperationalError as error:
            raise self._broken() from error
        return True

    def stream(self, rows: int) -> None:
        """Have the command whose results come next give up to `rows` rows at a time."""
        self._check_open()
        self.rows_together = rows if CAN_CHUNK else 1
        try:
            if self.rows_together > 1:
                self._connection.set_chunked_rows_mode(rows)
            else:
                self._connection.set_single_row_mode()
        except psycopg.OperationalError as error:
            raise self._broken() from error

    @contextmanager
    def notices(self) -> Generator[list[bytes]]:
        """Collect the details of the trees that the server prints meanwhile."""
        trees: list[bytes] = []

        def on_notice(notice: PGresult) -> None:
            title = notice.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
            if title.startswith(b"rewritten parse tree"):
                trees.append(notice.error_field(pq.DiagnosticField.MESSAGE_DETAIL) or b"")

        with self._hearing(on_notice):
            yield trees

    @contextmanager
    def messages(self) -> Generator[list[str]]:
        """Collect what the server notes meanwhile, up to `MAX_MESSAGES` shortened texts."""
        texts: list[str] = []

        def on_notice(notice: PGresult) -> None:
            text = notice.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
            if len(texts) < MAX_MESSAGES:
                texts.append(shortened(text[: 4 * MAX_MESSAGE].decode(errors="replace")))

        with self._hearing(on_notice):
            yield texts

    @contextmanager
    def _hearing(self, on_notice: Callable[[PGresult], None]) -> Generator[None]:
        self._connection.notice_handler = on_notice
        try:
            yield
        finally:
            self._connection.notice_handler = self._note

    async def cancel(self) -> None:
        """Ask the server, on a connection of its own, to end what runs. Never raises
        TidegateError."""
        try:
            await ask_to_cancel(self._connection)
        except (psycopg.Error, TidegateError, TimeoutError, OSError):
            self.close()

    def _check_open(self) -> None:
        if not self.open:
            raise lost()

    def _broken(self) -> TidegateError:
        self.close()
        return lost()
