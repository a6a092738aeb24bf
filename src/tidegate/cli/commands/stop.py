"""`tidegate stop`: ends the server that runs for this state, or those that are named."""

from __future__ import annotations

import argparse
import asyncio

from tidegate.bridge.handshake_file import Handshake
from tidegate.cli.running_server import (
    STOP_S,
    has_ended,
    others_of,
    running_server,
    running_servers,
)
from tidegate.cli.terminal import show
from tidegate.errors import Code, TidegateError
from tidegate.serve.running_servers import RunningServer
from tidegate.system.processes import ask_to_end


def run(arguments: argparse.Namespace) -> int:
    """End servers and say which they were.

    Raises: TidegateError BRIDGE_NO_SERVER if none runs or one does not end, ARGUMENT_INVALID if
    several run and none is named.
    """
    asyncio.run(_stop(arguments))
    return 0


async def _stop(arguments: argparse.Namespace) -> None:
    found, others = await running_servers(arguments)
    if not arguments.pid and not arguments.all:
        others = [] if found and not any(each.listens for each in others) else others
        if found is not None and not others:
            await _end_found(arguments)
            return
        listening = [each for each in others if each.listens]
        if found is not None or len(listening) != 1:
            raise _several(found, others)
        others = listening
    elif arguments.pid:
        _check_named(arguments.pid, found, others)
        others = [each for each in others if each.pid in arguments.pid]
        if found is not None and found.pid not in arguments.pid:
            found = None
    for server in others:
        await _end(arguments, server)
    if found is not None:
        await _end_found(arguments)


async def _end_found(arguments: argparse.Namespace) -> None:
    """End the server that bridges find, which has proved that it is ours."""
    discovery, found = await running_server(arguments)
    await discovery.end(found)
    place = f"{found.host}:{found.port}"
    show(f"ended the server at {place} (process {found.pid}, Tidegate {found.release})")


async def _end(arguments: argparse.Namespace, server: RunningServer) -> None:
    ask_to_end(server.pid)
    if not await has_ended(arguments, server.pid):
        raise TidegateError(
            Code.BRIDGE_NO_SERVER,
            f"The server (process {server.pid}) does not end within {STOP_S:g} s.",
            hint=f"Running calls may take longer. At once: kill {server.pid}",
        )
    show(f"ended the server at {server.place} (process {server.pid}, Tidegate {server.release})")


def _check_named(named: list[int], found: Handshake | None, others: list[RunningServer]) -> None:
    known = [each.pid for each in others]
    if found is not None:
        known.append(found.pid)
    for pid in named:
        if pid not in known:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"Process {pid} is no server of this state directory.",
                hint="`tidegate status` lists the servers.",
            )


def _several(found: Handshake | None, others: list[RunningServer]) -> TidegateError:
    first = [f"process {found.pid} at {found.address.url}"] if found else []
    shown = "; ".join([*first, *others_of(others)])
    if not found and not any(each.listens for each in others):
        return TidegateError(
            Code.ARGUMENT_INVALID,
            f"Only servers that clients started for themselves run: {shown}.",
            hint="They end with their clients; `tidegate stop --all` ends them now.",
        )
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"Several servers run for this state: {shown}.",
        hint="Name one, as in `tidegate stop PROCESS`, or end every one: `tidegate stop --all`.",
    )
