"""What a query gave at one moment, kept to be compared with what it gives later. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.typed_values import decode_json

FORMAT: Final = "tidegate-snapshot-1"


class Snapshot(msgspec.Struct, frozen=True):
    """The whole result of a query. `taken_at` is RFC 3339, in UTC."""

    format: str
    source: str
    query: str
    taken_at: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class ChangedRow(NamedTuple):
    """A row that both have: `key` are its values of the key's columns, `fields` what was and what
    is, by the column's name."""

    key: tuple[Any, ...]
    fields: dict[str, tuple[Any, Any]]


class Difference(NamedTuple):
    """What changed. Rows are objects by column; without a key a changed row is one that was removed
    and one that was added."""

    added: list[dict[str, Any]]
    removed: list[dict[str, Any]]
    changed: list[ChangedRow]

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.removed or self.changed)


def read_snapshot(content: bytes, name: str) -> Snapshot:
    """Raises: TidegateError CLIENT_FILE that names the file: it is no snapshot."""
    try:
        found = decode_json(content, Snapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    if found is None or found.format != FORMAT:
        raise _refused(name, "it is no snapshot")
    if any(len(row) != len(found.columns) for row in found.rows):
        raise _refused(name, "a row has another number of values than there are columns")
    return found


def compare(before: Snapshot, after: Snapshot, key: Sequence[str] = ()) -> Difference:
    """What changed between two snapshots. Rows are the same where their `key` is; without one where
    all columns are equal. Columns of one snapshot alone count as null in the other.

    Raises: TidegateError ARGUMENT_INVALID: a column of the key that is not there, or two rows of
        one snapshot with the same key.
    """
    columns = tuple(dict.fromkeys((*after.columns, *before.columns)))
    missing = [name for name in key if name not in before.columns or name not in after.columns]
    if missing:
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            f"The column {missing[0][:80]} of the key is not in both snapshots.",
            hint=f"Columns: {', '.join(after.columns)[:400]}.",
        )
    old, new = _objects(before, columns), _objects(after, columns)
    if not key:
        return _without_key(old, new)
    known, now = _by_key(old, key, before.taken_at), _by_key(new, key, after.taken_at)
    changed: list[ChangedRow] = []
    for name, row in now.items():
        was = known.get(name)
        fields = {
            column: (was[column], row[column])
            for column in columns
            if was is not None and not _same(was[column], row[column])
        }
        if fields:
            changed.append(ChangedRow(tuple(row[column] for column in key), fields))
    return Difference(
        [row for name, row in now.items() if name not in known],
        [row for name, row in known.items() if name not in now],
        changed,
    )


def _objects(snapshot: Snapshot, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    empty = dict.fromkeys(columns)
    return [empty | dict(zip(snapshot.columns, row, strict=True)) for row in snapshot.rows]


def _without_key(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Difference:
    """Equal rows are counted: of three that are two now, one was removed."""
    return Difference(_beyond(new, old), _beyond(old, new), [])


def _beyond(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    left = Counter(_mark(each) for each in others)
    found: list[dict[str, Any]] = []
    for row in rows:
        mark = _mark(row)
        if left[mark]:
            left[mark] -= 1
        else:
            found.append(row)
    return found


def _by_key(
    rows: list[dict[str, Any]], key: Sequence[str], taken_at: str
) -> dict[bytes, dict[str, Any]]:
    found: dict[bytes, dict[str, Any]] = {}
    for row in rows:
        mark = _mark([row[name] for name in key])
        if mark in found:
            values = ", ".join(str(row[name])[:40] for name in key)
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"The snapshot of {taken_at} has two rows with the key {values}.",
                hint="Name more columns with --key, so that each row has a key of its own.",
            )
        found[mark] = row
    return found


def _same(first: Any, second: Any) -> bool:
    """1 and true are equal in Python, and not the same value."""
    return _mark(first) == _mark(second)


def _mark(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _refused(name: str, problem: str) -> TidegateError:
    return TidegateError(
        Code.CLIENT_FILE,
        f"{name} cannot be compared: {problem}.",
        hint="Make it with `tidegate cloud snapshot`.",
        details={"path": name},
    )
