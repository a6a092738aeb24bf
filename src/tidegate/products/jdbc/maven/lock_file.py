"""The lock file of the cache: what each coordinate was when it was fetched first.

It is JSON, for people and for closed networks: the same file on another machine means the same
bytes. A path has one digest for all that need it, its pin.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.maven.coordinates import make_coordinate
from tidegate.products.jdbc.maven.repository import Artifact, unwritable
from tidegate.system.file_locks import wait_for_lock
from tidegate.system.private_files import make_private_directory, open_file, replace_file
from tidegate.typed_values import decode_json

NAME = "drivers.lock"
VERSION = 1
MOST_BYTES = 16_777_216
_LOCK_S = 300.0
_POLL_S = 0.05


class LockedLibrary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A jar that is needed."""

    coordinate: str
    path: str


class LockedDriver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What some coordinates resolved to. `jars` are in the order of the class path. `repository` is
    where they came from, `fetched_at` a time in UTC. `left_out` names optional libraries."""

    jars: tuple[LockedLibrary, ...]
    repository: str
    fetched_at: str
    left_out: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    poms: tuple[str, ...] = ()


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file's content: its SHA-256 in hexadecimal, and its size in bytes."""

    sha256: str
    size: int


class LockFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`drivers` are by what was asked for: coordinates with commas between them. `files` are by
    their path in the cache, which is that of a repository."""

    version: int = VERSION
    drivers: dict[str, LockedDriver] = {}
    files: dict[str, Pin] = {}

    def pin(self, path: str) -> str | None:
        """The digest that a path is to have; None if it was never fetched."""
        found = self.files.get(path)
        return None if found is None else found.sha256

    def with_driver(self, asked: str, driver: LockedDriver, files: list[Artifact]) -> LockFile:
        """With a further driver."""
        pins = {each.path: Pin(each.sha256, each.size) for each in files}
        drivers = {**self.drivers, asked: driver}
        return LockFile(VERSION, drivers, _needed({**self.files, **pins}, drivers))

    def without_driver(self, asked: str) -> LockFile:
        """Without one, and without the files that only it needs."""
        drivers = {name: each for name, each in self.drivers.items() if name != asked}
        return LockFile(VERSION, drivers, _needed(self.files, drivers))


def _needed(files: dict[str, Pin], drivers: dict[str, LockedDriver]) -> dict[str, Pin]:
    used = {path for each in drivers.values() for path in (*paths_of(each), *each.poms)}
    return {path: pin for path, pin in sorted(files.items()) if path in used}


def paths_of(driver: LockedDriver) -> list[str]:
    """The paths of a driver's jars."""
    return [each.path for each in driver.jars]


def decode_lock(content: bytes, origin: str) -> LockFile:
    """Read a lock file. `origin` names it in errors.

    Raises: TidegateError DRIVER_UNTRUSTED for another file, or has a path that leads elsewhere.
    """
    try:
        lock = decode_json(content, LockFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unusable(origin, f"it cannot be read ({str(error)[:120]})") from None
    if lock.version != VERSION:
        raise _unusable(origin, f"it has the version {lock.version}, and {VERSION} is known")
    for path in lock.files:
        if not _is_path(path):
            raise _unusable(origin, f"it has the path `{path[:120]}`, which is not of a library")
    for driver in lock.drivers.values():
        missing = {*paths_of(driver), *driver.poms} - lock.files.keys()
        if missing:
            raise _unusable(origin, f"it has no digest of {min(missing)[:120]}")
    return lock


def _is_path(path: str) -> bool:
    """Whether a path is one that a coordinate gives."""
    *group, artifact, version, name = path.split("/")
    try:
        coordinate = make_coordinate(".".join(group), artifact, version)
    except TidegateError:
        return False
    start = f"{coordinate.directory}/{version}/"
    rest = name.removeprefix(f"{artifact}-{version}")
    return path == start + name and rest != name and rest[:1] in "-." and rest.isprintable()


def read_lock(directory: Path) -> LockFile:
    """The lock file of a cache; an empty one if there is none. Raises: TidegateError
    DRIVER_UNTRUSTED, STATE_FAILED."""
    path = directory / NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return LockFile()
    except OSError as error:
        raise unwritable(path, error) from error
    return decode_lock(content, str(path))


def encode_lock(lock: LockFile) -> bytes:
    """The same drivers give the same text, for people and for tools that compare."""
    return msgspec.json.format(msgspec.json.encode(lock, order="sorted"), indent=2) + b"\n"


def write_lock(directory: Path, lock: LockFile) -> None:
    """Raises: TidegateError STATE_FAILED; the old file is there then."""
    content = encode_lock(lock)
    try:
        replace_file(directory / NAME, content)
    except OSError as error:
        raise unwritable(directory / NAME, error) from error


@contextmanager
def exclusive(directory: Path) -> Generator[None]:
    """Change the cache while no other process does. Raises: TidegateError SOURCE_BUSY,
    STATE_FAILED."""
    try:
        make_private_directory(directory)
        descriptor = open_file(directory / ".lock", "read and write")
    except OSError as error:
        raise unwritable(directory, error) from error
    try:
        if not wait_for_lock(descriptor, _LOCK_S, _POLL_S):
            raise TidegateError(Code.SOURCE_BUSY, "Another process changes the cache of drivers.")
        yield
    finally:
        os.close(descriptor)  # which ends the lock


def _unusable(origin: str, reason: str) -> TidegateError:
    return TidegateError(
        Code.DRIVER_UNTRUSTED,
        f"The lock file {origin} cannot be used: {reason}.",
        hint="Move it away, and fetch the drivers again.",
        details={"path": origin},
    )
