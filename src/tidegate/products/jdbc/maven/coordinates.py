"""Names of Java libraries: `groupId:artifactId:version`, and their paths in a repository. Pure.

Names come from callers and from POMs, which are foreign: each becomes part of a path and of a URL,
so only plain names are taken.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tidegate.errors import Code, TidegateError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_VERSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")

NEWEST = ("RELEASE", "LATEST")
"""Versions that mean the newest one. What they are is looked up once."""

_SHOWN = 120


class Coordinate(NamedTuple):
    """One library in one version. All parts are plain names (`parse_coordinate`)."""

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def directory(self) -> str:
        """The directory in a repository that has all versions."""
        return f"{self.group.replace('.', '/')}/{self.artifact}"

    def path(self, extension: str, classifier: str = "") -> str:
        """The path in a repository of one of its files."""
        end = f"-{classifier}" if classifier else ""
        return f"{self.directory}/{self.version}/{self.artifact}-{self.version}{end}.{extension}"


def parse_coordinate(text: str) -> Coordinate:
    """The coordinate in `groupId:artifactId:version`.

    Raises: TidegateError ARGUMENT_INVALID for another form, for a version that is a range, and for
    a SNAPSHOT, whose content changes.
    """
    parts = text.strip().split(":")
    if len(parts) != 3 or not all(parts):
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"`{text[:_SHOWN]}` is not a coordinate.",
            hint="Write groupId:artifactId:version, such as org.postgresql:postgresql:42.7.8.",
        )
    return make_coordinate(*parts)


def parse_coordinates(text: str) -> tuple[Coordinate, ...]:
    """The coordinates in a list with commas between them. Raises: as `parse_coordinate`."""
    return tuple([parse_coordinate(part) for part in text.split(",")])


def make_coordinate(group: str, artifact: str, version: str, origin: str = "") -> Coordinate:
    """The coordinate of three names. `origin` says in errors where they come from.

    Raises: TidegateError ARGUMENT_INVALID, or DRIVER_UNRESOLVED if there is an `origin`.
    """
    shown = f"`{group}:{artifact}:{version}`"[:_SHOWN]
    where = f" in {origin}" if origin else ""
    code = Code.DRIVER_UNRESOLVED if origin else Code.ARGUMENT_INVALID
    if version[:1] in ("[", "("):
        exact = re.fullmatch(r"\[([^,\[\]()]+)\]", version)
        if exact is None:
            raise TidegateError(
                code,
                f"The version of {shown}{where} is a range, and ranges are not resolved.",
                hint=f"Add a coordinate of {group}:{artifact} with one version, after a comma."
                if origin
                else "Name one version.",
            )
        version = exact[1]
    names = (_is_name(group, dots=True), _is_name(artifact), _VERSION.fullmatch(version))
    if not all(names) or ".." in version:
        raise TidegateError(
            code,
            f"{shown}{where} is not a coordinate: it has characters that names do not have.",
            hint="Names have letters, digits, `.`, `_` and `-`.",
        )
    if version.upper().endswith("-SNAPSHOT"):
        raise TidegateError(
            code,
            f"{shown}{where} is a SNAPSHOT, whose content changes.",
            hint="Name a released version.",
        )
    return Coordinate(group, artifact, version)


def is_classifier(text: str) -> bool:
    """Whether the text can be a classifier or an extension in a file's name."""
    return _is_name(text)


def _is_name(text: str, *, dots: bool = False) -> bool:
    if _NAME.fullmatch(text) is None or ".." in text:
        return False
    return not dots or all(re.match("[A-Za-z0-9_-]", part) for part in text.split("."))
