"""Files that people have sent to the server to import them, held for their session.

A file comes in parts, into a file without a name in the state directory. Its first bytes tell what
it is. Workbooks and Parquet files are read by a process of their own (`imports.extraction`).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from tidegate.errors import Code, TidegateError
from tidegate.imports.delimited import DelimitedRecords
from tidegate.imports.guesses import Guess, first_records, guess_rows, guess_text
from tidegate.imports.model import MOST_BYTES, FileKind, Reading, Record, Records, Unreadable
from tidegate.imports.open_file import OpenFile, read_part
from tidegate.imports.row_parts import ExtractedRecords
from tidegate.products.console.result_quota import ResultQuota, unwritable
from tidegate.system.processes import APART

MOST_PART = 2_097_152
"""Bytes of one part."""
_EXTRACTION_S = 120.0
_COPY = "import-"
_AT_ONCE = 1_048_576
_MAGIC: tuple[tuple[bytes, FileKind], ...] = (
    (b"PAR1", "parquet"),
    (b"PK\x03\x04", "workbook"),
    (b"\xd0\xcf\x11\xe0", "workbook"),
)


class HeldFile:
    """A file of a session. `over`: nothing is made of it, so it may go when others need room."""

    def __init__(self, quota: ResultQuota, name: str, size: int) -> None:
        """Raises: TidegateError LIMIT_BYTES, STATE_FAILED."""
        if not 1 <= size <= MOST_BYTES:
            raise TidegateError(
                Code.LIMIT_BYTES, f"A file to import has 1 to {MOST_BYTES:,} bytes, not {size:,}."
            )
        self.name = Path(name).name or "file"
        self.size = size
        self.received = 0
        self.kind: FileKind = "text"
        self.digest = ""
        self.over = True
        self.gone = False
        self.guess = Guess(Reading())
        self.sheets: list[str] = []
        self.types: list[str] = []
        self._hash = hashlib.sha256()
        self._extracted: OpenFile | None = None
        self._adding = Lock()
        self._quota = quota
        quota.enter(self)
        if not quota.take(self, size, 0):
            quota.leave(self)
            raise _no_room()
        self._file: OpenFile | None = self.new_file()

    @property
    def is_whole(self) -> bool:
        return self.received == self.size

    def new_file(self) -> OpenFile:
        """A file without a name. Raises: TidegateError STATE_FAILED."""
        file = self._quota.new_file()
        try:
            return OpenFile(file)
        except OSError as error:
            file.close()
            raise unwritable(self._quota.directory, error) from error

    @property
    def _held(self) -> OpenFile:
        """Raises: TidegateError RESULT_GONE."""
        file = self._file
        if file is None:
            raise file_gone()
        return file

    def take_room(self, size: int) -> None:
        """Raises: TidegateError STATE_FAILED if so many bytes more are not free."""
        taken = self._quota.take(self, size, 0)
        self._quota.sweep()
        if not taken:
            raise _no_room()

    def add(self, at: int, part: bytes) -> None:
        """Keep the next part. Raises: TidegateError ARGUMENT_INVALID, STATE_FAILED."""
        with self._adding:
            fits = 0 < len(part) <= MOST_PART and self.received + len(part) <= self.size
            if at != self.received or not fits:
                raise TidegateError(Code.ARGUMENT_INVALID, "This is not the next part of the file")
            try:
                self._held.write_at(part, at)
            except OSError as error:
                raise unwritable(self._quota.directory, error) from error
            self._hash.update(part)
            self.received += len(part)

    async def recognize(self) -> None:
        """Find out what the whole file is, and guess how it is read. Raises: Unreadable,
        TidegateError."""
        self.digest = self._hash.hexdigest()
        file = self._held
        self.kind = _kind_of(read_part(file, 4, 0))
        if self.kind == "text":
            self.guess = await asyncio.to_thread(guess_text, file, self.name)
        else:
            await self.extract("")

    async def extract(self, sheet: str) -> None:
        """Read a workbook's sheet, or a Parquet file. Raises: Unreadable, TidegateError."""
        out = self.new_file()
        path = await asyncio.to_thread(self._copy, self._held)
        try:
            await _run_extraction(self.kind, path, sheet, out)
        finally:
            path.unlink(missing_ok=True)
        found = ExtractedRecords(out)
        self.take_room(os.fstat(out.fileno()).st_size)
        self._extracted, self.sheets, self.types = out, found.head.sheets, found.head.types
        guess = await asyncio.to_thread(guess_rows, found)
        reading = guess.reading
        self.guess = guess._replace(
            reading=Reading(
                header=reading.header,
                nulls=reading.nulls,
                dates=reading.dates,
                sheet=found.head.sheet,
            )
        )

    def _copy(self, file: OpenFile) -> Path:
        """The file under a name, for a library that opens one. Raises: TidegateError."""
        try:
            descriptor, name = tempfile.mkstemp(dir=self._quota.directory, prefix=_COPY)
            at = 0
            with os.fdopen(descriptor, "wb") as copy:
                while part := read_part(file, _AT_ONCE, at):
                    copy.write(part)
                    at += len(part)
        except OSError as error:
            raise unwritable(self._quota.directory, error) from error
        return Path(name)

    def records(self, reading: Reading) -> Records:
        """The rows. Raises: Unreadable, TidegateError RESULT_GONE."""
        file, extracted = self._held, self._extracted
        if self.kind == "text":
            return DelimitedRecords(file, reading)
        if extracted is None:
            raise Unreadable("it could not be read")
        return _WithNulls(ExtractedRecords(extracted), reading)

    def sample(self, reading: Reading) -> list[Record]:
        """The first rows. Raises: Unreadable, TidegateError RESULT_GONE."""
        return first_records(self.records(reading))

    def close(self) -> None:
        """Let the file go."""
        self._quota.leave(self)

    def release(self) -> None:
        """Let all files go: what still reads one keeps that open until it has ended."""
        self._file = self._extracted = None


def remove_leftovers(directory: Path) -> None:
    """Remove the copies of files that a server which was killed has left."""
    oldest = time.time() - 2 * _EXTRACTION_S
    with suppress(OSError):  # another server removes them as well
        for path in directory.glob(f"{_COPY}*"):
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


def _kind_of(head: bytes) -> FileKind:
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    return "text"


class _WithNulls:
    """Rows of a workbook or a Parquet file, with words that are NULL."""

    def __init__(self, records: ExtractedRecords, reading: Reading) -> None:
        self._records = records
        self._nulls = frozenset(reading.nulls)

    @property
    def names(self) -> tuple[str, ...] | None:
        return self._records.names

    def __iter__(self) -> Iterator[Record]:
        nulls = self._nulls
        if self._records.names is not None:
            yield from self._records  # its NULLs are its own
            return
        for record in self._records:
            values = [None if value in nulls else value for value in record.values]
            yield record._replace(values=values)


async def _run_extraction(kind: str, path: Path, sheet: str, out: OpenFile) -> None:
    """Raises: Unreadable."""
    words = [sys.executable, "-m", "tidegate.imports.extraction", kind, str(path), sheet]
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out.fileno(),
            stderr=asyncio.subprocess.DEVNULL,
            **APART,
        )
    except OSError as error:
        raise Unreadable(f"no process could be started for it: {error.strerror}") from None
    try:
        async with asyncio.timeout(_EXTRACTION_S):
            status = await process.wait()
    except TimeoutError:
        raise Unreadable(f"to read it takes over {_EXTRACTION_S:g} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if status:
        raise Unreadable("it is damaged, or takes too much memory")


def file_gone() -> TidegateError:
    """The error of a file that is not held, or is another session's."""
    return TidegateError(Code.RESULT_GONE, "The file is not held any more", hint="Choose it again.")


def _no_room() -> TidegateError:
    return TidegateError(
        Code.LIMIT_BYTES,
        "There is no room for this file: others are held.",
        hint="Close another import, or wait until one has ended.",
    )
