"""Writes changes of single rows as SQL: for people who read it, and for the judge. Pure.

An engine runs these changes by itself, over exact images of the rows; nothing here is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tidegate.model.changes import ImageColumn
from tidegate.model.row_changes import DEFAULT, ChangeRows, RowEdit, RowFeed, Verb
from tidegate.model.statements import Statement
from tidegate.results.column_kinds import read_type
from tidegate.sql.dialects import find
from tidegate.sql.quoting import identifier, qualified

MOST_TEXT = 100_000
"""Characters of a change as it is shown and recorded; a digest covers the rest."""
_MOST_NAME = 200
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_NUMBERS = frozenset({"integer", "decimal", "float"})


class Script(NamedTuple):
    """A change in SQL. `shown` of its `statements` are in the text, the rest is counted there."""

    text: str
    statements: int
    shown: int


def script_of(change: ChangeRows, dialect: str, most: int = MOST_TEXT) -> Script:
    """The whole change as statements, in the order in which they are made."""
    if change.feed is not None:
        return _fed(change, change.feed, dialect)
    lines: list[str] = []
    size = shown = 0
    for text in _statements(change, dialect):
        size += len(text) + 2
        if size > most and lines:
            break
        lines.append(f"{text[:most]};")
        shown += 1
    count = len(change.edits)
    if shown < count:
        lines.append(f"-- and {count - shown:,} more, with the digest {change.digest[:16]}")
    return Script("\n".join(lines), count, shown)


def _fed(change: ChangeRows, feed: RowFeed, dialect: str) -> Script:
    """The statement for rows of a file, without a value: with their number and digests."""
    (form,) = forms_of(change, dialect).values()
    name = " ".join(feed.name.split())[:_MOST_NAME]
    about = f"-- {feed.count:,} rows of the file {name}"
    digests = f"-- SHA-256 of the file {feed.file_digest}, of all values {feed.digest}"
    return Script(f"{form.text};\n{about}\n{digests}", feed.count, 0)


def _statements(change: ChangeRows, dialect: str) -> Iterator[str]:
    name = qualified(change.schema, change.table, dialect)
    columns = change.shape.columns
    names = [identifier(column.name, dialect) for column in columns]
    texts = [_writer(column, dialect) for column in columns]
    for edits in change.by_verb.values():
        for _, edit in edits:
            before = edit.before
            written = [
                (names[place], texts[place](value))
                for place, value in edit.values or ()
                if before is not None or value != DEFAULT
            ]
            if before is None:
                yield _insert(name, written, dialect)
                continue
            found = [
                f"{names[place]} = {texts[place](before[place])}" for place in change.shape.key
            ]
            yield _changing(name, written, found, deletes=edit.values is None)


def forms_of(change: ChangeRows, dialect: str) -> dict[Verb, Statement]:
    """A statement for each kind of edits, with placeholders, that names each column that one of
    them writes: what may be said of it holds for each of them."""
    by_verb = change.by_verb
    return {
        verb: _form(change, verb, [edit for _, edit in by_verb.get(verb, ())], dialect)
        for verb in change.verbs
    }


def _form(change: ChangeRows, verb: Verb, edits: Sequence[RowEdit], dialect: str) -> Statement:
    rules, columns = find(dialect), change.shape.columns
    name = qualified(change.schema, change.table, dialect)
    places: dict[int, bool] = {}
    if change.feed is not None:
        places = dict.fromkeys(change.feed.places, False)
    defaults = verb == "update" and rules.updates_to_default
    for edit in edits:
        for place, value in edit.values or ():
            places[place] = places.get(place, False) or (defaults and value == DEFAULT)
    values: list[str] = []
    used = 0
    for _, by_default in sorted(places.items()):
        used += not by_default
        values.append("DEFAULT" if by_default else rules.marker(used))
    names = [identifier(columns[place].name, dialect) for place in sorted(places)]
    written = list(zip(names, values, strict=True))
    if verb == "insert":
        return Statement(_insert(name, written, dialect), (None,) * used)
    found: list[str] = []
    for place in change.shape.key:
        used += 1
        found.append(f"{identifier(columns[place].name, dialect)} = {rules.marker(used)}")
    text = _changing(name, written, found, deletes=verb == "delete")
    return Statement(text, (None,) * used)


def _insert(name: str, written: Sequence[tuple[str, str]], dialect: str) -> str:
    if not written:
        return f"INSERT INTO {name} {find(dialect).empty_insert}"
    names, values = zip(*written, strict=True)
    return f"INSERT INTO {name} ({', '.join(names)}) VALUES ({', '.join(values)})"


def _changing(
    name: str, written: Sequence[tuple[str, str]], found: Sequence[str], *, deletes: bool
) -> str:
    where = f"WHERE {' AND '.join(found)}"
    if deletes:
        return f"DELETE FROM {name} {where}"
    sets = ", ".join([f"{column} = {value}" for column, value in written])
    return f"UPDATE {name} SET {sets} {where}"


def _writer(column: ImageColumn, dialect: str) -> Callable[[Any], str]:
    """What writes a value of a column as it is shown in a statement."""
    rules = find(dialect)
    numbers = read_type(column.type)[0] in _NUMBERS and not rules.untyped_columns

    def write(value: Any) -> str:
        if isinstance(value, str):
            return value if numbers and _NUMBER.fullmatch(value) else rules.text_literal(value)
        return "DEFAULT" if value == DEFAULT else rules.literal(value)

    return write
