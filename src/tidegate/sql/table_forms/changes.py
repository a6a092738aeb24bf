"""What differs between a table as it is and a form of it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import structs

from tidegate.sql.table_forms.model import ColumnForm, Feature, IndexForm, KeyForm, TableForm


class ColumnChange(msgspec.Struct, frozen=True):
    """A column as it was, with the name that it gets, and as it is to be."""

    old: ColumnForm
    new: ColumnForm

    @property
    def retyped(self) -> bool:
        return self.old.type != self.new.type

    @property
    def renullified(self) -> bool:
        return self.old.nullable != self.new.nullable

    @property
    def redefaulted(self) -> bool:
        return self.old.default != self.new.default

    @property
    def recommented(self) -> bool:
        return self.old.comment != self.new.comment


class Changes(msgspec.Struct, frozen=True):
    """All that a form changes. `renamed` are (old name, new name) of columns; `changed` columns
    that differ in more than their name."""

    old: TableForm
    new: TableForm
    renamed: tuple[tuple[str, str], ...]
    added: tuple[ColumnForm, ...]
    dropped: tuple[str, ...]
    changed: tuple[ColumnChange, ...]
    rekeyed: bool
    keys_added: tuple[KeyForm, ...]
    keys_dropped: tuple[KeyForm, ...]
    indexes_added: tuple[IndexForm, ...]
    indexes_dropped: tuple[IndexForm, ...]

    @property
    def recommented(self) -> bool:
        return self.old.comment != self.new.comment

    def features(self) -> Iterator[Feature]:
        """What of a dialect it takes."""
        found: dict[Feature, bool] = {
            "table.rename": self.old.name != self.new.name,
            "table.comment": self.recommented,
            "column.add": bool(self.added),
            "column.drop": bool(self.dropped),
            "column.rename": bool(self.renamed),
            "column.type": any(each.retyped for each in self.changed),
            "column.nullable": any(each.renullified for each in self.changed),
            "column.default": any(each.redefaulted for each in self.changed),
            "column.comment": any(each.recommented for each in self.changed),
            "primary_key": self.rekeyed,
            "foreign_key.add": bool(self.keys_added),
            "foreign_key.drop": bool(self.keys_dropped),
            "index": bool(self.indexes_added or self.indexes_dropped),
        }
        return (feature for feature, asked in found.items() if asked)


def changes_of(old: TableForm, new: TableForm) -> Changes:
    """What the form `new` changes in the table that `old` is the form of."""
    known = {each.name: each for each in old.columns}
    kept = {each.was: each for each in new.columns if each.was in known}
    renames = {was: each.name for was, each in kept.items()}
    pairs = [
        ColumnChange(
            structs.replace(known[was], name=each.name, was=""), structs.replace(each, was="")
        )
        for was, each in kept.items()
    ]
    keys = [_renamed_key(each, renames) for each in old.foreign_keys]
    indexes = [_renamed_index(each, renames) for each in old.indexes]
    return Changes(
        old,
        new,
        renamed=tuple((was, name) for was, name in renames.items() if was != name),
        added=tuple(each for each in new.columns if each.was not in known),
        dropped=tuple(name for name in known if name not in kept),
        changed=tuple(each for each in pairs if each.old != each.new),
        rekeyed=tuple(renames.get(name, name) for name in old.primary_key) != new.primary_key,
        keys_added=tuple(each for each in new.foreign_keys if each not in keys),
        keys_dropped=tuple(
            was
            for was, each in zip(old.foreign_keys, keys, strict=True)
            if each not in new.foreign_keys
        ),
        indexes_added=tuple(each for each in new.indexes if each not in indexes),
        indexes_dropped=tuple(
            was for was, each in zip(old.indexes, indexes, strict=True) if each not in new.indexes
        ),
    )


def faults_of(form: TableForm) -> Iterator[str]:
    """What no database would take of a form."""
    names = [each.name for each in form.columns]
    if not form.name.strip():
        yield "The table has no name."
    if not names:
        yield "The table has no column."
    for name, count in Counter(name.casefold() for name in names).items():
        if not name.strip():
            yield "A column has no name."
        elif count > 1:
            yield f"Two columns are called {name}."
    for each in form.columns:
        if not each.type.strip() and not each.was:  # SQLite has columns without one
            yield f"The column {each.name} has no type."
    named = [
        *(("primary key", form.primary_key),),
        *(("foreign key", each.columns) for each in form.foreign_keys),
        *((f"index {each.name}", each.columns) for each in form.indexes if not each.fixed),
    ]
    for what, columns in named:
        for name in columns:
            if name not in names:
                yield f"The {what} names {name}, which is no column of the table."
    for key in form.foreign_keys:
        if not key.columns or len(key.columns) != len(key.references) or not key.table:
            yield "A foreign key needs as many columns as it refers to, and a table."
    for index in form.indexes:
        if not index.name.strip() or not index.columns:
            yield "An index needs a name and a column."


def _renamed_key(key: KeyForm, renames: dict[str, str]) -> KeyForm:
    return structs.replace(key, columns=tuple(renames.get(each, each) for each in key.columns))


def _renamed_index(index: IndexForm, renames: dict[str, str]) -> IndexForm:
    return structs.replace(index, columns=tuple(renames.get(each, each) for each in index.columns))
