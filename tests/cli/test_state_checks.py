"""`config check` and `doctor` say of a state what a server would say, and leave it as it is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import support.postgres_server as postgres_server
from support.command_line import Ended, tidegate
from tidegate.store import moving

KEYS = {
    "PGTEST_KEY": "a key of the gates in these tests",
    "PGTEST_OTHER": "another key of theirs" * 2,
}


class Place(NamedTuple):
    """A state: its directory, and its database if that is one of PostgreSQL."""

    directory: Path
    database: str = ""

    @property
    def url(self) -> str | None:
        return postgres_server.shared().url(self.database) if self.database else None

    def settings(self, key: str | None = "PGTEST_KEY") -> str:
        given: dict[str, Any] = {} if key is None else {"state_key": f"${{ENV:{key}}}"}
        if self.url is not None:
            given["state_url"] = "${ENV:PGTEST_STATE}"
        file = self.directory.with_name("settings.json")
        file.write_text(json.dumps(given))
        file.chmod(0o600)
        return str(file)

    def run(self, *words: str, key: str | None = "PGTEST_KEY") -> Ended:
        return tidegate(*words, "--config", self.settings(key), "--state", str(self.directory))

    def ask(self, sql: str) -> None:
        """Change the state past the gate."""
        if self.database:
            postgres_server.shared().ask(sql, self.database)
            return
        with closing(sqlite3.connect(self.directory / "state.db")) as connection, connection:
            connection.execute(sql.replace("tidegate.", ""))


@pytest.fixture(params=["file", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    if request.param == "file":
        return Place(tmp_path / "state")
    server = postgres_server.shared()
    place = Place(tmp_path / "state", server.new_database())
    monkeypatch.setenv("PGTEST_STATE", str(place.url))
    return place


def made(place: Place, key: str | None = "PGTEST_KEY") -> None:
    """A state with a row that gives rights."""
    ended = place.run("token", "create", "ann", "--scope", "readOnly", key=key)
    assert ended.status == 0, ended.err


def unseal(place: Place) -> None:
    place.ask("DELETE FROM tidegate.seals")
    (place.directory / "state-seals.json").unlink(missing_ok=True)
    (place.directory / "state-seals.numbers").unlink(missing_ok=True)


def move(place: Place) -> None:
    if place.url is None:
        server = postgres_server.shared()
        moving.move_to_postgres(place.directory, server.url(server.new_database()))
    else:
        target = place.directory.with_name("moved")
        target.mkdir(mode=0o700)
        moving.move_to_sqlite(place.url, target)


def make_newer(place: Place) -> None:
    if place.url is None:
        place.ask("PRAGMA user_version = 99")
    else:
        place.ask("UPDATE tidegate.about SET version = 99, oldest_reader = 99")


FAULTS: dict[str, tuple[Callable[[Place], None], str | None, str]] = {
    "another key": (lambda place: None, "PGTEST_OTHER", "sealed by another key"),
    "not sealed": (unseal, "PGTEST_KEY", "not sealed by the key"),
    "moved": (move, "PGTEST_KEY", "has moved to"),
    "newer": (make_newer, "PGTEST_KEY", "version"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_state_that_a_server_would_refuse_is_a_fault_of_its_own(place: Place, fault: str) -> None:
    spoil, key, said = FAULTS[fault]
    made(place)
    assert place.run("config", "check").status == 0
    spoil(place)
    refused = place.run("token", "list", key=key)
    assert refused.status != 0 and said in refused.err, refused.err
    message = refused.err.partition(": ")[2].partition(". ")[0].partition("\n")[0]

    before = listing(place.directory)
    checked = place.run("config", "check", key=key)
    assert checked.status == 78 and "valid" not in checked.err, checked.err
    assert said in checked.err and message in " ".join(checked.err.split()), (message, checked.err)
    assert listing(place.directory) == before

    ended = place.run("doctor", "--json", key=key)
    found = {each["check"]: each for each in ended.json["checks"] if each["state"] == "fault"}
    assert said in found["state"]["text"] and found["state"]["to_do"], found
    assert "sources" not in found
    (sources,) = [each for each in ended.json["checks"] if each["check"] == "sources"]
    assert sources["state"] == "note" and "not checked" in sources["text"]


def test_a_sealed_file_without_the_key_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTEST_KEY", KEYS["PGTEST_KEY"])
    place = Place(tmp_path / "state")
    made(place)
    checked = place.run("config", "check", key=None)
    assert checked.status == 78 and "this gate has no key of it" in checked.err


def test_a_check_makes_no_state(place: Place) -> None:
    checked = place.run("config", "check")
    assert checked.status == 0 and "valid" in checked.err, checked.err
    assert not place.directory.exists()
    if place.database:
        found = postgres_server.shared().ask(
            "SELECT to_regclass('tidegate.about')::text", place.database
        )
        assert found == [(None,)]


def test_a_check_of_a_state_that_is_used_takes_nothing_of_it(place: Place) -> None:
    made(place)
    before = listing(place.directory)
    assert place.run("config", "check").status == 0
    assert listing(place.directory) == before


def listing(directory: Path) -> dict[str, bytes]:
    """All files there, but for SQLite's own beside a database that is open."""
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in sorted(directory.rglob("*"))
        if each.is_file() and not each.name.endswith(("-wal", "-shm", ".lock"))
    }
