"""The files from which a worker starts within seconds: the library's classes, compiled ahead of
time, and the JVM's own cache of them.

They are built once for each library, Java and version of ours, in a directory of the user's cache
that no one else may read: `classes.jar` first, then the JVM's cache, and `built.json` last, which
says how large the others are. What lacks it, or does not fit it, is built again. One process builds
at a time, under a lock on a file; the kernel lets go of it when that process ends.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.paths import of_platform
from tidegate.products.datalog.engine.library import MAIN, PROGRAM, Library
from tidegate.system.file_locks import is_locked, try_lock, wait_for_lock
from tidegate.system.file_rights import is_ours
from tidegate.system.private_files import close_to_others, make_private_directory, replace_file
from tidegate.system.processes import start_apart
from tidegate.typed_values import decode_json

CLASSES = "classes.jar"
BUILT = "built.json"
PROGRESS = "progress.json"
NATIVES = "natives"

USUAL_S = 90.0
"""How long a build takes where none was measured: two cores that do nothing else."""

MOST_S = 900.0
"""When a step of a build is given up."""

WAIT_S = 2.0
"""How often it is said that another process builds."""

POLL_S = 0.2

UNUSED_DAYS = 60
"""After how many days without use a build for another library or Java is removed."""

Report = Callable[[float, str], None]
"""Called with (share done between 0 and 1, what is being done)."""


class Built(msgspec.Struct, frozen=True):
    """What `built.json` says: sizes in bytes by name, the JVM's options, and the seconds that it
    took."""

    sizes: dict[str, int]
    options: list[str]
    seconds: float


class CacheState(NamedTuple):
    """One build, for people: `state` is `ready`, `building`, `absent` or `broken`."""

    directory: Path
    state: str
    size: int
    seconds: float | None


class StartupCache:
    """The build for one library."""

    def __init__(self, library: Library, root: Path | None = None) -> None:
        self.library = library
        self.root = cache_root() if root is None else root
        self.directory = self.root / library.key

    def find(self) -> Built | None:
        """The build, if there is a whole one. Marks it as used."""
        try:
            built = decode_json((self.directory / BUILT).read_bytes(), Built)
            for name, size in built.sizes.items():
                if (self.directory / name).stat().st_size != size:
                    return None
            os.utime(self.directory / BUILT)
        except (OSError, msgspec.MsgspecError):
            return None
        return built

    def discard(self) -> None:
        """Forget a build that does not work, so that the next use builds again."""
        with suppress(OSError):
            (self.directory / BUILT).unlink()

    def command(self, built: Built, heap: str, directory: Path) -> list[str]:
        """What starts a worker whose private files go to `directory`."""
        return [
            self.library.java.program,
            *self.library.options(self.directory / NATIVES),
            *built.options,
            f"-Xmx{heap}",
            "-XX:+ExitOnOutOfMemoryError",
            "-Xlog:disable",
            "-Xlog:all=warning:stderr",
            f"-Djava.io.tmpdir={directory}",
            f"-Duser.home={directory}",
            *self._classpath(),
            MAIN,
        ]

    def build(self, report: Report | None = None) -> Built:
        """Build what is missing, or wait for another process that does.

        Raises: TidegateError STATE_FAILED if it cannot be written, ENGINE_MISSING if Java fails.
        """
        require_private(self.root)
        with self._locked(report):
            built = self.find()
            if built is not None:
                return built
            began = time.monotonic()
            usual = self._usual_s()

            def say(share: float, doing: str) -> None:
                self._note(began, usual, doing)
                if report is not None:
                    report(share, doing)

            try:
                shutil.rmtree(self.directory, ignore_errors=True)
                make_private_directory(self.directory, parents=False, is_new=True)
                say(0.05, "Compiling the library")
                self._compile()
                say(0.65, "Making the cache of the JVM")
                options = self._train()
                sizes = {
                    name: (self.directory / name).stat().st_size
                    for name in os.listdir(self.directory)  # noqa: PTH208
                    if (self.directory / name).is_file()
                }
                built = Built(sizes, options, time.monotonic() - began)
                replace_file(self.directory / BUILT, msgspec.json.encode(built))
            except OSError as error:
                shutil.rmtree(self.directory, ignore_errors=True)
                raise TidegateError(
                    Code.STATE_FAILED,
                    f"The cache in `{self.root}` cannot be written: {error.strerror}.",
                    hint="It needs 250 MB. Make room, or name another place with XDG_CACHE_HOME.",
                    details={"path": str(self.root)},
                ) from error
            finally:
                with suppress(OSError):
                    self._progress_file.unlink()
            with suppress(OSError):
                (self.root / "usual.json").write_text(json.dumps(built.seconds))
            self._remove_unused()
            if report is not None:
                report(1.0, "Done")
            return built

    def build_elsewhere(self) -> None:
        """Have a process of its own build, which goes on when this one ends."""
        require_private(self.root)
        environment = {
            name: value
            for name in ("HOME", "PATH", "LANG", "XDG_CACHE_HOME", "JAVA_HOME", "TMPDIR")
            if (value := os.environ.get(name)) is not None
        }
        command = [sys.executable, "-I", "-m", __name__, self.library.java.program]
        start_apart(command, environment=environment)

    def building(self) -> bool:
        """Whether some process builds at this moment."""
        try:
            with self._lock_file.open("rb") as file:
                return is_locked(file.fileno())
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def left_s(self) -> float:
        """About how many seconds a build that is under way still takes; of none, the whole."""
        try:
            noted: dict[str, Any] = json.loads(self._progress_file.read_bytes())
            elapsed = time.time() - float(noted["began"])
            return max(5.0, float(noted["usual"]) - elapsed)
        except (OSError, ValueError, KeyError, TypeError):
            return self._usual_s()

    def states(self) -> list[CacheState]:
        """This build and those for other libraries."""
        others = [path for path in _entries(self.root) if path != self.directory]
        return [self._state(self.directory), *[self._state(path) for path in others]]

    def clear(self) -> int:
        """Remove all builds; how many bytes they had. Raises: TidegateError SOURCE_BUSY if one is
        under way."""
        if self.building():
            raise TidegateError(
                Code.SOURCE_BUSY, "The cache is being built.", hint="Wait until it is, then retry."
            )
        paths = _entries(self.root)
        freed = sum(map(_size, paths))
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)
        return freed

    # How it is built.

    def _compile(self) -> None:
        """Compile the library and our program to `classes.jar`."""
        with tempfile.TemporaryDirectory(dir=self.directory) as classes:
            self._java(
                ["-cp", os.pathsep.join([classes, str(PROGRAM), str(self.library.jar)])],
                ["clojure.main", "-e", f"(compile '{MAIN})"],
                (f"-Dclojure.compile.path={classes}",),
            )
            draft = self.directory / f"{CLASSES}.new"
            root = Path(classes)
            # The JVM reads classes from the jar, so little is gained by packing them well.
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                for path in sorted(root.rglob("*")):
                    if path.is_file():
                        archive.write(path, path.relative_to(root))
            draft.replace(self.directory / CLASSES)

    def _train(self) -> list[str]:
        """Run the worker's rehearsal, so that the JVM writes its cache; the options that use it."""
        if self.library.java.version >= 25:
            made = self.directory / "worker.aot"
            writing, using = (f"-XX:AOTCacheOutput={made}",), [f"-XX:AOTCache={made}"]
        else:
            made = self.directory / "worker.jsa"
            writing = (f"-XX:ArchiveClassesAtExit={made}",)
            using = [f"-XX:SharedArchiveFile={made}", "-Xshare:auto"]
        with tempfile.TemporaryDirectory(dir=self.directory) as directory:
            self._java(self._classpath(), [MAIN, "train", directory], writing)
        return using if made.is_file() else []

    def _classpath(self) -> list[str]:
        # A cache of the JVM is refused for a class path with directories in it.
        jars = [str(self.directory / CLASSES), str(self.library.jar)]
        return ["-cp", os.pathsep.join(jars)]

    def _java(self, classpath: list[str], program: list[str], options: tuple[str, ...]) -> None:
        natives = self.directory / NATIVES
        natives.mkdir(exist_ok=True)
        command = [
            self.library.java.program,
            *self.library.options(natives),
            *options,
            "-Xmx1g",
            "-Xlog:disable",
            "-Xlog:all=error:stderr",
            *classpath,
            *program,
        ]
        environment = {"LANG": "C.UTF-8", "HOME": str(self.directory)}
        with tempfile.TemporaryFile() as output:
            try:
                subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd=self.directory,
                    env=environment,
                    timeout=MOST_S,
                    check=True,
                )
            except (subprocess.SubprocessError, FileNotFoundError) as error:
                output.seek(0)
                last = output.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
                if any("No space left" in line for line in last):
                    raise OSError(28, "No space left on device") from error
                raise TidegateError(
                    Code.ENGINE_MISSING,
                    f"Java {self.library.java.version} could not compile Datalevin:"
                    f" {last[-1][:300] if last else 'it said nothing'}",
                    hint="Name another Java of at least 21 with JAVA_HOME, and retry.",
                ) from error

    # The lock, and what is said of a build under way.

    @property
    def _lock_file(self) -> Path:
        return self.root / f"{self.library.key}.lock"

    @property
    def _progress_file(self) -> Path:
        return self.root / f"{self.library.key}.{PROGRESS}"

    @contextmanager
    def _locked(self, report: Report | None) -> Generator[None]:
        with self._lock_file.open("wb") as file:
            has_lock = try_lock(file.fileno())
            while not has_lock:
                if report is not None:
                    report(0.0, "Waiting for another process that builds it")
                has_lock = wait_for_lock(file.fileno(), WAIT_S, POLL_S)
            yield

    def _note(self, began: float, usual: float, doing: str) -> None:
        progress = {
            "began": time.time() - (time.monotonic() - began),
            "usual": usual,
            "doing": doing,
        }
        with suppress(OSError):
            self._progress_file.write_text(json.dumps(progress))

    def _usual_s(self) -> float:
        try:
            return max(10.0, float(json.loads((self.root / "usual.json").read_bytes())))
        except (OSError, ValueError, TypeError):
            return USUAL_S

    def _state(self, directory: Path) -> CacheState:
        size = _size(directory)
        if directory == self.directory:
            built = self.find()
            if built is not None:
                return CacheState(directory, "ready", size, built.seconds)
            if self.building():
                return CacheState(directory, "building", size, None)
            return CacheState(directory, "broken" if directory.exists() else "absent", size, None)
        return CacheState(directory, "other", size, None)

    def _remove_unused(self) -> None:
        oldest = time.time() - UNUSED_DAYS * 86_400
        for path in _entries(self.root):
            with suppress(OSError):
                used = path / BUILT
                if path != self.directory and (used if used.exists() else path).stat().st_mtime < (
                    oldest
                ):
                    shutil.rmtree(path, ignore_errors=True)


def cache_root() -> Path:
    """The directory of all builds. Raises: TidegateError ARGUMENT_INVALID without a home."""
    from platformdirs import user_cache_path

    return of_platform(partial(user_cache_path, "tidegate", appauthor=False)) / "datalog"


def require_private(root: Path) -> None:
    """Make the directory if it is not there; see that it is ours alone: what is in it is run.

    Raises: TidegateError STATE_FAILED.
    """
    try:
        make_private_directory(root)
        status = root.lstat()
        if stat.S_ISDIR(status.st_mode) and is_ours(status):
            close_to_others(root)
            return
    except OSError as error:
        raise TidegateError(
            Code.STATE_FAILED,
            f"The cache directory `{root}` cannot be made: {error.strerror}.",
            hint="Name another place with XDG_CACHE_HOME.",
            details={"path": str(root)},
        ) from error
    raise TidegateError(
        Code.STATE_FAILED,
        f"The cache directory `{root}` is no directory of this account, and what is in it is run.",
        hint="Remove it, or name another place with XDG_CACHE_HOME.",
        details={"path": str(root)},
    )


def _entries(root: Path) -> list[Path]:
    try:
        return sorted([path for path in root.iterdir() if path.is_dir()])
    except OSError:
        return []


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def _main() -> None:
    from tidegate.products.datalog.engine.library import find_library

    with suppress(TidegateError):
        StartupCache(find_library(sys.argv[1])).build()


if __name__ == "__main__":
    _main()
