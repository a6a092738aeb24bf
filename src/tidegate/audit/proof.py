"""What proves a line of the audit log: its chain, read again from the file, and the checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import msgspec

from tidegate.audit import chain
from tidegate.audit.verify import Report, verify
from tidegate.errors import TidegateError

State = Literal["verified", "after_checkpoint", "mismatch", "unknown"]
FRESH_S = 300.0
"""How long a verification of the whole log is taken as it was."""


class LineProof(msgspec.Struct, frozen=True):
    """What is proved of one line. `fields` is all that is on record in it."""

    state: State
    text: str
    fields: dict[str, Any]
    hash: str = ""


class LogProof(msgspec.Struct, frozen=True):
    """What is proved of the whole log, at `at` (Unix seconds)."""

    state: State
    text: str
    at: float
    lines: int = 0
    signed_until: float | None = None


class Prover:
    """Checks the log in `directory` with the keys in `keys`. Safe to use from any thread."""

    def __init__(self, directory: Path, keys: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._keys = keys
        self._clock = clock
        self._lock = Lock()
        self._last: tuple[float, Report] | None = None

    def check_log(self, *, again: bool = False) -> LogProof:
        """What is proved of the whole log. Reads all of it, unless that was done of late.

        Raises: TidegateError STATE_FAILED.
        """
        at, report = self._report(again=again)
        signed = None if report.signed_until is None else report.signed_until.timestamp()
        if report.faults:
            fault = report.faults[0]
            where = f"{fault.segment} line {fault.line}: " if fault.segment else ""
            count = len(report.faults)
            text = f"{count} fault{'s' * (count != 1)} found. {where}{fault.reason}"
            return LogProof("mismatch", text, at, report.lines, signed)
        if signed is None:
            text = f"{report.lines:,} lines follow each other; no checkpoint signs them yet"
            return LogProof("after_checkpoint", text, at, report.lines)
        text = f"{report.lines:,} lines verified; the last checkpoint signs those before it"
        return LogProof("verified", text, at, report.lines, signed)

    def check_line(self, segment: str, offset: int, seq: int) -> LineProof:
        """What is proved of the line at `offset` of a segment. Reads the segment up to it."""
        path = self._directory / Path(segment).name
        line, follows = b"", True
        try:
            with path.open("rb") as file:
                previous, read = b"", 0
                for line in file:
                    whole = line.rstrip(b"\n")
                    unsealed = chain.unseal(whole)
                    if unsealed is None or (previous and not chain.follows(whole, previous)):
                        follows = False
                    previous = unsealed[1] if unsealed else previous
                    if read == offset:
                        break
                    read += len(line)
                else:
                    return LineProof("unknown", "The log does not hold this line any more", {})
        except OSError as error:
            return LineProof("unknown", f"{segment} cannot be read: {error.strerror}", {})
        return self._judge(segment, seq, line.rstrip(b"\n"), follows=follows)

    def _judge(self, segment: str, seq: int, line: bytes, *, follows: bool) -> LineProof:
        unsealed = chain.unseal(line)
        fields: dict[str, Any] = {}
        if unsealed is not None:
            fields = msgspec.json.decode(unsealed[0], type=dict[str, Any])
        place = f"{segment} line {seq}"
        if not follows or unsealed is None or chain.sequence(line) != seq:
            text = f"{place} or one before it was changed: the hashes do not follow each other"
            return LineProof("mismatch", text, fields)
        hashed = unsealed[1].hex()
        try:
            _, report = self._report(again=False)
        except TidegateError as error:
            return LineProof("unknown", error.message, fields, hashed)
        if any(fault.segment == segment for fault in report.faults):
            text = f"{place} follows those before it, and {segment} has a fault elsewhere"
            return LineProof("mismatch", text, fields, hashed)
        signed = report.signed_until
        if signed is not None and str(fields.get("time", "")) <= _utc(signed.timestamp()):
            text = f"{place}: the hashes up to it are as written, and a checkpoint signs them"
            return LineProof("verified", text, fields, hashed)
        text = f"{place}: the hashes up to it are as written; the next checkpoint will sign them"
        return LineProof("after_checkpoint", text, fields, hashed)

    def _report(self, *, again: bool) -> tuple[float, Report]:
        with self._lock:
            if self._last is None or again or self._clock() - self._last[0] >= FRESH_S:
                self._last = (self._clock(), verify(self._directory, self._keys))
            return self._last


def _utc(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
