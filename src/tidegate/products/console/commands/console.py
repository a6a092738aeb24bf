"""`tidegate console`: opens the console in a browser, and serves it if no server does."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import html
import os
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path

from tidegate.app import App
from tidegate.cli.commands.operator import BY, add_first_operator
from tidegate.cli.local_actor import with_app
from tidegate.cli.running_server import is_free, running_servers, status_of
from tidegate.cli.settings import load_for_state
from tidegate.cli.terminal import ask_line, print_status, show
from tidegate.errors import Code, TidegateError
from tidegate.identity.operators import LINK_S
from tidegate.system.private_files import write_new_file

HOST = "127.0.0.1"
PAGE = "console.html"


def run(arguments: argparse.Namespace) -> int:
    """Open the console; returns 0 when the browser was asked to, or the server that it started has
    stopped."""
    secret: list[str] = []

    async def sign_in(app: App) -> None:
        secret.append(app.operators.make_link(_operator(app, arguments), BY))

    address = asyncio.run(_address(arguments))
    with_app(App.open(load_for_state(arguments)), sign_in)
    if address:
        open_page(arguments, address, secret[0])
        return 0
    return _serve(arguments, secret[0])


async def _address(arguments: argparse.Namespace) -> str:
    """Where a server of this state serves the console; empty if none does.

    A server that a bridge has started serves none. Another one beside it does: both work on the
    questions of the same state, and the calls that wait in the first one go on.

    Raises: TidegateError BRIDGE_UNTRUSTED.
    """
    try:
        found, servers = await running_servers(arguments)
    except TidegateError as error:
        if error.code is Code.BRIDGE_NO_SERVER:
            return ""
        raise
    address = "" if found is None else str((await status_of(found)).get("console", ""))
    return address or next((each.console for each in servers if each.console), "")


def _operator(app: App, arguments: argparse.Namespace) -> str:
    """The name of the operator to sign in. Raises: TidegateError ARGUMENT_INVALID."""
    names = [operator.name for operator in app.operators.list()]
    if arguments.operator is not None:
        return app.operators.find(arguments.operator).name
    if not names:
        return _first_operator(app, arguments)
    own = getpass.getuser().casefold()
    found = names if len(names) == 1 else [name for name in names if name.casefold() == own]
    if not found:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"There are several operators: {', '.join(names)}.",
            hint="Name one with --operator.",
        )
    return found[0]


def _first_operator(app: App, arguments: argparse.Namespace) -> str:
    if not sys.stdin.isatty():
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "There is no operator yet, and standard input is no terminal on which to ask for one.",
            hint="Run it in a terminal, or add one: `tidegate operator add NAME"
            " --new-passphrase-file FILE`.",
        )
    print_status("The console is for people with an account. The first one is an admin.")
    name = ask_line("Your name", getpass.getuser())
    add_first_operator(app, name, arguments)
    return name


def open_page(arguments: argparse.Namespace, address: str, secret: str) -> None:
    """Have a browser open the console, or print the link.

    The browser gets a file that only this account can read, so that the secret of the link is in no
    list of processes.
    """
    link = f"{address}/console#sign-in={secret}"
    if arguments.print or not _has_browser():
        show(link)
        print_status(f"The link works once, for {LINK_S / 60:.0f} minutes.")
        return
    page = App.open(load_for_state(arguments)).directory / PAGE
    write_redirect(page, link)
    if webbrowser.open(page.as_uri()):
        print_status(f"opened {address}/console in the browser")
    else:
        show(link)
        print_status(
            f"No browser could be opened. The link works once, for {LINK_S / 60:.0f} minutes."
        )


def write_redirect(page: Path, link: str) -> None:
    """Write a page, for this account alone, that leads a browser to the link."""
    with suppress(FileNotFoundError):
        page.unlink()
    text = (
        '<!doctype html><meta charset="utf-8"><title>Tidegate</title>'
        f'<meta http-equiv="refresh" content="0;url={html.escape(link)}">'
        "<p>Opening the console.</p>"
    )
    write_new_file(page, text.encode())


def _has_browser() -> bool:
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _serve(arguments: argparse.Namespace, secret: str) -> int:
    """Serve the console, and all that `serve --http` serves, until a signal."""
    from tidegate.cli.commands import serve
    from tidegate.cli.parser import build

    port = arguments.port if is_free(HOST, arguments.port) else 0
    words = ["serve", "--http", f"{HOST}:{port}", "--console"]
    for option in ("state", "config"):
        if (value := getattr(arguments, option)) is not None:
            words += [f"--{option}", value]

    def opened(address: str) -> None:
        open_page(arguments, address, secret)
        print_status("Serving. Press Ctrl-C to stop.")

    return serve.run(build(words).parse_args(words), on_console=opened)
