"""The lines that the log writes of its own accord, and what they claim about other lines.

A mark is told from an event by its `phase`. What marks claim is checked by `verify`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from tidegate.errors import Code, TidegateError

SIGNED_AS = b"tidegate audit checkpoint 1\n"
"""Goes before what is signed, so that a signature can stand for nothing else."""

_encode = msgspec.json.Encoder().encode


SegmentName = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{6,200}\.jsonl\Z")]
"""A mark that names a segment otherwise was changed, and is not read."""


class PeerPosition(msgspec.Struct, frozen=True):
    """How far a segment had come: what it held at `seq` must still be there."""

    segment: SegmentName
    seq: int
    hash: str


class TruncatedWrite(msgspec.Struct, frozen=True):
    """A line that a crash cut short, kept in a file of its own beside the segment."""

    file: str
    bytes: int
    digest: str


class SegmentHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The line that a process writes when it begins to append to a segment.

    `previous`: the end of the segment that this one continues, on its first line only.
    `witnesses`: the ends of the others that are still written to. `unreadable` names segments
    whose end does not verify, or is not where the newest checkpoint says.
    """

    seq: int
    time: datetime
    phase: Literal["open"]
    segment: SegmentName
    process: int
    version: str
    previous: PeerPosition | None = None
    witnesses: tuple[PeerPosition, ...] = ()
    unreadable: tuple[str, ...] = ()
    torn: TruncatedWrite | None = None


class SegmentEnd(msgspec.Struct, frozen=True):
    """The last line of a segment that is full: the chain goes on in the segment `next`."""

    seq: int
    time: datetime
    phase: Literal["continued"]
    next: SegmentName


class Gap(msgspec.Struct, frozen=True):
    """So many events since `since` could not be written, and the calls went on."""

    seq: int
    time: datetime
    phase: Literal["gap"]
    missed: int
    since: datetime


class Checkpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed statement of how far the log had come; stands at line `seq` of `segment`.

    `ends` has the line before it, and what is known of the other segments that are still written
    to. Segments numbered below `oldest` were removed when they had been kept long enough. `key`
    is the fingerprint of the public key, `signature` the Ed25519 signature in hexadecimal.
    """

    seq: int
    time: datetime
    phase: Literal["checkpoint"]
    segment: SegmentName
    ends: tuple[PeerPosition, ...]
    oldest: int
    key: str
    signature: str

    def signed(self) -> bytes:
        """What the signature is over: everything but itself."""
        return SIGNED_AS + _encode(msgspec.structs.replace(self, signature=""))


ControlRecord = SegmentHeader | SegmentEnd | Gap | Checkpoint


def encode_control_record(mark: ControlRecord) -> bytes:
    """The body of a mark's line."""
    return _encode(mark)


def parse_checkpoint(text: bytes | str) -> Checkpoint:
    """A checkpoint as it was printed or kept. Raises: TidegateError ARGUMENT_INVALID."""
    try:
        return msgspec.json.decode(text, type=Checkpoint)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "This is not a checkpoint of the audit log.",
            hint="Give what `tidegate audit checkpoint` printed, or a file with lines of it.",
        ) from None
