"""The other processes that serve the same gate, as one of them sees them.

`tidegate.serve` connects what is here with the process that started the workers. A process that
serves alone has no siblings: no one gets what it tells.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

from tidegate.model.worker_share import ALONE, WorkerShare

Answer = Callable[[], Awaitable[bytes]]
Receive = Callable[[bytes], None]


def _tell_no_one(topic: str, body: bytes) -> None:
    """There is no one else."""


async def _say_nothing() -> None:
    """No one asks."""


class Siblings:
    """`share` says which worker this process is, `secret` are 32 bytes that all workers of the gate
    have as long as their parent lives. Used on the event loop."""

    def __init__(
        self, share: WorkerShare = ALONE, secret: bytes = b"", server_pid: int = 0
    ) -> None:
        self.share = share
        self.server_pid = server_pid or os.getpid()
        """The process that is asked to end if the server is."""
        self.secret = secret or os.urandom(32)
        self.answers: dict[str, Answer] = {}
        """What the parent may ask this process, by topic; it also gets each answer at the end."""
        self.send: Callable[[str, bytes], None] = _tell_no_one
        self.say_last: Callable[[], Awaitable[None]] = _say_nothing
        """Gives the parent the last answers, when no caller is served any more."""
        self._receivers: dict[str, list[Receive]] = {}

    @property
    def are_there(self) -> bool:
        """Whether this process is one of several."""
        return self.share.number > 0

    def tell(self, topic: str, body: bytes) -> None:
        """Have all others receive it, soon; one that ends meanwhile does not."""
        self.send(topic, body)

    def listen(self, topic: str, receive: Receive) -> None:
        """Call `receive` with what others tell about a topic."""
        self._receivers.setdefault(topic, []).append(receive)

    def take(self, topic: str, body: bytes) -> None:
        """Another one has sent it."""
        for receive in self._receivers.get(topic, ()):
            receive(body)
