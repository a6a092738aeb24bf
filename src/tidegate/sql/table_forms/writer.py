"""What the dialects have in common: reading a description, and writing CREATE TABLE.

Types and expressions are the person's own text. They are written as they are, and judged with the
statement by the gate before it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, cast

from tidegate.model.schema import ColumnInfo, ForeignKey, Index, Table
from tidegate.product import load
from tidegate.sql.dialects import DIALECTS, find
from tidegate.sql.quoting import identifier, literal, qualified
from tidegate.sql.table_forms.changes import Changes, changes_of, faults_of
from tidegate.sql.table_forms.model import (
    Action,
    ColumnForm,
    Default,
    Feature,
    IndexForm,
    KeyForm,
    Plan,
    Step,
    TableForm,
)

NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_NUMERIC = re.compile(
    r"(?:tiny|small|medium|big|huge|uhuge|u)?(?:int|integer)\d?\b|u(?:tiny|small|big)int\b"
    r"|(?:decimal|dec|numeric|number|float|double|real)\d?\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_WORDS = {"true": "true", "false": "false"}
ACTIONS = frozenset({"NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT"})


def writer_of(engine: str, dialect: str) -> TableWriter | None:
    """The writer for a source; None where tables have no form: its dialect has none, or the engine
    is not the dialect's own and describes tables in other words."""
    place = find(dialect).table_forms if dialect in DIALECTS else ""
    return load(place) if place and engine == dialect else None


class TableWriter:
    """Writes and reads forms for one dialect. `lacks` says what the dialect cannot do, and why;
    `types` are the names of types that a form proposes."""

    dialect: ClassVar[str]
    types: ClassVar[tuple[str, ...]]
    lacks: ClassVar[Mapping[Feature, str]] = {}
    index_kind: ClassVar[str] = "btree"
    inline_indexes: ClassVar[bool] = False

    # From a description to a form

    def read(self, table: Table) -> TableForm:
        """The form of a table as the database describes it."""
        keys = sorted(
            [self.read_key(each, table) for each in table.foreign_keys],
            key=lambda key: (key.name, key.columns),
        )
        primary = sorted((each.key, each.name) for each in table.columns if each.key)
        return TableForm(
            table.name,
            table.schema,
            tuple(self.read_column(each) for each in table.columns),
            tuple(name for _, name in primary),
            tuple(keys),
            tuple(
                sorted(
                    [self.read_index(each) for each in table.indexes if self.is_shown(each, table)],
                    key=lambda index: index.name,
                )
            ),
            table.comment or "",
        )

    def read_column(self, column: ColumnInfo) -> ColumnForm:
        extra = column.extra or ""
        identity = self.numbers_itself(column)
        fixed = "" if identity else extra
        return ColumnForm(
            column.name,
            column.type,
            column.nullable and not column.key,
            None if fixed or identity else self.read_default(column),
            identity,
            column.comment or "",
            fixed,
            column.name,
        )

    def numbers_itself(self, column: ColumnInfo) -> bool:
        return False

    def read_default(self, column: ColumnInfo) -> Default | None:
        text = (column.default or "").strip()
        if not text or text.upper() == "NULL":
            return None
        value = self.read_literal(text)
        return Default("expression", _bare(text)) if value is None else Default("literal", value)

    def read_literal(self, text: str) -> str | None:
        """The value of a literal; None for any other expression."""
        if quoted := _QUOTED.fullmatch(text):
            return quoted[1].replace("''", "'")
        return text if NUMBER.fullmatch(text) else _WORDS.get(text.lower())

    def read_key(self, key: ForeignKey, table: Table) -> KeyForm:
        return KeyForm(
            key.columns,
            key.table,
            key.references,
            "" if "foreign_key.name" in self.lacks else key.name,
            "" if key.schema in (None, table.schema) else key.schema,
            self.read_action(key.on_delete),
            self.read_action(key.on_update),
        )

    def read_action(self, action: str) -> Action:
        return cast("Action", action) if action in ACTIONS else "NO ACTION"

    def is_shown(self, index: Index, table: Table) -> bool:
        return not index.primary

    def read_index(self, index: Index) -> IndexForm:
        more = not index.usable or index.operators or index.options or index.included
        fixed = bool(more) or index.kind != self.index_kind or self.is_of_constraint(index)
        return IndexForm(index.name, index.columns, index.unique, fixed)

    def is_of_constraint(self, index: Index) -> bool:
        return False

    # From a form to statements

    def create(self, form: TableForm) -> Plan:
        """The statements that make the table."""
        lacks = [*faults_of(form), *self._missing(self.asked(form)), *self._unmade(form)]
        if lacks:
            return Plan(lacks=tuple(dict.fromkeys(lacks)))
        lines = [self.column(each, form) for each in form.columns]
        if form.primary_key:
            lines.append(f"PRIMARY KEY ({self.names(form.primary_key)})")
        lines += [self.key(each) for each in form.foreign_keys]
        if self.inline_indexes:
            lines += [self.inline_index(each) for each in form.indexes]
        body = ",\n  ".join(lines)
        first = f"CREATE TABLE {self.table(form)} (\n  {body}\n){self.table_options(form)}"
        return Plan((Step(first), *self.after_create(form)))

    def asked(self, form: TableForm) -> Iterator[Feature]:
        """What of a dialect a new table takes."""
        keys = form.foreign_keys
        found: dict[Feature, bool] = {
            "identity": any(each.identity for each in form.columns),
            "column.comment": any(each.comment for each in form.columns),
            "table.comment": bool(form.comment),
            "foreign_key": bool(keys),
            "foreign_key.name": any(each.name for each in keys),
            "foreign_key.schema": any(each.schema for each in keys),
            "foreign_key.actions": any(
                each.on_delete != "NO ACTION" or each.on_update != "NO ACTION" for each in keys
            ),
        }
        return (feature for feature, asked in found.items() if asked)

    def _missing(self, features: Iterator[Feature]) -> Iterator[str]:
        return (self.lacks[each] for each in features if each in self.lacks)

    def _unmade(self, form: TableForm) -> Iterator[str]:
        for column in form.columns:
            if column.fixed:
                yield f"The column {column.name} ({column.fixed}) cannot be made by a form."
        for index in form.indexes:
            if index.fixed:
                yield f"The index {index.name} cannot be made by a form."

    def column(self, column: ColumnForm, form: TableForm) -> str:
        """The definition of a column."""
        kind = column.type.strip()
        parts = [self.name(column.name), *([kind] if kind else [])]
        if column.identity:
            parts.append(self.identity_words)
        if not column.nullable:
            parts.append("NOT NULL")
        if column.default is not None:
            parts.append(f"DEFAULT {self.default(column)}")
        return " ".join(parts)

    identity_words: ClassVar[str] = ""

    def default(self, column: ColumnForm) -> str:
        """The default of a column that has one."""
        given = column.default
        if given is None:
            return "NULL"
        return f"({given.text.strip()})" if given.kind == "expression" else self.value(column)

    def value(self, column: ColumnForm) -> str:
        """The literal that a column gets."""
        text = "" if column.default is None else column.default.text
        if NUMBER.fullmatch(text) and _NUMERIC.match(column.type.strip()):
            return text
        if text.lower() in _WORDS and column.type.strip().lower() in ("bool", "boolean"):
            return text.upper()
        return self.text(text)

    def key(self, key: KeyForm) -> str:
        """The definition of a foreign key."""
        named = f"CONSTRAINT {self.name(key.name)} " if key.name else ""
        target = qualified(key.schema or None, key.table, self.dialect)
        actions = "".join(
            f" {word} {action}"
            for word, action in (("ON DELETE", key.on_delete), ("ON UPDATE", key.on_update))
            if action != "NO ACTION"
        )
        return (
            f"{named}FOREIGN KEY ({self.names(key.columns)}) REFERENCES {target}"
            f" ({self.names(key.references)}){actions}"
        )

    def inline_index(self, index: IndexForm) -> str:
        unique = "UNIQUE " if index.unique else ""
        return f"{unique}INDEX {self.name(index.name)} ({self.names(index.columns)})"

    def table_options(self, form: TableForm) -> str:
        return ""

    def after_create(self, form: TableForm) -> Iterator[Step]:
        """What follows CREATE TABLE."""
        return (Step(self.new_index(each, form)) for each in form.indexes)

    def new_index(self, index: IndexForm, form: TableForm) -> str:
        unique = "UNIQUE " if index.unique else ""
        return (
            f"CREATE {unique}INDEX {self.name(index.name)} ON {self.table(form)}"
            f" ({self.names(index.columns)})"
        )

    # From one form to another

    def alter(self, table: Table, form: TableForm) -> Plan:
        """The statements that make the table as the form has it. A form that was made of an older
        table would drop what was added since: its caller sees to that."""
        changes = changes_of(self.read(table), form)
        lacks = [
            *faults_of(form),
            *self._missing(changes.features()),
            *self._missing(self.asked(_added_only(changes))),
            *_impossible(changes),
            *self.refusals(changes, table),
        ]
        if lacks:
            return Plan(lacks=tuple(dict.fromkeys(lacks)))
        return Plan(tuple(self.steps(changes, table)))

    def refusals(self, changes: Changes, table: Table) -> Iterator[str]:
        """What this dialect cannot do of these changes, besides what it lacks."""
        return iter(())

    def steps(self, changes: Changes, table: Table) -> Iterator[Step]:
        """The statements of changes that can be made."""
        raise NotImplementedError

    # Words

    def name(self, name: str) -> str:
        return identifier(name, self.dialect)

    def names(self, names: Sequence[str]) -> str:
        return ", ".join([self.name(each) for each in names])

    def table(self, form: TableForm) -> str:
        return qualified(form.schema or None, form.name, self.dialect)

    def text(self, text: str) -> str:
        return literal(text, self.dialect)


def _bare(text: str) -> str:
    """An expression without brackets around the whole of it."""
    while text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1].strip()
    return text


def _closes_at_end(text: str) -> bool:
    depth, quoted = 0, False
    for place, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif not quoted and character in "()":
            depth += 1 if character == "(" else -1
            if depth == 0 and place < len(text) - 1:
                return False
    return depth == 0 and not quoted


def _added_only(changes: Changes) -> TableForm:
    """What is new, as a table of its own: it takes the same of a dialect as a new table does."""
    return TableForm(changes.new.name, columns=changes.added, foreign_keys=changes.keys_added)


def _impossible(changes: Changes) -> Iterator[str]:
    """What no dialect does by a form."""
    if changes.old.schema != changes.new.schema:
        yield "A table stays in its schema."
    before = {each.name for each in changes.old.columns}
    for each in changes.added:
        if each.was:
            yield f"The table has no column {each.was} any more."
    for was, name in changes.renamed:
        if name in before:
            yield f"{was} cannot become {name} while a column of that name is there."
    for each in changes.added:
        if each.fixed:
            yield f"The column {each.name} ({each.fixed}) cannot be made by a form."
    for change in changes.changed:
        if change.old.fixed and change.old != change.new:
            yield f"The column {change.old.name} ({change.old.fixed}) is not changed by a form."
        if change.old.identity != change.new.identity:
            yield "Whether a column numbers itself is chosen when it is made."
    for index in (*changes.indexes_added, *changes.indexes_dropped):
        if index.fixed:
            yield f"The index {index.name} is not changed by a form."
