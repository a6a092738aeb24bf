"""The state file of the older version gets everything that a new one has today."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

import tidegate.store
from cli.test_older_state import WEEK, Take, take
from tidegate.store.sqlite.connection import APPLICATION_ID
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
    assert schema(path) == schema(fresh)


@pytest.mark.parametrize(
    "script", sorted(MIGRATIONS.glob("*.sql"))[:-1], ids=lambda path: path.stem
)
def test_a_state_of_every_version_takes_the_later_scripts(script: Path, tmp_path: Path) -> None:
    path, fresh = tmp_path / "state.db", tmp_path / "fresh.db"
    number = int(script.name[:4])
    with closing(apsw.Connection(str(path))) as connection:
        for each in sorted(MIGRATIONS.glob("*.sql"))[:number]:
            connection.execute(each.read_text())
        connection.pragma("user_version", number)
        connection.pragma("application_id", APPLICATION_ID)
    for each in (path, fresh):
        SqliteState(each).close()
    assert version(path) == version(fresh)
    assert schema(path) == schema(fresh)


def version(path: Path) -> object:
    with closing(apsw.Connection(str(path))) as connection:
        return connection.pragma("user_version")


def schema(path: Path) -> set[object]:
    """The names of tables and indexes, and every column with its type."""
    with closing(apsw.Connection(str(path))) as connection:
        return set(
            connection.execute(
                'SELECT m.type, m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk'
                " FROM sqlite_schema AS m LEFT JOIN pragma_table_info(m.name) AS c"
            )
        )
