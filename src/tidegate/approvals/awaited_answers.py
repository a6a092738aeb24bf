"""Tells the calls that wait for a person when their question was answered.

However many calls wait, one task reads the state for all of them: when something changed about
approvals, and when another call begins to wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from tidegate.errors import TidegateError
from tidegate.store.calls import read_state
from tidegate.store.supervision import ApprovalStore
from tidegate.store.versions import LOOK_S, Versions

SURE_S = 5.0
"""After so long the state is read without a change: what is kept says when a wait is over, and a
count that was missed must not keep a call waiting."""


class AwaitedAnswers:
    """The calls of one process that wait. Without `versions`, or where nothing follows them, the
    state is read every `LOOK_S`."""

    def __init__(self, store: ApprovalStore, versions: Versions | None = None) -> None:
        self._store = store
        self._versions = versions
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(self, id: str, gone: asyncio.Event, within_s: float) -> bool:
        """Wait until the question of that id was answered; False if `gone` is set before, or it
        still waits after so long."""
        answered = asyncio.Event()
        self._waiting.setdefault(id, set()).add(answered)
        self._begin()
        ends = [asyncio.ensure_future(each.wait()) for each in (answered, gone)]
        try:
            await asyncio.wait(ends, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            return answered.is_set()
        finally:
            for each in ends:
                each.cancel()
            if (others := self._waiting.get(id)) is not None:
                others.discard(answered)
                if not others:
                    del self._waiting[id]
            if not self._waiting:
                self._wake.set()

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._wake = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._follow())
        self._wake.set()

    async def _follow(self) -> None:
        wake, stop = self._wake, self._listen()
        try:
            while self._waiting:
                wake.clear()  # before the read: what comes during it is read again
                with suppress(TidegateError):  # it is read again in a moment
                    await self._tell()
                followed = self._versions is not None and self._versions.followed
                with suppress(TimeoutError):
                    await asyncio.wait_for(wake.wait(), SURE_S if followed else LOOK_S)
        finally:
            stop()

    async def _tell(self) -> None:
        """Read which questions are answered, and tell those who wait for them."""
        for id in await read_state(self._store.answered, tuple(self._waiting)):
            for answered in self._waiting.pop(id, ()):
                answered.set()

    def _listen(self) -> Callable[[], None]:
        """Wake at a change; returns what ends that."""
        if self._versions is None:
            return _nothing
        loop, wake = asyncio.get_running_loop(), self._wake

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(wake.set)

        return self._versions.listen("approvals", tell)


def _nothing() -> None:
    return None
