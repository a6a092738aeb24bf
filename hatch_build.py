"""Compiles the program that JDBC drivers run in, `worker.jar`, when the package is built.

A source distribution always holds the jar, and a wheel that is built from one takes it from there.
A wheel of a checkout is built without it where no Java compiler is, and says so where it would be
used.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = Path("src/tidegate/products/jdbc/engine/jvm/java")
JAR = Path("src/tidegate/products/jdbc/engine/jvm/worker.jar")
RELEASE = "17"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The date of the jar's entries, so that the same sources give the same jar."""
MARK = Path("PKG-INFO")
"""What a source distribution has beside pyproject.toml, and a checkout has not."""
NO_COMPILER = (
    "A source distribution needs worker.jar, and neither javac nor ecj is installed to compile it."
)


class JavaBuild(BuildHookInterface):
    """Called by hatchling before it makes a distribution: a source, a wheel, or an editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        is_packed = (root / MARK).is_file() and (root / JAR).is_file()
        if not is_packed and not compile_jar(root / SOURCES, root / JAR):
            if self.target_name == "sdist":
                self.app.abort(NO_COMPILER)
            print("worker.jar is not compiled: neither javac nor ecj is installed", file=sys.stderr)
        if (root / JAR).is_file():
            build_data["artifacts"].append(str(JAR))


def compile_jar(sources: Path, jar: Path) -> bool:
    """Compile all below `sources` into `jar`. Returns whether there is a compiler.

    Raises: subprocess.CalledProcessError if the sources are wrong.
    """
    compiler = shutil.which("javac") or shutil.which("ecj")
    if compiler is None:
        return False
    with tempfile.TemporaryDirectory() as place:
        files = sorted(map(str, sources.rglob("*.java")))
        command = [compiler, "--release", RELEASE, "-encoding", "UTF-8", "-d", place, *files]
        subprocess.run(command, check=True)
        partial = jar.with_suffix(".new")
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for found in sorted(Path(place).rglob("*.class")):
                name = found.relative_to(place).as_posix()
                archive.writestr(zipfile.ZipInfo(name, LONG_AGO), found.read_bytes())
        partial.replace(jar)
    return True
