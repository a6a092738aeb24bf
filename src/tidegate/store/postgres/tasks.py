"""Calls that go on after their request was answered, in PostgreSQL."""

from __future__ import annotations

from tidegate.model.tasks import TaskRecord
from tidegate.store.postgres.database import Database
from tidegate.store.postgres.rows import Rows

_TASKS = Rows(TaskRecord)
_CHANGED = ("updated_at", "alive_until", "status", "waiting", "changes", "call")


class PostgresTaskStore:
    """`api.TaskStore` in PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, record: TaskRecord) -> None:
        with self._database.changing() as connection:
            connection.ask(
                f"INSERT INTO tidegate.tasks ({_TASKS.columns}) VALUES ({_TASKS.marks})",
                _TASKS.values(record),
            )

    def update(self, record: TaskRecord) -> None:
        sets = ", ".join(f"{name} = %s" for name in _CHANGED)
        with self._database.changing() as connection:
            connection.ask(
                f"UPDATE tidegate.tasks SET {sets} WHERE id = %s",
                [*_TASKS.values(record, _CHANGED), record.id],
            )

    def find(self, id: str) -> TaskRecord | None:
        with self._database.reading() as connection:
            row = connection.row(
                f"SELECT {_TASKS.columns} FROM tidegate.tasks WHERE id = %s", (id,)
            )
            return None if row is None else _TASKS.record(row)

    def calls(self, most: int) -> tuple[TaskRecord, ...]:
        with self._database.reading() as connection:
            rows = connection.ask(
                f"SELECT {_TASKS.columns} FROM tidegate.tasks WHERE call <> ''"
                " ORDER BY created_at DESC LIMIT %s",
                (most,),
            )
            return tuple([_TASKS.record(row) for row in rows])

    def renew(self, server: str, until: float) -> None:
        with self._database.changing() as connection:
            connection.ask(
                "UPDATE tidegate.tasks SET alive_until = %s WHERE server = %s AND status IN"
                " ('working', 'input_required')",
                (until, server),
            )

    def forget(self, before: float) -> None:
        with self._database.changing() as connection:
            connection.ask("DELETE FROM tidegate.tasks WHERE created_at < %s", (before,))
