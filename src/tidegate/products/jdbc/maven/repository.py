"""One Maven repository: its files, each checked by the checksum that the repository gives.

Checksums are `.sha512`, `.sha256` and `.sha1` files next to each file; the strongest that is there
counts. They protect from damage and from a mirror that was changed in part. The lock file protects
from content that changes later.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tidegate.errors import Code, TidegateError
from tidegate.file_fetcher import Downloader
from tidegate.products.jdbc.maven.coordinates import Coordinate, make_coordinate
from tidegate.products.jdbc.maven.jar_checks import check_jar
from tidegate.products.jdbc.maven.pom import Warn
from tidegate.products.jdbc.maven.xml_documents import read_document
from tidegate.system.private_files import create_file, draft_of, make_private_directory
from tidegate.xml_tree import MOST_BYTES

MOST_JAR_BYTES = 268_435_456
_MOST_CHECKSUM_BYTES = 4_096
_KINDS = (("sha512", 128), ("sha256", 64), ("sha1", 40))


class Artifact(NamedTuple):
    """A file of the cache: its path in a repository, and its content's digest in hexadecimal."""

    path: str
    sha256: str
    size: int


Pinned = Callable[[str], str | None]
"""The SHA-256 that a path had when it was fetched first; None if it never was."""


class Repository:
    """Fetches files to a directory that has the layout of a repository."""

    def __init__(
        self,
        downloader: Downloader,
        directory: Path,
        pinned: Pinned,
        warn: Warn,
        *,
        allow_unchecked: bool,
    ) -> None:
        """`allow_unchecked`: files without a checksum are taken. From this machine they are."""
        self._downloader = downloader
        self._directory = directory
        self._pinned = pinned
        self._warn = warn
        self._allow_unchecked = allow_unchecked or downloader.is_local
        self._unchecked = 0
        self.fetched: dict[str, Artifact] = {}
        """What was asked for, by path."""

    def newest(self, coordinate: Coordinate) -> Coordinate:
        """The library in its newest released version, as the repository's metadata says.

        Raises: TidegateError DRIVER_UNRESOLVED, DRIVER_REPOSITORY, DRIVER_UNTRUSTED.
        """
        path = f"{coordinate.directory}/maven-metadata.xml"
        content = self._downloader.get(path, MOST_BYTES)
        if content is None:
            raise TidegateError(
                Code.DRIVER_UNRESOLVED,
                f"The repository does not say which version of {coordinate.group}:"
                f"{coordinate.artifact} is the newest.",
                hint="Name the version.",
            )
        self._check(path, content)
        root = read_document(content, f"The metadata of {coordinate}")
        listed = [each.text.strip() for each in root.all("versioning", "versions", "version")]
        offered = [root.value("versioning", "release"), *reversed(listed)]
        for version in filter(None, offered):
            if not version.upper().endswith("-SNAPSHOT"):
                names = coordinate.group, coordinate.artifact, version
                return make_coordinate(*names, origin=f"the metadata of {coordinate}")
        raise TidegateError(
            Code.DRIVER_UNRESOLVED,
            f"There is no released version of {coordinate.group}:{coordinate.artifact}.",
            hint="Name another library.",
        )

    def pom(self, coordinate: Coordinate) -> bytes | None:
        """The POM of a library; None if there is none. Raises: as `fetch`."""
        found = self.fetch(coordinate.path("pom"))
        return None if found is None else (self._directory / found.path).read_bytes()

    def report(self) -> None:
        """Warn, once for all files, if some had no checksum."""
        if self._unchecked:
            self._warn(
                f"the repository gave no checksum for {self._unchecked} files; what came is pinned"
            )

    def fetch(self, path: str) -> Artifact | None:
        """Fetch a jar or a POM, unless it is there as it was; None if the repository has none.

        Raises: TidegateError DRIVER_REPOSITORY, DRIVER_UNTRUSTED if it fails a check, STATE_FAILED
        if it cannot be written. Nothing is left of it then.
        """
        if path in self.fetched:
            return self.fetched[path]
        target = self._directory / path
        pin = self._pinned(path)
        try:
            if pin is not None and target.is_file() and digest_file(target) == pin:
                found = Artifact(path, pin, target.stat().st_size)
            else:
                make_private_directory(target.parent)
                found = self._download(path, target, pin)
        except OSError as error:
            raise unwritable(target, error) from error
        if found is not None:
            self.fetched[path] = found
        return found

    def _download(self, path: str, target: Path, pin: str | None) -> Artifact | None:
        """Raises: TidegateError, OSError."""
        is_jar = path.endswith(".jar")
        most_bytes = MOST_JAR_BYTES if is_jar else MOST_BYTES
        draft = draft_of(target)
        try:
            with open_draft(draft) as file:
                if not self._downloader.save(path, file, most_bytes):
                    return None
                file.flush()
                os.fsync(file.fileno())
            if is_jar:
                check_jar(draft, path)
            self._check(path, draft)
            found = Artifact(path, digest_file(draft), draft.stat().st_size)
            if pin is not None and found.sha256 != pin:
                raise _changed(path)
            draft.replace(target)
            return found
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def _check(self, path: str, content: bytes | Path) -> None:
        """Compare with the repository's checksum. Raises: TidegateError DRIVER_UNTRUSTED if it
        differs, or if there is none and there must be."""
        for kind, length in _KINDS:
            document = self._downloader.get(f"{path}.{kind}", _MOST_CHECKSUM_BYTES)
            if document is None:
                continue
            found = re.search(rb"(?<![0-9a-fA-F])[0-9a-fA-F]{%d}(?![0-9a-fA-F])" % length, document)
            own = (
                digest_file(content, kind)
                if isinstance(content, Path)
                else hashlib.new(kind, content).hexdigest()
            )
            if found is None or found[0].decode().lower() != own:
                raise TidegateError(
                    Code.DRIVER_UNTRUSTED,
                    f"{path} does not have the {kind.upper()} that the repository at"
                    f" {self._downloader.host} gives for it.",
                    hint="Retry; if it fails again, ask who runs the repository.",
                )
            return
        if not self._allow_unchecked:
            raise TidegateError(
                Code.DRIVER_UNTRUSTED,
                f"The repository at {self._downloader.host} gives no checksum for {path}.",
                hint="Use a repository that has checksums, or set `drivers.allow_unchecked`.",
            )
        self._unchecked += 1


def open_draft(path: Path) -> BinaryIO:
    """A new file for its owner alone. Raises: OSError."""
    return os.fdopen(create_file(path), "wb")


def digest_file(path: Path, kind: str = "sha256") -> str:
    """The digest of a file's content in hexadecimal. Raises: OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def unwritable(path: Path, error: OSError) -> TidegateError:
    """The error of a file of the cache that cannot be written."""
    return TidegateError(
        Code.STATE_FAILED,
        f"Cannot write {path}: {error.strerror}.",
        hint="Make room in the state directory, and make it writable.",
        details={"path": str(path)},
    )


def _changed(path: str) -> TidegateError:
    return TidegateError(
        Code.DRIVER_UNTRUSTED,
        f"{path} is not what it was when it was fetched first.",
        hint="Ask who runs the repository. If the change is wanted, `tidegate driver remove` it"
        " and fetch it again.",
    )
