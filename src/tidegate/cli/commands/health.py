"""`tidegate health [URL]`: whether a server is ready, for probes where no curl is."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from tidegate.bridge.handshake_file import ServerAddress
from tidegate.bridge.http_client import NotSent, WireError, send_request
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import print_status, show
from tidegate.config.addresses import http_address, parse_http_url
from tidegate.errors import ERRORS, Code, TidegateError

_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - a server there answers here, too
_OK = 200


def run(arguments: argparse.Namespace) -> int:
    """Ask, and print the answer; returns 0 if it is good. Raises: TidegateError BRIDGE_NO_SERVER,
    ARGUMENT_INVALID, CONFIG_INVALID."""
    server, path = _asked(arguments)
    status, answer = asyncio.run(_ask(server, path, arguments.timeout))
    words = [str(answer.get("status") or f"HTTP status {status}")]
    for part in ("failing", "degraded"):
        found: dict[str, Any] = answer.get(part) or {}
        words += [f"{part} {name}: {what}" for name, what in found.items()]
    if status == _OK:
        show("; ".join(words))
        return 0
    print_status(f"tidegate: {server.url}{path}: {'; '.join(words)}")
    return ERRORS[Code.BRIDGE_NO_SERVER].exit_status


def _asked(arguments: argparse.Namespace) -> tuple[ServerAddress, str]:
    """The server and the path of the URL; without one, `/ready` where the settings say."""
    if arguments.url is not None:
        try:
            url = parse_http_url(arguments.url)
        except ValueError:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"`{arguments.url[:200]}` is not an HTTP URL.",
                hint="Write http://127.0.0.1:7878/ready.",
            ) from None
        return ServerAddress(url.host, url.tcp_port, url.scheme == "https"), url.path or "/ready"
    config = load_for_state(arguments)
    host, port = http_address(config.http or "127.0.0.1:0")
    if port == 0:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "No URL is named, and the settings name no port of `http`.",
            hint="Name it: tidegate health http://127.0.0.1:7878/ready",
        )
    return ServerAddress(_HERE.get(host, host), port, config.tls is not None), "/ready"


async def _ask(server: ServerAddress, path: str, timeout_s: float) -> tuple[int, dict[str, Any]]:
    """The status and the body. Raises: TidegateError BRIDGE_NO_SERVER."""
    try:
        async with asyncio.timeout(timeout_s):
            answer = await send_request(server, "GET", path, [], b"", timeout_s)
            body = await answer.body()
    except NotSent as error:
        raise _failed(server, f"cannot be reached: {error}") from None
    except (WireError, TimeoutError):
        raise _failed(server, f"does not answer within {timeout_s:g} s") from None
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    return answer.status, found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType] - parsed text has no type


def _failed(server: ServerAddress, what: str) -> TidegateError:
    return TidegateError(Code.BRIDGE_NO_SERVER, f"{server.url} {what}.")
