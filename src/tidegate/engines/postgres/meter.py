"""Decides how much of a large row libpq takes in: portion by portion, counted, and not too much.

Once libpq has seen how long a row is, it reads on for as long as the server sends. One value of a
gigabyte would hold the event loop for seconds and fill our memory, and libpq knows no limit. So
while a row comes in parts libpq's socket is one end of a pair, and at its other end stands a meter,
which hands on what arrives from the server. It looks at no byte, so the line may be encrypted.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import termios

from psycopg.pq.abc import PGconn

PORTION = 65_536
"""Bytes that are handed on at once; more than the pair holds would have to wait."""


class Meter:
    """Stands between libpq and the server until `close`. Nothing may be sent meanwhile."""

    __slots__ = ("_connection", "_hand", "_place", "source", "taken")

    def __init__(self, connection: PGconn) -> None:
        self._connection = connection
        self._place = connection.socket
        self.source = os.dup(self._place)
        """The server's socket: call `take` when it is readable."""
        self.taken = 0
        """Bytes that were handed on."""
        inside, self._hand = socket.socketpair()
        inside.setblocking(False)
        self._hand.setblocking(False)
        os.dup2(inside.fileno(), self._place, inheritable=False)
        inside.close()

    def take(self) -> None:
        """Hand on what has arrived, a portion at most. Raises: psycopg.OperationalError."""
        try:
            data = os.read(self.source, PORTION)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._hand.shutdown(socket.SHUT_WR)  # libpq sees that the server has hung up
            self._connection.consume_input()
        self.taken += len(data)
        while data:
            data = data[self._hand.send(data) :]
            while waiting_bytes(self._place):
                self._connection.consume_input()
        self._connection.consume_input()  # what an encrypted record still holds

    def close(self, *, restore: bool) -> None:
        """Step aside; `restore` gives libpq, if it lives, its socket back."""
        if restore:
            os.dup2(self.source, self._place, inheritable=False)
        os.close(self.source)
        self._hand.close()


def waiting_bytes(place: int) -> int:
    """How many bytes have arrived at a socket and were not read."""
    return int.from_bytes(fcntl.ioctl(place, termios.FIONREAD, bytes(4)), sys.byteorder)
