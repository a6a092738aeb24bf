"""Lockout: an address that keeps failing to authenticate is turned away for a while.

Counts by address, never by token, because a guesser sends another token each time. A success
forgives nothing: failures only age, otherwise the holder of one token could go on guessing others.
Pure: the caller gives the time.
"""

from __future__ import annotations

from typing import TypeVar

from tidegate.errors import Code, TidegateError

FAILURES = 5
WINDOW_S = 60.0
LOCK_S = 300.0
ADDRESSES = 10_000

Value = TypeVar("Value")


class Lockout:
    """Failures by address: `failures` of them within `window_s` lock it for `lock_s` seconds.

    Keeps `ADDRESSES` at most; the longest quiet is forgotten first.
    """

    def __init__(
        self, failures: int = FAILURES, window_s: float = WINDOW_S, lock_s: float = LOCK_S
    ) -> None:
        self._most = failures
        self._window_s = window_s
        self._lock_s = lock_s
        self._failures: dict[str, list[float]] = {}
        self._locked_until: dict[str, float] = {}

    def check(self, address: str, now: float) -> None:
        """Raises: TidegateError AUTH_LOCKED_OUT while the address is locked out."""
        if not self._locked_until:
            return
        key = origin(address)
        until = self._locked_until.get(key)
        if until is None:
            return
        if now >= until:
            del self._locked_until[key]
            return
        raise TidegateError(
            Code.AUTH_LOCKED_OUT,
            "Too many failed attempts from this address.",
            retry_after_s=until - now,
        )

    def failed(self, address: str, now: float) -> bool:
        """Count a failed attempt; True if it locks the address."""
        key = origin(address)
        # Taken out and put back, so that the dict's order is that of the last failure.
        recent = [at for at in self._failures.pop(key, ()) if now - at < self._window_s]
        recent.append(now)
        if len(recent) < self._most:
            _put(self._failures, key, recent)
            return False
        self._locked_until.pop(key, None)
        _put(self._locked_until, key, now + self._lock_s)
        return True


def _put(table: dict[str, Value], key: str, value: Value) -> None:
    if len(table) >= ADDRESSES:
        del table[next(iter(table))]
    table[key] = value


def origin(address: str) -> str:
    """What counts as one address: for IPv6 its /64, the least that one holder is given."""
    if ":" not in address:
        return address
    from ipaddress import IPv6Address

    try:
        parsed = IPv6Address(address)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> 64:x}/64"
