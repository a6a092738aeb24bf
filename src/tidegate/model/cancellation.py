"""How a call is ended before it has an answer. Imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

READ_ENOUGH = "the portal was closed"
"""The reason of a caller who wants no more rows: that is no failure of its statement."""


class Cancellation(msgspec.Struct, eq=False):
    """Whether the caller has gone or changed its mind; engines hang their interrupt on it.

    An edge may override `watch`, which is called when a listener is added: so only calls that do
    not answer at once pay the cost of watching a connection.
    """

    reason: str | None = None
    _listeners: list[Callable[[], None]] = []

    def watch(self) -> None:
        """Begin to see whether the caller is still there; asked again at every listener."""

    @property
    def cancelled(self) -> bool:
        return self.reason is not None

    def cancel(self, reason: str = "cancelled") -> None:
        """Call every listener once; later listeners are called immediately."""
        if self.reason is not None:
            return
        self.reason = reason
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop when the call is cancelled."""
        if self.reason is not None:
            listener()
            return
        self._listeners.append(listener)
        self.watch()

    def forget(self, listener: Callable[[], None]) -> None:
        """Take a listener back; unknown ones are ignored."""
        if listener in self._listeners:
            self._listeners.remove(listener)


NEVER = Cancellation()
"""For calls that cannot be cancelled. Never cancel it."""
