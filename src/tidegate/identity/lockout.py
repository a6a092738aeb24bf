"""Lockout: an address that keeps failing to authenticate is refused for a while.

Counts by address, never by token, because a guesser sends another token each time. A success
forgives nothing: failures only age, otherwise the holder of one token could go on guessing others.
The caller gives the time. With a shared store it is called on a
thread, since it reads and writes the state.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import TypeVar

from tidegate.errors import Code, TidegateError
from tidegate.store.api import SharedStore

FAILURES = 5
WINDOW_S = 60.0
LOCK_S = 300.0
ADDRESSES = 10_000
_FORGET_EVERY = 100
_KEPT_S = 3_600.0
"""How long a failure is kept in the state: longer than any window."""

Value = TypeVar("Value")


class Lockout:
    """Failures by address: `failures` of them within `window_s` lock it for `lock_s` seconds.

    Keeps `ADDRESSES` at most; the longest quiet is forgotten first. With `shared` the servers on
    one state count together, under the name `kind`: five attempts are five, however many servers
    they are spread over. While the state cannot be read or written, this process counts by itself.
    """

    def __init__(
        self,
        failures: int = FAILURES,
        window_s: float = WINDOW_S,
        lock_s: float = LOCK_S,
        *,
        shared: SharedStore | None = None,
        kind: str = "login",
    ) -> None:
        self._shared = shared
        self._kind = kind
        self._until_forgotten = 0
        self._most = failures
        self._window_s = window_s
        self._lock_s = lock_s
        self._counting = Lock()
        self._failures: dict[str, list[float]] = {}
        self._locked_until: dict[str, float] = {}

    def check(self, address: str, now: float) -> None:
        """Raises: TidegateError AUTH_LOCKED_OUT while the address is locked out; STATE_FAILED
        where that was changed in the state past the gates."""
        key = origin(address)
        until = self._locked_until.get(key)
        if until is not None and now >= until:
            self._locked_until.pop(key, None)
            until = None
        if until is None and self._shared is not None:
            until = self._find_lock(self._shared, key, now)
        if until is None:
            return
        if until > now + self._lock_s:  # the clock was set back: a lock lasts no longer for that
            until = now + self._lock_s
            with self._counting:
                _put(self._locked_until, key, until)
            if self._shared is not None:
                with suppress(TidegateError):
                    self._shared.lock_sealed(f"{self._kind} {key}", until, now)
        raise TidegateError(
            Code.AUTH_LOCKED_OUT,
            "Too many failed attempts from this address.",
            retry_after_s=until - now,
        )

    def _find_lock(self, shared: SharedStore, key: str, now: float) -> float | None:
        """Until when other servers have locked the key. What was seen once is remembered: no one
        lifts it here who removes it from the state. Raises: TidegateError STATE_FAILED where the
        locks were changed past the gates."""
        try:
            until = shared.sealed_until(f"{self._kind} {key}", now)
        except TidegateError as error:
            if error.details.get("area"):
                raise
            return None
        if until is not None:
            with self._counting:
                _put(self._locked_until, key, until)
        return until

    def failed(self, address: str, now: float) -> bool:
        """Count a failed attempt; True if it locks the address."""
        key = origin(address)
        locked = self._failed_anywhere(f"{self._kind} {key}", now)
        with self._counting:
            # Taken out and put back, so that the dict's order is that of the last failure.
            recent = [at for at in self._failures.pop(key, ()) if now - at < self._window_s]
            recent.append(now)
            if not locked and len(recent) < self._most:
                _put(self._failures, key, recent)
                return False
            self._locked_until.pop(key, None)
            _put(self._locked_until, key, now + self._lock_s)
        return True

    def _failed_anywhere(self, key: str, now: float) -> bool:
        """Count the attempt for all servers on this state; True if it locks the address."""
        if self._shared is None:
            return False
        with suppress(TidegateError):
            if self._until_forgotten == 0:
                self._shared.forget(now, _KEPT_S)
                self._until_forgotten = _FORGET_EVERY
            self._until_forgotten -= 1
            most, window_s = self._most, self._window_s
            if self._shared.add_failure(key, now, most=most, window_s=window_s):
                self._shared.lock_sealed(key, now + self._lock_s, now)
                return True
        return False


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
