"""`tidegate serve`: MCP on stdio or on HTTP until it is told to stop."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tidegate.config.addresses import LOOPBACK, http_address
from tidegate.config.following import Following
from tidegate.edges.cli.application import OpenApp
from tidegate.edges.cli.settings import chosen, mark_of, of_serve
from tidegate.edges.cli.terminal import say


def run(arguments: argparse.Namespace, open_app: OpenApp) -> int:
    """Serve; returns 0 when a signal or the end of the input stopped it."""
    following = _following(chosen(arguments))
    config = of_serve(arguments)
    app = open_app(config)
    if following is not None:
        app.follow(following, lambda: of_serve(arguments), _log)
    if config.http is None:
        app.run_stdio()
        return 0

    def announce(address: str) -> None:
        say(f"tidegate: serving {', '.join(config.surfaces)} on {address}/mcp")
        if http_address(config.http or "")[0] not in LOOPBACK:
            say("tidegate: plain HTTP beyond this machine: let a proxy with TLS stand before it")
        if not config.auth:
            say("tidegate: no token is asked for; reading only")
        elif not app.store.tokens():
            say("tidegate: there is no token yet: tidegate token create NAME --scope readOnly")

    def tell_bridge() -> None:
        os.write(arguments.for_bridge, b"ready\n")
        os.close(arguments.for_bridge)

    found = None if arguments.for_bridge is None else tell_bridge
    mark = mark_of(chosen(arguments))
    app.run_http(*http_address(config.http), announce, found, mark)
    return 0


def _log(line: str) -> None:
    say(f"tidegate: {line}")


def _following(config: str | None) -> Following | None:
    """What notices a change of the settings, if they are in a file."""
    if config is None or config.lstrip().startswith("{"):
        return None
    return Following(Path(config))
