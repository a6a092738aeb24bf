"""The workloads: each gives, for each server, one row of figures a round.

Every figure is in base units: seconds, bytes, calls. CPU is the server's process tree alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import analyst, data
from bench.client import Shot, Volley, WrongAnswerError, volley
from bench.figures import percentile, rotate
from bench.mcp import HttpSpeaker, McpError, StdioSpeaker, compact, text_of, with_item
from bench.peers import WORK
from bench.process import Process, free_port, wait_for_port
from bench.servers import Contestant, Step

Row = dict[str, float]
Rows = dict[str, list[Row]]

LOGS = WORK / "logs"
SHOP = WORK / "shop.sqlite"
COMPANY = WORK / "company.sqlite"


@dataclass(frozen=True)
class Effort:
    """How much to measure: rounds, and seconds of each server's turn in a round."""

    rounds: int
    seconds: float
    starts: int
    memory_calls: int
    memory_seconds: float


FULL = Effort(rounds=5, seconds=2.0, starts=6, memory_calls=100_000, memory_seconds=90)
QUICK = Effort(rounds=2, seconds=0.7, starts=2, memory_calls=10_000, memory_seconds=20)


class Running:
    """A server that answers over HTTP, and the shots to fire at it."""

    def __init__(self, contestant: Contestant, process: Process, port: int) -> None:
        self.contestant = contestant
        self.process = process
        self.port = port
        self.speaker = HttpSpeaker(
            port, contestant.path, contestant.dialect, dict(contestant.headers)
        )
        self._fresh = 0
        self._learned: dict[str, Any] = {}

    def open(self) -> None:
        """Do the handshake and learn what every call needs."""
        self.speaker.open()
        self._learned = self.contestant.learn(self._ask)

    def query(self, sql: str, rows: int = 1) -> str:
        """Run one statement and give the text of its answer."""
        result, _ = self.speaker.call("tools/call", self._params(sql, rows))
        return text_of(result)

    def _ask(self, tool: str, arguments: dict[str, Any]) -> str:
        result, _ = self.speaker.call("tools/call", {"name": tool, "arguments": arguments})
        return text_of(result)

    def points(self, *, fresh: bool) -> Iterator[Shot]:
        """Point queries for ever: with a new literal each time, or one text again and again."""
        markers = self._fresh_items() if fresh else _same_item()
        return self.speaker.shots("tools/call", self._params(with_item(data.point), 1), markers)

    def large(self, rows: int) -> Iterator[Shot]:
        """Queries of many rows. The first answer shows how often a right one names a row."""
        params = self._params(data.many(rows), rows)
        result, _ = self.speaker.call("tools/call", params)
        if text_of(result).count("item-") != rows:
            raise RuntimeError(f"{self.contestant.name} does not answer {rows} rows")
        times = str(result).count("item-")
        return self.speaker.shots("tools/call", params, _for_ever(b"item-"), times)

    def listing(self) -> Iterator[Shot]:
        return self.speaker.shots("tools/list", {}, _for_ever(self.contestant.tool.encode()))

    def _params(self, sql: str, rows: int) -> dict[str, Any]:
        arguments = self._learned | self.contestant.arguments(sql, rows)
        return {"name": self.contestant.tool, "arguments": arguments}

    def _fresh_items(self) -> Iterator[tuple[bytes, bytes]]:
        while True:
            item = data.POINT_IDS[self._fresh % len(data.POINT_IDS)]
            self._fresh += 1
            yield b"%d" % item, data.point_marker(item).encode()


def _same_item() -> Iterator[tuple[bytes, bytes]]:
    return _for_ever(data.point_marker(data.WARM_ID).encode(), b"%d" % data.WARM_ID)


def _for_ever(marker: bytes, item: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    while True:
        yield item, marker


def start(
    stack: ExitStack, contestant: Contestant, database: Path = SHOP, log_name: str = "http"
) -> Running:
    """Start a server over HTTP and see that it answers."""
    port = free_port()
    log = LOGS / f"{contestant.name.replace(' ', '-')}-{log_name}.log"
    process = stack.enter_context(Process(contestant.http(port, database), log))
    wait_for_port(process, port)
    running = Running(contestant, process, port)
    running.open()
    return running


def interleave(
    names: list[str], rounds: int, measure: Callable[[str], Row]
) -> dict[str, list[Row]]:
    """Every server once a round, in rotating order."""
    rows: Rows = {name: [] for name in names}
    for turn in range(rounds):
        for name in rotate(names, turn):
            with _naming(name):
                rows[name].append(measure(name))
    return rows


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say whose failure it was."""
    try:
        yield
    except (McpError, WrongAnswerError, TimeoutError) as error:
        raise RuntimeError(f"{name}: {error}") from error


def _measured(running: Running, fire: Callable[[], Volley]) -> Row:
    before = running.process.cpu()
    shots = fire()
    cpu = running.process.cpu() - before
    return {
        "calls": shots.calls,
        "calls_per_s": shots.calls / shots.wall,
        "cpu_per_call": cpu / shots.calls,
        "client_cpu_per_call": shots.client_cpu / shots.calls,
        "p50": percentile(shots.latencies, 0.5),
        "p99": percentile(shots.latencies, 0.99),
        "answer_bytes": shots.answer_bytes,
        "rss": running.process.rss(),
        "load": os.getloadavg()[0],
    }


CLIENTS = 32


def throughput(running: dict[str, Running], effort: Effort, *, fresh: bool) -> Rows:
    """Point queries at 32 keep-alive clients, closed loop."""

    def measure(name: str) -> Row:
        one = running[name]
        shots = one.points(fresh=fresh)
        volley(one.port, shots, clients=CLIENTS, seconds=effort.seconds / 8)
        return _measured(
            one, lambda: volley(one.port, shots, clients=CLIENTS, seconds=effort.seconds)
        )

    return interleave(list(running), effort.rounds, measure)


def latency(
    running: dict[str, Running], effort: Effort, shots: Callable[[Running], Iterator[Shot]]
) -> Rows:
    """One client, one call after the other, for half the seconds of a turn."""

    def measure(name: str) -> Row:
        one = running[name]
        rounds_shots = shots(one)
        volley(one.port, rounds_shots, clients=1, calls=2, seconds=effort.seconds)
        return _measured(
            one,
            lambda: volley(
                one.port, rounds_shots, clients=1, calls=400, seconds=effort.seconds / 2
            ),
        )

    return interleave(list(running), effort.rounds, measure)


def cold_start(contestants: dict[str, Contestant], effort: Effort) -> Rows:
    """Over stdio: from the start of the process to the answer of the first query.

    CPU is taken when the answer is here; `cpu_whole_life` is what wait4 says after the end of
    standard input. The first start of each is not counted: it warms the page cache.
    """

    def measure(name: str) -> Row:
        contestant = contestants[name]
        log = LOGS / f"{name.replace(' ', '-')}-stdio.log"
        started = time.perf_counter()
        with Process(contestant.stdio(SHOP), log, pipes=True) as process:
            speaker = StdioSpeaker(process)
            speaker.open()
            initialized = time.perf_counter() - started
            arguments = contestant.learn(speaker.ask)
            arguments |= contestant.arguments(data.point(data.WARM_ID), 1)
            answer = speaker.ask(contestant.tool, arguments)
            row: Row = {"first_answer": time.perf_counter() - started, "cpu": process.cpu()}
            if data.point_marker(data.WARM_ID) not in answer:
                raise RuntimeError(f"{name}: {answer}")
            row |= {"initialized": initialized, "rss": process.rss()}
            return row | {"cpu_whole_life": process.finish()}

    rows = interleave(list(contestants), effort.starts + 1, measure)
    return {name: counted[1:] for name, counted in rows.items()}


def memory(contestants: dict[str, Contestant], effort: Effort) -> Rows:
    """Resident bytes when it listens, after the first answer, and on the way to 100,000 calls.

    The calls are point queries with ever new texts, so that caches fill. One row: a key for each
    milestone reached in time.
    """
    rows: Rows = {}
    for name, contestant in contestants.items():
        with ExitStack() as stack:
            one = start(stack, contestant)
            row: Row = {"listening": one.process.rss()}
            one.query(data.point(data.WARM_ID))
            row["first answer"] = one.process.rss()
            end = time.monotonic() + effort.memory_seconds
            shots, done = one.points(fresh=True), 0
            for milestone in (1_000, 10_000, 30_000, 50_000, 100_000):
                left = end - time.monotonic()
                if milestone > effort.memory_calls or left <= 0:
                    break
                fired = volley(
                    one.port, shots, clients=CLIENTS, calls=milestone - done, seconds=left
                )
                done += fired.calls
                row[f"{done} calls"] = one.process.rss()
                if done < milestone:
                    break
            rows[name] = [row]
    return rows


def tokens(contestants: dict[str, Contestant]) -> Rows:
    """Bytes that a model has to read and write to find two tables among 212 and join them.

    Definitions are name, description and input schema of every tool, and the instructions; the
    conversation is the name and arguments of each call and the text of its answer. Four bytes are
    about one token.
    """
    rows: Rows = {}
    for name, contestant in contestants.items():
        if not contestant.conversation:
            continue
        row, answers = _converse(contestant, contestant.conversation, COMPANY, "tokens")
        if data.ANSWER_COUNTRY not in answers[-1] or str(data.ANSWER_TOTAL) not in answers[-1]:
            raise RuntimeError(f"{name} ends with {answers[-1]}")
        rows[name] = [row]
    return rows


def analysts(contestants: dict[str, Contestant]) -> Rows:
    """Calls and bytes that 16 questions take on an unknown database; see `analyst.py`."""
    rows: Rows = {}
    for name, contestant in contestants.items():
        steps = contestant.analyst()
        if not steps:
            continue
        row, answers = _converse(contestant, steps, analyst.make_database(), "analyst")
        with _naming(name):
            analyst.check(answers)
        rows[name] = [row]
    return rows


def _converse(
    contestant: Contestant, steps: Sequence[Step], database: Path, what: str
) -> tuple[dict[str, float], list[str]]:
    """What the steps take over stdio, in calls and bytes, and their answers."""
    log = LOGS / f"{contestant.name.replace(' ', '-')}-{what}.log"
    with Process(contestant.stdio(database), log, pipes=True) as process:
        speaker = StdioSpeaker(process)
        instructions = speaker.open().get("instructions") or ""
        tools = speaker.call("tools/list", {})["tools"]
        visible = [
            {key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in tools
        ]
        spoken = 0
        answers: list[str] = []
        for tool, arguments in steps:
            with _naming(contestant.name):
                answers.append(speaker.ask(tool, arguments))
            call = {"name": tool, "arguments": arguments}
            spoken += len(compact(call)) + len(answers[-1].encode())
    definitions = sum(len(compact(tool)) for tool in visible) + len(instructions.encode())
    row = {
        "calls": len(steps),
        "tools": len(tools),
        "definitions": definitions,
        "conversation": spoken,
        "total": definitions + spoken,
    }
    return row, answers
