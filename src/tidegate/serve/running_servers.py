"""The servers that run on a state directory: each has an entry while it runs.

An entry is `STATE/servers/PID.NUMBER.json`, mode 0600 in a directory of mode 0700, and holds no
secret. Its server holds a lock on the file, which the operating system releases when the process
ends; an entry without a locked lock is of a server that was killed, and its next reader removes it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tidegate import __version__
from tidegate.system.file_locks import is_locked, take_lock
from tidegate.system.file_rights import is_ours
from tidegate.system.private_files import create_file, make_private_directory, open_existing
from tidegate.typed_values import decode_json

STDIO = "stdio"
_MAX_BYTES = 16_384


class RunningServer(msgspec.Struct, frozen=True):
    """One server: `started_at` is a Unix time, `edges` the names of where it listens: addresses,
    or `stdio` for the client that started it. `surfaces` are those of its settings, `console` the
    address at which it serves the console, empty if it does not."""

    pid: int
    release: str
    started_at: float
    edges: tuple[str, ...]
    surfaces: tuple[str, ...]
    console: str = ""

    @property
    def listens(self) -> bool:
        """Whether it has an address, unlike the server that a client starts for itself."""
        return any(edge != STDIO for edge in self.edges)

    @property
    def place(self) -> str:
        """Where it is reached, for a person."""
        return ", ".join(self.edges)


class RunningServers:
    """The entries below a state directory."""

    def __init__(self, state: Path) -> None:
        self.directory = state / "servers"

    @contextmanager
    def enter(
        self, edges: Sequence[str], surfaces: Sequence[str], started_at: float, console: str = ""
    ) -> Generator[None]:
        """Keep an entry of this process. A directory that cannot be written keeps none, and the
        server runs all the same."""
        pid = os.getpid()
        entry = RunningServer(pid, __version__, started_at, tuple(edges), tuple(surfaces), console)
        descriptor, path = self._write(entry)
        try:
            yield
        finally:
            if path is not None:
                with suppress(OSError):
                    path.unlink()
            if descriptor is not None:
                os.close(descriptor)

    def _write(self, entry: RunningServer) -> tuple[int | None, Path | None]:
        name = f"{entry.pid}.{os.urandom(4).hex()}.json"
        draft, path = self.directory / f".{name}", self.directory / name
        descriptor = None
        try:
            make_private_directory(self.directory, parents=False)
            descriptor = create_file(draft)
            take_lock(descriptor)
            os.write(descriptor, msgspec.json.encode(entry))
            draft.replace(path)  # locked before its name is there
        except OSError:
            if descriptor is not None:
                os.close(descriptor)
            with suppress(OSError):
                draft.unlink()
            return None, None
        return descriptor, path

    def read(self) -> list[RunningServer]:
        """The servers that run, the oldest first; entries of killed ones are removed."""
        found = [self._read(path) for path in self.directory.glob("[!.]*.json")]
        return sorted((each for each in found if each), key=lambda each: each.started_at)

    def runs(self, pid: int) -> bool:
        """Whether the server of this process still runs."""
        return any(each.pid == pid for each in self.read())

    def _read(self, path: Path) -> RunningServer | None:
        try:
            descriptor = open_existing(path)
        except OSError:
            return None
        try:
            if not is_ours(os.fstat(descriptor)):
                return None
            if is_locked(descriptor):
                return decode_json(os.read(descriptor, _MAX_BYTES), RunningServer)
            with suppress(OSError):
                path.unlink()
            return None
        except msgspec.DecodeError:
            return None
        finally:
            os.close(descriptor)
