"""The state file of the older version gets everything that a new one has today."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw

import tidegate.store
from cli.test_older_state import WEEK, Take, take
from tidegate.store.sqlite.state import SqliteState

MIGRATIONS = Path(tidegate.store.__path__[0]) / "migrations"

__all__ = ["take"]


def test_the_older_state_takes_every_migration_of_today(take: Take, state: Path) -> None:
    take(WEEK)
    path, fresh = state / "state.db", state / "fresh.db"
    older = version(path)
    assert isinstance(older, int)
    for each in (path, fresh):
        SqliteState(each).close()
    newest = max(int(each.name[:4]) for each in MIGRATIONS.glob("*.sql"))
    assert older < newest == version(path) == version(fresh)
    assert schema(path) >= schema(fresh)


def version(path: Path) -> object:
    with closing(apsw.Connection(str(path))) as connection:
        return connection.pragma("user_version")


def schema(path: Path) -> set[object]:
    """The names of tables and indexes."""
    with closing(apsw.Connection(str(path))) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
