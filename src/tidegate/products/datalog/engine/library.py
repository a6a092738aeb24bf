"""The wheel `datalevin` and a Java for it: where they are, and what a command for them looks like.

Nothing of the wheel is imported: its own bindings would load a JVM into this process.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from tidegate.config.installation import add_command
from tidegate.engines.common.java import Java, find_java
from tidegate.errors import Code, TidegateError

OLDEST_JAVA = 21
"""The oldest Java that runs the library: its classes have version 65."""

PROGRAM = Path(__file__).parent / "clojure"
"""The worker's own program, which is compiled with the library's."""

MAIN = "tidegate.worker"

_OPENED = ("java.lang", "java.util", "java.nio", "sun.nio.ch")
"""Packages of the JDK that the library reaches into for its memory maps."""


class Library(NamedTuple):
    """The library's jar and its version, and the Java that runs it."""

    jar: Path
    version: str
    java: Java

    @property
    def key(self) -> str:
        """What compiled classes depend on: the jar, the Java, and our program."""
        stat = self.jar.stat()
        identity = f"{self.jar}\0{stat.st_size}\0{stat.st_mtime_ns}\0{self.java.program}\0"
        digest = hashlib.sha256((identity + self.java.description).encode() + _program())
        return f"{self.version}-java{self.java.version}-{digest.hexdigest()[:16]}"

    def options(self, natives: Path) -> list[str]:
        """What every JVM of ours gets. `natives` is where the library unpacks its native code."""
        return [
            "--enable-native-access=ALL-UNNAMED",
            *[f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED],
            f"-Dorg.bytedeco.javacpp.cachedir={natives}",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-XX:+DisplayVMOutputToStderr",
            "-Djava.awt.headless=true",
            "-Dfile.encoding=UTF-8",
            "-Duser.timezone=UTC",
        ]


def find_library(java: str | None = None) -> Library:
    """The installed library; `java` is a program or home that the operator chose.

    Raises: TidegateError ENGINE_MISSING, which says what to install.
    """
    jar, version = _jar()
    return Library(jar, version, find_java(OLDEST_JAVA, "datalog", java))


def installed_version() -> str | None:
    """The version of the library, None if it is not installed. Starts nothing."""
    try:
        return _jar()[1]
    except TidegateError:
        return None


def _jar() -> tuple[Path, str]:
    try:
        package = distribution("datalevin")
    except PackageNotFoundError:
        raise TidegateError(
            Code.ENGINE_MISSING,
            "The engine `datalevin` needs the package `datalevin`.",
            hint=f"Run: {add_command('datalog')}",
        ) from None
    name = f"datalevin/jars/datalevin-runtime-{package.version}.jar"
    jar = Path(str(package.locate_file(name))).resolve()
    if not jar.is_file():
        raise TidegateError(
            Code.ENGINE_MISSING,
            f"The package `datalevin` {package.version} has no `{name}`.",
            hint="Install the version that the extra `datalog` asks for.",
        )
    return jar, package.version


@cache
def _program() -> bytes:
    return b"\0".join([path.read_bytes() for path in sorted(PROGRAM.rglob("*.clj"))])
