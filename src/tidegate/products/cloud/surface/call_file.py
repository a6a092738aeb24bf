"""A file with one line of JSON for each call of a tool, for readers who want no more than that.

It is a view next to the signed log, which it does not replace. A line is written after the call and
before its reply. The file is rotated by size; rotated ones are removed by number and age, at a
rotation and before the first line of a process. Several processes may write to it.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from tidegate.audit.event import escape_invisible
from tidegate.errors import Code, TidegateError
from tidegate.system.file_locks import end_lock, take_lock
from tidegate.system.private_files import make_private_directory, open_file

MAX_PENDING: Final = 1_000
"""Lines that are kept in memory while the file cannot be written."""

_STAMP = r"\d{8}T\d{6}\.\d{6}Z(?:-\d+)?"

_encode = msgspec.json.Encoder().encode


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One call of a tool. `timestamp` is when it began (RFC 3339). It holds no secrets."""

    timestamp: str
    tool: str
    mode: str
    decision: str
    query_class: str = ""
    sql: str = ""
    args: dict[str, Any] = {}
    duration_ms: int
    error: str = ""


class CallFile:
    """The file at `path`, mode 0600; its directory is made with mode 0700. `max_bytes` is its size
    before it is rotated; of rotated files `backups` are kept, and none older than `age_s`; 0 keeps
    all. `series` is a pattern for the names of files that other processes began in the directory,
    which are removed by age as well. Blocking; safe to use from several threads."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        backups: int = 0,
        age_s: float = 0.0,
        series: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._age_s = age_s
        self._series = series
        self._clock = clock
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._opened_file = (0, 0)
        self._pending: deque[bytes] = deque(maxlen=MAX_PENDING)
        self._has_begun = False
        self.lost = 0
        """Lines that could not be written and were too many to keep."""

    def check(self) -> None:
        """Write what is pending, and see that the file is there and can be written.

        Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        with self._lock:
            try:
                self._flush()
            except OSError as fault:
                raise self._unavailable(fault) from fault

    def write(self, record: CallRecord) -> None:
        """Write a line and wait until it is on the disk. A line that cannot be written follows when
        the file can be written again.

        Raises: TidegateError AUDIT_UNAVAILABLE.
        """
        line = escape_invisible(_encode(record)) + b"\n"
        with self._lock:
            if len(self._pending) == MAX_PENDING:
                self.lost += 1
            self._pending.append(line)
            try:
                self._flush()
            except OSError as fault:
                raise self._unavailable(fault) from fault

    def close(self) -> None:
        with self._lock:
            self._close()

    def _flush(self) -> None:
        descriptor = self._opened()
        try:
            take_lock(descriptor)
            if not self._is_current(descriptor):  # another process has rotated it meanwhile
                descriptor = self._reopened()
                take_lock(descriptor)
            if not self._has_begun:
                self._remove_old()
                self._has_begun = True
            while self._pending:
                line = self._pending[0]
                size = os.fstat(descriptor).st_size
                if size and size + len(line) > self._max_bytes:
                    self._rotate()
                    descriptor = self._reopened()
                    take_lock(descriptor)
                    size = os.fstat(descriptor).st_size
                self._append(descriptor, line, size)
                self._pending.popleft()
        except OSError:
            self._close()
            raise
        end_lock(descriptor)

    def _append(self, descriptor: int, line: bytes, size: int) -> None:
        """Write a whole line or nothing."""
        written = 0
        try:
            while written < len(line):
                written += os.write(descriptor, line[written:])
            os.fsync(descriptor)
        except OSError:
            if written:
                os.ftruncate(descriptor, size)
            raise

    def _opened(self) -> int:
        if self._descriptor is not None and self._is_current(self._descriptor):
            return self._descriptor
        return self._reopened()

    def _reopened(self) -> int:
        self._close()
        make_private_directory(self.path.parent)
        self._descriptor = open_file(self.path, "append")
        self._opened_file = _identity(os.fstat(self._descriptor))
        return self._descriptor

    def _is_current(self, descriptor: int) -> bool:
        """Whether the descriptor is open and the path still leads to its file."""
        try:
            return _identity(os.fstat(descriptor)) == _identity(self.path.stat())
        except OSError:
            return False

    def _rotate(self) -> None:
        stamp = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        target = self.path.with_name(f"{self.path.stem}-{stamp}{self.path.suffix}")
        count = 1
        while target.exists():
            count += 1
            target = self.path.with_name(f"{self.path.stem}-{stamp}-{count}{self.path.suffix}")
        self.path.rename(target)
        self._remove_old()

    def _remove_old(self) -> None:
        """Remove rotated files that are too many or too old; the caller holds the lock."""
        rotated = sorted(self._rotated(), key=lambda each: (each.stat().st_mtime_ns, each.name))
        old = rotated[: -self._backups] if self._backups else []
        if self._age_s:
            since = self._clock() - self._age_s
            old += [each for each in rotated if each not in old and each.stat().st_mtime < since]
            self._remove_begun_by_others(since)
        for each in old:
            each.unlink(missing_ok=True)

    def _rotated(self) -> list[Path]:
        name = f"{re.escape(self.path.stem)}-{_STAMP}{re.escape(self.path.suffix)}"
        return [each for each in self.path.parent.iterdir() if re.fullmatch(name, each.name)]

    def _remove_begun_by_others(self, since: float) -> None:
        if not self._series:
            return
        name = re.compile(rf"{self._series}(?:-{_STAMP})?{re.escape(self.path.suffix)}")
        for each in list(self.path.parent.iterdir()):
            if each != self.path and name.fullmatch(each.name):
                # Another process may remove it at the same time, or own it.
                with suppress(OSError):
                    if each.stat().st_mtime < since:
                        each.unlink()

    def _close(self) -> None:
        """Close the descriptor, unless it leads to another file by now: then another part of the
        process has closed ours, and this one belongs to another."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):
                if _identity(os.fstat(descriptor)) == self._opened_file:
                    os.close(descriptor)

    def _unavailable(self, fault: OSError) -> TidegateError:
        reason = fault.strerror or "it cannot be written"
        return TidegateError(
            Code.AUDIT_UNAVAILABLE,
            f"The file of calls {self.path} cannot be written: {reason}",
            hint="Tell the operator: the file, its directory or the disk needs attention.",
            details={"path": str(self.path)},
        )


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
