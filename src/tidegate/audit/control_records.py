"""Control records: lines about the log itself, such as segment headers and signed checkpoints.

The `phase` distinguishes a control record from an event. `verify` checks what they state about
other lines.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.typed_values import decode_json

SIGNED_AS = b"tidegate audit checkpoint 1\n"
"""Prefix of the signed bytes, so that a signature is valid for a checkpoint only."""

_encode = msgspec.json.Encoder().encode


SegmentName = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{6,200}\.jsonl\Z")]
"""A record with another form of name was changed and is not decoded."""


class PeerPosition(msgspec.Struct, frozen=True):
    """The end of a segment at one time: the line `seq` with `hash` must still be in it."""

    segment: SegmentName
    seq: int
    hash: str


class TruncatedWrite(msgspec.Struct, frozen=True):
    """A line that a crash cut short. `file`, next to the segment, holds its `bytes` bytes."""

    file: str
    bytes: int
    digest: str


class SegmentHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The line that a process writes when it begins to append to a segment.

    `previous`, on the first line only, is the end of the segment that this one continues.
    `witnesses` are the ends of the other open segments. `unreadable` names segments whose end does
    not verify or does not match the newest checkpoint.
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
    """The last line of a full segment. The chain continues in the segment `next`."""

    seq: int
    time: datetime
    phase: Literal["continued"]
    next: SegmentName


class Gap(msgspec.Struct, frozen=True):
    """States that `missed` events since `since` were not written although their calls continued."""

    seq: int
    time: datetime
    phase: Literal["gap"]
    missed: int
    since: datetime


class Checkpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed statement of where the log ends, recorded as line `seq` of `segment`.

    `ends` has the line before it and the known ends of the other open segments. Segments numbered
    below `oldest` have expired and were removed. `key` is the fingerprint of the public key,
    `signature` the Ed25519 signature in hexadecimal.
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
        """The signed bytes: the prefix and all fields, with an empty signature."""
        return SIGNED_AS + _encode(msgspec.structs.replace(self, signature=""))


ControlRecord = SegmentHeader | SegmentEnd | Gap | Checkpoint


def encode_control_record(record: ControlRecord) -> bytes:
    """The body of the record's line."""
    return _encode(record)


def parse_checkpoint(text: bytes | str) -> Checkpoint:
    """Decode a printed or stored checkpoint. Raises: TidegateError ARGUMENT_INVALID."""
    try:
        return decode_json(text, Checkpoint)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "This is not a checkpoint of the audit log.",
            hint="Give the output of `tidegate audit checkpoint`, or a file with such lines.",
        ) from None
