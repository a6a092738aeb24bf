"""A request that is being answered: its actor, and whether its client is still connected."""

from __future__ import annotations

from tidegate.edges.http1.request import Request
from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation


class ActiveRequest(Cancellation):
    """The cancellation of one request. After `watch` it is cancelled when its client disconnects.

    It is in the `active` set until `end`, so that others can cancel it. A `detached` request
    outlives its connection: the client may come back. An `endless` one is a stream that ends only
    when the client or the server ends it.
    """

    __slots__ = ("_active", "_request", "actor", "detached", "endless")

    def __init__(self, request: Request, actor: Actor, active: set[ActiveRequest]) -> None:
        super().__init__()
        self._request = request
        self._active = active
        self.actor = actor
        self.detached = False
        self.endless = False
        active.add(self)

    def watch(self) -> None:
        self._request.when_gone(self._left)

    def _left(self) -> None:
        if not self.detached:
            self.cancel("the client disconnected")

    def end(self) -> None:
        self._active.discard(self)
        self._request.when_gone(None)
