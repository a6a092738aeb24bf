"""How the worker is started on a Java program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from tidegate.engines.common.java import find_java
from tidegate.errors import Code, TidegateError

OLDEST = 17
"""The oldest Java that runs the worker, which is compiled for it."""

JAR = Path(__file__).with_name("worker.jar")
"""The worker's program. A package that was built without a Java compiler lacks it."""

MAIN = "tidegate.Main"

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
    java = find_java(OLDEST, "jdbc", named)
    return Runtime(java.program, java.version)
