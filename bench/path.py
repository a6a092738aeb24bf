"""Counts the path of a call through the package, from the HTTP request to the reply: functions,
files, and calls from one file into another.

Each database is counted in a process of its own, which runs the real command `serve`. `python -m
bench.path URL` prints the counts as JSON; with `--functions` it lists the functions in call order.
There is no socket: the request goes straight to the protocol object that the server made, and
counting stops when the whole reply is written. All threads count, other processes do not. No module
of the package is named here, so the figures from before and after a renaming can be compared.
"""

from __future__ import annotations

import asyncio
import dis
import json
import os
import runpy
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from bench import data
from bench.grounds import WARM_ID, grounds
from bench.mcp import STATELESS, HttpSpeaker
from bench.peers import HERE
from bench.process import free_port
from bench.workloads import Effort, Rows

PACKAGE = "tidegate"
FIGURES = "calls", "functions", "files", "changes of file"
WARM, LITERAL, SHAPE = "warm", "a new literal", "a new shape"
WARMING, COUNTED = 20, 5
READY_S = 60


def path(effort: Effort) -> Rows:
    """One row of figures for each database and kind of statement. More rounds would show the same,
    since nothing is timed."""
    rows: Rows = {}
    for ground in grounds(names=("SQLite", "PostgreSQL"), wide=()):
        if isinstance(ground, str):
            rows[ground] = []
            continue
        command = [sys.executable, "-m", "bench.path", ground.url("shop")]
        found = json.loads(subprocess.check_output(command, cwd=HERE.parent, timeout=120))
        rows |= {f"{ground.name}, {statement}": [row] for statement, row in found.items()}
    return rows


class Entry(NamedTuple):
    """One call of a function: the file that it is in, and the file that it was called from, empty
    if that is not in the package."""

    function: str
    file: str
    caller: str


class Recorder:
    """Notes every call of a function in a package's folder, on the thread that calls `start` and on
    all threads that begin after `watch_threads`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._starts: dict[CodeType, int] = {}
        self._entries: list[Entry] | None = None

    def watch_threads(self) -> None:
        threading.setprofile(self._seen)

    def start(self) -> None:
        self._entries = []
        sys.setprofile(self._seen)

    def stop(self) -> list[Entry]:
        """Stop, and return what was called since the start, in order."""
        sys.setprofile(None)
        entries, self._entries = self._entries, None
        assert entries is not None, "nothing was started"
        return entries

    def _seen(self, frame: FrameType, event: str, _: object) -> None:
        entries, code = self._entries, frame.f_code
        if entries is None or event != "call" or not code.co_filename.startswith(self._folder):
            return
        if not self._begins(frame) or _is_comprehension(code):
            return
        entries.append(Entry(code.co_qualname, self._short(code), self._caller(frame)))

    def _begins(self, frame: FrameType) -> bool:
        """Whether the frame is entered for the first time, and not resumed after an await."""
        code = frame.f_code
        start = self._starts.get(code)
        if start is None:
            resumes = (one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")
            start = self._starts[code] = next(resumes)
        return frame.f_lasti <= start

    def _caller(self, frame: FrameType) -> str:
        """The file of the nearest caller within the package; empty if there is none."""
        above = frame.f_back
        while above is not None and not above.f_code.co_filename.startswith(self._folder):
            above = above.f_back
        return "" if above is None else self._short(above.f_code)

    def _short(self, code: CodeType) -> str:
        return code.co_filename.removeprefix(self._folder)


def _is_comprehension(code: CodeType) -> bool:
    """Since Python 3.12 most of these have no frame, so they never count."""
    return code.co_name.startswith("<") and code.co_name != "<lambda>"


def figures(entries: list[Entry]) -> dict[str, float]:
    """Count one path. A change of file is a call from another file, or from outside the package."""
    return {
        "calls": len(entries),
        "functions": len({(entry.file, entry.function) for entry in entries}),
        "files": len({entry.file for entry in entries}),
        "changes of file": sum(entry.file != entry.caller for entry in entries),
    }


def middle(samples: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure: some calls meet work that a timer started."""
    return {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}


# The process that is watched.


class _Wire(asyncio.Transport):
    """The transport of a client that reads at once. When the whole reply is written, `written` is
    called, and then `reply` is set."""

    def __init__(self, written: Callable[[], None]) -> None:
        super().__init__({"peername": ("127.0.0.1", 50_000)})
        self.reply: asyncio.Future[bytes] | None = None
        self._written = written
        self._received = b""

    def write(self, data: Any) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        _, found, length = head.lower().partition(b"content-length:")
        if found and len(body) >= int(length.split(b"\r\n", 1)[0]):
            self._written()
            assert self.reply is not None
            self.reply.set_result(self._received)
            self._received = b""

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass


def _statements() -> Iterator[tuple[str, str]]:
    """The kind and the text of each statement to send. The first ones only warm up: no kind."""
    numbers = count(1)
    for turn in range(WARMING + COUNTED):
        kinds = {
            WARM: data.point(WARM_ID),
            LITERAL: data.point(WARM_ID + next(numbers)),
            SHAPE: f"SELECT id, sku, name, price AS p{next(numbers)} FROM items WHERE id = 1",
        }
        for kind, sql in kinds.items():
            yield kind if turn >= WARMING else "", sql


Ways = dict[str, list[list[Entry]]]
"""The paths of several calls, for each kind of statement."""


async def _walk(recorder: Recorder, protocol: Any, request: Callable[[str], bytes]) -> Ways:
    """Send every statement to the server and return the paths."""
    ways: Ways = {}
    way: list[Entry] = []
    wire = _Wire(lambda: way.extend(recorder.stop()))
    protocol.connection_made(wire)
    for kind, sql in _statements():
        way.clear()
        wire.reply = asyncio.get_running_loop().create_future()
        message = request(sql)
        recorder.start()
        protocol.data_received(message)
        reply = await asyncio.wait_for(wire.reply, READY_S)
        assert reply.startswith(b"HTTP/1.1 200 ") and b"item-" in reply, reply
        if kind:
            ways.setdefault(kind, []).append(list(way))
        await asyncio.sleep(0.01)  # lets the work finish that comes after the reply
    protocol.connection_lost(None)
    return ways


def _on_server(then: Callable[[Any], Awaitable[None]]) -> None:
    """Call `then` with a protocol object of the first server that this process starts."""
    import uvloop

    for kind in (uvloop.Loop, asyncio.BaseEventLoop):
        real: Any = kind.create_server

        async def create_server(
            loop: Any, factory: Any, *args: Any, real: Any = real, **more: Any
        ) -> Any:
            server = await real(loop, factory, *args, **more)
            if not begun:
                begun.append(loop.create_task(then(factory())))
            return server

        kind.create_server = create_server  # pyright: ignore[reportAttributeAccessIssue]
    begun: list[asyncio.Task[None]] = []


def _folder() -> str:
    spec = find_spec(PACKAGE)
    assert spec is not None and spec.origin is not None, f"no package {PACKAGE}"
    return str(Path(spec.origin).parent) + os.sep


def _token(state: str) -> str:
    command = [sys.executable, "-m", PACKAGE, "token", "create", "bench", "--scope", "readOnly"]
    command += ["--state", state]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def _serve(url: str, *, functions: bool) -> None:
    """Run the command `serve` until everything is counted."""
    with tempfile.TemporaryDirectory() as state:
        port = free_port()
        headers = {"Authorization": f"Bearer {_token(state)}"}
        speaker = HttpSpeaker(port, "/mcp", STATELESS, headers)

        def request(sql: str) -> bytes:
            params = {"name": "query", "arguments": {"sql": sql}}
            return speaker.request("tools/call", params, 1)

        async def counted(protocol: Any) -> None:
            try:
                ways = await _walk(recorder, protocol, request)
                print(json.dumps(_shown(ways) if functions else _counted(ways), indent=1))
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        _on_server(counted)
        recorder = Recorder(_folder())
        recorder.watch_threads()
        serve = f"serve --surface core --source shop={url} --state {state}"
        sys.argv = [PACKAGE, *serve.split(), "--http", f"127.0.0.1:{port}"]
        runpy.run_module(PACKAGE, run_name="__main__")


def _counted(ways: Ways) -> dict[str, dict[str, float]]:
    return {kind: middle([figures(way) for way in some]) for kind, some in ways.items()}


def _shown(ways: Ways) -> dict[str, list[str]]:
    return {kind: [f"{one.file} {one.function}" for one in some[-1]] for kind, some in ways.items()}


if __name__ == "__main__":
    _serve(sys.argv[1], functions="--functions" in sys.argv[2:])
