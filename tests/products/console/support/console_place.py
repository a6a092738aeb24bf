"""A server with a console before two databases, and the people and agents of it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.audit_records import records
from support.command_line import Ended, Serving, serving, tidegate
from support.console_visitor import Visitor
from support.made_once import copy_made
from wire.wires import MODERN, HttpPeer, Outcome

PASSPHRASE = "correct horse 1"
UPDATE = "UPDATE towns SET name = 'Lviv' WHERE id = 2"
DELETE = "DROP TABLE towns"
PHRASE = "I understand this is irreversible"


class Place(NamedTuple):
    """A server with a console before one database, and the people and agents of it."""

    directory: Path
    state: Path
    server: Serving
    address: str
    visitors: list[Visitor]

    def run(self, *words: str) -> Ended:
        return tidegate(*words, state=self.state)

    def settings(self, text: str) -> None:
        """Give the server these settings, which it follows."""
        (self.directory / "settings.toml").write_text(text)

    def names(self) -> list[str]:
        with closing(sqlite3.connect(self.directory / "towns.db")) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM towns ORDER BY id")]

    def add_operator(self, name: str, *flags: str) -> None:
        add_operator(self.directory, name, *flags)

    def link(self, name: str) -> str:
        ended = self.run("console", "--print", "--operator", name)
        assert ended.status == 0, ended.err
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/console#sign-in=(\S+)\n", ended.out)
        assert found and found[1] == self.address
        return found[2]

    def stranger(self) -> Visitor:
        self.visitors.append(Visitor(self.address))
        return self.visitors[-1]

    def visitor(self, name: str = "ada", *, by_link: bool = False) -> Visitor:
        visitor = self.stranger()
        if by_link:
            visitor.sign_in(link=self.link(name))
        else:
            visitor.sign_in(name=name, passphrase=PASSPHRASE)
        return visitor

    def agent(self, token: str) -> HttpPeer:
        peer = HttpPeer(int(self.address.rpartition(":")[2]), MODERN, capabilities={})
        peer.token = token
        return peer

    def events(self) -> list[dict[str, Any]]:
        return [each for each in records(self.state) if each.get("phase") == "event"]


def query(peer: HttpPeer, sql: str = UPDATE, source: str = "towns") -> Outcome:
    return peer.call("query", {"sql": sql, "source": source})


def ran(outcome: Outcome) -> bool:
    """Whether the call was answered with a result, not with an error."""
    return "result" in outcome.response and not outcome.result.get("isError", False)


def _make_place(directory: Path) -> None:
    state = directory / "state"
    for name in ("towns", "other"):
        with closing(sqlite3.connect(directory / f"{name}.db")) as connection, connection:
            connection.execute("CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT)")
            connection.execute("INSERT INTO towns VALUES (1, 'Köln'), (2, 'Lemberg')")
    consent = directory / "consent"
    consent.write_text("the gate's own\n")
    words = ["passphrase", "set", "--new-passphrase-file", str(consent)]
    assert tidegate(*words, state=state).status == 0
    for name in ("towns", "other"):
        url = f"sqlite:///{directory / name}.db"
        words = ["source", "add", name, url, "--allow-writes", "--approval-for", "writes"]
        ended = tidegate(*words, "--passphrase-file", str(consent), state=state)
        assert ended.status == 0, ended.err
    (directory / "settings.toml").write_text("")
    add_operator(directory, "ada")


def add_operator(directory: Path, name: str, *flags: str) -> None:
    """Add an operator to the state below `directory`."""
    file = directory / "passphrase"
    file.write_text(PASSPHRASE + "\n")
    words = ["operator", "add", name, "--new-passphrase-file", str(file), *flags]
    words += ["--passphrase-file", str(directory / "consent")]
    assert tidegate(*words, state=directory / "state").status == 0


@contextmanager
def opened_place(directory: Path, *more: str) -> Iterator[Place]:
    """A place in a new directory, while the block runs. `more` are further words of `serve`."""
    copy_made(_make_place, directory)
    state, settings = directory / "state", directory / "settings.toml"
    words = ["serve", "--config", str(settings), "--http", "127.0.0.1:0", "--console", *more]
    with serving(words, state) as server:
        line = server.until("the console is at")
        address = re.search(r"http://[^/]+", line)
        assert address
        place = Place(directory, state, server, address[0], [])
        yield place
    # The server has ended, and with it every stream.
    for visitor in place.visitors:
        visitor.client.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with opened_place(tmp_path) as found:
        yield found


@pytest.fixture
def token(place: Place) -> str:
    words = ["token", "create", "claude", "--scope", "fullAccess"]
    return place.run(*words, "--passphrase-file", str(place.directory / "consent")).out.strip()
