"""Attributes of a Datalog database for callers who write queries: a namespace on one line, and the
names nearest to one that is not there, which a query finds nothing by.

`person(:person/name string unique, :person/likes string many {maps,tea}, :person/boss ref>person)`:
attributes are written whole, as a query names them. Every attribute may be absent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from tidegate.errors import TidegateError
from tidegate.model.gate_client import GateClient
from tidegate.model.profiles import TableProfile
from tidegate.model.requests import Browse
from tidegate.model.schema import Catalog, ColumnInfo, Table
from tidegate.products.datalog.language.json_values import decode
from tidegate.products.datalog.language.query import judge_query
from tidegate.products.datalog.language.reader import read
from tidegate.search.shorthand import count_of_rows, printable, values_of

DIALECT = "datalog"
_MOST_NOTES = 2
_MOST_NEAR = 3
_LONGEST = 100
_OWN = ("db/", "db.")
"""How the names of attributes begin that every database has."""
_SHOWN = {"many": "many", "full text": "fulltext", "component": "component"}


def table_line(table: Table, profile: TableProfile, only: Collection[str] | None = None) -> str:
    """The attributes of a namespace with what is known of each; with `only`, these and references,
    and the others are counted."""
    targets = {key.columns[0]: key.table for key in table.foreign_keys}
    parts: list[str] = []
    for column in table.columns:
        if only is not None and column.name not in only and column.name not in targets:
            continue
        text = _attribute(column)
        if column.name in targets:
            text += f">{printable(targets[column.name])}"
        parts.append(text + values_of(profile.get(column.name)))
    if len(parts) < len(table.columns):
        parts.append(f"+{len(table.columns) - len(parts)} more")
    rows = table.approximate_rows
    count = "" if rows is None else f" {count_of_rows(rows)} entities"
    return f"{printable(table.name)}({', '.join(parts)}){count}"


def _attribute(column: ColumnInfo) -> str:
    words = [printable(column.name), column.type]
    for note in (column.extra or "").split(", "):
        if note in _SHOWN:
            words.append(_SHOWN[note])
        elif note.startswith("unique"):
            words.append("unique")
    if column.masked:
        words.append(f"masked:{column.masked}")
    return " ".join(words)


def heading(tables: Collection[Table]) -> str:
    """How these attributes are asked for."""
    for table in tables:
        for column in table.columns:
            if not column.masked:
                return f"Datalog: query [:find ?e ?v :where [?e {printable(column.name)} ?v]]"
    return ""


def may_read(text: str) -> bool:
    """Whether a text may be a query of Datalog: a vector or a map."""
    return text.lstrip()[:1] in ("[", "{")


def shows_nulls(text: str) -> bool:
    """Whether a query has a pull, which shows nulls for an attribute that is not there."""
    return "(pull" in text


async def note_unknown(
    text: str, caller: GateClient, source: str | None, inputs: Sequence[Any] = ()
) -> str:
    """Which attributes of a query the database does not have, with the names nearest to them. Only
    attributes that the caller may see are named; empty if all are there."""
    try:
        placed = judge_query(read(text), [decode(each) for each in inputs]).placed
        catalog = await caller.handle(Browse("catalog"), source, Catalog)
    except TidegateError:
        return ""
    if catalog.dialect != DIALECT:
        return ""
    return unknown_attributes(placed, catalog)


def unknown_attributes(named: Collection[str], catalog: Catalog) -> str:
    """Those of the names (without their colon) that are no attributes, each with the nearest."""
    known = [column.name.removeprefix(":") for table in catalog.tables for column in table.columns]
    unknown = sorted(set(named).difference(known))
    notes: list[str] = []
    for name in unknown:
        if name.startswith(_OWN):
            continue
        near = ", ".join([f":{printable(each)}" for each in nearest(name, known)])
        nearby = f" (nearest: {near})" if near else ""
        notes.append(f"no entity has :{printable(name[:_LONGEST])}{nearby}")
    more = len(notes) - _MOST_NOTES
    return "; ".join([*notes[:_MOST_NOTES], *([f"and {more} more"] if more > 0 else [])])


def nearest(name: str, known: list[str]) -> list[str]:
    """Up to three attributes that `name` may have been meant for: with the same name in another
    namespace, then with a name written alike, in its own namespace first."""
    if len(name) > _LONGEST:
        return []
    space, _, last = name.casefold().rpartition("/")
    from tidegate.search.suggestions import likeliest

    owners: dict[str, list[str]] = {}
    for each in sorted(
        likeliest(name, known), key=lambda each: each.casefold().rpartition("/")[0] != space
    ):
        owners.setdefault(each.casefold().rpartition("/")[2], []).append(each)
    alike = get_close_matches(last, owners, n=_MOST_NEAR, cutoff=0.7)
    return [each for near in alike for each in owners[near]][:_MOST_NEAR]
