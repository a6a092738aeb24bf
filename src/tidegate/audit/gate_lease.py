"""The lease of a gate's id in a state that gates share, and the head of its record there.

A record is one chain because one volume holds it. A copy of the volume would go on with the same
chain under the same key, and no one could say which of both is the record. So the id of the gate,
which lies beside the segments, is leased: to a directory as it is mounted on a machine since its
start. All processes on that directory have the same holder and share the lease. A copy, or the same
volume at another machine, has another one, and is refused while the lease is renewed.

Each renewal carries the newest signed checkpoint, so an end that is cut off together with the
`head.json` beside the key is found by the state.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from tidegate.audit.checkpoints import is_recorded
from tidegate.audit.control_records import Checkpoint, parse_checkpoint
from tidegate.audit.keys import Keys
from tidegate.audit.segment import number_of
from tidegate.audit.shipped import gate_id
from tidegate.errors import Code, TidegateError
from tidegate.store.api import State
from tidegate.store.gates import GateEntry
from tidegate.system.private_files import make_private_directory
from tidegate.system.processes import name_boot

LEASE_S = 12.0
_RENEW_S = 3.0
_LOOK_S = 0.25
_HOLDER_DIGITS = 32


class GateLease:
    """The lease of the gate in a state directory, for one process. Safe to use from any thread."""

    def __init__(self, state: State, directory: Path, processes: int = 0) -> None:
        """`processes` is how many serve there, 0 for a command. Raises: TidegateError STATE_FAILED
        if the directory cannot be written."""
        self._state = state
        self._processes = processes
        self._head_path = directory / "audit-key" / "head.json"
        self._audit = directory / "audit"
        self._head = b""
        self._head_seen = (0, 0)
        self._keeps_head = False
        self.problem = ""
        """Why the head of this record is not kept in the state, where that is a sign of a change;
        else empty."""
        self._renewed_at = float("-inf")
        try:
            make_private_directory(self._audit)
            self.id = gate_id(self._audit)
            self._holder = holder_of(self._audit)
        except OSError as error:
            raise TidegateError(
                Code.STATE_FAILED,
                f"The id of this gate cannot be kept in `{self._audit}`: {error.strerror}.",
                details={"path": str(self._audit)},
            ) from error
        self._place = f"{platform.node() or 'localhost'}:{directory.absolute()}"
        self._public_key = Keys(directory / "audit-key").public()

    def take(self, wait: Callable[[float], None] = time.sleep) -> None:
        """Take the lease. One that its holder does not renew, as when the volume was moved to this
        machine, is waited for until it ends. Raises: TidegateError STATE_FAILED if another volume
        holds it."""
        first = found = self._claim()
        for _ in range(int((LEASE_S + _RENEW_S) / _LOOK_S)):
            if found.holder == self._holder:
                break
            if first.holder != found.holder:
                first = found
            elif found.renewed_at > first.renewed_at:
                break
            wait(_LOOK_S)
            self._state.read_versions()  # which compares the clocks again
            found = self._claim()
        if found.holder != self._holder:
            raise self._refused(found)
        self._compare(found.head)

    def renew(self) -> None:
        """Renew the lease if it is time, or there is another head. Raises: TidegateError
        STATE_FAILED if it is another one's by now, or the state cannot be written."""
        if time.monotonic() < self._renewed_at + _RENEW_S and not self._has_new_head():
            return
        found = self._claim()
        if found.holder != self._holder:
            raise self._refused(found)

    def close(self) -> None:
        """Keep the last head, if it is not kept. The lease ends by itself. Never raises."""
        with suppress(TidegateError):
            if self._has_new_head():
                self._claim()

    def _compare(self, kept: bytes) -> None:
        """Go on from the head that the state has. One that is not in the record stays there, for
        `audit verify`: this record is an older copy, or was cut off."""
        found = _parse(kept)
        self._keeps_head = not kept or (found is not None and self._holds(kept, found))
        if not self._keeps_head:
            where = f"{found.segment} number {found.seq}" if found is not None else "no checkpoint"
            self.problem = (
                f"the state has {where} as the end of this record, which does not hold it: it was"
                " cut off, or put back from an older copy; run `tidegate audit verify`"
            )

    def _holds(self, kept: bytes, head: Checkpoint) -> bool:
        mine = self._read_head()[1]
        if mine == kept:
            return True
        try:
            return is_recorded(self._audit, head)
        except FileNotFoundError:
            newest = _parse(mine)
            return newest is not None and number_of(head.segment) < newest.oldest
        except OSError:
            return False

    def _claim(self) -> GateEntry:
        seen, head = self._read_head() if self._keeps_head else (self._head_seen, b"")
        began, now = time.monotonic(), self._state.now()
        claim = GateEntry(
            self.id,
            self._holder,
            self._place,
            self._public_key,
            self._processes,
            head,
            renewed_at=now,
            expires_at=now + LEASE_S,
        )
        try:
            found = self._state.gates.claim(claim)
        except TidegateError:
            # Where the state can be read and not written, as on a full disk, no one else takes it.
            for found in self._state.gates.list():
                if (found.id, found.holder) == (self.id, self._holder):
                    return found
            raise
        if found.holder == self._holder:
            self._renewed_at, self._head_seen, self._head = began, seen, head
        return found

    def _has_new_head(self) -> bool:
        return self._keeps_head and _seen(self._head_path) != self._head_seen

    def _read_head(self) -> tuple[tuple[int, int], bytes]:
        """The newest checkpoint, which another process may replace meanwhile by a newer one."""
        seen = _seen(self._head_path)
        with suppress(OSError):
            return seen, self._head_path.read_bytes()
        return seen, self._head

    def _refused(self, held: GateEntry) -> TidegateError:
        return TidegateError(
            Code.STATE_FAILED,
            f"The record in `{self._place.partition(':')[2]}` is that of the gate {self.id}, which"
            f" `{held.place}` writes: this is a copy of it, or the same volume at another machine.",
            hint="End the other one and start again after"
            f" {LEASE_S:g} s; or, for a gate of its own, move `audit` and `audit-key` out of this"
            " directory first.",
            details={"gate": self.id, "holder": held.place},
        )


def holder_of(directory: Path) -> str:
    """A name of this directory, as it is mounted on this machine since its start: the same
    for each process here, and another one for a copy. Raises: OSError."""
    found = directory.stat()
    text = f"{name_boot()} {found.st_dev} {found.st_ino}"
    return sha256(text.encode()).hexdigest()[:_HOLDER_DIGITS]


def _parse(head: bytes) -> Checkpoint | None:
    with suppress(TidegateError):
        return parse_checkpoint(head)
    return None


def _seen(path: Path) -> tuple[int, int]:
    with suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns
    return 0, 0
