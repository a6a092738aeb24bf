"""Private copies of directories that are only read: the strict mode of a source.

Datalevin changes the files of a directory as soon as it opens it, even if nothing is written.
A source with the option `private_copy_mb` is read from a copy of its own, and no byte of the
directory changes. A copy is of one moment: LMDB writes a commit to other pages than those of the
commit before, and then its two headers, at the beginning of the file; what was copied between two
equal headers is whole. Each request compares the headers with those of the copy, and makes another
copy once they differ.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tidegate.errors import Code, TidegateError
from tidegate.paths import of_platform
from tidegate.products.datalog.engine.directory import DATA, LOCK
from tidegate.products.datalog.engine.startup_cache import require_private
from tidegate.products.datalog.engine.url import Place
from tidegate.products.datalog.engine.workers import Worker
from tidegate.system.file_copies import copy_file, stored_bytes
from tidegate.system.file_locks import take_lock, try_lock
from tidegate.system.private_files import create_file, open_existing

HEADER_BYTES = 65_536
"""The beginning of `data.mdb`, which has both headers whatever the size of a page is."""

MOST_TRIES = 5
"""How often a copy is begun again because the database changed meanwhile."""

MOST_KEPT = 3
"""Copies of one directory at a time: the one in use, and older ones that reads still use."""

ROOM_LEFT = 256 * 1024 * 1024
"""Bytes that stay free on the disk."""

DRAFT_S = 3600
"""After how many seconds a directory that no process holds yet is one that was left."""

_NOT_COPIED = frozenset({LOCK, "write-protocol.lock"})
_HELD = "held"


class Mark(NamedTuple):
    """What differs after a change of a directory."""

    header: bytes
    files: tuple[tuple[str, int, int, int], ...]


class PrivateCopy:
    """One copy; `readers` are the requests that it answers now."""

    def __init__(self, place: Place, mark: Mark) -> None:
        self.place = place
        self.mark = mark
        self.readers = 0


class PrivateCopies:
    """The copies of one directory that one worker reads."""

    def __init__(self, original: Place, worker: Worker, most_mb: int) -> None:
        self.users = 0
        self.most_mb = most_mb
        self._original = Path(original.name)
        self._worker = worker
        self._root: Path | None = None
        self._handle = -1
        self._current: PrivateCopy | None = None
        self._old: list[PrivateCopy] = []
        self._renewing: asyncio.Task[None] | None = None
        self._released = asyncio.Event()

    @asynccontextmanager
    async def reading(self, timeout_s: float) -> AsyncGenerator[Place]:
        """A copy that is as the directory is now, kept for as long as it is read.

        Raises: TidegateError LIMIT_BYTES, LIMIT_TIME, STATE_FAILED, SOURCE_UNREACHABLE,
        SOURCE_BUSY, UNSUPPORTED.
        """
        try:
            async with asyncio.timeout(timeout_s):
                copy = await self._fresh()
        except TimeoutError:
            raise TidegateError(
                Code.LIMIT_TIME,
                f"The private copy of {self._original} was not ready within {timeout_s:g} s, and is"
                " still being made.",
                hint="Retry soon.",
            ) from None
        copy.readers += 1
        try:
            yield copy.place
        finally:
            copy.readers -= 1
            self._released.set()
            if copy in self._old and copy.readers == 0:
                await self._discard(copy)

    async def close(self) -> None:
        """Remove the copies, when no request is answered from them any more."""
        if self._renewing is not None:
            await asyncio.wait((self._renewing,))
        current, self._current = self._current, None
        for copy in [*self._old, *([current] if current is not None else [])]:
            await self._discard(copy)
        root, self._root = self._root, None
        if root is not None:
            await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)
            os.close(self._handle)

    async def _fresh(self) -> PrivateCopy:
        copy = self._current
        # The mark is read on the event loop: a thread takes longer than these few reads.
        while copy is None or copy.mark != _mark_of(self._original):
            joined = self._renewing is not None  # begun before this request came
            await self._renewed()
            copy = self._current
            if copy is not None and not joined:
                break
        return copy

    async def _renewed(self) -> None:
        """Make another copy, or wait for the one that is being made: it goes on, and serves the
        next request, when this one is given up."""
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
            self._renewing.add_done_callback(self._finish)
        await asyncio.shield(self._renewing)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._renewing = None
        if not task.cancelled():
            task.exception()  # each request that waits has it

    async def _renew(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            self._old.append(current)
            if current.readers == 0:
                await self._discard(current)
        while len(self._old) >= MOST_KEPT - 1:
            self._released.clear()
            await self._released.wait()
        if self._root is None:
            self._root, self._handle = await asyncio.to_thread(_new_root)
        self._current = await asyncio.to_thread(self._copied, self._root)

    def _copied(self, root: Path) -> PrivateCopy:
        directory = Path(tempfile.mkdtemp(prefix="copy-", dir=root))
        try:
            mark = _copy_directory(self._original, directory, self.most_mb * 1024 * 1024)
        except OSError as error:
            shutil.rmtree(directory, ignore_errors=True)
            raise TidegateError(
                Code.STATE_FAILED,
                f"A private copy of {self._original} cannot be made: {error.strerror}.",
                hint="Make room in the cache directory, or name another one with XDG_CACHE_HOME.",
            ) from error
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        name = str(directory)
        return PrivateCopy(Place(name, str(self._original), is_remote=False), mark)

    async def _discard(self, copy: PrivateCopy) -> None:
        if copy in self._old:
            self._old.remove(copy)
        await self._worker.close_place(copy.place)
        await asyncio.to_thread(shutil.rmtree, copy.place.name, ignore_errors=True)


_copies: WeakKeyDictionary[Worker, dict[str, PrivateCopies]] = WeakKeyDictionary()


def take_copies(original: Place, worker: Worker, most_mb: int) -> PrivateCopies:
    """The copies of a directory, which all sources of one worker share. The largest limit holds."""
    of_worker = _copies.setdefault(worker, {})
    copies = of_worker.setdefault(original.name, PrivateCopies(original, worker, most_mb))
    copies.users += 1
    copies.most_mb = max(copies.most_mb, most_mb)
    return copies


async def give_back_copies(original: Place, worker: Worker, copies: PrivateCopies) -> None:
    """A source was closed; with the last one the copies are removed."""
    copies.users -= 1
    if copies.users == 0:
        _copies.get(worker, {}).pop(original.name, None)
        await copies.close()


def most_mb_of(option: str) -> int:
    """The value of the option `private_copy_mb`. Raises: TidegateError CONFIG_INVALID."""
    if option.isascii() and option.isdigit() and 0 < len(option) < 10 and int(option) > 0:
        return int(option)
    raise TidegateError(
        Code.CONFIG_INVALID,
        f"The option `private_copy_mb` is {option[:20]!r}, which is no number of megabytes.",
        hint="Write the most that a copy of the directory may take, as `2048`.",
    )


def copies_root() -> Path:
    """The directory of all private copies. Raises: TidegateError ARGUMENT_INVALID without a
    home."""
    from platformdirs import user_cache_path

    return of_platform(partial(user_cache_path, "tidegate", appauthor=False)) / "datalog-copies"


def _new_root() -> tuple[Path, int]:
    """A directory for one process's copies, and the handle that shows that it is in use. Removes
    those of processes that have ended. Raises: TidegateError STATE_FAILED."""
    root = copies_root()
    require_private(root)
    for path in root.iterdir():
        with suppress(OSError):
            if not (path / _HELD).exists():  # a process that ended here, or is just here
                if path.stat().st_mtime < time.time() - DRAFT_S:
                    shutil.rmtree(path, ignore_errors=True)
                continue
            handle = open_existing(path / _HELD, access="read and append")
            try:
                if try_lock(handle):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)
    # It is locked before it has its name, so that no process takes it for one that was left.
    draft = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
    handle = create_file(draft / _HELD)
    take_lock(handle)
    path = root / draft.name.removeprefix(".new-")
    draft.rename(path)
    return path, handle


def _copy_directory(original: Path, copy: Path, most: int) -> Mark:
    """Copy a directory as it is at one moment. Raises: OSError, TidegateError."""
    for _ in range(MOST_TRIES):
        mark = _mark_of(original)
        _check_size(original, mark, copy, most)
        for name, *_ in mark.files:
            copy_file(original / name, copy / name)
        if _header_of(copy) == mark.header and _mark_of(original) == mark:
            return mark
    raise TidegateError(
        Code.SOURCE_BUSY,
        f"{original} changed {MOST_TRIES} times while a private copy of it was made.",
        hint="Retry when less is written to it.",
    )


def _check_size(original: Path, mark: Mark, copy: Path, most: int) -> None:
    size = sum([stored_bytes(original / name) for name, *_ in mark.files])
    if size > most:
        raise TidegateError(
            Code.LIMIT_BYTES,
            f"A private copy of {original} would take {size / 1024**2:.0f} MB, and the limit is"
            f" {most // 1024**2}.",
            hint="Have the operator raise `private_copy_mb` of the source, or"
            " `datalog.private_copy_mb`.",
        )
    if shutil.disk_usage(copy).free < size + ROOM_LEFT:
        raise TidegateError(
            Code.STATE_FAILED,
            f"A private copy of {original} takes {size / 1024**2:.0f} MB, and the disk of the cache"
            " directory has too little room.",
            hint="Make room there, or name another cache directory with XDG_CACHE_HOME.",
        )


def _mark_of(directory: Path) -> Mark:
    """Raises: TidegateError SOURCE_UNREACHABLE, UNSUPPORTED."""
    files: list[tuple[str, int, int, int]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name in _NOT_COPIED:
                    continue
                if not entry.is_file(follow_symlinks=False):
                    raise _uncopied(directory, entry.name)
                status = entry.stat(follow_symlinks=False)
                # The file of data is compared by its headers: its time changes with each page.
                grows = entry.name == DATA
                size, changed = (0, 0) if grows else (status.st_size, status.st_mtime_ns)
                files.append((entry.name, status.st_ino, size, changed))
        return Mark(_header_of(directory), tuple(sorted(files)))
    except OSError as error:
        raise TidegateError(
            Code.SOURCE_UNREACHABLE,
            f"The directory {directory} cannot be read: {error.strerror}.",
            details={"path": str(directory)},
        ) from error


def _header_of(directory: Path) -> bytes:
    with (directory / DATA).open("rb", buffering=0) as file:
        return file.read(HEADER_BYTES)


def _uncopied(directory: Path, name: str) -> TidegateError:
    return TidegateError(
        Code.UNSUPPORTED,
        f"{directory} holds {name[:60]!r}, which is no plain file, and a private copy of it could"
        " not be of one moment.",
        hint="Datalevin's write-ahead log is one such. Have the operator take `private_copy_mb`"
        " away, or open a copy that `tidegate datalog copy` made.",
    )
