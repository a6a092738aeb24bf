"""The console of two gates, or of a gate of two workers, behind an HAProxy that gives each request
to the next one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import support.postgres_server as postgres_server
from products.console.support.console_place import PASSPHRASE
from support.command_line import tidegate
from support.console_visitor import Visitor
from support.eventually import wait_until
from support.free_ports import claim_port
from support.gate_pair import GatePair, gate_pair
from support.operator_terminal import operator_terminal
from support.proxies import accepts, program, run_haproxy

_HAPROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option http-server-close
    default-server check inter 200ms
listen gates
    bind 127.0.0.1:{port}
    balance roundrobin
    {servers}
"""
_TABLES = """
CREATE TABLE notes (id integer PRIMARY KEY, body text);
INSERT INTO notes VALUES (1, 'one'), (2, 'two'), (3, 'three');
CREATE TABLE added (id integer PRIMARY KEY, word text);
CREATE TABLE lines (id integer PRIMARY KEY, word text);
INSERT INTO lines SELECT n, 'word ' || n FROM generate_series(1, 3000) AS n;
"""


class RoundRobin:
    """`pair` are the two that serve, and `address` is the balancer's. `database` has what is
    changed, as the source `data`."""

    def __init__(self, pair: GatePair, address: str, database: str) -> None:
        self.pair = pair
        self.address = address
        self.database = database

    def ask(self, text: str) -> list[tuple[object, ...]]:
        """Run SQL on what the gates change, past them."""
        return postgres_server.shared().ask(text, self.database)

    @contextmanager
    def visitor(self, at: int = 0) -> Iterator[Visitor]:
        """A browser of ada that comes by the balancer, or to one of the two."""
        port = f"http://127.0.0.1:{self.pair.port(at)}" if at else self.address
        visitor = Visitor(port, origin=self.address)
        visitor.client.follow_redirects = True
        with closing(visitor.client):
            visitor.sign_in(name="ada", passphrase=PASSPHRASE)
            yield visitor


@contextmanager
def round_robin(kind: str, folder: Path) -> Iterator[RoundRobin]:
    """They serve while the block runs. `kind` is one of `support.gate_pair.KINDS`."""
    if program("haproxy") is None:
        pytest.skip("haproxy is not installed")
    server, port = postgres_server.shared(), claim_port()
    database, address = server.new_database(), f"http://127.0.0.1:{port}"
    server.ask(_TABLES, database)
    data = {
        "name": "data", "url": server.url(database), "access": "write", "approval_for": "writes",
        "undo": "keep",
    }  # fmt: skip
    console = {"enabled": True, "origin": address, "source_folders": [str(folder)]}
    with gate_pair(kind, folder, sources=[data], console=console) as pair:
        _add_operator(pair, folder)
        ports = dict.fromkeys([pair.port(1), pair.port(2)])
        servers = [f"server gate{n} 127.0.0.1:{each}" for n, each in enumerate(ports)]
        text = _HAPROXY.format(port=port, servers="\n    ".join(servers))
        with run_haproxy(folder, text):
            wait_until(lambda: accepts(port), "haproxy")
            yield RoundRobin(pair, address, database)
    server.drop_database(database)


def _add_operator(pair: GatePair, folder: Path) -> None:
    file = folder / "passphrase"
    file.write_text(f"{PASSPHRASE}\n")
    words = ("operator", "add", "ada", "--new-passphrase-file", str(file), *pair.words)
    with operator_terminal() as terminal:
        added = tidegate(*words, terminal=terminal)
    assert added.status == 0, added.err
