"""RFC 5424 over TCP (RFC 6587, octet counting) and TLS (RFC 5425).

Syslog acknowledges nothing: what a receiver was sent may be lost with it. So there is proof of
another kind. From time to time the connection is closed in good order, and only a receiver that has
read all of it does the same: one that ended before answers with a reset, or not at all. Then the
next connection is to stay open for a while: the receiver is alive, and has had that time to work
off what it holds in memory. Only then are the events acknowledged; whatever breaks before, all of
them come again.
"""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache

from tidegate import __version__
from tidegate.config.errors import invalid
from tidegate.paths import expand
from tidegate.products.shipping.destination import DeliveryFailed, Shipped, read_events
from tidegate.products.shipping.settings import DestinationSettings

PROVE_S = 5.0
"""After so long without proof the connection is closed for it."""
SETTLE_S = 5.0
"""So long the receiver has to live after it has read everything; at most `PROVE_S`."""
CONNECT_S = 10.0
PATIENCE_S = 10.0
"""How long the receiver may take no data, or may take to close."""
_CHUNK = 65_536
_MOST_READS = 64
"""At once, of what a receiver sends, which says nothing: one that goes on must not keep us."""
_AUDIT = 13 * 8
_PRIORITIES = {1: _AUDIT + 6, 2: _AUDIT + 5, 3: _AUDIT + 4, 4: _AUDIT + 3}
"""Facility 13 (log audit) with a severity of syslog, by that of OCSF."""
_ORIGIN = f'[origin software="tidegate" swVersion="{__version__}"]'
_MOST_HOST = 255


def tls_context(settings: DestinationSettings) -> ssl.SSLContext:
    """Raises: TidegateError CONFIG_INVALID for files that cannot be used."""
    try:
        context = ssl.create_default_context()
        if settings.ca_file is not None:
            context.load_verify_locations(expand(settings.ca_file))
        if settings.cert is not None and settings.key is not None:
            context.load_cert_chain(expand(settings.cert), expand(settings.key))
    except (OSError, ValueError) as error:
        raise invalid(
            f"`ship.to` {settings.name}: a certificate cannot be used: {error}.",
            hint="Name PEM files that the account of the server can read.",
        ) from None
    return context


class SyslogDestination:
    """Sends frames of RFC 5424. Times are those of the module, other ones for tests."""

    def __init__(
        self,
        settings: DestinationSettings,
        *,
        prove_s: float = PROVE_S,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._host = settings.host
        self._settings = settings
        self._prove_s = prove_s
        self._settle_s = min(settle_s, prove_s)
        self._own_name = (socket.gethostname() or "-").encode("ascii", "replace")[:_MOST_HOST]
        self._socket: socket.socket | None = None
        self._opened_at = self._first_at = 0.0
        self._sent = self._read = self._settled = 0
        """Batches that were sent; that the receiver has read; that it had time for."""

    def send(self, events: bytes) -> None:
        connection = self._connect()
        text = memoryview(b"".join(map(self._frame, read_events(events))))
        for begin in range(0, len(text), _CHUNK):  # each has the whole of the time
            connection.sendall(text[begin : begin + _CHUNK])
        if self._sent == self._read:
            self._first_at = time.monotonic()
        self._sent += 1

    def acknowledged(self) -> int:
        connection, now = self._socket, time.monotonic()
        if connection is None:
            return self._settled
        if _has_ended(connection):
            if self._settled < self._sent:
                raise DeliveryFailed("the receiver has closed the connection")
            connection.close()  # it lacks nothing, and ends what is idle
            self._socket = None
            return self._settled
        if now >= self._opened_at + self._settle_s:
            self._settled = self._read
        if self._sent > self._read and now >= self._first_at + self._prove_s:
            self._prove(connection)
        return self._settled

    def reset(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
        self._socket = None
        self._sent = self._read = self._settled = 0

    def _connect(self) -> socket.socket:
        if self._socket is None:
            host = self._host
            opened = socket.create_connection((host.name, host.port), CONNECT_S)
            try:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                opened.settimeout(PATIENCE_S)
                if host.tls:
                    context = tls_context(self._settings)
                    opened = context.wrap_socket(opened, server_hostname=host.name)
            except BaseException:
                opened.close()
                raise
            self._socket, self._opened_at = opened, time.monotonic()
        return self._socket

    def _prove(self, connection: socket.socket) -> None:
        """Close in good order, see that the receiver does, and connect again. Raises: OSError."""
        sent = self._sent
        try:
            _close_and_wait(connection)
        except TimeoutError:
            raise DeliveryFailed(
                "the receiver does not end a connection that was closed, so that nothing proves"
                " that it has read it"
            ) from None
        self._socket = None
        connection.close()
        self._connect()
        self._read = sent

    def _frame(self, event: Shipped) -> bytes:
        seconds, rest = divmod(event.time_ms, 1_000)
        head = f"<{_PRIORITIES.get(event.severity, _AUDIT + 6)}>1 {_second(seconds)}.{rest:03}Z "
        message = b"%b%b tidegate - %b %b %b" % (
            head.encode(), self._own_name, event.name.encode("ascii", "replace")[:32] or b"-",
            _ORIGIN.encode(), event.body,
        )  # fmt: skip
        return b"%d %b" % (len(message), message)


@lru_cache(maxsize=64)
def _second(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}"


def _has_ended(connection: socket.socket) -> bool:
    """Whether the receiver has closed the connection; what it sends is thrown away."""
    connection.settimeout(0)
    try:
        return any(not connection.recv(4_096) for _ in range(_MOST_READS))
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(PATIENCE_S)


def _close_and_wait(connection: socket.socket) -> None:
    """Raises: OSError unless the receiver closes in good order as well."""
    if isinstance(connection, ssl.SSLSocket):
        # The receiver's own end of TLS is awaited: anyone on the way can end the TCP connection.
        connection.unwrap().close()
        return
    connection.shutdown(socket.SHUT_WR)
    until = time.monotonic() + PATIENCE_S
    while connection.recv(4_096):
        if time.monotonic() > until:
            raise TimeoutError
