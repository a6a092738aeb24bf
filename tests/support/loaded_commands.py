"""Commands without the time that a start takes: a process that has loaded the package forks for
each of them.

Each command is a process all the same, with an environment, a directory, files and an exit status
of its own. What a start is like is tested with real ones (`command_line.STARTED` and others).
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any, NoReturn

from support import off_loop
from support.cheap_hashes import make_hashes_cheap

TESTS = Path(__file__).parents[1]
LENGTH = struct.Struct("!I")
NUMBER = struct.Struct("!i")
"""What is said of a command: the number of its process, and its exit status at its end."""
LOADED = ("tidegate.app", "tidegate.engines.sqlite", "tidegate.store.sqlite.state")
"""What most commands import beside the command line itself and the parser of SQL."""


class LoadedCommand:
    """A command that runs, with what tests need of `subprocess.Popen`."""

    def __init__(self, words: Sequence[str], reply: socket.socket) -> None:
        self._words = list(words)
        self._reply = reply
        self.returncode: int | None = None
        self.pid = self._receive()

    def close(self) -> None:
        """Kill it if it still runs."""
        self._reply.close()

    def poll(self) -> int | None:
        """The exit status, of a signal the negative number, or None while it runs."""
        return self._status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status. Raises: TimeoutExpired."""
        status = self._status(timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self._words, timeout)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._reply], [], [], timeout)[0]:
            self.returncode = self._receive()
        return self.returncode

    def _receive(self) -> int:
        said = self._reply.recv(NUMBER.size, socket.MSG_WAITALL)
        assert said, "the process of the commands has ended"
        return NUMBER.unpack(said)[0]


class LoadedCommands:
    """The process that forks, as the tests see it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.loaded_commands", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._channel = ours
        self._lock = threading.Lock()

    def run(
        self,
        words: Sequence[str],
        files: Sequence[int],
        environment: Mapping[str, str],
        cwd: Path | None,
        timeout_s: float,
    ) -> int:
        """Run `tidegate WORDS` with `files` as its standard input, output and error.

        Returns the exit status, of a signal the negative number. Raises: TimeoutExpired, with the
        command killed.
        """
        command = self.begin(words, files, environment, cwd)
        try:
            return command.wait(timeout_s)
        finally:
            command.close()

    def begin(
        self,
        words: Sequence[str],
        files: Sequence[int],
        environment: Mapping[str, str],
        cwd: Path | None,
    ) -> LoadedCommand:
        """Start `tidegate WORDS` with `files` as its standard input, output and error."""
        request = {
            "words": list(words),
            "environment": dict(environment),
            "cwd": str(cwd or Path.cwd()),
        }
        data = json.dumps(request).encode()
        reply, theirs = socket.socketpair()
        with theirs, self._lock:
            descriptors = [*files, theirs.fileno()]
            socket.send_fds(self._channel, [LENGTH.pack(len(data))], descriptors)
            self._channel.sendall(data)
        return LoadedCommand(words, reply)

    def close(self) -> None:
        self._channel.close()
        self._process.wait()


@functools.cache
def shared() -> LoadedCommands:
    """This process's; it ends with the process."""
    import atexit

    commands = LoadedCommands()
    atexit.register(commands.close)
    return commands


# What the process that forks does.


def load() -> None:
    """Import what commands need, and no more than that."""
    import tidegate.cli

    found = pkgutil.walk_packages(tidegate.cli.__path__, "tidegate.cli.")
    for name in (*(each.name for each in found), *LOADED):
        importlib.import_module(name)
    make_hashes_cheap()
    off_loop.install()
    importlib.import_module("tidegate.sql.judge").judge("DELETE FROM towns", "sqlite")  # the parser
    assert threading.active_count() == 1, "a process with threads must not fork"
    gc.collect()
    gc.freeze()  # a command then copies less


def serve(channel: socket.socket) -> None:
    """Fork for each request until the tests have ended; what still runs then is killed."""
    running: dict[int, tuple[ForkProcess, socket.socket]] = {}
    while True:
        waiting = {reply.fileno(): process for process, reply in running.values()}
        ready, _, _ = select.select([channel.fileno(), *running, *waiting], [], [])
        for descriptor in ready:
            if descriptor in waiting:  # who asked waits no longer
                waiting[descriptor].kill()
            elif descriptor in running:
                process, reply = running.pop(descriptor)
                process.join()
                with reply, contextlib.suppress(OSError):
                    reply.sendall(NUMBER.pack(process.exitcode))
                process.close()
        if channel.fileno() in ready:
            head, files, _, _ = socket.recv_fds(channel, LENGTH.size, 4)
            if not head:
                break
            data = b""
            while len(data) < LENGTH.unpack(head)[0]:
                data += channel.recv(LENGTH.unpack(head)[0] - len(data))
            others = [channel.fileno(), *waiting, files[3]]
            process = ForkProcess(target=become, args=(json.loads(data), files[:3], others))
            process.start()
            reply = socket.socket(fileno=files[3])
            running[process.sentinel] = (process, reply)
            with contextlib.suppress(OSError):
                reply.sendall(NUMBER.pack(process.pid))
            for descriptor in files[:3]:
                os.close(descriptor)
    for process, _ in running.values():
        process.kill()


def become(request: dict[str, Any], files: Sequence[int], others: Sequence[int]) -> NoReturn:
    """Be the command: with its files, and without those of the process that forked."""
    for number, descriptor in enumerate(files):
        os.dup2(descriptor, number)
    for descriptor in (*files, *others):
        with contextlib.suppress(OSError):  # a reply that was sent meanwhile
            os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.stdin, sys.stdout, sys.stderr = _text(0, "r"), _text(1, "w"), _text(2, "w")
    from tidegate.cli.main import main

    sys.argv = ["tidegate", *request["words"]]
    sys.exit(main())


def _text(descriptor: int, mode: str) -> io.TextIOWrapper:
    """A standard file as Python opens it at its start."""
    like = (sys.__stdin__, sys.__stdout__, sys.__stderr__)[descriptor]
    assert like is not None
    return io.TextIOWrapper(
        open(descriptor, f"{mode}b", closefd=False),
        encoding=like.encoding,
        errors=like.errors,
        line_buffering=descriptor == 2 or os.isatty(descriptor),
    )


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
