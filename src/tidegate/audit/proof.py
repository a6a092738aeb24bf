"""What proves a line of the audit log: its chain, read again from the file, and the checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Literal

import msgspec
from msgspec import structs

from tidegate.audit import chain
from tidegate.audit.verify import Report, verify
from tidegate.errors import TidegateError

State = Literal["verified", "after_checkpoint", "mismatch", "unknown"]
FRESH_S = 300.0
"""How long a verification of the whole log is taken as it was."""
PATIENCE_S = 2.0
"""How long a caller waits for the first verification of a long log."""


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
    running: bool = False
    """The log is being read now; what is shown was found before."""


class Prover:
    """Checks the log in `directory` with the keys in `keys`. Safe to use from any thread. The
    whole log is read on a thread of its own; those who ask wait for it a moment at most."""

    def __init__(self, directory: Path, keys: Path, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._keys = keys
        self._clock = clock
        self._lock = Lock()
        self._last: tuple[float, Report] | None = None
        self._failure: TidegateError | None = None
        self._reading: Thread | None = None

    def check_log(self, *, again: bool = False, patience_s: float = PATIENCE_S) -> LogProof:
        """What is proved of the whole log. Reads all of it, unless that was done of late, and waits
        so long for the first time; with `again` it waits for the end.

        Raises: TidegateError STATE_FAILED.
        """
        last = self._report(again=again, patience_s=patience_s)
        if last is None:
            return LogProof("unknown", "The log is being checked", self._clock(), running=True)
        return structs.replace(_whole(*last), running=self._is_reading())

    def check_line(self, segment: str, offset: int, seq: int) -> LineProof:
        """What is proved of the line at `offset` of a segment. Reads the segment up to it."""
        return self.check_lines([(segment, offset, seq)])[0]

    def check_lines(self, places: Sequence[tuple[str, int, int]]) -> list[LineProof]:
        """The same of several lines, each a segment, an offset and a number: reads each segment
        once."""
        proofs: dict[tuple[str, int, int], LineProof] = {}
        for segment in dict.fromkeys(place[0] for place in places):
            wanted = {offset: seq for name, offset, seq in places if name == segment}
            try:
                read = self._read(segment, frozenset(wanted))
            except OSError as error:
                text = f"{segment} cannot be read: {error.strerror}"
                read, missing = {}, LineProof("unknown", text, {})
            else:
                missing = LineProof("unknown", "The log does not hold this line any more", {})
            for offset, seq in wanted.items():
                proof = missing
                if offset in read:
                    line, follows = read[offset]
                    proof = self._judge(segment, seq, line, follows=follows)
                proofs[segment, offset, seq] = proof
        return [proofs[place] for place in places]

    def _read(self, segment: str, offsets: frozenset[int]) -> dict[int, tuple[bytes, bool]]:
        """The lines at these offsets of a segment, and whether the hashes up to each follow each
        other. Raises: OSError."""
        found: dict[int, tuple[bytes, bool]] = {}
        last, follows, previous, at = max(offsets), True, b"", 0
        with (self._directory / Path(segment).name).open("rb") as file:
            for line in file:
                whole = line.rstrip(b"\n")
                unsealed = chain.unseal(whole)
                if unsealed is None or (previous and not chain.follows(whole, previous)):
                    follows = False
                previous = unsealed[1] if unsealed else previous
                if at in offsets:
                    found[at] = whole, follows
                at += len(line)
                if at > last:
                    break
        return found

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
            last = self._report(again=False)
        except TidegateError as error:
            return LineProof("unknown", error.message, fields, hashed)
        if last is None:
            text = (
                f"{place}: the hashes up to it are as written; the rest of the log is being checked"
            )
            return LineProof("after_checkpoint", text, fields, hashed)
        report = last[1]
        if any(fault.segment == segment for fault in report.faults):
            text = f"{place} follows those before it, and {segment} has a fault elsewhere"
            return LineProof("mismatch", text, fields, hashed)
        signed = report.signed_until
        if signed is not None and str(fields.get("time", "")) <= _utc(signed.timestamp()):
            text = f"{place}: the hashes up to it are as written, and a checkpoint signs them"
            return LineProof("verified", text, fields, hashed)
        text = f"{place}: the hashes up to it are as written; the next checkpoint will sign them"
        return LineProof("after_checkpoint", text, fields, hashed)

    def _report(
        self, *, again: bool, patience_s: float = PATIENCE_S
    ) -> tuple[float, Report] | None:
        """When the whole log was read last, and what was found; None while that is under way for
        the first time. Raises: TidegateError STATE_FAILED."""
        if again and self._reading is not None:
            self._reading.join()  # it may have passed what has changed since
        with self._lock:
            fresh = self._last is not None and self._clock() - self._last[0] < FRESH_S
            if (again or not fresh) and not self._is_reading():
                self._reading = Thread(target=self._read_all, name="audit-proof", daemon=True)
                self._reading.start()
            reading = self._reading
        if reading is not None and (again or self._last is None):
            reading.join(None if again else patience_s)
        if self._failure is not None and not self._is_reading():
            raise self._failure
        return self._last

    def _is_reading(self) -> bool:
        return self._reading is not None and self._reading.is_alive()

    def _read_all(self) -> None:
        try:
            self._last, self._failure = (self._clock(), verify(self._directory, self._keys)), None
        except TidegateError as error:
            self._failure = error


def _whole(at: float, report: Report) -> LogProof:
    signed = None if report.signed_until is None else report.signed_until.timestamp()
    if report.faults:
        fault = report.faults[0]
        where = f"{fault.segment} line {fault.line}: " if fault.segment else ""
        count = len(report.faults)
        text = f"{count} fault{'s' * (count != 1)} found. {where}{fault.reason}"
        return LogProof("mismatch", text, at, report.lines, signed)
    if signed is not None and report.unchecked:
        text = f"{report.lines:,} lines follow each other; not checked: {report.unchecked[0]}"
        return LogProof("after_checkpoint", text, at, report.lines, signed)
    if signed is None:
        text = f"{report.lines:,} lines follow each other; no checkpoint signs them yet"
        return LogProof("after_checkpoint", text, at, report.lines)
    text = f"{report.lines:,} lines verified; the last checkpoint signs those before it"
    return LogProof("verified", text, at, report.lines, signed)


def _utc(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
