"""Entries of clients that run Tidegate from a cache (`uvx`, `pipx run`), and the extras they name.

Such an entry has only what its requirement names, `tidegate[postgres]`: a saved source of another
kind needs the entry to be written again. A program that is installed has its extras beside it.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from typing import NamedTuple

from tidegate.app import App
from tidegate.cli.checks.clients import Installed, installed_entries, is_same_place
from tidegate.cli.checks.finding import Finding, fault
from tidegate.cli.checks.sources import extras_of_sources, needed_extras
from tidegate.cli.local_actor import with_app
from tidegate.cli.requirement_extras import named_extras
from tidegate.cli.terminal import print_status
from tidegate.config.installation import installation
from tidegate.config.model import Config
from tidegate.config.state import is_database, state_path
from tidegate.errors import TidegateError
from tidegate.model.sources import Source

_OPTIONS = {
    "--surface": "--surface", "--scope": "--bridge-scope", "--source": "--source",
    "--table": "--table", "--config": "--config", "--state": "--state",
}  # fmt: skip
"""Options of `bridge` and `serve` in an entry, and those of `install` that write them."""


class Lacking(NamedTuple):
    """An entry, the extras of saved sources that it does not name, and the command that writes it
    again; None if the entry has more than `install` writes."""

    entry: Installed
    extras: tuple[str, ...]
    command: str | None

    def describe(self) -> str:
        """What is wrong, as a clause."""
        names = ", ".join(f"`{extra}`" for extra in self.extras)
        what = "extra" if len(self.extras) == 1 else "extras"
        entry = self.entry
        return (
            f"the entry `{entry.name}` of {entry.file} starts without the {what} {names}, which "
            "sources or settings need"
        )

    def remedy(self) -> str:
        """The command, or what to do instead."""
        return self.command or "Write into its requirement what is missing, or install it again"


def extras_to_name(config: Config) -> tuple[str, ...]:
    """The extras that an entry must name: those of all sources, saved or in the settings. Empty
    where what an entry starts is installed; those of the settings alone where no source can be
    read, which what it starts reports."""
    if not installation().run_words():
        return ()
    try:
        return with_app(App.open(config), _needed)
    except TidegateError:  # such as for want of an extra
        return tuple(sorted(needed_extras(config, ())))


async def _needed(app: App) -> tuple[str, ...]:
    return tuple(sorted(needed_extras(app.config, app.connections.sources())))


def check_entries(config: Config, sources: Collection[Source]) -> Iterator[Finding]:
    """A fault for each entry that must be written again."""
    for lacking in lacking_entries(config, sources):
        yield fault(lacking.entry.label, lacking.describe(), lacking.remedy())


def note_lacking(app: App) -> None:
    """Say which entries must be written again, and by which command, since a source was saved."""
    sources = (*app.connections.sources(), *app.state.sources.list())
    for lacking in lacking_entries(app.config, sources):
        print_status(f"note: {lacking.describe()}. To write it again: {lacking.remedy()}")


def lacking_entries(config: Config, sources: Collection[Source]) -> Iterator[Lacking]:
    """The entries that use the state of the settings and do not name all extras that are needed:
    those of the sources, and of the settings where the entry names a file of them."""
    of_sources = set(extras_of_sources(sources))
    of_all = of_sources | set(needed_extras(config, ()))
    state = state_path(config.state)
    for entry in installed_entries([]):
        named = named_extras(entry.words)
        if named is None or not is_same_place(entry.state, state):
            continue
        has_settings = "--config" in entry.words or any(map(is_database, entry.words))
        needed = of_all if has_settings else of_sources
        missing = tuple(sorted(needed - named))
        if missing:
            yield Lacking(entry, missing, _rewriting(entry, named | needed))


def _rewriting(entry: Installed, extras: Collection[str]) -> str | None:
    """The command that writes an entry again, with what it has besides."""
    words = entry.words
    verbs = [word for word in ("bridge", "serve") if word in words]
    if not verbs:
        return None
    at = words.index(verbs[0])
    options = words[at + 1 :]
    again = [] if verbs[0] == "bridge" else ["--stdio"]
    for name, value in zip(options[::2], options[1::2], strict=False):
        if name not in _OPTIONS:
            return None
        again += [_OPTIONS[name], value]
    if len(options) % 2:
        return None
    if entry.name != "tidegate":
        again += ["--name", entry.name]
    if entry.scope != entry.client.scope:
        again += ["--scope", entry.scope]
    again += [word for name in entry.variables for word in ("--env", name)]
    run = installation().run_words(extras) or ["tidegate"]
    return shlex.join([*run, "install", entry.client.name, *again, "--force"])
