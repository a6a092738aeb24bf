"""The audit log: appends events to a hash chain that outlives the process, one line each.

Decides nothing about what is recorded or what may run without a record. An event is either in
the chain as a whole or not at all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from tidegate import __version__
from tidegate.audit import chain
from tidegate.audit.event import Event, Opening, encode, encode_opening
from tidegate.audit.happening import Happening, Tally, encode_happening
from tidegate.audit.segment import claim
from tidegate.audit.sync import GroupSync, unavailable
from tidegate.errors import GateError


class AuditLog:
    """The log in `directory` (made if need be, mode 0700). Safe to use from several threads.

    Several logs may be open on one directory, each appends to a segment of its own. Signed
    checkpoints of the chain belong beside `append`, where the last hash is known.
    """

    def __init__(self, directory: Path, clock: Callable[[], float] = time.time) -> None:
        """Open, continue a chain and put that on record. Raises: GateError AUDIT_UNAVAILABLE."""
        self._clock = clock
        self._lock = Lock()
        self._closed = False
        self._torn = False
        self._tallied = Tally()
        self.failing = False
        """Whether the last line could not be written."""
        try:
            claimed = claim(directory)
        except OSError as error:
            raise unavailable(f"{error.strerror} (`{directory}`)") from error
        self.path = claimed.path
        self._descriptor = claimed.descriptor
        self._size = claimed.tail.size
        self._seq = claimed.tail.seq
        self._hash = claimed.tail.hash
        self._sync = GroupSync(self._descriptor)
        opening = Opening(
            seq=self._seq + 1,
            time=datetime.fromtimestamp(clock(), UTC),
            phase="open",
            segment=self.path.name,
            process=os.getpid(),
            version=__version__,
            witnesses=claimed.witnesses,
            unreadable=claimed.unreadable,
            torn=claimed.torn,
        )
        try:
            self._write(encode_opening(opening))
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, event: Event) -> int:
        """Put an event on record and return its number, for `durable`.

        When this returns, the line is with the operating system: it outlives this process, and
        a power cut too once it is synced, within half a second or so.
        Raises: GateError AUDIT_UNAVAILABLE; then the event is not in the chain.
        """
        with self._lock:
            return self._write(encode(event, self._seq + 1, self._clock()))

    def note(self, happening: Happening) -> int:
        """Put on record what a person or the server does, and return its number, for `durable`.

        For what is done on somebody's authority (`token.created`, `approval.decided`): call it
        first, and do it only if this returns. Raises: GateError AUDIT_UNAVAILABLE.
        """
        with self._lock:
            return self._write(encode_happening(happening, self._seq + 1, self._clock()))

    def tally(self, happening: Happening) -> None:
        """Put on record what needs no token to cause (`login.failed`): the first few of a name in
        a minute each, then how many there were. Never raises: what it tells was refused anyway.
        """
        now = self._clock()
        with self._lock, suppress(GateError):
            self._tell(now)
            if self._tallied.admits(happening, now):
                self._write(encode_happening(happening, self._seq + 1, now))

    def _tell(self, now: float, *, all_of_them: bool = False) -> None:
        for happening, count in self._tallied.over(now, all_of_them=all_of_them):
            self._write(encode_happening(happening, self._seq + 1, now, count))

    async def durable(self, seq: int) -> None:
        """Return when the event `seq` and all before it outlive a power cut.

        Everyone who waits shares one sync. Raises: GateError AUDIT_UNAVAILABLE.
        """
        await self._sync.wait(seq)

    def close(self) -> None:
        """Sync, and let another process continue the segment. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            with suppress(GateError):
                self._tell(self._clock(), all_of_them=True)
            self._closed = True
            self._sync.close()
            os.close(self._descriptor)

    def _write(self, body: bytes) -> int:
        if self._closed or self._sync.failure is not None:
            self.failing = True
            raise unavailable(self._sync.failure or "it is closed")
        line, new_hash = chain.seal(body, self._hash)
        line += b"\n"
        self._put(line)
        self._size += len(line)
        self._hash = new_hash
        self._seq += 1
        self._sync.note(self._seq)
        return self._seq

    def _put(self, line: bytes) -> None:
        """Write a line as a whole or, on a full disk, not at all."""
        try:
            if self._torn:
                self._take_back()
            if os.write(self._descriptor, line) == len(line):
                self.failing = False
                return
            reason = "there was no room for a whole line"
        except OSError as error:
            reason = error.strerror or str(error)
        self._torn = self.failing = True
        # If it cannot be taken back now, then before the next line, or by whoever opens it next.
        with suppress(OSError):
            self._take_back()
        raise unavailable(reason)

    def _take_back(self) -> None:
        os.ftruncate(self._descriptor, self._size)
        self._torn = False
