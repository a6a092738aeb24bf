"""What the tests of the command line share: a state directory and a small database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from support.command_line import Ended, tidegate

Run = Callable[..., Ended]
Rows = list[tuple[object, ...]]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Two related tables and a view, with a NULL and several scripts."""
    path = tmp_path / "data" / "small.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE towns (id INTEGER PRIMARY KEY, name TEXT NOT NULL, people INTEGER);
            INSERT INTO towns VALUES (1, 'Köln', 1084831), (2, '京都', NULL), (3, 'Львів', 717273);
            CREATE TABLE visits (id INTEGER PRIMARY KEY, town_id INTEGER REFERENCES towns (id));
            INSERT INTO visits VALUES (1, 2), (2, 2), (3, 1);
            CREATE VIEW visited AS SELECT name FROM towns WHERE id IN (SELECT town_id FROM visits);
            """
        )
    return path


@pytest.fixture
def run(state: Path) -> Run:
    """Run a command on the test's own state."""
    return partial(tidegate, state=state)


@pytest.fixture
def towns(run: Run, database: Path) -> Path:
    """The database, saved as the source `towns`."""
    assert run("source", "add", "towns", f"sqlite:///{database}").status == 0
    return database


@pytest.fixture
def contents(database: Path) -> Callable[[], Rows]:
    """What the table `towns` holds now, read without Tidegate."""

    def read() -> Rows:
        with closing(sqlite3.connect(database)) as connection:
            return connection.execute("SELECT * FROM towns ORDER BY id").fetchall()

    return read
