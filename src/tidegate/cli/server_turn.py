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
import time

from tidegate.bridge.discovery import POLL_S, START_S, Discovery
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
    """Wait until no bridge starts a server, and end one that a bridge has started where it has an
    address of these settings."""
    places = [http_address(each) for each in listening_addresses(config).values()]
    fixed = [place for place in places if place[1] != 0]
    if not fixed:
        return Turn()
    turn = Turn()
    try:
        discovery = Discovery(HandshakeFile(state_directory(config.state)), ())
        discovery.files.prepare()
        turn = Turn(_wait_for_turn(discovery.files))
        if not all(is_free(*place) for place in fixed):
            asyncio.run(_end(arguments, discovery))
    except TidegateError:  # that an address is taken is said where it is bound
        pass
    except BaseException:
        turn.end()
        raise
    return turn


def _wait_for_turn(files: HandshakeFile) -> int | None:
    late = time.monotonic() + START_S
    while (lock := files.lock("start", wait=False)) is None and time.monotonic() < late:
        time.sleep(POLL_S)
    return lock


async def _end(arguments: argparse.Namespace, discovery: Discovery) -> None:
    found = await discovery.look()
    if found is None or not found.by_bridge:
        return
    print_status(f"tidegate: ending the server that a bridge has started (process {found.pid})")
    await discovery.end(found)
    await has_ended(arguments, found.pid)
