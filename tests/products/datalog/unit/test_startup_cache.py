"""The cache of a worker's start, with a program in Java's place that writes what Java would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from tidegate.engines.common.java import Java
from tidegate.errors import Code, TidegateError
from tidegate.products.datalog.engine.library import Library
from tidegate.products.datalog.engine.startup_cache import BUILT, CLASSES, StartupCache

JAVA = """\
#!/bin/sh
echo run >> {log}
for word in "$@"; do
  case "$word" in
    -Dclojure.compile.path=*) echo class > "${{word#*=}}/a.class" ;;
    -XX:AOTCacheOutput=*|-XX:ArchiveClassesAtExit=*) echo cache > "${{word#*=}}" ;;
  esac
done
{then}
"""


def made(tmp_path: Path, then: str = "", version: int = 25, root: str = "cache") -> StartupCache:
    """A cache whose Java does no more than is needed, and `then`."""
    program = tmp_path / "java"
    program.write_text(JAVA.format(log=tmp_path / "log", then=then))
    program.chmod(0o755)
    jar = tmp_path / "datalevin.jar"
    jar.touch()
    os.utime(jar, (1, 1))
    return StartupCache(Library(jar, "1.2.8", Java(str(program), version, "25")), tmp_path / root)


def runs(tmp_path: Path) -> int:
    """How often Java was started."""
    return len((tmp_path / "log").read_text().splitlines())


def test_it_is_built_once_and_found_again(tmp_path: Path) -> None:
    cache = made(tmp_path)
    assert cache.find() is None
    said: list[str] = []
    built = cache.build(lambda _share, doing: said.append(doing))
    assert said == ["Compiling the library", "Making the cache of the JVM", "Done"]
    assert (cache.build(), runs(tmp_path)) == (cache.find(), 2)
    assert built.options[0].startswith("-XX:AOTCache=")
    assert [state.state for state in cache.states()] == ["ready"]
    assert cache.root.stat().st_mode & 0o777 == 0o700
    assert cache.clear() > 0
    assert cache.find() is None


def test_an_older_java_gets_an_archive_of_classes(tmp_path: Path) -> None:
    assert made(tmp_path, version=21).build().options[0].startswith("-XX:SharedArchiveFile=")


def test_a_damaged_build_is_made_again(tmp_path: Path) -> None:
    cache = made(tmp_path)
    cache.build()
    with (cache.directory / CLASSES).open("ab") as file:
        file.write(b"more")
    assert cache.find() is None
    assert [state.state for state in cache.states()] == ["broken"]
    assert cache.build() == cache.find()
    (cache.directory / BUILT).write_text("{")
    assert cache.find() is None
    assert cache.build() == cache.find()


def test_another_library_has_a_build_of_its_own(tmp_path: Path) -> None:
    cache = made(tmp_path)
    cache.build()
    newer = tmp_path / "newer.jar"
    newer.write_bytes(b"jar")
    other = StartupCache(cache.library._replace(jar=newer, version="1.2.9"), cache.root)
    assert other.find() is None
    other.build()
    assert cache.find() is not None
    assert sorted(state.state for state in other.states()) == ["other", "ready"]


def test_two_builders_build_once(tmp_path: Path) -> None:
    threads = [threading.Thread(target=made(tmp_path).build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runs(tmp_path) == 2


def test_a_build_that_is_killed_is_made_by_the_next(tmp_path: Path) -> None:
    hanging = made(tmp_path, then="sleep 60")
    script = textwrap.dedent(
        f"""
        from pathlib import Path
        from tidegate.products.datalog.engine.library import Library
        from tidegate.products.datalog.engine.startup_cache import StartupCache
        from tidegate.engines.common.java import Java
        java = Java({hanging.library.java.program!r}, 25, "25")
        library = Library(Path({str(hanging.library.jar)!r}), "1.2.8", java)
        StartupCache(library, Path({str(hanging.root)!r})).build()
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], start_new_session=True) as builder:
        while not (tmp_path / "log").exists():
            assert builder.poll() is None
            time.sleep(0.02)
        assert hanging.building()
        assert hanging.left_s() > 5
        os.killpg(builder.pid, signal.SIGKILL)
    again = made(tmp_path)
    assert not again.building()
    assert again.find() is None
    assert again.build() == again.find()


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ("echo 'java.io.IOException: No space left on device' >&2; exit 1", Code.STATE_FAILED),
        ("echo 'Unrecognized option' >&2; exit 1", Code.ENGINE_MISSING),
    ],
)
def test_a_build_that_fails_says_why_and_leaves_no_build(
    tmp_path: Path, then: str, code: Code
) -> None:
    cache = made(tmp_path, then)
    with pytest.raises(TidegateError) as caught:
        cache.build()
    assert caught.value.code is code
    assert cache.find() is None
    assert not cache.building()


def test_a_directory_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TidegateError) as caught:
        made(tmp_path).build()
    assert caught.value.code is Code.STATE_FAILED
    assert list((tmp_path / "elsewhere").iterdir()) == []
