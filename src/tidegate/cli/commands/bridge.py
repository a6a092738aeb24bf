"""`tidegate bridge`: MCP on stdio by way of the server on HTTP of the same state."""

from __future__ import annotations

import argparse
import os

from tidegate.cli.settings import config_path, load_for_state, mark_of
from tidegate.config.state import state_directory
from tidegate.errors import Code, TidegateError
from tidegate.identity.bridge_tokens import Share


def run(arguments: argparse.Namespace) -> int:
    """Carry messages until the input ends; returns 0 then."""
    if os.name != "posix":
        raise TidegateError(
            Code.UNSUPPORTED,
            "The bridge needs a system with file owners and modes.",
            hint="Use `tidegate serve` on stdio.",
        )
    import asyncio

    from tidegate.bridge.discovery import Discovery
    from tidegate.bridge.handshake import HandshakeFile
    from tidegate.bridge.run import serve

    state = state_directory(load_for_state(arguments).state)
    words = ["--state", str(state.absolute())]
    settings = config_path(arguments)
    if settings:
        words += ["--config", settings]
    finder = Discovery(HandshakeFile(state), words, mark_of(settings))
    asyncio.run(serve(finder, arguments.surface, _share(arguments)))
    return 0


def _share(arguments: argparse.Namespace) -> Share:
    """What the bridge asks for. Raises: TidegateError ARGUMENT_INVALID."""
    if arguments.table:
        from tidegate.identity.tokens import check_tables

        check_tables(arguments.table)
    return Share(arguments.scope, tuple(arguments.source) or None, tuple(arguments.table) or None)
