"""How one frame was received, and its answer: the types between an edge and the kernel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tidegate.model.actors import Actor
from tidegate.model.cancellation import Cancellation
from tidegate.protocol.headers import Headers
from tidegate.protocol.revisions import MODERN
from tidegate.protocol.session import MessageSender, Session
from tidegate.protocol.text_stream import ReplyBody

if TYPE_CHECKING:  # it reads contexts, and its type is a name alone here
    from tidegate.protocol.repeated_calls import RepeatedCalls


class Answer(NamedTuple):
    """A reply frame and, for HTTP, its status and further headers."""

    frame: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()


class ServedElsewhere(Exception):
    """Unwinds a request that another worker of the gate is to answer: it has the task that the
    request is about. Only raised where the edge can pass the request on (`passes_on`). `lasts`: the
    answer ends only when the client or the server ends it."""

    def __init__(self, worker: int, *, lasts: bool = False) -> None:
        super().__init__(f"worker {worker}")
        self.worker = worker
        self.lasts = lasts


class TransportContext(msgspec.Struct, eq=False):
    """Who sent a frame, over which transport, and where messages to the client are sent.

    `headers` and `address`, the client's, are given over HTTP only. `session` is the client's
    session, if it has one; the kernel sets it when the frame opens one. With a `body` a result may
    be sent while it is produced, and the frame of the answer is then the rest of it. `repeated` are
    the calls that the connection has sent with the same head. `early` gives the reply before the
    call has ended; the frame then gets no other. The edge can have each of
    `passes_on` workers answer the frame.
    """

    actor: Actor
    sender: MessageSender
    session: Session | None = None
    headers: Headers | None = None
    address: str = ""
    cancellation: Cancellation = msgspec.field(default_factory=Cancellation)
    closer: Callable[[int | None], Awaitable[None]] | None = None
    body: ReplyBody | None = None
    repeated: RepeatedCalls | None = None
    early: Callable[[Answer], None] | None = None
    passes_on: int = 0

    @property
    def names_modern(self) -> bool:
        """Whether a header says that the frame is of the stateless era."""
        if self.headers is None:
            return False
        named = self.headers.get(b"mcp-protocol-version")
        return named is not None and named.decode("latin-1") in MODERN

    @property
    def leaves_ids_out(self) -> bool:
        """Whether an error to an unreadable frame has no id, rather than the id `null`."""
        session = self.session
        if session is not None and session.revision is not None:
            return not session.revision.null_ids
        return self.names_modern or (session is not None and session.stateless)
