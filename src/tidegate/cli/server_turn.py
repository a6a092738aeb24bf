"""A server that a person or the service manager starts comes before one that a bridge has started.

A bridge starts its server with the settings of its entry, so while a gate is restarted a client may
have one started that takes an address of the gate. It ends when the gate comes: its clients find
the gate.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import threading

from tidegate.bridge.discovery import Discovery
from tidegate.bridge.handshake_file import HandshakeFile
from tidegate.cli.running_server import has_ended, is_free
from tidegate.cli.terminal import print_status
from tidegate.config.addresses import http_address
from tidegate.config.model import Config
from tidegate.config.state import state_directory
from tidegate.errors import TidegateError
from tidegate.serve.edges import listening_addresses

_SETTLE_S = 1.0


class Turn:
    """Of this process to start the server: no bridge starts one before `end`."""

    def __init__(self, lock: int | None = None) -> None:
        self._lock = lock

    def end_soon(self) -> None:
        """Once bridges that wait for their turn find the server: its edges run in a moment."""
        if self._lock is not None:
            later = threading.Timer(_SETTLE_S, self.end)
            later.daemon = True
            later.start()

    def end(self) -> None:
        """Safe to call twice."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def take_turn(arguments: argparse.Namespace, config: Config) -> Turn:
    """End the server that a bridge has started where it has an address of these settings."""
    places = [http_address(each) for each in listening_addresses(config).values()]
    if all(port == 0 or is_free(host, port) for host, port in places):
        return Turn()
    discovery = Discovery(HandshakeFile(state_directory(config.state)), ())
    try:
        return asyncio.run(_end(arguments, discovery))
    except TidegateError:  # that an address is taken is said where it is bound
        return Turn()


async def _end(arguments: argparse.Namespace, discovery: Discovery) -> Turn:
    found = await discovery.look()
    if found is None or not found.by_bridge:
        return Turn()
    print_status(f"tidegate: ending the server that a bridge has started (process {found.pid})")
    turn = Turn(discovery.files.lock("start", wait=False))
    try:
        await discovery.end(found)
        await has_ended(arguments, found.pid)
    except BaseException:
        turn.end()
        raise
    return turn
