"""Runs an ASGI application on uvicorn until told to stop, and says where it listens."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from tidegate.edges.patience import Patience
from tidegate.errors import Code, GateError

GRACE_S = 5
SWEEP_TICKS = 100
"""Uvicorn ticks ten times a second."""


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
    application: Any,
    listener: socket.socket,
    *,
    stop: asyncio.Event,
    ready: Callable[[], None] | None = None,
    ending: Callable[[], None] | None = None,
    implementation: str = "auto",
) -> None:
    """Serve until `stop` is set; `ending` runs first then, so that long streams can end.

    `implementation` is uvicorn's HTTP parser: `httptools`, `h11`, or `auto` for the faster.
    """
    config = uvicorn.Config(
        application,
        loop="none",
        http=_parser(implementation),  # pyright: ignore[reportArgumentType]  or a name of uvicorn's
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # An address that a client claims to come from would let it escape the lockout.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=75,
        backlog=2048,
    )
    server = _Server(config, ready)
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
    if ending is not None:
        ending()
    server.should_exit = True
    stopped.cancel()
    await serving


def _parser(implementation: str) -> Any:
    """The protocol class for httptools where there is one, else uvicorn's own for h11, which
    bounds the head by itself."""
    if implementation != "h11":
        try:
            from tidegate.edges.head import BoundedProtocol
        except ImportError:
            if implementation != "auto":
                raise
        else:
            return BoundedProtocol
    return "h11"


class _Server(uvicorn.Server):
    """Leaves signals to the caller, and tells when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._ready = ready
        self._patience = Patience()

    async def on_tick(self, counter: int) -> bool:
        if counter % SWEEP_TICKS == 0:
            now = asyncio.get_running_loop().time()
            self._patience.sweep(list(self.server_state.connections), now)
        return await super().on_tick(counter)

    def capture_signals(self) -> Any:
        import contextlib

        return contextlib.nullcontext()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is loaded now stays: keep the collector from walking it again and again, and from
        # looking for cycles every few calls where a call leaves none.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        if self._ready is not None:
            self._ready()
