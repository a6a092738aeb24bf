"""Gates of several workers on one state in PostgreSQL with a standby, with HAProxy before them.

What the gates change is a table of another server, `changes`, which has no key: a statement that
runs twice leaves two rows.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import support.postgres_server as postgres_server
from support.command_line import Ended, tidegate
from support.eventually import PATIENCE_S, wait_until
from support.free_ports import claim_port
from support.network_link import Link
from support.postgres_pair import Pair
from support.proxies import run_haproxy

PROXY = "127.0.0.2"
_HAPROXY = """
defaults
    timeout connect 2s
    timeout client 60s
    timeout server 60s
    option redispatch
    option http-server-close
listen gates
    mode http
    bind 127.0.0.1:{http}
    maxconn 4000
    option httpchk GET /ready
    {gates}
listen wire
    mode tcp
    bind 127.0.0.1:{wire}
    {wires}
"""
_CHANGES = """
CREATE TABLE changes (id text, at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(random() * 0.05); RETURN new; END $$;
CREATE TRIGGER slow BEFORE INSERT ON changes FOR EACH ROW EXECUTE FUNCTION linger();
"""
"""A change takes a moment, in which something may end."""
_CHECK = "send-proxy-v2 check inter 500ms fall 2 rise 1"


class Gate:
    """One gate: a directory of its own, and the processes that serve."""

    def __init__(
        self, directory: Path, name: str, workers: int, source: str, link: Link | None = None
    ) -> None:
        """With `link` it runs in that namespace, without the wire protocol, which would need TLS
        there."""
        self.name, self.workers, self.link = name, workers, link
        self.state = directory / name / "state"
        self.address = "127.0.0.1" if link is None else link.there
        self.proxy = PROXY if link is None else link.proxy
        self.http, self.wire = claim_port(), claim_port() if link is None else 0
        self.settings = directory / name / "gate.json"
        self.settings.parent.mkdir()
        variable = "PGTEST_STATE" if link is None else "PGTEST_STATE_TCP"
        given: dict[str, object] = {
            "state": str(self.state), "state_url": f"${{ENV:{variable}}}",
            "state_key": "${ENV:PGTEST_KEY}",
            "http": f"{self.address}:{self.http}", "workers": workers, "stop_grace_s": 2,
            "proxy_protocol": True, "trusted_proxies": [self.proxy],
            "console": {"enabled": False},
            "sources": [
                {"name": "open", "url": source, "access": "write"},
                {"name": "asked", "url": source, "access": "write", "approval_for": "writes"},
            ],
        }  # fmt: skip
        if self.wire:
            given["pg"] = {"listen": f"127.0.0.1:{self.wire}", "proxy_protocol": True}
        self.settings.write_text(json.dumps(given))
        self.settings.chmod(0o600)
        self.log = directory / name / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin to serve. Its log goes on in the same file."""
        words = [sys.executable, "-m", "tidegate", "serve", "--config", str(self.settings)]
        if self.link is not None:
            words = [*self.link.command, *words]  # it becomes the command
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def run(self, *words: str) -> Ended:
        return tidegate(*words, "--config", str(self.settings))

    def ask_until_done(self, *words: str) -> Ended:
        """The same, again until it succeeds: the state may be away."""
        found = wait_until(
            lambda: found if (found := self.run(*words)).status == 0 else None, " ".join(words)
        )
        assert found is not None
        return found

    def pids(self) -> list[int]:
        """Its processes: the first is the parent, or the only one."""
        if self.process is None or self.process.poll() is not None:
            return []
        parent = self.process.pid
        with suppress(OSError):
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            return [parent, *map(int, children)]
        return [parent]

    def signal(self, number: signal.Signals, pids: Iterable[int] | None = None) -> None:
        """Send a signal to its processes, or to some of them."""
        for pid in self.pids() if pids is None else pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End all its processes at once."""
        pids = self.pids()
        self.signal(signal.SIGKILL, pids)
        self.wait_gone(pids)

    def kill_parent(self) -> None:
        """End the parent, and wait until its workers have noticed."""
        pids = self.pids()
        self.signal(signal.SIGKILL, pids[:1])
        self.wait_gone(pids)

    def wait_gone(self, pids: Iterable[int]) -> None:
        if self.process is not None:
            self.process.wait(PATIENCE_S)
        for pid in pids:
            wait_until(lambda pid=pid: not _lives(pid), f"process {pid} of {self.name} to end")

    def memory(self) -> int:
        """Bytes that its processes hold for themselves."""
        total = 0
        for pid in self.pids():
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/statm").read_text().split()
                total += (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
        return total

    def lines(self) -> Iterator[dict[str, Any]]:
        """Its record; a last line that a kill has cut is left out."""
        for path in sorted((self.state / "audit").glob("*.jsonl")):
            for line in path.read_bytes().split(b"\n")[:-1]:
                with suppress(ValueError):
                    yield json.loads(line)


class Fleet:
    """So many gates, and what is around them. With `link` the last of them is in its namespace, and
    reaches the state at the address that can be cut."""

    def __init__(
        self, stack: ExitStack, directory: Path, gates: int, workers: int, link: Link | None
    ) -> None:
        self.link = link
        self.source = postgres_server.Server(postgres_server.available()["wheel"])
        stack.callback(self.source.close)
        self.pair = Pair(self.source, "" if link is None else link.cut_off)
        stack.callback(self.pair.close)
        self.pair.primary.ask("CREATE DATABASE tidegate")
        stack.callback(_set, "PGTEST_STATE", os.environ.get("PGTEST_STATE"))
        _set("PGTEST_STATE", self.pair.url("tidegate"))
        stack.callback(_set, "PGTEST_KEY", os.environ.get("PGTEST_KEY"))
        _set("PGTEST_KEY", "a key of all gates of this fleet, long enough")
        if link is not None:
            stack.callback(_set, "PGTEST_STATE_TCP", None)
            _set("PGTEST_STATE_TCP", self.pair.url("tidegate", link.cut_off))
        self.source.ask("CREATE DATABASE shop")
        self.ask_source(_CHANGES)
        url = self.source.url("shop") + "&pool=4"
        self.gates = [
            Gate(directory, f"gate{n}", workers, url, link if n == gates else None)
            for n in range(1, gates + 1)
        ]
        for each in self.gates:
            stack.callback(each.kill)
        self.gates[0].start()  # it makes the tables
        self.wait_ready(self.gates[0])
        for each in self.gates[1:]:
            each.start()
        for each in self.gates[1:]:
            self.wait_ready(each)
        self.http, self.wire = claim_port(), claim_port()
        text = _HAPROXY.format(
            http=self.http, wire=self.wire,
            gates="\n    ".join(_line(each, each.http) for each in self.gates),
            wires="\n    ".join(_line(each, each.wire) for each in self.gates if each.wire),
        )  # fmt: skip
        stack.enter_context(run_haproxy(directory, text))

    def ask_source(self, text: str) -> list[tuple[Any, ...]]:
        """Run SQL on what the gates change, past them."""
        return self.source.ask(text, "shop")

    def wait_ready(self, gate: Gate) -> None:
        """Wait until the gate says that it can do its work."""
        said: list[Ended] = []

        def is_ready() -> bool:
            said[:] = [gate.run("health")]
            return said[0].status == 0

        try:
            wait_until(is_ready, f"{gate.name} to be ready")
        except AssertionError as late:
            lines = gate.log.read_text(errors="replace").splitlines()[-20:]
            about = [f"{late}: {said}, processes {gate.pids()}, and its log ends in", *lines]
            raise AssertionError("\n".join(about)) from None

    def wait_all_ready(self) -> None:
        for each in self.gates:
            self.wait_ready(each)

    def restart(self, gate: Gate) -> None:
        gate.start()
        self.wait_ready(gate)

    def verify(self) -> list[str]:
        """What is wrong with the records of all gates together; nothing should be."""
        first = self.gates[0]
        words = ("audit", "verify", *(str(each.state) for each in self.gates), "--json")
        found = first.run(*words).json
        faults = [str(each) for each in found["faults"]]
        for each in found["gates"]:
            faults += [f"{each['directory']}: {fault}" for fault in each["report"]["faults"]]
        return faults if faults or found["intact"] else [str(found)]


@contextmanager
def fleet(directory: Path, gates: int, workers: int, link: Link | None = None) -> Iterator[Fleet]:
    """The gates serve while the block runs; what they leave is still there afterwards."""
    with ExitStack() as stack:
        yield Fleet(stack, directory, gates, workers, link)


def _line(gate: Gate, port: int) -> str:
    return f"server {gate.name} {gate.address}:{port} source {gate.proxy} {_CHECK}"


def _set(name: str, value: str | None) -> None:
    """Set a variable of the environment, or remove it."""
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
