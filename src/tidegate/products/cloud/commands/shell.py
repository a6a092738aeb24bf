"""`tidegate cloud shell`: statements for cloud providers, typed and completed at a terminal."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import msgspec

from tidegate.app import App
from tidegate.cli.commands.query import show_outcome
from tidegate.cli.local_actor import ask, with_app
from tidegate.cli.progress import stage_line
from tidegate.cli.settings import load_for_statement
from tidegate.cli.terminal import print_status, show_table
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Query
from tidegate.model.results import Limits, Page
from tidegate.model.statements import Statement
from tidegate.products.cloud.commands.shell_input import Completer, History, split_statements

PROMPT, MORE = "cloud> ", "  ...> "
HISTORY = "cloud_shell_history"
_LOOK_UP_S = 10.0


def run(arguments: argparse.Namespace) -> int:
    """Read statements until the end of the input; 1 if one of a script failed."""

    async def work(app: App) -> int:
        return await Shell(app, _source(app, arguments.source), arguments).run()

    return with_app(App.open(load_for_statement(arguments)), work)


def _source(app: App, named: str | None) -> str:
    """The source to use. Raises: TidegateError SOURCE_UNKNOWN, CONFIG_INVALID."""
    names = [each.name for each in app.connections.sources() if each.engine == "cloud"]
    if named in names or (named is None and len(names) == 1):
        return named or names[0]
    known = f"There are {', '.join(sorted(names)[:8])}." if names else "There is none."
    wanted = f", and {named[:80]!r} is not one" if named is not None else ""
    raise TidegateError(
        Code.SOURCE_UNKNOWN,
        f"The shell needs a source of cloud providers{wanted}. {known}",
        hint="Name one: tidegate cloud shell SOURCE."
        if names
        else "Add one: tidegate source add apis cloud:///FOLDER.",
    )


class Shell:
    """One session. On a terminal a failed statement is shown, and the session goes on."""

    def __init__(self, app: App, source: str, arguments: argparse.Namespace) -> None:
        self._app = app
        self._source = source
        self._rows: int = arguments.rows
        self._timeout_s: float = arguments.timeout
        self._history = History(app.directory / HISTORY)
        self._add_line: Callable[[str], None] | None = None

    async def run(self) -> int:
        interactive = sys.stdin.isatty()
        loop = asyncio.get_running_loop()
        if interactive:
            self._prepare_terminal(loop)
        failed, left = False, ""
        while True:
            line = await asyncio.to_thread(_read, (MORE if left.strip() else PROMPT), interactive)
            if line is None:
                break
            statements, left = split_statements(f"{left}{line}\n")
            for each in statements:
                failed |= not await self._answer(each, keep=interactive)
        if left.strip():
            failed |= not await self._answer(left.strip(), keep=interactive)
        return 1 if failed and not interactive else 0

    async def _answer(self, statement: str, *, keep: bool) -> bool:
        """Run a statement and show what came of it; whether it succeeded."""
        if keep:
            self._remember(statement)
        try:
            page = await self._ask(statement, self._rows, self._timeout_s)
        except TidegateError as error:
            print_status(f"{error.code.value}: {error.in_full}")
            return False
        except KeyboardInterrupt:
            print_status("stopped")
            return False
        rows: list[list[Any]] = msgspec.json.decode(page.rows)
        show_table([column.name for column in page.columns], rows, fitted=True)
        show_outcome(page)
        return True

    def _remember(self, statement: str) -> None:
        line = self._history.add(statement)
        if line is None:
            print_status("note: not kept in the history, because it may hold a secret")
        elif self._add_line is not None:
            self._add_line(line)

    async def _ask(self, statement: str, rows: int, timeout_s: float) -> Page:
        request = Query(Statement(statement), limits=Limits(rows, timeout_s=timeout_s))
        with stage_line() as progress:
            return await ask(
                self._app, "cloud shell", request, self._source, Page, progress=progress
            )

    async def _first_column(self, statement: str) -> list[str]:
        page = await self._ask(statement, 10_000, _LOOK_UP_S)
        names = [column.name for column in page.columns]
        at = names.index("name") if "name" in names else 0
        return [str(row[at]) for row in msgspec.json.decode(page.rows)]

    def _prepare_terminal(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the terminal complete names and recall earlier statements, where it can."""
        try:
            import readline
        except ImportError:  # a Python without it: lines are read all the same
            return
        readline.set_auto_history(False)  # a statement is recalled as a whole, and no secret
        self._add_line = readline.add_history
        for line in self._history.load():
            readline.add_history(line)
        readline.set_completer_delims(" \t\n,()=<>'\"")
        readline.set_completer(_as_readline(Completer(self._names_by(loop))))
        readline.parse_and_bind("tab: complete")

    def _names_by(self, loop: asyncio.AbstractEventLoop) -> Callable[[str], list[str]]:
        def names(statement: str) -> list[str]:
            # The terminal is read on a thread; the gate works on the loop.
            waiting: Future[list[str]] = asyncio.run_coroutine_threadsafe(
                self._first_column(statement), loop
            )
            with suppress(TidegateError, TimeoutError):
                return waiting.result(_LOOK_UP_S)
            return []

        return names


def _as_readline(completer: Completer) -> Callable[[str, int], str | None]:
    import readline

    def complete(word: str, state: int) -> str | None:
        found = completer.complete(readline.get_line_buffer(), word)
        return found[state] if state < len(found) else None

    return complete


def _read(prompt: str, interactive: bool) -> str | None:
    """The next line without its end; None at the end of the input."""
    if not interactive:
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None
    try:
        return input(prompt)
    except EOFError:
        print_status()
        return None
