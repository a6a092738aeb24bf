"""Follows a settings file while a server runs, so that a change of policy holds from the next call.

Followed is what is said of sources, masks and filters, of approvals, of what bridges may do, and of
proxies.
The rest holds until the server starts again: `PendingRestart` shows what of that has been changed.
While the file cannot be used, all calls are refused, as the rules are unknown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tidegate.config.errors import invalid
from tidegate.config.model import Config
from tidegate.config.sections import Section
from tidegate.errors import Code, TidegateError

T = TypeVar("T")
Stamp = tuple[int, int, int] | None

FOLLOWED = frozenset(
    {
        "sources", "masks", "filters", "approvals.grant_ttl_s", "approvals.dry_run",
        "approvals.webhook", "console.source_folders",
        "bridge.scope", "bridge.sources", "bridge.tags", "bridge.tables", "trusted_proxies",
        "undo.keep_days", "undo.max_bytes", "undo.total_bytes",
    }
)  # fmt: skip
"""The settings that hold from the next call."""


class ConfigWatcher:
    """The file at `path`, as it is from now on: make this before the file is read first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: Stamp | object = self._stamp()

    @property
    def has_changed(self) -> bool:
        """Whether there is something to `look` at. Microseconds."""
        return self._stamp() != self._seen

    def look(self, load: Callable[[], T]) -> T | None:
        """What `load` gives if the file has changed since the last look, else None. Microseconds.

        Raises: TidegateError CONFIG_INVALID, again at each look while what is there cannot be used.
        """
        stamp = self._stamp()
        if stamp == self._seen:
            return None
        self.forget()
        try:
            loaded = load()
            # A program that writes the file in place empties it first. What is left of the rules
            # meanwhile is valid TOML.
            if stamp is None or not stamp[1] or stamp != self._stamp():
                raise invalid("The settings file is empty, or is being written.")
        except TidegateError as error:
            raise TidegateError(
                Code.CONFIG_INVALID,
                "The settings were changed and cannot be used: nothing runs until they can",
                hint="Ask the operator to correct the settings.",
            ) from error
        self._seen = stamp
        return loaded

    def forget(self) -> None:
        """Look again the next time: what was loaded could not be put to use."""
        self._seen = _NEVER

    def _stamp(self) -> Stamp:
        try:
            status = os.stat(self._path)  # noqa: PTH116 - on the path of every call
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


_NEVER = object()


class PendingRestart:
    """Which settings of a followed file wait for the server to start again."""

    def __init__(self, running: Config) -> None:
        self._running = running
        self._reported: dict[str, Any] = {}

    def unreported(self, config: Config) -> tuple[str, ...]:
        """The names of those that have changed since the last time this was asked."""
        sections = (self._running.sections | config.sections).values()
        kinds = {type(each) for each in sections}
        running = dict(_settled(self._running, kinds))
        waiting = {name: value for name, value in _settled(config, kinds) if value != running[name]}
        unreported = tuple(
            name
            for name, value in waiting.items()
            if name not in self._reported or self._reported[name] != value
        )
        self._reported = waiting
        return unreported


def _settled(config: Config, kinds: Collection[type[Section]] = ()) -> Iterator[tuple[str, Any]]:
    """Name and value of every setting that is not followed, those of tables one by one: of `kinds`
    of sections, which may be left out, too."""
    fields = {name: getattr(config, name) for name in Config.__struct_fields__}
    fields |= {kind.NAME: config.section(kind) for kind in kinds}
    del fields["sections"]
    for name, value in fields.items():
        if name in ("oauth", "tls") or not isinstance(value, msgspec.Struct):
            inner = [(name, value)]
        else:
            inner = [(f"{name}.{each}", getattr(value, each)) for each in value.__struct_fields__]
        yield from (pair for pair in inner if pair[0] not in FOLLOWED)
