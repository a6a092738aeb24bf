"""Writes tables the short way: `orders(id int pk, customer_id int>customers.id, note text?)`.

`pk` is the primary key, `>` a foreign key, `~>` a likely one that is not declared and that the
values confirm, `~?>` one by its name alone, `?` a column that may be null, `masked` one whose
values are hidden from the caller. After a type comes what is known of the values: `{open,paid}`
are all of them (all labels, of an enum), `{open,paid,…}` the commonest, `[2026-01-01..2026-03-31]`
the range (`[~…]` about), `like '1.50'` one of many that are alike, and `!mixed case` what is odd;
then in `/*…*/` what a user's type consists of, and the comment. Names are written as SQL
takes them, so that they can be copied into a statement, except line breaks and other control
characters in them, which are `·`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from tidegate.model.profiles import ColumnProfile, Join, TableProfile
from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.sql.quoting import shortest

_SHORT_TYPES = (
    ("integer", "int"),
    ("character varying", "varchar"),
    ("character", "char"),
    ("double precision", "double"),
    ("boolean", "bool"),
)
_MOST_COMMENT, _MOST_TYPE = 200, 300
"""Characters that are shown: a table whose comment fills the answer would hide its own columns."""
_WORDS = re.compile(r"[^\W\d]\w*(?:[ -]\w+)*")
SIGNS = (
    ("pk", re.compile(r" pk[,)?]|, pk\("), "pk primary key"),
    (">", re.compile(r"[^~?]>"), ">t.c refers to"),
    ("~>", re.compile(r"~>"), "~>t.c likely refers to"),
    ("~?>", re.compile(r"~\?>"), "~?>t.c by name only"),
    ("?", re.compile(r"\?(?!>)"), "? may be null"),
    ("{", re.compile(r" \{"), "{a,b} all values, {a,…} some"),
    ("[", re.compile(r" \["), "[a..b] range"),
    ("like", re.compile(r" like '"), "like an example"),
    ("!", re.compile(r" ![a-z]"), "! what is odd in the values"),
)
"""The signs of this notation: how each is found in a text, and what it means."""
LONGEST_LEGEND = 195
"""Bytes of a legend of all signs, with its line break."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_NO_PROFILE: TableProfile = {}
_NO_JOINS: Mapping[str, Join] = {}
_DISPLAY_WIDTH = re.compile(r"^((?:tiny|small|medium|big)?int(?:eger)?)\(\d+\)")
"""What MySQL and MariaDB write after an integer type limits nothing."""
_ZONED, _UNZONED = " with time zone", " without time zone"


def legend(text: str, explained: Collection[str] = ()) -> tuple[str, list[str]]:
    """One line on the signs in a text that are not `explained` yet, empty if there are none; and
    which these are."""
    found = [
        (sign, meaning)
        for sign, pattern, meaning in SIGNS
        if sign not in explained and pattern.search(text)
    ]
    line = "Signs: " + "; ".join([meaning for _, meaning in found]) if found else ""
    return line, [sign for sign, _ in found]


def table_name(table: Table, catalog: Catalog) -> str:
    """The table's name, with its schema unless that is the default one."""
    name = written_name(table.name, catalog.dialect)
    if table.schema == catalog.default_schema:
        return name
    return f"{written_name(table.schema, catalog.dialect)}.{name}"


def with_keys(
    table: Table,
    catalog: Catalog,
    profile: TableProfile = _NO_PROFILE,
    guessed: Mapping[str, Join] = _NO_JOINS,
    only: Collection[str] | None = None,
) -> str:
    """Types, keys, what may be null and what is known of values; comments and a row count where
    they are known. With `only`, these columns, the keys and what refers to other tables; the others
    are counted."""
    dialect = catalog.dialect
    joins = _with_values(guessed, profile, table.schema)
    targets = {key.columns[0]: key for key in table.foreign_keys if len(key.columns) == 1}
    unique = {index.columns for index in table.indexes if index.unique and not index.primary}
    key = [column.name for column in sorted(table.columns, key=_key_place) if column.key]
    parts: list[str] = []
    for column in table.columns:
        name = column.name
        if only is not None and not (
            column.key or name in only or name in targets or name in joins
        ):
            continue
        text = _column(column, len(key) == 1, (name,) in unique, dialect)
        if name in targets:
            text += f">{_target(targets[name], table, dialect)}"
        elif name in joins:
            sign = "~>" if joins[name].confirmed else "~?>"
            text += f"{sign}{_join(joins[name], table, dialect)}"
        elif column.labels:
            text += _labels(column.labels)
        else:
            text += values_of(profile.get(name))
        parts.append(text + "".join([f" /*{_one_line(note)}*/" for note in _notes(column)]))
    if len(parts) < len(table.columns):
        parts.append(f"+{len(table.columns) - len(parts)} more")
    if len(key) > 1:
        parts.append(f"pk({_names(tuple(key), dialect)})")
    parts += [
        f"unique({_names(columns, dialect)})" for columns in sorted(unique) if len(columns) > 1
    ]
    parts += [
        f"({_names(key.columns, dialect)})>{_target(key, table, dialect)}"
        for key in table.foreign_keys
        if len(key.columns) > 1
    ]
    rows = (
        f" {count_of_rows(table.approximate_rows)} rows"
        if table.approximate_rows is not None
        else ""
    )
    comment = f" -- {_one_line(table.comment)}" if table.comment else ""
    return f"{_kind(table)}{table_name(table, catalog)}({', '.join(parts)}){rows}{comment}"


def written_name(name: str, dialect: str) -> str:
    """The name as a statement takes it. One with line breaks could pass for other lines."""
    return shortest(_CONTROLS.sub("·", name), dialect)


def printable(text: str) -> str:
    """The text with `·` for line breaks and what a terminal or a reader takes for commands."""
    return "".join([char if char.isprintable() else "·" for char in text])


def _with_values(
    guessed: Mapping[str, Join], profile: TableProfile, schema: str
) -> Mapping[str, Join]:
    """The joins that names suggest, with what the values of the columns say of them. Into another
    schema names alone show none: two applications in one database use the same words."""
    joins = {name: join for name, join in guessed.items() if join.schema == schema}
    for column, known in profile.items():
        if known.joins is not None:
            joins.pop(column, None)
            joins.update({join.column: join for join in known.joins})
    return joins


def _column(column: ColumnInfo, sole_key: bool, unique: bool, dialect: str) -> str:
    words = [written_name(column.name, dialect)]
    if column.type:
        words.append(_cut(printable(short_type(column.type)), _MOST_TYPE))
    if column.key and sole_key:
        words.append("pk")
    elif unique:
        words.append("unique")
    text = " ".join(words) + ("?" if column.nullable and not column.key else "")
    return f"{text} masked:{column.masked}" if column.masked else text


def _notes(column: ColumnInfo) -> list[str]:
    """What is said of a column between /* and */: what its type consists of, and its comment."""
    made = None if column.labels else column.type_definition
    return [note for note in (made, column.comment) if note]


def _labels(labels: Sequence[str]) -> str:
    """All values that a column may hold, as far as there is room for them."""
    shown: list[str] = []
    size = 0
    for label in labels:
        size += len(label) + 1
        if size > _MOST_TYPE:
            shown.append("…")
            break
        shown.append(_value(label))
    return f" {{{','.join(shown)}}}"


def values_of(known: ColumnProfile | None) -> str:
    """What is known of a column's values, after a blank."""
    if known is None:
        return ""
    text = ""
    if known.values:
        shown = [_value(value) for value in known.values]
        text += f" {{{','.join([*shown, '…'] if known.more else shown)}}}"
    elif known.low is not None and known.high is not None:
        about = "~" if known.about else ""
        range_ = f"{known.low}..{known.high}" if known.low != known.high else known.low
        text += f" [{about}{range_}]"
    elif known.example is not None:
        text += f" like {_value(known.example, quote=True)}"
    return text + "".join([f" !{remark}" for remark in known.remarks])


def _value(value: str | int, *, quote: bool = False) -> str:
    """A value as it is; text in quotes unless it is plain words."""
    if isinstance(value, int):
        return str(value)
    if not quote and _WORDS.fullmatch(value):
        return value
    return "'" + printable(value).replace("'", "''") + "'"


def count_of_rows(rows: int) -> str:
    """About how many, in three characters or so: 950, ~12k, ~3.4M."""
    if rows < 1000:
        return f"~{rows}"
    for size, mark in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if rows >= size:
            return f"~{rows / size:.2g}{mark}" if rows < 10 * size else f"~{rows // size}{mark}"
    return f"~{rows}"


def _join(join: Join, table: Table, dialect: str) -> str:
    schema = f"{written_name(join.schema, dialect)}." if join.schema != table.schema else ""
    return f"{schema}{written_name(join.table, dialect)}.{written_name(join.key, dialect)}"


def _target(key: ForeignKey, table: Table, dialect: str) -> str:
    schema = (
        f"{written_name(key.schema, dialect)}." if key.schema and key.schema != table.schema else ""
    )
    where = f"{schema}{written_name(key.table, dialect)}"
    if len(key.references) == 1:
        return f"{where}.{written_name(key.references[0], dialect)}"
    return f"{where}({_names(key.references, dialect)})" if key.references else where


def short_type(name: str) -> str:
    """A database's type name in lower case, long standard names made short."""
    short = _DISPLAY_WIDTH.sub(r"\1", name.lower())
    if short.startswith("timestamp") and short.endswith(_ZONED):
        return "timestamptz" + short[len("timestamp") : -len(_ZONED)]
    if short.endswith(_UNZONED):
        return short[: -len(_UNZONED)]
    for long, brief in _SHORT_TYPES:
        if short.startswith(long) and not short[len(long) : len(long) + 1].isalnum():
            return brief + short[len(long) :]
    return short


def _names(names: tuple[str, ...], dialect: str) -> str:
    return ",".join([written_name(name, dialect) for name in names])


def _kind(table: Table) -> str:
    return "" if table.kind == "table" else f"{table.kind} "


def _key_place(column: ColumnInfo) -> int:
    return column.key


def _one_line(comment: str) -> str:
    start = comment[: 2 * _MOST_COMMENT]
    return _cut(printable(" ".join(start.replace("*/", "* /").split())), _MOST_COMMENT)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
