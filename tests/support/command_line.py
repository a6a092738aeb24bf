"""The command line as its users have it: a process, what it printed, how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any, NamedTuple

from support import loaded_commands
from support.eventually import HANG_S
from support.operator_terminal import operator_terminal
from support.piped_command import PipedCommand

STARTED = ("-m", "tidegate")
"""What Python runs where a start itself is tested."""

GRANTS = {
    ("approvals", "allow"),
    ("token", "create"),
    ("token", "edit"),
    ("pair", "approve"),
    ("source", "add"),
    ("source", "edit"),
    ("source", "update"),
    ("source", "rename"),
}
"""The commands that ask a person before they give rights away."""


class Ended(NamedTuple):
    """How a process ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(state: Path | None = None) -> dict[str, str]:
    """The environment of a person who has set nothing of ours, apart from the state directory."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    if state is not None:
        kept["TIDEGATE_STATE"] = str(state)
    return kept


def tidegate(
    *words: str,
    state: Path | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    terminal: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> Ended:
    """Run one command to its end, with `stdin` as its input or at `terminal`. Without either, a
    command that gives rights away is at a terminal whose operator agrees, and others read
    nothing. `variables` are the whole environment, in place of that of a person with this state."""
    if stdin is None and terminal is None and words[:2] in GRANTS:
        with operator_terminal() as agreeing:
            return tidegate(*words, state=state, cwd=cwd, terminal=agreeing)
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write((stdin or "").encode())
        given.seek(0)
        files = (given.fileno() if terminal is None else terminal, out.fileno(), err.fileno())
        chosen = environment(state) if variables is None else variables
        status = loaded_commands.shared().run(words, files, chosen, cwd, HANG_S)
        return Ended(status, _text(out), _text(err))


def _text(file: IO[bytes]) -> str:
    """What was written, with the ends of its lines as a text file gives them."""
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n").replace("\r", "\n")


class Serving:
    """A `tidegate` that stays up; killed at the end of the block if it is still there."""

    def __init__(self, process: subprocess.Popen[str] | PipedCommand) -> None:
        self.process = process

    def line(self) -> str:
        """The next line of stdout, empty at its end."""
        return self._read(self.process.stdout)

    def diagnostic(self) -> str:
        """The next line of stderr, empty at its end."""
        return self._read(self.process.stderr)

    def until(self, word: str) -> str:
        """The first line of stderr that holds `word`."""
        while line := self.diagnostic():
            if word in line:
                return line
        raise AssertionError(f"it never said {word!r}")

    def all_of(self, *words: str) -> list[str]:
        """The first lines of stderr that hold these words, which may come in any order."""
        found: dict[str, str] = {}
        while len(found) < len(words) and (line := self.diagnostic()):
            found |= {word: line for word in words if word in line and word not in found}
        assert len(found) == len(words), f"it said {list(found)} alone"
        return [found[word] for word in words]

    def _read(self, pipe: IO[str] | None) -> str:
        """A line; a process that says nothing for too long is killed, which ends its output."""
        assert pipe is not None
        late = Timer(HANG_S, self.process.kill)
        late.start()
        try:
            return pipe.readline()
        finally:
            late.cancel()

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any], id: int = 1) -> dict[str, Any]:
        """One request over stdio, of the revision without a handshake, and its answer."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {"jsonrpc": "2.0", "id": id, "method": method}
        self.send({**body, "params": {**params, "_meta": meta}})
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def tell(self, number: signal.Signals) -> Ended:
        """Send a signal and wait for the end, its stdin open all the while."""
        self.process.send_signal(number)
        self.process.wait(HANG_S)
        return self.ended()

    def ended(self) -> Ended:
        """Wait for the end; closes its stdin."""
        out, err = self.process.communicate(timeout=HANG_S)
        return Ended(self.process.returncode, out, err)


@contextmanager
def serving(
    words: Sequence[str],
    state: Path,
    cwd: Path | None = None,
    program: Sequence[str] | None = None,
) -> Generator[Serving]:
    """`tidegate WORDS` in a process with pipes: one that is forked, or one that is started and runs
    what Python finds in `program`, such as `STARTED`."""
    if program is None:
        process = PipedCommand(words, environment(state), cwd)
    else:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, *program, *words],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8",
            env=environment(state), cwd=cwd,
        )  # fmt: skip
    try:
        yield Serving(process)
    finally:
        process.kill()
        process.communicate()
