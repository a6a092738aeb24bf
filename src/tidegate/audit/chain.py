"""The hash chain: each line ends in a hash over itself and the hash of the line before. Pure.

The chain shows any edit, removal, insertion or reordering of lines before the last. It cannot show
that the end was truncated, or that someone who can write the file computed all hashes again.
Signed checkpoints, kept outside the log, show both.
"""

from __future__ import annotations

import re
from binascii import hexlify
from collections.abc import Iterable
from hashlib import sha256

import msgspec

START = bytes(32)
"""The hash that the first line follows."""

_MARK = b',"hash":"'
_SEAL_LENGTH = len(_MARK) + 64 + len(b'"}')
_SEAL = re.compile(rb',"hash":"([0-9a-f]{64})"}')
_SEQ = re.compile(rb'\{"seq":([1-9][0-9]{0,17}),')


class Fault(msgspec.Struct, frozen=True):
    """A line that does not verify, counted from 1, and the reason."""

    line: int
    reason: str


class Checked(msgspec.Struct, frozen=True):
    """The result of `check`.

    `lines` counts the lines before the first fault, `held` all lines that verify. `end` is the
    hash of the last line before the first fault, `hashes` has the hashes of the `wanted` numbers.
    `faults` has one entry for each run of lines that do not verify, `runs` has the first and last
    line of each run.
    """

    lines: int
    held: int
    end: bytes
    hashes: dict[int, bytes]
    faults: tuple[Fault, ...]
    runs: tuple[tuple[int, int], ...]

    @property
    def fault(self) -> Fault | None:
        """The first fault."""
        return self.faults[0] if self.faults else None


def seal(body: bytes, previous: bytes) -> tuple[bytes, bytes]:
    """Add the hash to a body, a JSON object that starts with `seq`.

    Returns the line that follows `previous`, without a line break, and its hash.
    """
    digest = sha256(previous + body).digest()
    return b'%b,"hash":"%b"}' % (body[:-1], hexlify(digest)), digest


def unseal(line: bytes) -> tuple[bytes, bytes] | None:
    """The body and the hash of a line; None if the line has no hash."""
    found = _SEAL.fullmatch(line, len(line) - _SEAL_LENGTH) if len(line) > _SEAL_LENGTH else None
    if found is None:
        return None
    return line[:-_SEAL_LENGTH] + b"}", bytes.fromhex(found[1].decode())


def sequence(line: bytes) -> int | None:
    """The `seq` of a line; None if the line does not start with one."""
    found = _SEQ.match(line)
    return None if found is None else int(found[1])


def follows(line: bytes, previous: bytes) -> bool:
    """Whether a line is unchanged and follows the line whose hash is `previous`."""
    unsealed = unseal(line)
    return unsealed is not None and sha256(previous + unsealed[0]).digest() == unsealed[1]


def check(
    lines_of: Iterable[bytes],
    previous: bytes = START,
    first: int = 1,
    wanted: frozenset[int] = frozenset(),
) -> Checked:
    """Verify a chain that begins with number `first` after the hash `previous`.

    After a line that does not verify, the check continues from the number and hash in that line,
    so that one changed line does not hide faults further on. Keeps the hashes of `wanted` numbers.
    """
    hashes: dict[int, bytes] = {}
    faults: list[Fault] = []
    runs: list[tuple[int, int]] = []
    index = held = 0
    known: bytes | None = previous
    expected = first
    end, lines = previous, -1
    for line in lines_of:
        index += 1
        unsealed = unseal(line)
        seq = None if unsealed is None else sequence(line)
        reason = ""
        if unsealed is None:
            reason = "the line has no hash"
        elif seq is None:
            reason = "the line has no number"
        elif known is None:
            reason = "the line before it cannot be read"
        elif seq != expected:
            reason = f"line {seq} is where line {expected} belongs"
        elif sha256(known + unsealed[0]).digest() != unsealed[1]:
            reason = "the line was changed, or the one before it"
        if reason:
            if runs and runs[-1][1] == index - 1:
                runs[-1] = (runs[-1][0], index)
            else:
                faults.append(Fault(index, reason))
                runs.append((index, index))
            if lines < 0:
                lines, end = index - 1, known or previous
            known = None if unsealed is None else unsealed[1]
            expected = expected + 1 if seq is None else seq + 1
            continue
        assert unsealed is not None  # noqa: S101 - a line without a hash has a reason
        known = unsealed[1]
        held += 1
        if expected in wanted:
            hashes[expected] = known
        expected += 1
    if lines < 0:
        lines, end = index, known or previous
    return Checked(lines, held, end, hashes, tuple(faults), tuple(runs))
