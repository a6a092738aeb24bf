"""Runs a bridge on this process's stdin and stdout, until the input or the process ends."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import Any

from tidegate.bridge.discovery import Discovery
from tidegate.bridge.messages import refusal
from tidegate.bridge.relay import Relay
from tidegate.bridge.server_session import ServerSession
from tidegate.edges.line_io import Output, feed
from tidegate.errors import TidegateError
from tidegate.identity.bridge_tokens import Share


async def serve(finder: Discovery, surface: str | None, share: Share) -> None:
    """Carry messages until the end of the input. Raises: TidegateError if there is no server at the
    start; the host is told then, too."""
    output = Output(sys.stdout.fileno())
    line = ServerSession(finder, surface, share)
    relay = Relay(line, output.write)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    stopped: asyncio.Task[Any] = asyncio.ensure_future(stop.wait())
    transport = await feed(relay, sys.stdin.buffer)
    try:
        connected = asyncio.ensure_future(line.connect())
        await asyncio.wait({connected, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not connected.done():
            connected.cancel()
            return
        connected.result()
        tasks = [asyncio.ensure_future(work) for work in (relay.carry(), relay.keep_awake())]
        await asyncio.wait({relay.ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        await _finish(relay, output, stopped)
        for task in tasks:
            task.cancel()
    except TidegateError as error:
        output.write(refusal(None, error) + b"\n")
        raise
    finally:
        stopped.cancel()
        if transport is not None:
            transport.close()


async def _finish(relay: Relay, output: Output, stopped: asyncio.Task[Any]) -> None:
    deserted = asyncio.ensure_future(output.deserted())
    hurry = asyncio.ensure_future(
        asyncio.wait({stopped, deserted}, return_when=asyncio.FIRST_COMPLETED)
    )
    await relay.finish(hurry)
    hurry.cancel()
    deserted.cancel()
