"""`tidegate bridge`: MCP on stdio by way of the server on HTTP of the same state."""

from __future__ import annotations

import argparse
import os

from tidegate.config.state import state_directory
from tidegate.edges.cli.application import OpenApp
from tidegate.edges.cli.settings import chosen, mark_of, of_state
from tidegate.errors import Code, GateError
from tidegate.identity.bridge import Share


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

    state = state_directory(of_state(arguments).state)
    words = ["--state", str(state.absolute())]
    settings = chosen(arguments)
    if settings:
        words += ["--config", settings]
    if arguments.surface:
        words += ["--surface", arguments.surface]
    finder = Finder(Place(state), words, mark_of(settings))
    asyncio.run(serve(finder, arguments.surface, _share(arguments)))
    return 0


def _share(arguments: argparse.Namespace) -> Share:
    """What the bridge asks for. Raises: GateError ARGUMENT_INVALID."""
    if arguments.table:
        from tidegate.identity.tokens import check_tables

        check_tables(arguments.table)
    return Share(arguments.scope, tuple(arguments.source) or None, tuple(arguments.table) or None)
