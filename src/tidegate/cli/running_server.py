"""The server that runs on a state directory, for the commands that show and stop it."""

from __future__ import annotations

import argparse
import asyncio
import socket
from pathlib import Path
from typing import Any

import msgspec

from tidegate.bridge.discovery import POLL_S, PROOF_S, START_S, Discovery
from tidegate.bridge.handshake_file import PROOF, STATUS_PAGE, Handshake, HandshakeFile
from tidegate.bridge.http_client import WireError, send_request
from tidegate.cli.settings import load_for_state
from tidegate.config.state import state_directory
from tidegate.errors import Code, TidegateError
from tidegate.serve.running_servers import RunningServer, RunningServers

STOP_S = 2 * START_S
"""How long a server may take to end; its running calls have `stop_grace_s`."""


async def running_server(arguments: argparse.Namespace) -> tuple[Discovery, Handshake]:
    """The server that bridges find. Raises: TidegateError BRIDGE_NO_SERVER, BRIDGE_UNTRUSTED."""
    directory = _directory(arguments)
    discovery = Discovery(HandshakeFile(directory), ())
    found = await discovery.look()
    if found is None:
        raise no_server(directory)
    return discovery, found


async def running_servers(
    arguments: argparse.Namespace,
) -> tuple[Handshake | None, list[RunningServer]]:
    """The server that bridges find, if there is one, and all others of the state, the oldest
    first. Raises: TidegateError BRIDGE_NO_SERVER if none runs, BRIDGE_UNTRUSTED."""
    directory = _directory(arguments)
    found = await Discovery(HandshakeFile(directory), ()).look()
    servers = RunningServers(directory).read()
    if found is None and not servers:
        raise no_server(directory)
    return found, [each for each in servers if found is None or each.pid != found.pid]


def others_of(servers: list[RunningServer]) -> list[str]:
    """A few words for each of these servers."""
    return [f"process {each.pid} at {each.place}" for each in servers]


async def has_ended(arguments: argparse.Namespace, pid: int) -> bool:
    """Wait until the server of a process has ended; False if it has not after `STOP_S`."""
    return await has_ended_on(_directory(arguments), pid)


async def has_ended_on(directory: Path, pid: int) -> bool:
    """The same of a server on this state directory."""
    servers = RunningServers(directory)
    loop = asyncio.get_running_loop()
    late = loop.time() + STOP_S
    while servers.runs(pid):
        if loop.time() > late:
            return False
        await asyncio.sleep(POLL_S)
    return True


def _directory(arguments: argparse.Namespace) -> Path:
    return state_directory(load_for_state(arguments).state)


def no_server(directory: Path) -> TidegateError:
    """The error where no server runs for a state."""
    return TidegateError(
        Code.BRIDGE_NO_SERVER,
        f"No server runs for the state directory `{directory}`.",
        hint="A bridge starts one when it needs it; `tidegate serve --http 127.0.0.1:8765` does"
        " at once.",
        details={"path": str(directory)},
    )


async def status_of(found: Handshake) -> dict[str, Any]:
    """What the server says of itself. If it does not answer, that is what fails."""
    headers = [(PROOF, found.proof("status"))]
    try:
        answer = await send_request(found.address, "GET", STATUS_PAGE, headers, b"", PROOF_S)
        body = await answer.body()
    except (WireError, TimeoutError):
        return _unknown("it does not answer")
    if answer.status != 200:
        return _unknown(f"it answers with {answer.status}")
    return msgspec.json.decode(body, type=dict[str, Any])


def _unknown(why: str) -> dict[str, Any]:
    return {"failing": dict.fromkeys(("server", "audit", "state"), f"not known: {why}")}


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError):
            return False
    return True
