"""Checks that a file is a jar that Java can be given: an archive, whole and of sane size.

Nothing is unpacked here. Names that lead out of a directory are refused although Java only reads
them: a jar that has some was made to harm what unpacks it.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from tidegate.errors import Code, TidegateError

MOST_ENTRIES = 200_000
MOST_UNPACKED_BYTES = 4_294_967_296
_ENCRYPTED = 0x1


def check_jar(path: Path, name: str) -> None:
    """Raises: TidegateError DRIVER_UNTRUSTED that says what is wrong with the file; OSError."""
    with path.open("rb") as file:
        start = file.read(512)
    if not start.startswith(b"PK\x03\x04"):
        page = re.match(rb"\s*(?:<!doctype html|<html|<\?xml|<!--)", start, re.IGNORECASE)
        what = "a web page" if page else "no archive"
        raise TidegateError(
            Code.DRIVER_UNTRUSTED,
            f"{name} is {what} and not a jar.",
            hint="Check the repository's address, and whether it wants a login.",
        )
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeDecodeError):
        raise _refused(name, "it is damaged") from None
    if not entries or len(entries) > MOST_ENTRIES:
        raise _refused(name, f"it has {len(entries):,} entries")
    if sum(entry.file_size for entry in entries) > MOST_UNPACKED_BYTES:
        raise _refused(name, f"it unpacks to more than {MOST_UNPACKED_BYTES:,} bytes")
    for entry in entries:
        if is_unsafe(entry.filename):
            raise _refused(name, "an entry's name leads out of the archive")
        if entry.flag_bits & _ENCRYPTED:
            raise _refused(name, "it is encrypted")


def is_unsafe(name: str) -> bool:
    """Whether an entry's name leads out of the directory that it would be unpacked to."""
    parts = re.split(r"[/\\]", name)
    return not parts[0] or ".." in parts or ":" in parts[0] or "\0" in name


def _refused(name: str, reason: str) -> TidegateError:
    return TidegateError(
        Code.DRIVER_UNTRUSTED,
        f"{name} is not taken: {reason}.",
        hint="Retry; if it fails again, ask who runs the repository.",
    )
