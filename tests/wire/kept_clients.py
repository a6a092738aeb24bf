"""Processes of official clients that are kept for further conversations: most of a short one's time
is its start."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Timer
from typing import Any

from external.install import node_environment
from support.eventually import HANG_S


class KeptClient:
    """A process of an official client, which has one conversation after another."""

    def __init__(self, command: Sequence[str]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            encoding="utf-8",
            env=node_environment(),
            start_new_session=True,
        )
        self.goes_on = True
        """Whether it takes a further conversation."""

    def converse(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What the client reports. Raises: AssertionError if it ends with an error."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        here = {"environment": node_environment(), "cwd": str(Path.cwd())}
        stdin.write(json.dumps({**request, **here}) + "\n")
        stdin.flush()
        self.goes_on = False
        late = Timer(HANG_S, os.killpg, (self._process.pid, signal.SIGKILL))
        late.start()
        try:
            line = stdout.readline()
        finally:
            late.cancel()
        assert line, f"the client ended: {self._diagnostics[-4000:]}"
        answer = json.loads(line)
        status, err = answer["status"], answer["err"]
        self.goes_on = answer["goes_on"]
        assert status == 0, f"the client ended with {status}: {err[-4000:]}"
        return json.loads(answer["out"])

    def close(self) -> None:
        """End it, and wait for its end."""
        self._process.communicate(timeout=HANG_S)
        self._said.close()

    @property
    def _diagnostics(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace")


_clients: dict[tuple[str, ...], KeptClient] = {}


@atexit.register
def _end_clients() -> None:
    while _clients:
        _clients.popitem()[1].close()


def converse(command: tuple[str, ...], request: Mapping[str, Any]) -> dict[str, Any]:
    """Have a conversation with the client that this process keeps, or that the command starts."""
    client = _clients.pop(command, None) or KeptClient(command)
    try:
        return client.converse(request)
    finally:
        if not client.goes_on or _clients.setdefault(command, client) is not client:
            client.close()
