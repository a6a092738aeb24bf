"""What shipping the record costs and how fast it catches up.

    ./dev bench shipping [--lines N] [--rounds N]

A day of lag: a record of N lines is shipped, to a file, to a receiver of OTLP and to one of syslog,
each a process of its own that reads and answers and keeps nothing. CPU per call: two gates take
turns, one of them ships to a file; what is counted ends when all lines of the round are shipped.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from bench.activity import calls  # noqa: E402
from bench.process import Launch, Process, free_port, wait_for_port  # noqa: E402
from bench.servers import core  # noqa: E402
from bench.turns import Turn, compare, configured, make_shop, take_turn  # noqa: E402
from bench.workloads import LOGS, Running, start  # noqa: E402
from tidegate.audit.log import AuditLog  # noqa: E402
from tidegate.products.shipping.segments import SegmentReader  # noqa: E402
from tidegate.products.shipping.service import open_destination  # noqa: E402
from tidegate.products.shipping.settings import DestinationSettings  # noqa: E402
from tidegate.products.shipping.shipper import Shipper  # noqa: E402
from tidegate.store.sqlite.state import SqliteState  # noqa: E402

LINES = 1_000_000
ROUNDS = 8
SECONDS = 3.0
SETTLED_S = 2.5
TEN_MINUTES = 600


def receive(kind: str, port: int) -> None:
    """Read what comes on a port; OTLP is answered, syslog is closed when its sender closes."""
    if kind == "otlp":
        from http.server import BaseHTTPRequestHandler, HTTPServer

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        HTTPServer(("127.0.0.1", port), Handler).serve_forever()
    import socket

    listening = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            while connection.recv(1_048_576):
                pass


def catch_up(directory: Path, kind: str) -> tuple[float, float]:
    """Ship the whole record; seconds, and seconds of CPU of the sender."""
    port = free_port()
    url = {
        "file": f"file://{directory}/{kind}.jsonl",
        "otlp": f"http://127.0.0.1:{port}/v1/logs",
        "syslog": f"syslog://127.0.0.1:{port}",
    }[kind]
    settings = DestinationSettings(kind, url)
    with ExitStack() as stack:
        if kind != "file":
            words = (sys.executable, "-m", "bench.shipping", "--receive", kind, str(port))
            launch = Launch(words, {"PYTHONPATH": str(HERE.parent)})
            receiver = stack.enter_context(Process(launch, LOGS / f"ship-{kind}.log"))
            wait_for_port(receiver, port)
        state = SqliteState(directory / f"{kind}.db")
        stack.callback(state.close)
        state.shipping.set_destinations("g", [kind])
        reader = SegmentReader(directory / "audit")
        shipper = Shipper(
            kind, "g", reader, open_destination(settings, "g", print), state.shipping, 1.0
        )
        shipper.load()
        began, cpu = time.perf_counter(), time.process_time()
        shipper.start()
        while reader.lag(shipper.positions).size:
            if shipper.failure:
                raise RuntimeError(shipper.failure)
            time.sleep(0.05)
        taken = time.perf_counter() - began, time.process_time() - cpu
        shipper.ask_to_stop()
        shipper.join(30)
    return taken


def measure_lag(lines: int) -> None:
    """Print how fast each kind catches up."""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        log = AuditLog(directory / "audit")
        for number, event in enumerate(calls(0, lines)):
            log.append(event)
            if number % 50_000 == 0:
                log._maintain(log._sync)  # pyright: ignore[reportPrivateUsage] - as the thread does
        log.close()
        size = sum(path.stat().st_size for path in (directory / "audit").glob("*.jsonl"))
        print(f"{lines:,} lines, {size / 1e6:,.0f} MB", flush=True)
        for kind in ("file", "otlp", "syslog"):
            wall, cpu = catch_up(directory, kind)
            print(
                f"  {kind:8} {wall:7.1f} s   {lines / wall:9,.0f} lines/s  "
                f" {cpu / lines * 1e6:5.1f} us CPU a line   in ten minutes:"
                f" {lines / wall * TEN_MINUTES:13,.0f} lines",
                flush=True,
            )
            (directory / f"{kind}.jsonl").unlink(missing_ok=True)


def measure_calls(rounds: int) -> None:
    """Print the CPU of a call with and without shipping, in turns."""
    make_shop()
    with tempfile.TemporaryDirectory() as made:
        file = {"name": "file", "url": f"file://{made}/record.jsonl"}
        ships = configured(core(state_name="ship"), "shipping", {"ship": {"to": [file]}})

        def begin(stack: ExitStack) -> dict[str, Running]:
            return {
                "off": start(stack, core(state_name="plain"), log_name="plain"),
                "shipping": start(stack, ships, log_name="ships"),
            }

        def take(name: str, one: Running, fresh: bool) -> Turn:
            return take_turn(one, fresh=fresh, seconds=SECONDS, settled_s=SETTLED_S)

        compare(begin, rounds, take)
        lines = sum(1 for _ in (Path(made) / "record.jsonl").open("rb"))
        print(f"  {lines:,} events shipped meanwhile")


def main() -> int:
    """Measure both, or be a receiver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--receive", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.receive:
        with suppress(KeyboardInterrupt):
            receive(given.receive[0], int(given.receive[1]))
        return 0
    if given.lines:
        measure_lag(given.lines)
    if given.rounds:
        measure_calls(given.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
