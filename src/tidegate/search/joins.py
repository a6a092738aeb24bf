"""Guesses which columns refer to which tables, where the schema declares no foreign key.

Two signs, both with the same kind of type: `customer_id` refers to the sole key of `customer` or
`customers`, and `isbn` to the sole key `isbn` of one other table. What fits several tables equally
well refers to none. A guess is shown as one. Pure.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.search.words import split

_REFERRING = frozenset({"id", "key", "code", "no", "nr", "num", "number", "fk", "ref", "uuid"})
_COMMON = frozenset({"id", "code", "key", "name", "number", "no", "nr", "date", "year", "type"})
"""Names of keys that say nothing of what they are the key of."""
_KINDS = (
    ("int", ("int", "serial", "number", "numeric", "decimal", "oid")),
    ("text", ("char", "text", "clob", "string", "enum", "name")),
    ("uuid", ("uuid", "uniqueidentifier")),
)


class Join(msgspec.Struct, frozen=True):
    """`column` probably refers to `schema.table.key`."""

    column: str
    schema: str
    table: str
    key: str


class Joins:
    """The likely joins of one catalog. Building costs about as much as a search index."""

    def __init__(self, catalog: Catalog) -> None:
        self._by_words: dict[tuple[str, ...], list[tuple[Table, ColumnInfo]]] = defaultdict(list)
        self._by_key: dict[str, list[tuple[Table, ColumnInfo]]] = defaultdict(list)
        for table in catalog.tables:
            key = _sole_key(table)
            if key is not None:
                self._by_words[tuple(split(table.name))].append((table, key))
                if key.name.casefold() not in _COMMON:
                    self._by_key[key.name.casefold()].append((table, key))

    def of(self, table: Table) -> dict[str, Join]:
        """The likely joins of a table's columns, by column, where no key is declared."""
        declared = {name for key in table.foreign_keys for name in key.columns}
        own = _sole_key(table)
        found: dict[str, Join] = {}
        for column in table.columns:
            if column.name in declared or (own is not None and column.name == own.name):
                continue
            target = self._target(table, column)
            if target is not None:
                other, key = target
                found[column.name] = Join(column.name, other.schema, other.name, key.name)
        return found

    def _target(self, table: Table, column: ColumnInfo) -> tuple[Table, ColumnInfo] | None:
        words = split(column.name)
        candidates: list[tuple[Table, ColumnInfo]] = []
        if len(words) > 1 and words[-1] in _REFERRING:
            stem, own = tuple(words[:-1]), tuple(split(table.name))
            # Of `shop_order`, `customer_id` rather refers to `shop_customer` than to `customer`;
            # `billing_customer_id` may refer to `customer`: the words behind count most.
            names = [own[:end] + stem for end in range(len(own), 0, -1)]
            for name in (*names, *(stem[start:] for start in range(len(stem)))):
                candidates = self._fitting(table, column, self._by_words.get(name, ()))
                if candidates:
                    break
        if not candidates:
            candidates = self._fitting(table, column, self._by_key.get(column.name.casefold(), ()))
        near = [each for each in candidates if each[0].schema == table.schema] or candidates
        return near[0] if len(near) == 1 else None

    def _fitting(
        self,
        table: Table,
        column: ColumnInfo,
        targets: list[tuple[Table, ColumnInfo]] | tuple[()],
    ) -> list[tuple[Table, ColumnInfo]]:
        return [
            (other, key)
            for other, key in targets
            if other is not table and _kind(key.type) == _kind(column.type)
        ]


def _sole_key(table: Table) -> ColumnInfo | None:
    """The one column that tells rows apart; without a declared key a first column called so."""
    keys = [column for column in table.columns if column.key]
    if len(keys) == 1:
        return keys[0]
    if keys or table.kind not in ("table", "foreign table") or not table.columns:
        return None
    first = table.columns[0]
    words, own = split(first.name), split(table.name)
    named_so = words == ["id"] or (words[-1:] == ["id"] and words[:-1] in (own, own[-1:]))
    return first if named_so else None


def _kind(type_name: str) -> str:
    low = type_name.lower()
    for kind, names in _KINDS:
        if any(name in low for name in names):
            return kind
    return low
