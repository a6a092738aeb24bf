"""Running a bridge on the process's stdin and stdout until the end of the input or a signal."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from tidegate.bridge.bridge_session import BridgeSession
from tidegate.bridge.discovery import Discovery
from tidegate.bridge.messages import refusal
from tidegate.bridge.relay import GRACE_S, Relay
from tidegate.edges.line_io import Output, feed
from tidegate.errors import TidegateError
from tidegate.identity.bridge_tokens import Share
from tidegate.system.processes import on_notice


async def serve(discovery: Discovery, surface: str | None, share: Share) -> None:
    """Forward messages until the end of the input.

    Raises: TidegateError if no server can be reached at the start; the host gets the error as well.
    """
    output = Output(sys.stdout.fileno())
    session = BridgeSession(discovery, surface, share)
    relay = Relay(session, output.write)
    stop = asyncio.Event()
    on_notice({"end": stop.set, "interrupt": stop.set})
    stopped: asyncio.Task[Any] = asyncio.ensure_future(stop.wait())
    transport = await feed(relay, sys.stdin.buffer)
    output.hold_back(transport)
    gone = asyncio.ensure_future(output.reader_closed())
    try:
        connected = asyncio.ensure_future(session.connect())
        await asyncio.wait({connected, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not connected.done():
            connected.cancel()
            return
        connected.result()
        tasks = [asyncio.ensure_future(work) for work in (relay.run(), relay.send_pings())]
        await asyncio.wait({relay.ended, stopped, gone}, return_when=asyncio.FIRST_COMPLETED)
        await _finish(relay, output, stopped)
        for task in tasks:
            task.cancel()
    except TidegateError as error:
        output.write(refusal(None, error) + b"\n")
        raise
    finally:
        stopped.cancel()
        gone.cancel()
        output.stop()
        if transport is not None:
            transport.close()


async def _finish(relay: Relay, output: Output, stopped: asyncio.Task[Any]) -> None:
    """Finish what was received, and let the host read it."""
    reader_closed = asyncio.ensure_future(output.reader_closed())
    abort = asyncio.ensure_future(
        asyncio.wait({stopped, reader_closed}, return_when=asyncio.FIRST_COMPLETED)
    )
    await relay.finish(abort)
    read = asyncio.ensure_future(output.drained())
    await asyncio.wait({read, abort}, timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED)
    for task in (read, abort, reader_closed):
        task.cancel()
