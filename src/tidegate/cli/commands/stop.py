"""`tidegate stop`: ends the server that runs for this state."""

from __future__ import annotations

import argparse
import asyncio

from tidegate.bridge.handshake_file import Handshake
from tidegate.cli.running_server import running_server
from tidegate.cli.terminal import show


def run(arguments: argparse.Namespace) -> int:
    """End the server and say which it was; raises TidegateError BRIDGE_NO_SERVER if none runs."""

    async def stop() -> Handshake:
        discovery, found = await running_server(arguments)
        await discovery.end(found)
        return found

    found = asyncio.run(stop())
    release = f", Tidegate {found.release}" if found.release else ""
    show(f"ended the server at {found.host}:{found.port} (process {found.pid}{release})")
    return 0
