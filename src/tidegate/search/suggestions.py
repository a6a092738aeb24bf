"""What to try after a mistake: the names nearest to one that the database does not know, the cast
that a comparison needs, the values nearest to one that no row has.

Imported at the first mistake, so that a run without any does not pay for it. The statement is read
with patterns: what they miss costs a hint, and nothing runs by what they find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from heapq import nsmallest
from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.profiles import ColumnProfile, Profiles
from tidegate.model.requests import Browse, ReadProfiles
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.search.shorthand import printable, short_type, table_name, written_name
from tidegate.search.vocabulary import reader_of
from tidegate.search.words import split

_NO_TABLE = re.compile(
    r"""no such table: (?P<a>[\w.]+)|(?:relation|table) (?:with name )?["'`]?(?P<b>[\w.]+)["'`]?"""
    r""" (?:does not|doesn't) exist|table "(?P<c>[\w.]+)" not found"""
    r"""|`(?P<d>[\w.]+)` is no table that is known here""",
    re.IGNORECASE,
)
_NO_COLUMN = re.compile(
    r"""no such column: "?(?P<a>[\w.]+)|column "?(?P<b>[\w.]+)"? does not exist"""
    r"""|unknown column ['`](?P<c>[\w.]+)['`]|column "(?P<d>[\w.]+)" not found"""
    r"""|does not have a column named "(?P<e>[\w.]+)\"""",
    re.IGNORECASE,
)
_AMBIGUOUS = re.compile(
    r"""ambiguous column name:? "?(?P<a>[\w.]+)|column reference "?(?P<b>[\w.]+)"? is ambiguous"""
    r"""|column ['`](?P<c>[\w.]+)['`] in .{1,40} is ambiguous"""
    r"""|ambiguous reference to column name "?(?P<d>[\w.]+)""",
    re.IGNORECASE,
)
_CLASH = re.compile(
    r"operator does not exist: (?P<left>[\w ]+?) (?P<operator>[^\w\s]{1,3}|~~\*?) (?P<right>[\w ]+)"
    r"|cannot compare values of type (?P<a>\w+) and type (?P<b>\w+)"
    r"|(?:function |argument types ')(?P<function>\w+)\([\w ,]+\)(?: does not exist|')"
    r"|sum or avg on wrong data type for \"(?P<aggregate>\w+)",
    re.IGNORECASE,
)
_NOT_CONVERTED = re.compile(
    r"""invalid input syntax for type (?P<a>[\w ]+): "(?P<av>[^"]{0,80})\""""
    r"""|could not convert string ['"](?P<bv>[^'"]{0,80})['"] to (?P<b>[\w(),]+)"""
    r"""|data conversion error converting "(?P<cv>[^"]{0,80})\"""",
    re.IGNORECASE,
)
_DIGITS_AND_COMMAS = re.compile(r"[-+$€£ ]*\d[\d., ]*,[\d., ]*%?")
_LITERAL = "_LITERAL"
"""What DuckDB writes after the type of a constant."""
_EQUALITY = re.compile(
    # Quantifiers that give nothing back: a long text takes one step for each character at most.
    r"""(?<![\w$.])(?P<column>(?:[\w$]++\.)*+[\w$]++|"[^"]{1,80}"|`[^`]{1,80}`)\s*+"""
    r"""(?:=|\bin\s*+\(|\bi?like\b)\s*+(?P<values>'(?:[^']|'')*+'(?:\s*+,\s*+'(?:[^']|'')*+')*+)""",
    re.IGNORECASE,
)
_TEXT = re.compile(r"'((?:[^']|'')*)'")
_NAME = re.compile(r"[\w$]+")

LONGEST = 100
MOST_COMPARED = 500
"""Names that are compared: each takes some 20 µs of the event loop."""
_LONGEST_READ = 10_000
"""Characters of the longest statement that is read for hints."""
_MOST_TABLES = 8
_MOST_NOTES = 2
_MOST_NEAR = 3
_MOST_LISTED = 12
"""Columns of a table that are listed where none is like the unknown one."""


async def advise(
    error: TidegateError, caller: GateClient, source: str | None, sql: str, *, find: str
) -> TidegateError:
    """The error, with what to try for a hint where the database missed a name or a type. `find` is
    what to do about a name that is like none."""
    if error.code not in (Code.SQL_FAILED, Code.TABLE_UNKNOWN):
        return error
    hint = _cast_hint(error.message)
    if hint is None and _NOT_CONVERTED.search(error.message):
        notes = await note_near_values(sql, caller, source)
        hint = f"{notes}." if notes else conversion_hint(error.message)
    if hint is None:
        if not _names_something(error.message):
            return error
        try:
            catalog = await caller.handle(Browse("catalog"), source, Catalog)
        except TidegateError:
            return error
        other = error.hint if _AMBIGUOUS.search(error.message) else find
        hint = name_hint(error.message, sql, catalog) or other
    return error.with_hint(hint)


def hint_on(message: str, sql: str, catalog: Catalog) -> str | None:
    """What to try after a database's error message; None if it is about no name and no type."""
    return _cast_hint(message) or conversion_hint(message) or name_hint(message, sql, catalog)


def _names_something(message: str) -> bool:
    return any(pattern.search(message) for pattern in (_AMBIGUOUS, _NO_TABLE, _NO_COLUMN))


def name_hint(message: str, sql: str, catalog: Catalog) -> str | None:
    """The names nearest to the one that a message says is unknown, or the owners of one that is
    ambiguous; None if there are none."""
    table, column = _NO_TABLE.search(message), _NO_COLUMN.search(message)
    doubled = _AMBIGUOUS.search(message)
    found = doubled or table or column
    if found is None:
        return None
    name = next(group for group in found.groups() if group)
    if doubled is not None:
        owners = _owners(name, _named_in(sql, catalog), catalog)
        return f"Say which: {', '.join(owners)}." if len(owners) > 1 else None
    if table is not None:
        near = nearest_tables(name, catalog)
        return f"Nearest: {', '.join(near)}." if near else None
    own = _named_in(sql, catalog)
    near = nearest_columns(name, catalog, own)
    if near:
        return f"Nearest: {', '.join(near)}."
    return " ".join([_columns_of(each, catalog) for each in own[:_MOST_NOTES]]) or None


async def note_on_nothing(
    text: str, caller: GateClient, source: str | None, params: Sequence[Any] = ()
) -> str:
    """What may explain that a statement found nothing; empty if nothing does."""
    other = reader_of(text)
    if other is not None:
        return await other.note_unknown(text, caller, source, params)
    return await note_near_values(text, caller, source)


async def note_near_values(sql: str, caller: GateClient, source: str | None) -> str:
    """For a statement that found no row: which texts it compares with exist otherwise. Of columns
    that are hidden from the caller it says nothing, as their values were never read."""
    if len(sql) > _LONGEST_READ:
        return ""
    compared = [
        (found["column"].strip('"`'), _TEXT.findall(found["values"]))
        for found in _EQUALITY.finditer(sql)
    ]
    if not compared:
        return ""
    try:
        catalog = await caller.handle(Browse("catalog"), source, Catalog)
        tables = _named_in(sql, catalog)[:_MOST_TABLES]
        if not tables:
            return ""
        profiles = await caller.handle(ReadProfiles(tuple(tables), len(tables)), source, Profiles)
    except TidegateError:
        return ""
    notes: list[str] = []
    for column, values in compared:
        own = column.rpartition(".")[2].strip('"`').casefold()
        for table in tables:
            known = profiles.tables.get((table.schema, table.name), {})
            name = next((name for name in known if name.casefold() == own), None)
            if name is not None:
                place = f"{table_name(table, catalog)}.{written_name(name, catalog.dialect)}"
                notes += _value_notes(place, known[name], values)
    return "; ".join(notes[:_MOST_NOTES])


def _value_notes(place: str, known: ColumnProfile, wanted: Iterable[str]) -> list[str]:
    texts = [value for value in known.values if isinstance(value, str)]
    codes = [str(value) for value in known.values if not isinstance(value, str)]
    notes: list[str] = []
    for value in wanted:
        value = value.replace("''", "'")
        if codes and not value.strip().lstrip("-").isdigit():
            more = ["…"] if known.more else []
            keys = "".join(
                [
                    f", keys of {printable(f'{join.schema}.{join.table}')}"
                    for join in known.joins or ()
                ]
            )
            notes.append(f"{place} has numbers ({', '.join([*codes, *more])}){keys}")
            continue
        if value in texts or not texts or "%" in value:
            continue
        near = _alike(value, texts)
        shown = ", ".join([f"'{printable(text)}'" for text in near or texts])
        if near or not known.more:
            notes.append(f"{place} has no '{printable(value[:LONGEST])}', but {shown}")
        else:
            notes.append(f"{place} has for instance {shown}")
    return notes


def _alike(value: str, texts: Sequence[str]) -> list[str]:
    """The values that differ in case, blanks or a few letters."""
    plain = value.strip().casefold()
    same = [text for text in texts if text.strip().casefold() == plain]
    if same:
        return same
    inside = [text for text in texts if plain and plain in text.casefold()]
    return inside or get_close_matches(value[:LONGEST], texts, n=3, cutoff=0.6)


def _cast_hint(message: str) -> str | None:
    """The cast that brings both sides of a comparison to one type."""
    clash = _CLASH.search(message)
    if clash is None:
        return None
    if clash["left"] is not None:
        left, right = clash["left"], clash["right"]
        return f"Cast one side: CAST(… AS {right}) or CAST(… AS {left})."
    if clash["a"] is not None:
        left, right = (clash[name].removesuffix(_LITERAL) for name in "ab")
        return f"Cast one side: CAST(… AS {right}) or CAST(… AS {left})."
    name = clash["function"] or clash["aggregate"]
    return f"Cast the argument: {name}(CAST(… AS numeric)) takes other types."


def conversion_hint(message: str) -> str | None:
    """What to do about a text that is not what it was to be converted to."""
    found = _NOT_CONVERTED.search(message)
    if found is None:
        return None
    value = found["av"] or found["bv"] or found["cv"] or ""
    if _DIGITS_AND_COMMAS.fullmatch(value):
        return (
            f"'{value}' has a comma: before the cast make it a point (replace(…, ',', '.')) or,"
            " where it groups thousands, remove it (replace(…, ',', ''))."
        )
    kind = found["a"] or found["b"]
    kind = f"no {kind}" if kind else "not of the other side's type"
    return f"'{value}' is {kind}: send one, or cast the other side to text."


def _named_in(sql: str, catalog: Catalog) -> list[Table]:
    """The tables whose names are in the statement."""
    if len(sql) > _LONGEST_READ:
        return []
    words = {word.casefold() for word in _NAME.findall(sql)}
    named = [table for table in catalog.tables if table.name.casefold() in words]
    own = [
        table
        for table in named
        if table.schema == catalog.default_schema or table.schema.casefold() in words
    ]
    return own or named


def _columns_of(table: Table, catalog: Catalog) -> str:
    names = [written_name(each.name, catalog.dialect) for each in table.columns[:_MOST_LISTED]]
    more = ["…"] if len(table.columns) > _MOST_LISTED else []
    return f"{table_name(table, catalog)} has {', '.join([*names, *more])}."


def _owners(name: str, tables: Sequence[Table], catalog: Catalog) -> list[str]:
    wanted = name.rpartition(".")[2].casefold()
    return [
        _described(table, column, catalog)
        for table in tables
        for column in table.columns
        if column.name.casefold() == wanted
    ]


def _described(table: Table, column: ColumnInfo, catalog: Catalog) -> str:
    kind = f" {short_type(column.type)}" if column.type else ""
    return f"{table_name(table, catalog)}.{written_name(column.name, catalog.dialect)}{kind}"


def nearest_tables(name: str, catalog: Catalog) -> list[str]:
    """Up to three table names that `name` may have been meant for, nearest first, of all."""
    names = {table.name.casefold(): table_name(table, catalog) for table in catalog.tables}
    return [names[near] for near in _nearest(name, list(names))]


def nearest_columns(name: str, catalog: Catalog, first: Sequence[Table] = ()) -> list[str]:
    """Up to three `table.column type` for the columns most like `name`: those of the tables `first`
    that are written like it or have one of its words, else those of any table that are written like
    it; of other tables none where a column of that name is in many."""
    for tables in (first, catalog.tables):
        owners: dict[str, list[str]] = {}
        for table in tables:
            for column in table.columns:
                owner = _described(table, column, catalog)
                owners.setdefault(column.name.casefold(), []).append(owner)
        near = _nearest(name, list(owners))
        if not near and tables is first:
            near = _sharing_words(name, list(owners))
        found = [owners[other] for other in near if tables is first or len(owners[other]) == 1]
        if found:
            return [each[0] for each in found]
    return []


def _sharing_words(name: str, names: Sequence[str]) -> list[str]:
    """Up to three names with a word of `name`."""
    own = name.rpartition(".")[2]
    if len(own) > LONGEST:
        return []
    wanted = set(split(own))
    return [other for other in names if wanted.intersection(split(other))][:_MOST_NEAR]


def _nearest(name: str, names: list[str]) -> list[str]:
    wanted = name.rpartition(".")[2].casefold()
    if len(wanted) > LONGEST:
        return []
    if wanted in names:
        return [wanted]
    return get_close_matches(wanted, likeliest(wanted, names), n=3, cutoff=0.7)


def likeliest(wanted: str, names: Sequence[str]) -> Sequence[str]:
    """The names to compare letter by letter: all, or of very many those that share most pairs of
    letters with the one that was wanted, wherever they are in the list."""
    if len(names) <= MOST_COMPARED:
        return names
    pairs = {wanted[at : at + 2] for at in range(max(1, len(wanted) - 1))}
    length = len(wanted)
    scored: list[tuple[int, int]] = []
    for place, name in enumerate(names):
        if 2 * abs(len(name) - length) <= length + 2:
            shared = sum([pair in name for pair in pairs])
            if shared:
                scored.append((-shared, place))
    best = nsmallest(MOST_COMPARED, scored)
    return [names[place] for _, place in best]
