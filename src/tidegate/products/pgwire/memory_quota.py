"""How many bytes the sessions of a caller make the server keep: prepared statements, parameters of
portals, and rows of cursors that outlive their block."""

from __future__ import annotations

from tidegate.products.pgwire.errors import refused

MOST_OF_SESSION = 67_108_864
MOST_OF_CALLER = 268_435_456
"""Bytes of all sessions of one caller. A token that opens many of them gains nothing by it."""


class MemoryQuota:
    """What each caller's sessions hold, by the caller's id."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def of(self, caller: str) -> int:
        """Bytes that are held for a caller now."""
        return self._held.get(caller, 0)

    def change(self, caller: str, size: int) -> None:
        """Count bytes more, or fewer if `size` is negative."""
        held = self.of(caller) + size
        if held > 0:
            self._held[caller] = held
        else:
            self._held.pop(caller, None)


class SessionMemory:
    """What one session holds."""

    def __init__(self, held: MemoryQuota, caller: str) -> None:
        self._held = held
        self._caller = caller
        self._size = 0

    def check(self, size: int) -> None:
        """Raises: TidegateError 53200 if so many bytes more may not be held."""
        if self._size + size > MOST_OF_SESSION:
            raise refused(
                "53200",
                f"The prepared statements, parameters and cursors WITH HOLD of a session hold"
                f" {MOST_OF_SESSION:,} bytes at most.",
                "Close some, read cursors to their end before the commit, or select less.",
            )
        if self._held.of(self._caller) + size > MOST_OF_CALLER:
            raise refused(
                "53200",
                f"The sessions of one caller hold {MOST_OF_CALLER:,} bytes of prepared statements,"
                " parameters and cursors WITH HOLD at most.",
                "Close some of them, or some sessions.",
            )

    def take(self, size: int) -> None:
        """Hold so many bytes more. Raises: TidegateError 53200."""
        self.check(size)
        self._size += size
        self._held.change(self._caller, size)

    def give_back(self, size: int) -> None:
        """Hold so many bytes no longer."""
        self._size -= size
        self._held.change(self._caller, -size)
