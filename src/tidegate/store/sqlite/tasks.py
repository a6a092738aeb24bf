"""Calls that go on after their request was answered, in the state file."""

# pyright: reportUnknownMemberType=false
# (the stubs of apsw name a type that Python 3.11 does not have)

from __future__ import annotations

from typing import Any, cast

from tidegate.model.tasks import TaskRecord
from tidegate.store.sqlite.connection import StateConnection

_FIELDS = TaskRecord.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_MARKS = ", ".join(f":{name}" for name in _FIELDS)
_FLAGS = ("waiting", "changes")


class SqliteTaskStore:
    """`api.TaskStore` in the state file."""

    def __init__(self, file: StateConnection) -> None:
        self._file = file

    def add(self, record: TaskRecord) -> None:
        with self._file.changing() as connection:
            connection.execute(f"INSERT INTO tasks ({_COLUMNS}) VALUES ({_MARKS})", _values(record))

    def update(self, record: TaskRecord) -> None:
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE tasks SET updated_at = :updated_at, alive_until = :alive_until,"
                " status = :status, waiting = :waiting, changes = :changes, call = :call"
                " WHERE id = :id",
                _values(record),
            )

    def find(self, id: str) -> TaskRecord | None:
        return next(iter(self._read("WHERE id = ?", id)), None)

    def calls(self, most: int) -> tuple[TaskRecord, ...]:
        return self._read("WHERE call <> '' ORDER BY created_at DESC LIMIT ?", most)

    def _read(self, where: str, value: object) -> tuple[TaskRecord, ...]:
        with self._file.reading() as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM tasks {where}", (value,))
            return tuple(map(_record, cast("list[tuple[Any, ...]]", rows.fetchall())))

    def renew(self, server: str, until: float) -> None:
        with self._file.changing() as connection:
            connection.execute(
                "UPDATE tasks SET alive_until = ? WHERE server = ? AND status IN"
                " ('working', 'input_required')",
                (until, server),
            )

    def forget(self, before: float) -> None:
        with self._file.changing() as connection:
            connection.execute("DELETE FROM tasks WHERE created_at < ?", (before,))


def _record(row: tuple[Any, ...]) -> TaskRecord:
    fields: dict[str, Any] = dict(zip(_FIELDS, row, strict=True))
    fields.update({name: bool(fields[name]) for name in _FLAGS})
    return TaskRecord(**fields)


def _values(record: TaskRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _FIELDS}
