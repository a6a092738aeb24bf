"""Guesses which columns refer to which tables, where the schema declares no foreign key.

Names make candidates, all with the same kind of type. By names alone `customer_id` refers to the
sole key of `customer` or `customers`, and `isbn` to the sole key `isbn` of one other table; what
fits several tables equally well refers to none.

Values decide among more candidates: columns whose last two words are those of a key, `owner_emp`
where `emp_id` is a first column, and columns of one name in several tables, of which one may be a
key that is not declared. A column
refers to a key if nearly all of its values are keys. Values contradict a guess as well. A column
that counts something (`num_semesters`) refers to nothing, whatever its values: small numbers are
among the keys of any table.

Tables of another schema count if a declared key links the schemas, or if the column has
the name of a key that is called after its own table (`customer_no` of `customers`). Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from tidegate.model.profiles import Comparison, Join
from tidegate.model.schema import ColumnInfo, Table
from tidegate.search.words import parts, split, stem
from tidegate.sql.samples import LOOKED_THROUGH

_REFERRING = frozenset(
    {"id", "key", "code", "cd", "no", "nr", "num", "number", "fk", "ref", "uuid"}
)
_COMMON = frozenset({"id", "code", "key", "name", "number", "no", "nr", "date", "year", "type"})
"""Names of keys that say nothing of what they are the key of."""
_COUNTING = frozenset(
    parts(
        "num number count cnt total sum qty quantity amount max min avg average mean years months"
        " weeks days hours minutes seconds pct percent rate"
    )
)
"""First words of columns that count or measure what the words after them name."""
_COUNTED = frozenset(
    parts("count cnt total sum qty quantity amount avg average pct percent ratio rate")
)
"""Last words of such columns."""
_KEY_ENDS = frozenset({"id", "key", "fk", "ref", "uuid", "code", "cd"})
_WITH_ROWS = ("table", "materialized view", "foreign table")
_MOST_OF_NAME = 8
"""Tables with a column of one name; of more, only those count where it is unique by declaration."""
_MOST_OF_COLUMN = 5
_MOST_OF_TABLE = 12
"""Joins that are compared: each is a lookup of up to 1,000 values."""
_ORPHANS_OF_NAMED, _ORPHANS = 0.2, 0.05
"""Share of values without a key up to which a guess is confirmed."""
_SHORT_KEY = 4
"""Characters of a key's name such as `aid` and `pid`."""
_FEWEST = 2
"""Different values on which a guess can rest that names alone do not suggest."""
_KINDS = (
    ("int", ("int", "serial", "number", "numeric", "decimal", "oid")),
    ("text", ("char", "text", "clob", "string", "enum", "name")),
    ("uuid", ("uuid", "uniqueidentifier")),
)


Sign = Literal["name", "ending", "same"]
"""What suggests a join: the name of the table or of its key, the last words of the key, or that
columns of several tables have the same name."""

_Target = tuple[Table, ColumnInfo]
"""A table with its key, or what may be its key."""


class Guess(msgspec.Struct, frozen=True):
    """A join to be confirmed by values. `unique`: the database keeps the key from repeating;
    `names_table`: the column is called after the table."""

    comparison: Comparison
    sign: Sign
    unique: bool
    names_table: bool


class Joins:
    """The likely joins among tables. Building costs about as much as a search index."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._linked = _linked_schemas(tables)
        self._by_words: dict[tuple[str, ...], list[_Target]] = defaultdict(list)
        self._by_key: dict[str, list[_Target]] = defaultdict(list)
        self._by_end: dict[tuple[str, ...], list[_Target]] = defaultdict(list)
        self._by_name: dict[str, list[_Target]] = defaultdict(list)
        self._by_stem: dict[tuple[str, ...], list[_Target]] = defaultdict(list)
        for table in tables:
            key = _sole_key(table)
            if key is not None:
                self._by_words[tuple(split(table.name))].append((table, key))
                if key.name.casefold() not in _COMMON:
                    self._by_key[key.name.casefold()].append((table, key))
                    self._by_end[tuple(split(key.name)[-2:])].append((table, key))
            if table.kind in _WITH_ROWS:
                for number, column in enumerate(table.columns):
                    if _may_be_key(column, first=not number):
                        self._by_name[column.name.casefold()].append((table, column))
                        words = split(column.name)
                        if not number and len(words) > 1 and words[-1] in _REFERRING:
                            self._by_stem[tuple(words[:-1])].append((table, column))

    def of(self, table: Table) -> dict[str, Join]:
        """The likely joins of a table's columns, by column, where no key is declared."""
        declared = {name for key in table.foreign_keys for name in key.columns}
        own = _sole_key(table)
        found: dict[str, Join] = {}
        for column in table.columns:
            if column.name in declared or (own is not None and column.name == own.name):
                continue
            if _counts(column):
                continue
            target = self._target(table, column)
            if target is not None:
                other, key = target
                found[column.name] = Join(column.name, other.schema, other.name, key.name)
        return found

    def to_compare(self, table: Table, masked: Collection[str] = ()) -> list[Guess]:
        """The joins of the table to be confirmed by values: those that names suggest, and those
        that only values can decide on. None has a column or a key with a name in `masked`."""
        if table.kind not in _WITH_ROWS:
            return []
        declared = {name for key in table.foreign_keys for name in key.columns}
        own = _sole_key(table)
        guesses: list[Guess] = []
        for column in table.columns:
            if column.name in declared or column.name.casefold() in masked:
                continue
            found: dict[tuple[str, str, str], Guess] = {}
            is_key = own is not None and own.name == column.name
            for sign, target in self._possible(table, column, is_key):
                place = target[0].schema, target[0].name, target[1].name
                if target[1].name.casefold() not in masked:
                    found.setdefault(place, _guess(sign, table, column, target))
            guesses += list(found.values())[:_MOST_OF_COLUMN]
        return sorted(guesses, key=lambda each: each.sign != "name")[:_MOST_OF_TABLE]

    def _target(self, table: Table, column: ColumnInfo) -> _Target | None:
        near = self._named(table, column)
        return near[0] if len(near) == 1 else None

    def _named(self, table: Table, column: ColumnInfo) -> list[_Target]:
        """What the names suggest: several if they fit equally well."""
        words = split(column.name)
        candidates: list[_Target] = []
        if len(words) > 1 and words[-1] in _REFERRING:
            stem, own = tuple(words[:-1]), tuple(split(table.name))
            # Of `shop_order`, `customer_id` rather refers to `shop_customer` than to `customer`;
            # `billing_customer_id` may refer to `customer`: the last words count most.
            names = [own[:end] + stem for end in range(len(own), 0, -1)]
            for name in (*names, *(stem[start:] for start in range(len(stem)))):
                candidates = _fitting(table, column, self._by_words.get(name, ()))
                if candidates:
                    break
        if not candidates:
            candidates = _fitting(table, column, self._by_key.get(column.name.casefold(), ()))
        candidates = [each for each in candidates if self._may_refer(table, column, each)]
        return [each for each in candidates if each[0].schema == table.schema] or candidates

    def _may_refer(self, table: Table, column: ColumnInfo, target: _Target) -> bool:
        """Whether a key is of the table's own schema, of one that is linked to it, or has the
        column's name, which says of which table it is the key."""
        other, key = target
        if other.schema == table.schema or (table.schema, other.schema) in self._linked:
            return True
        same = key.name.casefold() == column.name.casefold()
        return same and len(split(key.name)) > 1 and _names_table(split(key.name), other)

    def _possible(
        self, table: Table, column: ColumnInfo, is_key: bool
    ) -> Iterator[tuple[Sign, _Target]]:
        """What values may confirm, the likeliest first."""
        words = split(column.name)
        if _counts(column):
            return
        named = self._named(table, column)
        if is_key:  # of a table with further columns of what another table is about
            for target in named:
                if _names_table(words, target[0]):
                    yield "same", target
            return
        for target in named:
            yield "name", target

        def fitting(targets: Iterable[_Target]) -> list[_Target]:
            found = _fitting(table, column, targets)
            return [each for each in found if self._may_refer(table, column, each)]

        if len(words) > 1:
            for target in fitting(self._by_end.get(tuple(words[-2:]), ())):
                yield "ending", target
        for start in range(len(words)):
            for target in fitting(self._by_stem.get(tuple(words[start:]), ())):
                yield "ending", target
        if column.name.casefold() in self._by_name:
            same = fitting(self._by_name.get(column.name.casefold(), ()))
            if len(same) >= _MOST_OF_NAME:
                same = [each for each in same if _is_unique(*each)]
            same.sort(key=lambda each: (not _is_unique(*each), each[0].schema != table.schema))
            for target in same:
                yield "same", target


def confirm(
    guesses: Sequence[Guess], counted: Iterable[Sequence[int]], filtered: bool
) -> dict[str, tuple[Join, ...]]:
    """By column the join that the values confirm, nothing if they contradict all; columns of which
    the counts (rows of `Language.overlaps`) do not settle it are left out. `filtered`: the caller
    does not see all rows, so that a value without its key contradicts nothing."""
    agreed: dict[str, list[Guess]] = defaultdict(list)
    unsettled: set[str] = set()
    for counts in counted:
        guess = guesses[counts[0]]
        agrees = _agrees(guess, counts, filtered)
        found = agreed[guess.comparison.join.column]
        if agrees:
            found.append(guess)
        elif agrees is None:
            unsettled.add(guess.comparison.join.column)
    decided: dict[str, tuple[Join, ...]] = {}
    for name, best in agreed.items():
        for preferred in (_is_named, _is_of_table, _has_unique_key):
            if len(best) > 1:
                best = [guess for guess in best if preferred(guess)] or best
        if len(best) == 1:
            decided[name] = (msgspec.structs.replace(best[0].comparison.join, confirmed=True),)
        elif name not in unsettled:
            decided[name] = ()
    return decided


def _agrees(guess: Guess, counts: Sequence[int], filtered: bool) -> bool | None:
    """Whether the values are keys; None if the counts do not say."""
    _, rows, values, found, keys, unlike = counts
    if keys > unlike and not guess.unique:
        return False  # what repeats is no key
    if values < (1 if guess.sign == "name" else _FEWEST):
        return None
    if not found or values - found > _most_orphans(guess, values):
        seen_all = not filtered and (guess.comparison.indexed or keys < LOOKED_THROUGH)
        return False if seen_all else None
    # Two tables with the same keys: only names say which refers to the other.
    mutual = guess.sign == "same" and rows == values and unlike <= values
    return not mutual or guess.names_table


def _most_orphans(guess: Guess, values: int) -> float:
    if guess.sign == "name":
        return max(1.0, values * _ORPHANS_OF_NAMED)
    return values * _ORPHANS


def _is_named(guess: Guess) -> bool:
    return guess.sign == "name"


def _is_of_table(guess: Guess) -> bool:
    return guess.names_table


def _has_unique_key(guess: Guess) -> bool:
    return guess.unique


def _guess(sign: Sign, table: Table, column: ColumnInfo, target: _Target) -> Guess:
    other, key = target
    unique = _is_unique(other, key)
    indexed = unique or any(index.columns[:1] == (key.name,) for index in other.indexes)
    join = Join(column.name, other.schema, other.name, key.name)
    return Guess(
        Comparison(table.schema, table.name, join, indexed),
        sign,
        unique,
        _names_table(split(column.name), other),
    )


def _counts(column: ColumnInfo) -> bool:
    """Whether the name is one of an amount: `num_semesters`, `order_count`, `years_employed`, or
    the plural `semesters`. A name that ends like a key, `total_id`, is not."""
    words = parts(column.name)
    if not words or words[-1] in _KEY_ENDS or _kind(column.type) in ("text", "uuid"):
        return False
    if len(words) > 1 and (words[0] in _COUNTING or words[-1] in _COUNTED or words[1] == "of"):
        return True
    return stem(words[-1]) != words[-1]


def _linked_schemas(tables: Sequence[Table]) -> set[tuple[str, str]]:
    """The pairs of schemas, each in both orders, that a declared key or inheritance joins."""
    linked: set[tuple[str, str]] = set()
    for table in tables:
        ends = [key.schema for key in table.foreign_keys if key.schema]
        ends += [schema for schema, _ in table.reads]
        for schema in ends:
            if schema != table.schema:
                linked |= {(table.schema, schema), (schema, table.schema)}
    return linked


def _fitting(table: Table, column: ColumnInfo, targets: Iterable[_Target]) -> list[_Target]:
    kind = _kind(column.type)
    return [
        (other, key) for other, key in targets if other is not table and _kind(key.type) == kind
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


def _is_unique(table: Table, column: ColumnInfo) -> bool:
    """Whether the database keeps the column from repeating."""
    if column.key and sum(bool(each.key) for each in table.columns) == 1:
        return True
    return any(index.unique and index.columns == (column.name,) for index in table.indexes)


def _may_be_key(column: ColumnInfo, *, first: bool) -> bool:
    """Whether the name is one that keys have, and says of what. The first column of a table may be
    its key whatever it is called."""
    name = column.name.casefold()
    words = split(column.name)
    if name in _COMMON or not words:
        return False
    if first:
        return True
    if len(words) == 1:
        return len(name) <= _SHORT_KEY and name.endswith("id")
    return words[-1] in _REFERRING or words[-1] == "name"


def _names_table(words: Sequence[str], table: Table) -> bool:
    """Whether the words of a column begin with the table's name, or with its last words."""
    own = split(table.name)
    return any(list(words[: len(own) - start]) == own[start:] for start in range(len(own)))


def _kind(type_name: str) -> str:
    low = type_name.lower()
    for kind, names in _KINDS:
        if any(name in low for name in names):
            return kind
    return low
