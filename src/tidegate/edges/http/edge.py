"""The HTTP edge: binds an address, serves an application there, and stops in good order."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidegate.edges.accepting import ConnectionCounts
from tidegate.edges.edge import Companion
from tidegate.edges.http.application import HttpApplication
from tidegate.edges.http1.request import Application
from tidegate.edges.http1.server import Server
from tidegate.edges.passed_on import PassedOn

if TYPE_CHECKING:
    from tidegate.edges.http.certificate import ServerCertificate

CANCEL_S = 2.0
"""How long cancelled calls may take to answer that they were cancelled."""


def address_of(listener: socket.socket, *, tls: bool = False) -> str:
    """`http://HOST:PORT` of a bound socket, or `https://...` with TLS."""
    host, port = listener.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


class HttpEdge:
    """Serves `application` at a bound socket (`edges.edge.Edge`).

    `companions` start when callers can connect, and stop before the edge does. `wrapper` is what
    the connections call, if it is another application around `application`. With `certificate`
    the edge speaks HTTPS and nothing else. With `counts` other processes take connections from the
    same socket; with `passed_on` balancers name their clients first.
    """

    def __init__(
        self,
        application: HttpApplication,
        listener: socket.socket,
        *,
        companions: Sequence[Companion] = (),
        wrapper: Application | None = None,
        certificate: ServerCertificate | None = None,
        counts: ConnectionCounts | None = None,
        passed_on: PassedOn | None = None,
    ) -> None:
        self.name = address_of(listener, tls=certificate is not None)
        self.listens = True
        self._tls = None if certificate is None else certificate.context
        self.sessions = application
        self._application = application
        self._wrapper = wrapper or application
        self._listener = listener
        self._counts = counts
        self._passed_on = passed_on
        self._companions = companions
        self._server: Server | None = None
        self._ended = asyncio.Event()

    async def start(self) -> None:
        """Accept callers. Raises: TidegateError if a companion cannot start."""
        self._server = Server(self._wrapper)
        await self._server.accept(self._listener, self._tls, self._counts, self._passed_on)
        _settle()
        for companion in self._companions:
            await companion.start()

    async def wait_ended(self) -> None:
        """Return after `stop`: callers may come until then."""
        await self._ended.wait()

    async def stop(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Accept no more callers, end streams, give running calls `grace_s` seconds, or until
        `hurry` is set, then cancel them. Safe to call twice."""
        server, self._server = self._server, None
        if server is None:
            self._listener.close()
            self._ended.set()
            return
        for companion in self._companions:
            await companion.stop()
        self._application.end_streams()
        await server.drain(grace_s, hurry)
        self._application.close()
        await server.stop(CANCEL_S)
        self._ended.set()


def _settle() -> None:
    """Tune the garbage collector: what is loaded now stays, and few calls make reference cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
