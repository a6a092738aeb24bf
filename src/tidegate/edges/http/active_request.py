"""A request that is being answered: its actor, and whether its client is still connected."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.edges.http1.request import IncomingRequest
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation


class ActiveRequest(Cancellation, eq=False, kw_only=True):
    """The cancellation of one request. After `watch` it is cancelled when its client disconnects.

    The caller that makes it adds it to the `active` set, so that others can cancel it; `end`
    removes it. A `detached` request outlives its connection: the client may come back. An `endless`
    one is a stream that ends only when the client or the server ends it.
    """

    request: IncomingRequest
    actor: Actor
    active: set[ActiveRequest]
    detached: bool = False
    answered_early: bool = False
    """Whether the reply was given though the call goes on."""
    endless: bool = False
    on_left: Callable[[], None] | None = None
    """What happens when the client disconnects, in place of the cancellation."""
    on_silence: Callable[[], None] | None = None
    """What happens when there is no answer after a while."""
    checks: int = 0

    def watch(self) -> None:
        self.request.when_gone(self._left)

    def _left(self) -> None:
        if self.on_left is not None and not self.detached:
            self.on_left()
        elif not self.detached:
            self.cancel("the client disconnected")

    def end(self) -> None:
        self.active.discard(self)
        self.request.when_gone(None)
        self.on_left = self.on_silence = None  # they lead back here: a cycle for each call
