"""What shipping the record costs and how fast it catches up.

    ./dev bench shipping [--lines N] [--rounds N]

A day of lag: a record of N lines is shipped, to a file, to a receiver of OTLP and to one of syslog,
each a process of its own that reads and answers and keeps nothing. CPU per call: two gates take
turns, one of them ships to a file; what is counted ends when all lines of the round are shipped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from bench import data  # noqa: E402
from bench.activity import calls  # noqa: E402
from bench.client import volley  # noqa: E402
from bench.process import Launch, Process, free_port, wait_for_port  # noqa: E402
from bench.servers import Contestant, core  # noqa: E402
from bench.workloads import CLIENTS, LOGS, SHOP, Running, start  # noqa: E402
from tidegate.audit.log import AuditLog  # noqa: E402
from tidegate.products.shipping.segments import SegmentReader  # noqa: E402
from tidegate.products.shipping.service import open_destination  # noqa: E402
from tidegate.products.shipping.settings import DestinationSettings  # noqa: E402
from tidegate.products.shipping.shipper import Shipper  # noqa: E402
from tidegate.store.sqlite.state import SqliteState  # noqa: E402

LINES = 1_000_000
ROUNDS = 8
SECONDS = 3.0
SETTLED_S = 1.5
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


def shipping_gate(directory: Path) -> Contestant:
    """The gate `core` that ships to a file."""
    made = core(state_name="ship")
    file = {"name": "file", "url": f"file://{directory}/record.jsonl"}
    settings = json.dumps({"ship": {"to": [file]}})
    plain = made.http

    def launch(port: int, database: Path) -> Launch:
        command = plain(port, database)
        return Launch((*command.argv, "--config", settings), command.env)

    from dataclasses import replace

    return replace(made, name="shipping", http=launch)


def turn(one: Running, fresh: bool) -> tuple[float, float]:
    """CPU of one call in microseconds, until all of the turn is shipped; and calls a second."""
    shots = one.points(fresh=fresh)
    volley(one.port, shots, clients=CLIENTS, seconds=0.3)
    time.sleep(SETTLED_S)
    before = one.process.cpu()
    fired = volley(one.port, shots, clients=CLIENTS, seconds=SECONDS)
    time.sleep(SETTLED_S + 1.0)
    return (one.process.cpu() - before) / fired.calls * 1e6, fired.calls / fired.wall


def measure_calls(rounds: int) -> None:
    """Print the CPU of a call with and without shipping, in turns."""
    if not SHOP.exists():
        SHOP.parent.mkdir(parents=True, exist_ok=True)
        data.make_shop(SHOP)
    with tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        plain = start(stack, core(state_name="plain"), log_name="plain")
        ships = start(stack, shipping_gate(Path(made)), log_name="ships")
        for fresh in (False, True):
            found: dict[str, list[tuple[float, float]]] = {"off": [], "on": []}
            for number in range(rounds):
                pair = [("off", plain), ("on", ships)]
                for name, one in pair if number % 2 else reversed(pair):
                    found[name].append(turn(one, fresh))
            ratios = [on[0] / off[0] for off, on in zip(found["off"], found["on"], strict=True)]
            print(f"{'fresh' if fresh else 'repeated'} point query, {rounds} rounds in turns")
            for name, rows in found.items():
                print(
                    f"  shipping {name:4} {median(row[0] for row in rows):7.1f} us CPU a call"
                    f"   {median(row[1] for row in rows):8,.0f} calls/s"
                )
            print(
                f"  ratio of CPU: median {median(ratios):.3f},"
                f" {min(ratios):.3f} to {max(ratios):.3f}"
            )
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
