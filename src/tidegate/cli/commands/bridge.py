"""`tidegate bridge`: MCP on stdio, forwarded to the HTTP server of the same state directory."""

from __future__ import annotations

import argparse

from tidegate.cli.settings import chosen_state_url, config_path, load_for_state, settings_digest
from tidegate.cli.terminal import print_status
from tidegate.config.state import state_directory
from tidegate.identity.bridge_tokens import Share


def run(arguments: argparse.Namespace) -> int:
    """Forward messages until the end of the input; returns 0."""
    import asyncio

    from tidegate.bridge.discovery import Discovery
    from tidegate.bridge.handshake_file import HandshakeFile
    from tidegate.bridge.run import serve

    if arguments.first_source_env is not None:
        from tidegate.cli.first_source import add_first_source  # few entries have it

        add_first_source(arguments.first_source_env, arguments)
    state = state_directory(load_for_state(arguments).state)
    words = ["--state", str(state.absolute())]
    if url := chosen_state_url(arguments):
        words += ["--state", url]
    settings = config_path(arguments)
    if settings:
        words += ["--config", settings]
    finder = Discovery(HandshakeFile(state), words, settings_digest(settings), print_status)
    asyncio.run(serve(finder, arguments.surface, _share(arguments)))
    return 0


def _share(arguments: argparse.Namespace) -> Share:
    """The access that the bridge asks for. Raises: TidegateError ARGUMENT_INVALID."""
    if arguments.table:
        from tidegate.identity.tokens import check_tables

        check_tables(arguments.table)
    return Share(arguments.scope, tuple(arguments.source) or None, tuple(arguments.table) or None)
