"""`tidegate demo`: serves the sample shop on loopback and shows a few calls."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from tidegate.app import App
from tidegate.cli.commands.source import save
from tidegate.cli.demo_client_entries import entries
from tidegate.cli.demo_mcp_client import DemoMcpClient
from tidegate.cli.demo_session import DemoSession
from tidegate.cli.local_actor import with_app
from tidegate.cli.progress import Advance, progress
from tidegate.cli.running_server import is_free
from tidegate.cli.terminal import color, show
from tidegate.config.model import ApprovalSettings, Config, ConsoleSettings
from tidegate.config.sources import SourceSettings
from tidegate.config.state import NO_DATABASE
from tidegate.demo.build import ROWS, build, is_built
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import RoleGrant, Scope
from tidegate.paths import expand
from tidegate.product import load
from tidegate.serve.edges import open_http
from tidegate.serve.lifecycle import Shutdown, serve
from tidegate.store.calls import change_state
from tidegate.store.records import TokenRights
from tidegate.surfaces.registry import SURFACES
from tidegate.system.file_locks import take_lock
from tidegate.system.private_files import make_private_directory, open_directory, write_new_file
from tidegate.system.processes import interrupt_when_asked_to_end, on_notice

HOST = "127.0.0.1"
NAME = "shop"
DESK = "desk"
CLERK = "demo-clerk"
OPERATOR = "you"
WAIT_S = 900.0
CHANGE = "UPDATE products SET price_cents = price_cents * 9 / 10 WHERE id IN (1, 2, 3)"
REASON = "These three are on sale this week: 10 % off."
"""What an agent asks for at the desk, and what it says that it is for."""

Session = Callable[[DemoMcpClient], DemoSession]


def run(arguments: argparse.Namespace) -> int:
    """Create the sample, serve it and show the calls; returns 0 if every answer is as expected."""
    interrupt_when_asked_to_end()
    if not 0 <= arguments.port <= 65_535:
        raise TidegateError(Code.ARGUMENT_INVALID, f"--port {arguments.port} is not 0 to 65535.")
    if arguments.state_url is not None:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "The state of the demo is in a directory.",
            hint="Name a directory with --state, or leave it out.",
        )
    with _state(arguments.state) as state:
        path = state / f"{NAME}.db"
        if not is_built(path):
            with progress("Creating the sample shop", ROWS) as advance:
                try:
                    _build(path, advance)
                except sqlite3.Error as error:
                    raise TidegateError(
                        Code.STATE_FAILED, f"The sample could not be created at `{path}`: {error}."
                    ) from None
        shop = SourceSettings(NAME, f"sqlite:///{path}")
        with _alone(state):
            others = [load(each.place)(path, state) for each in arguments.demo_sources]
            sources = (shop, *others)
            config = _config(state, sources)
            names = [source.name for source in sources]
            made = with_app(App.open(config), partial(_prepare, state, names))
        port = arguments.port if is_free(HOST, arguments.port) else 0
        app = App.open(config, default_actor="server")
        session = partial(
            DemoSession, others=list(zip(names[1:], arguments.demo_sources, strict=True))
        )
        asyncio.run(_serve(app, state, made, port, session, once=arguments.once))
    return 0


def _config(state: Path, sources: tuple[SourceSettings, ...]) -> Config:
    """The settings of the demo: its sources are for reading, and the desk of the shop is for
    changes, each of which a person approves in the console."""
    desk = SourceSettings(
        *(DESK, sources[0].url),
        access="write",
        approval_for="writes",
        approval="inbox",
        undo="keep",
    )
    return Config(
        state=str(state),
        state_url=NO_DATABASE,
        sources=(*sources, desk),
        surfaces=tuple([name for name, entry in SURFACES.items() if entry.in_demo]),
        approvals=ApprovalSettings(wait_s=WAIT_S),
        console=ConsoleSettings(enabled=True),
    )


@contextmanager
def _state(given: str | None) -> Generator[Path]:
    """The state directory of the demo; a temporary one is removed at the end."""
    if given is not None:
        path = expand(given).absolute()
        make_private_directory(path)
        yield path
        return
    path = Path(tempfile.mkdtemp(prefix="tidegate-demo-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _alone(state: Path) -> Generator[None]:
    """Lock the state against another demo, as both use the same source and token."""
    descriptor = open_directory(state)
    try:
        take_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _build(path: Path, advance: Advance) -> None:
    try:
        build(path, advance)
    except OSError as error:
        raise TidegateError(
            Code.STATE_FAILED, f"Cannot write the sample at {path}: {error.strerror}"
        ) from None


class _Made(NamedTuple):
    """What the demo has made: the tokens of its two agents, and its operator's passphrase."""

    token: str
    clerk: str
    passphrase: str


async def _prepare(state: Path, names: list[str], app: App) -> _Made:
    """Save the sources of the demo, make its tokens and the operator of its console."""
    for name in names:  # the desk is there while the demo serves
        save(app, name)
    token = _token(app, state, "demo", Scope.READ_ONLY, frozenset(names))
    clerk = _token(app, state, CLERK, Scope.READ_WRITE, frozenset({DESK}))
    passphrase = f"tide-{secrets.token_hex(3)}"
    if any(each.name == OPERATOR for each in app.operators.list()):
        app.operators.set_passphrase(OPERATOR, passphrase, "cli")
    else:
        app.operators.add(OPERATOR, passphrase, (RoleGrant("admin"),), "cli")
    return _Made(token, clerk, passphrase)


def _token(app: App, state: Path, name: str, scope: Scope, names: frozenset[str]) -> str:
    """A token of the demo, kept next to the sample so that a client's configuration stays valid."""
    kept = state / f"{name}.token"
    if kept.exists():
        plaintext = kept.read_text("ascii").strip()
        try:
            sources = app.tokens.verify(plaintext).sources
        except TidegateError:
            sources = None
        if sources == names:
            return plaintext
        kept.unlink()
    if any(entry.name == name and entry.revoked_at is None for entry in app.tokens.list()):
        app.tokens.revoke(name)
    plaintext, _ = app.tokens.create(name, TokenRights(scope, names))
    write_new_file(kept, f"{plaintext}\n".encode())
    return plaintext


async def _serve(
    app: App, state: Path, made: _Made, port: int, session: Session, *, once: bool
) -> None:
    """Serve, show the calls, and keep serving unless `once`."""
    shutdown = Shutdown()
    loop = asyncio.get_running_loop()
    on_notice({"end": shutdown.ask, "interrupt": shutdown.ask})
    open_at: asyncio.Future[str] = loop.create_future()
    edge = open_http(app, HOST, port)
    serving = asyncio.ensure_future(
        serve(app, [edge], shutdown, partial(open_at.set_result, edge.name))
    )
    await asyncio.wait([serving, open_at], return_when=asyncio.FIRST_COMPLETED)
    try:
        if open_at.done():
            await _show(open_at.result(), made.token, state, session, once=once)
            if not once:
                await _ask_person(app, open_at.result(), made)
    finally:
        if once or not open_at.done() or sys.exc_info()[0] is not None:
            shutdown.ask()
        await serving


async def _show(address: str, token: str, state: Path, session: Session, *, once: bool) -> None:
    show(f"Serving on {address}/mcp/core\n")
    client = DemoMcpClient(f"{address}/mcp/core", token)
    try:
        await asyncio.to_thread(session(client).hold)
    finally:
        client.close()
    if not once:
        _show_entries(address, token, state)


async def _ask_person(app: App, address: str, made: _Made) -> None:
    """Have an agent ask for a change, and wait until a person has answered it in the console."""
    secret = await change_state(app.operators.make_link, OPERATOR, "cli")
    app.operators.after_a_lost_link = (
        f"Sign in as `{OPERATOR}` with the passphrase that the demo shows, or start the demo again."
    )
    show(
        color("\nAn agent waits for your answer.", "1") + " Open the console and read the question:"
    )
    show(f"  {color(f'{address}/console#sign-in={secret}', '36')}")
    show(f"  (the link works once, for two minutes; sign in as {OPERATOR} later)")
    passphrase = color(made.passphrase, "1")
    show(f"Passphrase: {passphrase}, also asked for before the first yes\n")
    client = DemoMcpClient(f"{address}/mcp/core", made.clerk, WAIT_S + 60)
    # The thread ends with the process: what it waits for may never come.
    Thread(target=_ask_for_change, args=(client,), daemon=True).start()


def _ask_for_change(client: DemoMcpClient) -> None:
    show(color("→ ", "36") + color(f"query {CHANGE}", "1"))
    try:
        text, is_error = client.call("query", {"sql": CHANGE, "reason": REASON})
    except TidegateError:
        return  # the demo has ended
    finally:
        client.close()
    show("  " + color(text.splitlines()[0][:200], "33" if is_error else "0"))
    if not is_error:
        show(color("✓ it ran after your yes", "32") + "; in the console it can be taken back")


def _show_entries(address: str, token: str, state: Path) -> None:
    command = shutil.which("tidegate") or sys.argv[0]
    paths = " and ".join([f"/mcp/{name}" for name, entry in SURFACES.items() if entry.in_demo])
    show(f"\nAddress  {color(address, '1')}   (MCP at {paths})")
    show(f"Token    {color(token, '1')}")
    show(f"\nexport TIDEGATE_URL={address} TIDEGATE_TOKEN={token}")
    url = f"{address}/mcp/core"
    for entry in entries(url, token, str(Path(command).absolute()), str(state)):
        show(f"\n{color(entry.client, '1')} ({entry.place})\n{entry.text}")
    show(f"\nServing on {address}. Press Ctrl-C to stop.")
