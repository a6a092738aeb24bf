"""What the servers of the tests have in common: each is kept by a small process of its own.

A keeper prepares a folder, starts the server, says where it is, obeys words, and when its standard
input closes it ends the server and removes the folder: nothing is left however the tests end. A
server that refuses to run as root runs as nobody.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.free_ports import claim_port

PASSWORD = "correct horse"
NOBODY = 65534
START_S = 120
TESTS = Path(__file__).parents[1]
SEARCHED = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
"""Where servers are looked for."""


class KeptServer:
    """A running server, as a test sees it."""

    def __init__(self, script: str, *arguments: str) -> None:
        self._keeper = subprocess.Popen(
            [sys.executable, script, *arguments],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._keeper.stdout is not None
        line = self._keeper.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"{script} did not start its server: its reason stands above")
        ready = json.loads(line)
        self.directory = Path(ready["directory"])
        self.port: int = ready["port"]

    def restart(self) -> None:
        """Stop the server, ending every connection, and start it again."""
        self._command("restart")

    def stop(self) -> None:
        self._command("stop")

    def start(self) -> None:
        self._command("start")

    def kill(self) -> None:
        """End the server as a crash would."""
        self._command("kill")

    def close(self) -> None:
        """End it and remove its files."""
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.wait(START_S)
        self._keeper.stdout.close()

    def _command(self, word: str) -> None:
        assert self._keeper.stdin is not None and self._keeper.stdout is not None
        self._keeper.stdin.write(word + "\n")
        self._keeper.stdin.flush()
        assert self._keeper.stdout.readline().strip() == word


class Keeper:
    """The process that keeps a server. `end_signal` ends it in order, `crash_signal` does not."""

    end_signal = signal.SIGTERM
    crash_signal = signal.SIGKILL

    def __init__(self, name: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"tidegate-{name}-"))
        self.port = claim_port()
        self.process: subprocess.Popen | None = None
        self.give(self.directory)

    def prepare(self) -> None:
        """Fill the folder."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """The program and its arguments."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Whether the server answers; may raise OSError if not."""
        raise NotImplementedError

    def give(self, path: Path) -> None:
        """Let the one who runs the server have a file."""
        if os.getuid() == 0:
            os.chown(path, NOBODY, NOBODY)

    def run(self, *command: str) -> None:
        """Run a program to its end, as the one who runs the server. What it prints is shown if it
        fails."""
        ended = subprocess.run(
            command,
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            **drop_rights(),
        )
        if ended.returncode:
            raise SystemExit(f"{command[0]}: {ended.returncode}\n{ended.stdout.decode()}")

    def start(self) -> None:
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment(),
                **drop_rights(),
            )
        deadline = time.monotonic() + START_S
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if self.is_ready():
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
        raise SystemExit((self.directory / "log").read_text())

    def stop(self, how: int | None = None) -> None:
        if self.process is not None:
            self.process.send_signal(self.end_signal if how is None else how)
            self.process.wait(START_S)
            self.process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        self.stop(self.crash_signal)

    def serve(self) -> None:
        """Keep the server until standard input closes."""
        try:
            self.prepare()
            self.start()
            print(json.dumps({"directory": str(self.directory), "port": self.port}), flush=True)
            for line in sys.stdin:
                word, *rest = line.split()
                getattr(self, word)(*rest)
                print(line.strip(), flush=True)
        finally:
            self.stop()
            shutil.rmtree(self.directory, ignore_errors=True)


def keep(make: Callable[[], Keeper]) -> None:
    """What a keeper's script does: signals end it when its input does, and not before."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    make().serve()


def drop_rights() -> dict[str, Any]:
    """For `subprocess`: run as nobody where this is root."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.getuid() == 0 else {}


def _environment() -> dict[str, str]:
    return {"LANG": "C", "PATH": SEARCHED}
