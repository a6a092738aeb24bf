"""Bundles: drivers of a cache as one file, for networks from which nothing can be downloaded.

A bundle is a ZIP archive with a lock file and the files that it names. What is imported is checked
as a download is: by its digest, and by the pins of the cache that gets it.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.maven.driver_cache import DriverCache
from tidegate.products.jdbc.maven.jar_checks import check_jar
from tidegate.products.jdbc.maven.lock_file import (
    MOST_BYTES,
    NAME,
    LockFile,
    decode_lock,
    encode_lock,
    exclusive,
    read_lock,
    write_lock,
)
from tidegate.products.jdbc.maven.repository import MOST_JAR_BYTES, open_draft, unwritable
from tidegate.system.private_files import draft_of, make_private_directory, name_draft

_CHUNK = 1_048_576
_MOST_BUNDLE_BYTES = 4_294_967_296


def write_bundle(cache: DriverCache, target: Path, asked: Sequence[str] = ()) -> LockFile:
    """Write the drivers that were `asked` for, or all, to a new file; returns what is in it.

    Raises: TidegateError ARGUMENT_INVALID if one was not fetched, there is none, or `target` is
    there; DRIVER_UNTRUSTED if a file is not what was fetched; STATE_FAILED.
    """
    lock = _part(cache.lock(), asked)
    for name, faults in cache.verify().items():
        if name in lock.drivers and faults:
            raise TidegateError(
                Code.DRIVER_UNTRUSTED,
                f"{faults[0].path} is not what was fetched: {faults[0].problem}.",
                hint="`tidegate driver fetch` downloads the first content.",
            )
    draft = draft_of(target)
    try:
        with zipfile.ZipFile(draft, "x", zipfile.ZIP_STORED) as archive:
            archive.writestr(_entry(NAME), encode_lock(lock))
            for path in lock.files:
                with archive.open(_entry(path), "w", force_zip64=True) as entry:
                    entry.write((cache.directory / path).read_bytes())
        name_draft(draft, target)
    except FileExistsError:
        raise TidegateError(
            Code.ARGUMENT_INVALID, f"The file {target} is there already.", hint="Name another one."
        ) from None
    except OSError as error:
        raise unwritable(target, error) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return lock


def _entry(name: str) -> zipfile.ZipInfo:
    """The same drivers make the same bundle, byte for byte."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o600 << 16
    return entry


def _part(lock: LockFile, asked: Sequence[str]) -> LockFile:
    for name in asked:
        if name not in lock.drivers:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"There is no driver {name[:200]} in the cache.",
                hint="`tidegate driver list` shows them.",
            )
    for name in [name for name in lock.drivers if asked and name not in asked]:
        lock = lock.without_driver(name)
    if not lock.drivers:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "There is no driver in the cache.",
            hint="Fetch one with `tidegate driver fetch`.",
        )
    return lock


def read_bundle_lock(bundle: Path) -> LockFile:
    """What a bundle says that it has. Raises: TidegateError ARGUMENT_INVALID, DRIVER_UNTRUSTED."""
    try:
        with zipfile.ZipFile(bundle) as archive:
            return _read_lock(archive, bundle)
    except (OSError, zipfile.BadZipFile, ValueError) as error:
        raise _unreadable(bundle, error) from None


def import_bundle(cache: DriverCache, bundle: Path) -> LockFile:
    """Put a bundle's drivers into the cache; returns what was in it. The caller has seen to it that
    this is allowed.

    Raises: TidegateError ARGUMENT_INVALID if the file is no bundle; DRIVER_UNTRUSTED if a file of
    it is not what its lock file says, or not what this cache has; STATE_FAILED. Nothing is locked
    then.
    """
    with exclusive(cache.directory), ExitStack() as drafts:
        own = read_lock(cache.directory)
        try:
            with zipfile.ZipFile(bundle) as archive:
                lock = _read_lock(archive, bundle)
                _check_conflicts(own, lock)
                made = [
                    _unpack(archive, lock, path, cache.directory, drafts) for path in lock.files
                ]
        except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError) as error:
            raise _unreadable(bundle, error) from None
        except FileNotFoundError as error:
            raise _unreadable(bundle, error) from None
        except OSError as error:
            raise unwritable(cache.directory, error) from error
        try:
            for draft, target in made:
                draft.replace(target)
        except OSError as error:
            raise unwritable(cache.directory, error) from error
        files = {**own.files, **lock.files}
        write_lock(cache.directory, LockFile(own.version, {**own.drivers, **lock.drivers}, files))
        return lock


def _read_lock(archive: zipfile.ZipFile, bundle: Path) -> LockFile:
    try:
        entry = archive.getinfo(NAME)
    except KeyError:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"{bundle} is no bundle of drivers: it has no {NAME}.",
            hint="`tidegate driver bundle` makes one.",
        ) from None
    if entry.file_size > MOST_BYTES:
        raise TidegateError(Code.DRIVER_UNTRUSTED, f"The {NAME} in {bundle} is too large.")
    with archive.open(entry) as file:
        lock = decode_lock(file.read(MOST_BYTES), f"in {bundle}")
    if sum(pin.size for pin in lock.files.values()) > _MOST_BUNDLE_BYTES:
        raise TidegateError(Code.DRIVER_UNTRUSTED, f"The drivers in {bundle} are too large.")
    return lock


def _check_conflicts(own: LockFile, lock: LockFile) -> None:
    """Raises: TidegateError DRIVER_UNTRUSTED where the cache has other content."""
    for path, pin in lock.files.items():
        if own.pin(path) not in (None, pin.sha256):
            raise _conflict(path)
    for name, driver in lock.drivers.items():
        there = own.drivers.get(name)
        if there is not None and there.jars != driver.jars:
            raise _conflict(name)


def _conflict(what: str) -> TidegateError:
    return TidegateError(
        Code.DRIVER_UNTRUSTED,
        f"{what} is not the same in the bundle and in the cache.",
        hint="Find out which is right. `tidegate driver remove` removes that of the cache.",
    )


def _unpack(
    archive: zipfile.ZipFile, lock: LockFile, path: str, directory: Path, drafts: ExitStack
) -> tuple[Path, Path]:
    """Write a file of the bundle next to its place; returns (where it is, where it goes)."""
    pin = lock.files[path]
    target = directory / path
    make_private_directory(target.parent)
    draft = draft_of(target)
    drafts.callback(draft.unlink, missing_ok=True)
    try:
        entry = archive.getinfo(path)
    except KeyError:
        raise TidegateError(Code.DRIVER_UNTRUSTED, f"The bundle has no {path}.") from None
    digest = hashlib.sha256()
    size = 0
    with archive.open(entry) as source, open_draft(draft) as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > min(pin.size, MOST_JAR_BYTES):
                break
            digest.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    if size != pin.size or digest.hexdigest() != pin.sha256:
        raise TidegateError(
            Code.DRIVER_UNTRUSTED,
            f"{path} is not what the bundle's lock file says.",
            hint="Make the bundle again, and check how it was copied.",
        )
    if path.endswith(".jar"):
        check_jar(draft, path)
    return draft, target


def _unreadable(bundle: Path, error: Exception) -> TidegateError:
    reason = error.strerror if isinstance(error, OSError) else "it is no archive, or damaged"
    return TidegateError(
        Code.ARGUMENT_INVALID,
        f"Cannot read the bundle {bundle}: {reason}.",
        hint="`tidegate driver bundle` makes one.",
    )
