"""The Activity page of the console over a million calls, alone and while calls are recorded.

    ./dev bench activity

It writes a log of a million calls and serves the console on its state. Times are those of whole
requests over HTTP: the median and the 95th percentile of several. "While calls are recorded" is
beside 50 calls a second that another process writes to the same log.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from support.command_line import serving, tidegate  # noqa: E402 - the tests' own
from support.console_visitor import Visitor  # noqa: E402 - the tests' own visitor
from tidegate.audit.event import Event  # noqa: E402
from tidegate.audit.log import AuditLog  # noqa: E402

CALLS = 1_000_000
TIMES = 40
A_SECOND = 50
PASSPHRASE = "correct horse 1"
SOURCES = ("shop", "stock", "people", "papers")
QUERIES = {
    "newest": "",
    "common word": "q=select",
    "rare word": "q=needle",
    "two words": "q=select+part7",
    "source": "source=stock",
    "caller": "actor=agent-3",
    "outcome": "outcome=denied",
    "effect": "effect=write",
    "surface": "surface=pg",
    "word and source": "q=select&source=people",
    "last hour": "since={hour}",
}


def calls(begin: int, count: int) -> Any:
    """Calls as servers record them: mostly reads, some changes, some refused, a few rare words."""
    for number in range(begin, begin + count):
        word = "needle" if number % 99_991 == 0 else f"part{number % 997}"
        write, denied = number % 20 == 0, number % 50 == 7
        yield Event(
            call_id=f"bench-{number:x}",
            phase="refusal" if denied else "outcome",
            actor=f"tok_{number % 40:016x}",
            actor_name=f"agent-{number % 40}",
            client="bench/1.0",
            surface="pg" if number % 9 == 0 else "core",
            tool="query",
            source=SOURCES[number % len(SOURCES)],
            request="query",
            effect="write" if write else "read",
            verdict="deny" if denied else "allow",
            rule="scope" if denied else "all",
            code="policy.scope" if denied else "",
            statement=f"UPDATE {word} SET n = {number} WHERE id = {number}"
            if write
            else f"SELECT name, n FROM {word} WHERE id = {number}",
            rows=None if denied else number % 30,
            elapsed_ms=None if denied else 0.4,
        )


class Clock:
    """The time of each record: the calls of 30 days that end now."""

    def __init__(self) -> None:
        self.now, self.step = time.time() - 30 * 86_400, 30 * 86_400 / CALLS

    def __call__(self) -> float:
        self.now = min(self.now + self.step, time.time())
        return self.now


def write_log(state: Path) -> float:
    """A log of `CALLS` calls; how long it took in seconds."""
    began = time.perf_counter()
    log = AuditLog(state / "audit", Clock(), keys=state / "audit-key")
    for event in calls(0, CALLS):
        log.append(event)
    log.close()
    return time.perf_counter() - began


def record_more(state: Path, ended: threading.Event) -> None:
    log = AuditLog(state / "audit", keys=state / "audit-key")
    for event in calls(CALLS, 10**9):
        log.append(event)
        if ended.wait(1 / A_SECOND):
            break
    log.close()


def timed(work: Callable[[], httpx.Response]) -> str:
    taken: list[float] = []
    for _ in range(TIMES):
        began = time.perf_counter()
        answer = work()
        taken.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, answer.text
    found = quantiles(taken, n=20)
    return f"{found[9]:8.1f} ms   p95 {found[18]:8.1f} ms"


def once(name: str, work: Callable[[], httpx.Response]) -> httpx.Response:
    began = time.perf_counter()
    answer = work()
    print(f"{name:34} {time.perf_counter() - began:8.2f} s", flush=True)
    return answer


def wait_for_index(visitor: Visitor) -> httpx.Response:
    while True:
        answer = visitor.get("activity?limit=1")
        if answer.json()["read"] == 1.0:
            return answer


def measure(visitor: Visitor) -> None:
    """Print the figures of each search, of the page of sessions, and of one line."""
    for name, words in QUERIES.items():
        query = words.format(hour=int(time.time()) - 3_600)
        print(f"  {name:16} {timed(lambda query=query: visitor.get(f'activity?{query}'))}")
    print(f"  {'sessions':16} {timed(lambda: visitor.get('activity/sessions'))}", flush=True)
    newest = visitor.get("activity").json()["lines"][0]["n"]
    print(f"  {'one line':16} {timed(lambda: visitor.get(f'activity/lines/{newest}'))}", flush=True)


def main() -> None:
    """Write the log, serve it, measure."""
    directory = Path(tempfile.mkdtemp())
    state, secret = directory / "state", directory / "passphrase"
    secret.write_text(PASSPHRASE + "\n")
    words = ["--new-passphrase-file", str(secret)]
    assert tidegate("passphrase", "set", *words, state=state).status == 0
    words += ["--passphrase-file", str(secret)]
    assert tidegate("operator", "add", "ada", *words, state=state).status == 0
    print(f"{CALLS:,} calls written in {write_log(state):.0f} s", flush=True)
    with serving(["serve", "--http", "127.0.0.1:0", "--console"], state) as server:
        address = server.until("the console is at").partition("http://")[2].partition("/")[0]
        visitor = Visitor(f"http://{address}")
        visitor.client.timeout = httpx.Timeout(600.0)
        visitor.sign_in(name="ada", passphrase=PASSPHRASE)
        once("the Inbox, before an index is there", lambda: visitor.get("inbox"))
        once("the first page, while the index is built", lambda: visitor.get("activity"))
        once("until the index is whole", lambda: wait_for_index(visitor))
        once("the proof of the whole log", lambda: visitor.get("activity/proof"))
        print("alone")
        measure(visitor)
        ended = threading.Event()
        writer = threading.Thread(target=record_more, args=(state, ended))
        writer.start()
        print(f"while {A_SECOND} calls a second are recorded")
        measure(visitor)
        ended.set()
        writer.join()
        visitor.client.close()


if __name__ == "__main__":
    main()
