"""Whether a server can do its work: what `/ready`, the log, `tidegate status` and the console say.

That the state and the record can be *written* is only known by writing. `/ready` tries it, on
threads of its own, at most once in `PAUSE_S` however often it is asked; a disk that does not answer
within `PATIENCE_S` counts as one that cannot be written.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping

from tidegate.errors import Code, TidegateError

PAUSE_S = 1.0
PATIENCE_S = 2.0

Failures = Mapping[str, TidegateError]
"""By part of the server, what keeps it from its work."""


class Readiness:
    """`known` gives the failures that are seen without a try, in microseconds. `writes` are tried:
    each writes a little to its part, and raises TidegateError if it cannot."""

    def __init__(
        self,
        known: Callable[[], Failures],
        writes: Mapping[str, Callable[[], None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stopping = False
        """Set once the server was asked to stop: no balancer is to send it callers."""
        self._known = known
        self._clock = clock
        self._writes = {part: _Write(part, write, clock) for part, write in writes.items()}

    def failures(self) -> Failures:
        """What is known without a try, and what the last tries found."""
        found = {part: write.failure for part, write in self._writes.items() if write.failure}
        found.update(self._known())
        if self.stopping:
            found["server"] = TidegateError(Code.SERVER_STOPPING, "The server is stopping")
        return found

    def reasons(self) -> dict[str, str]:
        """`failures` as texts, for those who operate the server."""
        return {part: error.without_secrets().message for part, error in self.failures().items()}

    async def tried(self) -> Failures:
        """`failures` once the writes were tried, unless that has just been done."""
        if not self.stopping:
            await asyncio.gather(*(write.look() for write in self._writes.values()))
        return self.failures()


class _Write:
    """One write that is tried, and what came of it last."""

    def __init__(self, part: str, write: Callable[[], None], clock: Callable[[], float]) -> None:
        self.failure: TidegateError | None = None
        self._part = part
        self._write = write
        self._clock = clock
        self._due = 0.0
        self._trying: asyncio.Future[TidegateError | None] | None = None

    async def look(self) -> None:
        """Try it, unless it was tried within `PAUSE_S`; a try that is under way is waited for."""
        now = self._clock()
        if self._trying is None:
            if now < self._due:
                return
            self._due = now + PAUSE_S
            self._trying = self._begin()
        trying = self._trying
        await asyncio.wait((trying,), timeout=PATIENCE_S)
        if trying.done():
            self.failure = trying.result()
            if self._trying is trying:
                self._trying = None
        else:
            self.failure = TidegateError(
                Code.STATE_FAILED, f"Writing to the {self._part} takes longer than {PATIENCE_S} s"
            )

    def _begin(self) -> asyncio.Future[TidegateError | None]:
        """Try it on a thread that the end of the process does not wait for: a disk may hang."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[TidegateError | None] = loop.create_future()

        def tell(failure: TidegateError | None) -> None:
            if not ended.done():
                ended.set_result(failure)

        def run() -> None:
            failure: TidegateError | None = None
            try:
                self._write()
            except TidegateError as error:
                failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(tell, failure)

        threading.Thread(target=run, name=f"writes to the {self._part}", daemon=True).start()
        return ended
