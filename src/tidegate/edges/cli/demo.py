"""`tidegate demo`: the sample shop, served on loopback, and a short conversation with it."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tidegate.actors import Scope
from tidegate.config.model import Config
from tidegate.config.sources import SourceSettings
from tidegate.edges.cli.application import Application, OpenApp
from tidegate.edges.cli.conversation import Conversation
from tidegate.edges.cli.entries import entries
from tidegate.edges.cli.mcp_client import McpClient
from tidegate.edges.cli.progress import Advance, progress
from tidegate.edges.cli.sample.build import ROWS, build, is_built
from tidegate.edges.cli.source import save
from tidegate.edges.cli.terminal import paint, show
from tidegate.errors import Code, GateError

HOST = "127.0.0.1"
NAME = "shop"


def run(arguments: argparse.Namespace, open_app: OpenApp) -> int:
    """Make, serve and show; returns 0 if everything was as it must be."""
    signal.signal(signal.SIGTERM, _interrupt)
    if not 0 <= arguments.port <= 65_535:
        raise GateError(Code.ARGUMENT_INVALID, f"--port {arguments.port} is not 0 to 65535.")
    with _state(arguments.state) as state:
        path = state / f"{NAME}.db"
        if not is_built(path):
            with progress("Making the sample shop", ROWS) as advance:
                try:
                    _build(path, advance)
                except sqlite3.Error as error:
                    raise GateError(
                        Code.STATE_FAILED, f"The sample could not be made at `{path}`: {error}."
                    ) from None
        shop = SourceSettings(NAME, f"sqlite:///{path}")
        config = Config(state=str(state), sources=(shop,), surfaces=("core", "workbench"))
        app = open_app(config)
        with _alone(state):
            save(app, NAME)
            token = _token(app, state)
        port = arguments.port if _is_free(arguments.port) else 0
        asyncio.run(_serve(app, state, token, port, once=arguments.once))
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def _state(given: str | None) -> Generator[Path]:
    """The directory of the demo; a temporary one goes when the demo ends."""
    if given is not None:
        path = Path(given).expanduser().absolute()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield path
        return
    path = Path(tempfile.mkdtemp(prefix="tidegate-demo-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _alone(state: Path) -> Generator[None]:
    """Another demo of the same state waits: they share one source and one token."""
    descriptor = os.open(state, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _build(path: Path, advance: Advance) -> None:
    try:
        build(path, advance)
    except OSError as error:
        raise GateError(
            Code.STATE_FAILED, f"Cannot write the sample at {path}: {error.strerror}"
        ) from None


def _token(app: Application, state: Path) -> str:
    """The demo's token: kept beside the sample, so that what was pasted goes on working."""
    kept = state / "demo.token"
    if kept.exists():
        plaintext = kept.read_text("ascii").strip()
        try:
            app.tokens.verify(plaintext)
        except GateError:
            kept.unlink()
        else:
            return plaintext
    if any(entry.name == "demo" and entry.revoked_at is None for entry in app.tokens.list()):
        app.tokens.revoke("demo")
    plaintext, _ = app.tokens.create("demo", Scope.READ_ONLY, frozenset({NAME}), None)
    with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(plaintext + "\n")
    return plaintext


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            return False
    return True


async def _serve(app: Application, state: Path, token: str, port: int, *, once: bool) -> None:
    """Serve, hold the conversation, and stay up unless it is to be `once`."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    open_at: asyncio.Future[str] = loop.create_future()
    serving = asyncio.ensure_future(app.serve_http(HOST, port, ready=open_at.set_result, stop=stop))
    await asyncio.wait([serving, open_at], return_when=asyncio.FIRST_COMPLETED)
    try:
        if open_at.done():
            await _show(open_at.result(), token, state, once=once)
    finally:
        if once or not open_at.done() or sys.exc_info()[0] is not None:
            stop.set()
        await serving


async def _show(address: str, token: str, state: Path, *, once: bool) -> None:
    show(f"Serving on {address}/mcp/core\n")
    client = McpClient(f"{address}/mcp/core", token)
    try:
        await asyncio.to_thread(Conversation(client).hold)
    finally:
        client.close()
    if not once:
        _show_entries(address, token, state)


def _show_entries(address: str, token: str, state: Path) -> None:
    command = shutil.which("tidegate") or sys.argv[0]
    show(f"\nAddress  {paint(address, '1')}   (MCP at /mcp/core and /mcp/workbench)")
    show(f"Token    {paint(token, '1')}")
    show(f"\nexport TIDEGATE_URL={address} TIDEGATE_TOKEN={token}")
    url = f"{address}/mcp/core"
    for entry in entries(url, token, str(Path(command).absolute()), str(state)):
        show(f"\n{paint(entry.client, '1')} ({entry.place})\n{entry.text}")
    show(f"\nStill serving on {address}. Ctrl-C ends it.")
