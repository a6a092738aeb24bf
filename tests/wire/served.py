"""A server under test as a child process on a port of its own."""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from support.eventually import LOOK_S, PATIENCE_S
from support.free_ports import claim_port

EVERYTHING = Path(__file__).with_name("everything.py")


def everything(*options: str) -> Served:
    """The fixture server over HTTP."""
    port = claim_port()
    return Served([sys.executable, str(EVERYTHING), "--http", str(port), *options], port)


class Served:
    """A server on a port, as a child process, up until `close`."""

    def __init__(self, command: Sequence[str], port: int, path: str = "/health") -> None:
        self.port = port
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said
        )
        deadline = time.monotonic() + PATIENCE_S
        while not _answers(port, path):
            if self.process.poll() is not None or time.monotonic() > deadline:
                said = self.diagnostics
                self.close()
                raise AssertionError(f"no server on port {port}: {said}")
            time.sleep(LOOK_S)

    @property
    def diagnostics(self) -> str:
        """The end of what the server wrote to stderr."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")[-4000:]

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._said.close()


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        connection.getresponse().read()
    except OSError:
        return False
    finally:
        connection.close()
    return True
