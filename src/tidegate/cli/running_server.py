"""The server that runs on a state directory, for the commands that show and stop it."""

from __future__ import annotations

import argparse
import os
import socket
from typing import Any

import msgspec

from tidegate.bridge.discovery import PROOF_S, Discovery
from tidegate.bridge.handshake_file import PROOF, STATUS_PAGE, Handshake, HandshakeFile
from tidegate.bridge.http_client import WireError, send_request
from tidegate.cli.settings import load_for_state
from tidegate.config.state import state_directory
from tidegate.errors import Code, TidegateError


async def running_server(arguments: argparse.Namespace) -> tuple[Discovery, Handshake]:
    """The server that bridges find. Raises: TidegateError BRIDGE_NO_SERVER, BRIDGE_UNTRUSTED."""
    if os.name != "posix":
        raise TidegateError(
            Code.UNSUPPORTED,
            "This needs a system with file owners and modes.",
            hint="Look for the process `tidegate`.",
        )
    directory = state_directory(load_for_state(arguments).state)
    discovery = Discovery(HandshakeFile(directory), ())
    found = await discovery.look()
    if found is None:
        raise TidegateError(
            Code.BRIDGE_NO_SERVER,
            f"No server on HTTP runs for the state directory `{directory}`.",
            hint="A bridge starts one when it needs it; `tidegate serve --http` does at once.",
            details={"path": str(directory)},
        )
    return discovery, found


async def status_of(found: Handshake) -> dict[str, Any]:
    """What the server says of itself. Empty for one of an earlier version, which says nothing."""
    headers = [(PROOF, found.proof("status"))]
    try:
        answer = await send_request(
            found.host, found.port, "GET", STATUS_PAGE, headers, b"", PROOF_S, tls=found.tls
        )
        body = await answer.body()
    except (WireError, TimeoutError):
        return {}
    return msgspec.json.decode(body, type=dict[str, Any]) if answer.status == 200 else {}


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError):
            return False
    return True
