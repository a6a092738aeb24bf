"""Which statements one connection's server keeps prepared, and by what names. Sends nothing.

PostgreSQL parses and plans a statement each time it arrives as text. One that comes again is
prepared on its second run, and later runs only name it. The server reads it again when what it
names has changed, or the search path, but not when a new object comes before one that it names:
then `follow` lets go of all. A name is never used twice, so that it cannot mean another text.
"""

from __future__ import annotations

import os
from collections.abc import Hashable

MAX_NAMES = 64
"""Statements that are kept prepared. Once half of them are, their last uses are noted: the one that
was not used for longest goes first."""
MAX_SEEN = 512
"""Statements that are remembered after one run."""
MAX_BYTES = 8_192
"""Longer texts are not prepared."""


class PreparedStatements:
    """The names of one connection.

    `scope` is what else a plan depends on: two callers with different roles do not share one.
    """

    __slots__ = ("_catalog", "_count", "_names", "_new", "_prefix", "_seen", "closing", "enabled")

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled
        self.closing: list[bytes] = []
        """Names that the server may still have and that are used no more."""
        self._prefix = b"tidegate_%s_" % os.urandom(8).hex().encode()
        self._count = 0
        self._catalog: str | None = None
        self._names: dict[tuple[bytes, Hashable], bytes] = {}
        self._seen: dict[int, None] = {}
        self._new: list[tuple[bytes, Hashable]] = []

    def name_of(self, text: bytes, scope: Hashable = None) -> tuple[bytes | None, bool]:
        """The statement's name, if it has one, and whether the server is still to be given it."""
        if not self.enabled:
            return None, False
        key = text, scope
        names = self._names
        name = names.get(key)
        if name is not None:
            if len(names) > MAX_NAMES // 2:
                names[key] = names.pop(key)  # now the one that was used last
            return name, False
        if len(text) > MAX_BYTES:
            return None, False
        seen, number = self._seen, hash(key)
        if number not in seen:
            if len(seen) >= MAX_SEEN:
                del seen[next(iter(seen))]
            seen[number] = None
            return None, False
        if len(names) >= MAX_NAMES:
            self.closing.append(names.pop(next(iter(names))))
        self._count += 1
        names[key] = name = self._prefix + b"%d" % self._count
        self._new.append(key)
        return name, True

    def names_of(self, *statements: tuple[bytes, Hashable]) -> list[tuple[bytes | None, bool]]:
        """As `name_of`, for all statements of a group."""
        if len(self._names) <= MAX_NAMES // 2 and self.enabled:
            found = [self._names.get(statement) for statement in statements]
            if None not in found:
                return [(name, False) for name in found]
        return [self.name_of(text, scope) for text, scope in statements]

    def follow(self, catalog: str | None) -> None:
        """Let go of all statements if the objects of the database are other than before."""
        if catalog != self._catalog:
            self._catalog = catalog
            self.closing += self._names.values()
            self._names.clear()

    def confirm(self) -> None:
        """The server has taken the new names."""
        if self._new:
            self._new.clear()

    def withdraw(self) -> None:
        """The server may not have taken the new names."""
        for text, scope in self._new:
            self.forget(text, scope)
        self._new.clear()

    def forget(self, text: bytes, scope: Hashable) -> None:
        """Give a statement another name when it comes again."""
        name = self._names.pop((text, scope), None)
        if name is not None:
            self.closing.append(name)

    def clear(self) -> None:
        """The server has forgotten all of them. A statement that was seen gets a name at once."""
        self._names.clear()
        self._new.clear()
        self.closing.clear()

    def disable(self) -> None:
        """The server does not keep them: it is reached through a proxy that changes connections."""
        self.enabled = False
        self.clear()
