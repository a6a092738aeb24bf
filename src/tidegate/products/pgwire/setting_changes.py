"""Sets and shows the settings of a session, and asks a PostgreSQL source about those that its
database reads and writes values by: what it takes, and what that means to it.

A setting of PostgreSQL that is neither applied nor kept here may be set to what it is, as pg_dump
does, and to nothing else. So one that a new version of PostgreSQL brings is refused.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from tidegate.errors import TidegateError
from tidegate.model.requests import Browse, Request
from tidegate.model.schema import DatabaseSettings
from tidegate.products.pgwire.errors import refused
from tidegate.products.pgwire.session_settings import SessionSettings
from tidegate.products.pgwire.setting_defaults import REPORTED

Changed = tuple[str, str] | None
"""What must be reported: a setting by its name for clients, and its value."""

_SWITCH = re.compile(r"(?:\\.|\S)+")
_ESCAPED = re.compile(r"\\(.)")


class SettingChanges:
    """The settings of one session as its commands set and show them. `ask` sends a request about
    the session's source through the gate. The methods raise TidegateError."""

    def __init__(
        self,
        settings: SessionSettings,
        ask: Callable[[Request], Awaitable[Any]],
    ) -> None:
        self._settings = settings
        self._ask = ask

    async def set(self, name: str, value: str | None, *, local: bool = False) -> Changed:
        """Set a setting, None to its default; with `local` until the block ends."""
        settings = self._settings
        if not settings.is_of_database(name):
            return settings.set(name, value, local=local)
        key = name.lower()
        if value is None:
            if settings.get(key) is None:
                await self._settled((), key)  # or there is no such setting
                return None
            return settings.set(key, None, local=local)
        settings.check_size(key, value)
        shown = REPORTED.get(key, key)
        found = await self._settled((*settings.applied(), (shown, value)), shown)
        if settings.get(key) is not None:
            return settings.keep(key, found, local=local)
        held = await self._settled((), shown)
        if held != found:
            raise refused(
                "22023",
                f'The parameter "{name[:80]}" cannot be {value[:80]!r} here.',
                f"It stays {held[:80]!r}, for every caller of this source.",
            )
        return None

    async def check(self, name: str, value: str | None) -> str | None:
        """Set a setting that is undone at once; what it was shown as meanwhile."""
        settings = self._settings
        if name.lower().startswith("tidegate."):
            return settings.get(name)  # they say what is done next, not what holds
        settings.begin_block()
        try:
            await self.set(name, value, local=True)
            return await self.show(name)
        finally:
            settings.end_block(commit=False)

    async def show(self, name: str) -> str | None:
        """The value of a setting; None where the source is not PostgreSQL and there is none."""
        settings = self._settings
        value = settings.get(name)
        if value is None and settings.is_of_database(name):
            return await self._settled((), name)
        return value

    async def show_all(self) -> list[tuple[str, str, str]]:
        """All settings, by name, with what each is for where the source is a PostgreSQL."""
        settings = self._settings
        if not settings.is_of_database(""):
            return [(name, value, "") for name, value in settings.items()]
        listed = await self._ask_for((), ())
        names = [name for name, _ in listed.values]
        held = dict(listed.values)
        held |= {REPORTED.get(name, name): value for name, value in settings.items()}
        meanings = dict(zip(names, listed.meanings, strict=True))
        rows = [(name, value, meanings.get(name, "")) for name, value in held.items()]
        return sorted(rows, key=lambda each: each[0].lower())

    async def begin_with(self, startup: dict[str, str]) -> list[str]:
        """Set what a startup message asks for, which is what RESET goes back to. Returns notes:
        what a driver sends by itself ends no login."""
        notes: list[str] = []
        options = startup.pop("options", "")
        for name, value in (*switches(options), *startup.items()):
            key = name.lower()
            try:
                await self.set(name, value)
            except TidegateError as error:
                if key not in self._settings.forgiven:
                    raise
                notes.append(f"{error.message} {error.hint}")
        self._settings.make_defaults()
        return notes

    async def _settled(self, given: tuple[tuple[str, str], ...], name: str) -> str:
        """What the source calls the value of a setting once those that are `given` are set."""
        return (await self._ask_for(given, (name,))).values[0][1]

    async def _ask_for(
        self, given: tuple[tuple[str, str], ...], names: tuple[str, ...]
    ) -> DatabaseSettings:
        found = await self._ask(Browse("settings", names=names, settings=given))
        if not isinstance(found, DatabaseSettings):
            raise TypeError(type(found).__name__)
        return found


class Switch(NamedTuple):
    """A setting by its name, as a command line gives it."""

    name: str
    value: str


def switches(options: str) -> list[Switch]:
    """The settings that `options` of a startup message give (PGOPTIONS): `-c name=value`,
    `--name=value`; a backslash before a blank keeps it. Raises: TidegateError 22023 for others."""
    words = [_ESCAPED.sub(r"\1", word) for word in _SWITCH.findall(options)]
    found: list[Switch] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-c" and at + 1 < len(words):
            at += 1
            given = words[at]
        elif (word.startswith("-c") and len(word) > 2) or word.startswith("--"):
            given = word[2:]
        else:
            given = ""
        name, equals, value = given.partition("=")
        if not name or not equals:
            raise refused(
                "22023",
                f"The option {word[:80]!r} of the startup message is not supported here.",
                "Give settings, as in -c TimeZone=UTC.",
            )
        found.append(Switch(name.replace("-", "_"), value))
        at += 1
    return found
