"""What tests start often in their own process, with less of the time that a start takes.

For a worker of DuckDB and for the fixture server on stdio, a process that has loaded them forks.
The child is one of the tests' process all the same, with an environment, a directory, a session
and streams of its own. A Java goes without the compiler that pays after minutes alone. A server
that tests start as a process starts real ones.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import importlib.util
import json
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

TESTS = Path(__file__).parents[1]
WORKER = "tidegate.products.duckdb.engine.worker"
FIXTURE = str(TESTS / "wire" / "everything.py")
JAVA = ("-XX:TieredStopAtLevel=1",)
LENGTH = struct.Struct("!I")
NUMBER = struct.Struct("!i")
CLONE_PARENT = 0x8000
CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine()) if sys.platform == "linux" else None
"""The number of the system call: only this one makes a child of our parent."""


class ForkingProcess:
    """The process that forks, as the tests see it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.quick_starts", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._channel = ours
        self._lock = threading.Lock()

    def fork(
        self,
        words: list[str],
        environment: Mapping[str, str] | None,
        cwd: str | None,
        streams: list[int],
    ) -> int:
        """The number of a process that does what `words` say, our child. Raises: OSError."""
        given = dict(os.environ if environment is None else environment)
        request = {"words": words, "environment": given, "cwd": cwd or os.getcwd()}
        data = json.dumps(request).encode()
        with self._lock:
            socket.send_fds(self._channel, [LENGTH.pack(len(data))], streams)
            self._channel.sendall(data)
            said = self._channel.recv(NUMBER.size, socket.MSG_WAITALL)
        if len(said) < NUMBER.size:
            raise OSError("the process of the workers has ended")
        return NUMBER.unpack(said)[0]

    def close(self) -> None:
        self._channel.close()
        self._process.wait()


@functools.cache
def shared() -> ForkingProcess:
    """This process's; it ends with the process."""
    import atexit

    process = ForkingProcess()
    atexit.register(process.close)
    return process


def start_quickly() -> None:
    """Have `subprocess` start a Java with `JAVA`, and fork where it would start what is loaded, if
    this system can do it."""
    start: Any = subprocess.Popen._execute_child  # pyright: ignore
    forks = CLONE is not None and importlib.util.find_spec("duckdb") is not None

    @functools.wraps(start)
    def start_or_fork(self: Any, args: Any, *rest: Any) -> None:
        words = [str(each) for each in args] if isinstance(args, (list, tuple)) else []
        if words and Path(words[0]).name == "java":
            return start(self, [words[0], *JAVA, *words[1:]], *rest)
        if not forks or (words[-2:] != ["-m", WORKER] and words[1:3] != [FIXTURE, "--stdio"]):
            return start(self, args, *rest)
        cwd, environment, pipes = rest[4], rest[5], rest[9:15]
        given = (pipes[0], pipes[3], pipes[5])
        streams = [number if pipe == -1 else pipe for number, pipe in enumerate(given)]
        try:
            self.pid = shared().fork(words, environment, cwd, streams)
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)

    subprocess.Popen._execute_child = start_or_fork  # pyright: ignore


# What the process that forks does.


def serve(channel: socket.socket) -> None:
    """Fork for each request until the tests have ended."""
    mains = {each: importlib.import_module(each).main for each in (WORKER, "wire.everything")}
    assert threading.active_count() == 1, "a process with threads must not fork"
    gc.collect()
    gc.freeze()
    system = ctypes.PyDLL(None)
    while True:
        head, streams, _, _ = socket.recv_fds(channel, LENGTH.size, 3)
        if not head:
            return
        data = b""
        while len(data) < LENGTH.unpack(head)[0]:
            data += channel.recv(LENGTH.unpack(head)[0] - len(data))
        ctypes.pythonapi.PyOS_BeforeFork()
        pid = system.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
            request = json.loads(data)
            main = mains[WORKER if WORKER in request["words"] else "wire.everything"]
            become(main, request, streams, channel)
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        for each in streams:
            os.close(each)
        channel.sendall(NUMBER.pack(pid))


def become(
    main: Callable[[], None], request: dict[str, Any], streams: list[int], channel: socket.socket
) -> NoReturn:
    """Be the process that was asked for."""
    channel.close()
    os.setsid()
    sys.argv = request["words"][1:]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    status = 1
    try:
        main()
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(socket.socket(fileno=int(sys.argv[1])))
