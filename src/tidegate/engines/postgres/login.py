"""Decides how libpq connects, and asks for a cancel, without blocking the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
from psycopg import pq
from psycopg.pq.abc import PGcancelConn, PGconn

from tidegate.engines.postgres.faults import unreachable
from tidegate.engines.postgres.target import Target

CANCEL_S = 2.0
"""How long a cancel request may take on its own connection."""

_READING = pq.PollingStatus.READING
_WRITING = pq.PollingStatus.WRITING


async def log_in(target: Target, others: dict[str, str]) -> PGconn:
    """libpq's connection, logged in. Raises: GateError SOURCE_UNREACHABLE."""
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

    Raises: psycopg.Error, TimeoutError, OSError, GateError.
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


async def _poll(step: Callable[[], int], connection: PGconn | PGcancelConn) -> None:
    """Drive one of libpq's state machines to its end. Raises: GateError SOURCE_UNREACHABLE."""
    loop = asyncio.get_running_loop()
    state: int = _WRITING
    while state != pq.PollingStatus.OK:
        if connection.status == pq.ConnStatus.BAD or state not in (_READING, _WRITING):
            raise unreachable(connection.get_error_message())
        waiter: asyncio.Future[None] = loop.create_future()
        socket = connection.socket
        if state == _READING:
            loop.add_reader(socket, _wake, waiter)
        else:
            loop.add_writer(socket, _wake, waiter)
        try:
            await waiter
        finally:
            loop.remove_reader(socket)
            loop.remove_writer(socket)
        state = step()


async def _resolved(target: Target) -> dict[str, str]:
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


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
