"""A request that is being answered: whose it is, and whether its client is still there."""

from __future__ import annotations

from tidegate.actors import Actor
from tidegate.cancellation import Cancellation
from tidegate.edges.http1.request import Request


class Presence(Cancellation):
    """The cancellation of one request: cancelled when its client goes, once somebody listens.

    It is among the `present` until `end`, so that others can cancel it. A `detached` one is not
    its connection's any more: its client may go and come back.
    """

    __slots__ = ("_present", "_request", "actor", "detached")

    def __init__(self, request: Request, actor: Actor, present: set[Presence]) -> None:
        super().__init__()
        self._request = request
        self._present = present
        self.actor = actor
        self.detached = False
        present.add(self)

    def watch(self) -> None:
        self._request.when_gone(self._left)

    def _left(self) -> None:
        if not self.detached:
            self.cancel("the client disconnected")

    def end(self) -> None:
        self._present.discard(self)
        self._request.when_gone(None)
