"""Events of sessions that go to other gates through the state."""

from __future__ import annotations

import asyncio
from typing import Any

from tidegate.gateway.shared_sessions import SharedSessions
from tidegate.protocol.session_links import digest_of
from tidegate.siblings import Siblings


class FullMailbox:
    """A mailbox of a state that takes nothing for now."""

    def __init__(self) -> None:
        self.given = 0
        self.taken = asyncio.Event()

    def handle(self, kind: str, handle: Any) -> None:
        """Nothing comes."""

    async def send(self, kind: str, body: bytes, to: str = "") -> None:
        self.given += 1
        await self.taken.wait()


async def test_events_do_not_heap_up_before_a_state_that_is_slow() -> None:
    mailbox: Any = FullMailbox()
    state: Any = None
    links = SharedSessions(state, Siblings(), mailbox, reaches_gates=True).links
    for n in range(500):
        links.send("event", digest_of(str(n)), body=b"progress")
    links.send("ended", digest_of("1"))
    await asyncio.sleep(0)
    assert mailbox.given == 64 + 1, "what ends a session is sent in any case"
    mailbox.taken.set()
