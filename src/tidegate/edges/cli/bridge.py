"""`tidegate bridge`: MCP on stdio by way of the server on HTTP of the same state."""

from __future__ import annotations

import argparse
import os

from tidegate.edges.cli.application import OpenApp
from tidegate.errors import Code, GateError
from tidegate.loading import load, state_directory


def run(arguments: argparse.Namespace, open_app: OpenApp) -> int:
    """Carry messages until the input ends; returns 0 then."""
    if os.name != "posix":
        raise GateError(
            Code.UNSUPPORTED,
            "The bridge needs a system with file owners and modes.",
            hint="Use `tidegate serve` on stdio.",
        )
    import asyncio

    from tidegate.edges.bridge.finder import Finder
    from tidegate.edges.bridge.handshake import Place
    from tidegate.edges.bridge.serving import serve

    configured = load(arguments.config).state if arguments.config else None
    state = state_directory(arguments.state or configured)
    words = ["--state", str(state.absolute())]
    if arguments.config:
        words += ["--config", arguments.config]
    if arguments.surface:
        words += ["--surface", arguments.surface]
    asyncio.run(serve(Finder(Place(state), words), arguments.surface))
    return 0
