"""Runs an application over HTTP until told to stop, and says where it listens."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable

from tidegate.edges.http1.request import Application
from tidegate.edges.http1.server import Server
from tidegate.errors import Code, GateError

GRACE_S = 5.0
BACKLOG = 2_048


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises: GateError CONFIG_INVALID."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise GateError(
            Code.CONFIG_INVALID, f"Cannot listen on {host}:{port}: {reason}",
            hint="Choose another port; 0 takes a free one.",
        ) from None  # fmt: skip
    listener.setblocking(False)
    return listener


def address_of(listener: socket.socket) -> str:
    """`http://HOST:PORT` of a bound socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def listen(
    application: Application,
    listener: socket.socket,
    *,
    stop: asyncio.Event,
    ready: Callable[[], None] | None = None,
    ending: Callable[[], None] | None = None,
    server: Callable[[Application], Server] = Server,
) -> None:
    """Serve until `stop` is set; `ending` runs first then, so that long streams can end.

    `server` makes what holds the connections, for those who want other deadlines.
    """
    serving = server(application)
    sweeping = asyncio.ensure_future(serving.sweep())
    accepting = await asyncio.get_running_loop().create_server(
        serving.connection, sock=listener, backlog=BACKLOG
    )
    try:
        _settle()
        if ready is not None:
            ready()
        await stop.wait()
    finally:
        accepting.close()
        if ending is not None:
            ending()
        await serving.stop(GRACE_S)
        sweeping.cancel()


def _settle() -> None:
    """What is loaded now stays: keep the collector from walking it again and again, and from
    looking for cycles every few calls where a call leaves none."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
