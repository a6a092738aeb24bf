"""How SQLite is searched (`ranking.Legs`): vectors exactly by sqlite-vec, words by FTS5.

FTS5 scores every match before it sorts, and a frequent word has many. So rows are found by
the query's rarer words, or by all of them together, up to a cap.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Browse
from tidegate.model.results import Page
from tidegate.model.schema import Ddl, Table
from tidegate.search.bm25 import terms
from tidegate.search.dimensions import require_dimensions
from tidegate.search.model import Metric
from tidegate.search.ranking import Search, VectorRanking, WordRanking, essential
from tidegate.search.statements import Sql, ranked, rows_of
from tidegate.search.target import VectorColumn
from tidegate.sql.quoting import identifier

MOST_ROWS = 20_000
MOST_COUNTED = 20_001

_FTS5 = re.compile(r"\bUSING\s+fts5\s*\((?P<arguments>.*)\)\s*;?\s*$", re.IGNORECASE | re.DOTALL)
_OPTION = re.compile(r"(\w+)\s*=\s*(?:'((?:[^']|'')*)'|\"([^\"]*)\"|(\w+))")
_FUNCTIONS: dict[Metric, str] = {"cosine": "vec_distance_cosine", "l2": "vec_distance_l2"}


async def by_vector(search: Search, column: VectorColumn, vector: Sequence[float]) -> VectorRanking:
    """The nearest rows; every vector is compared, as 32-bit floats.

    Raises: TidegateError EMBEDDING_DIMENSION, ENGINE_MISSING without sqlite-vec.
    """
    sql = Sql(search.target)
    name = sql.name(column.name)
    await require_dimensions(search, column, f"length({name}) / 4.0", len(vector))
    metric, notes = search.wanted.distance_metric, ()
    if metric not in _FUNCTIONS:
        notes = (f"sqlite-vec has no {metric}, so cosine was used",)
        metric = "cosine"
    packed = struct.pack(f"<{len(vector)}f", *vector)
    distance = f"{_FUNCTIONS[metric]}({name}, {sql.value(packed)})"
    where = sql.conditions(search.wanted.filter, f"length({name}) = {len(packed)}")
    text = (
        f"SELECT {sql.keys()}, {distance} AS d FROM {sql.table}{where}"
        f" ORDER BY d NULLS LAST LIMIT {search.candidates}"
    )
    try:
        page = await search.handle(sql.query(text, search.candidates), Page)
    except TidegateError as error:
        if "no such function" not in error.message:
            raise
        raise TidegateError(
            Code.ENGINE_MISSING,
            "Vectors in SQLite need the package sqlite-vec",
            hint="Ask the operator to install the extra `embeddings`.",
        ) from None
    return VectorRanking(column, ranked(page), metric, None, notes)


class _WordTable(msgspec.Struct, frozen=True):
    """An FTS5 table over the target, and the target's column that it names rows by."""

    table: Table
    row_id: str
    columns: tuple[str, ...]


async def by_words(search: Search) -> WordRanking | None:
    """The rows that hold the query's words, by an FTS5 table over them; None without one.

    Raises: TidegateError.
    """
    found = await _word_table(search)
    if found is None:
        return None
    name = found.table.name
    wanted = terms(search.wanted.query_text)
    if not wanted:
        return WordRanking([], found.columns, "fts5", name)
    counts = await _counts(search, found, wanted)
    present = {term: counts[term] for term in wanted if counts[term]}
    if not present:
        return WordRanking([], found.columns, "fts5", name)
    rare = essential(present, MOST_ROWS)
    capped = sum(present[term] for term in rare) > MOST_ROWS
    match = " OR ".join(map(_quoted, rare))
    if len(rare) < len(present):
        match += f" OR ({' AND '.join(map(_quoted, present))})"
    sql = Sql(search.target)
    place = identifier(name, "sqlite")
    inner = (
        f"SELECT rowid AS r, bm25({place}) AS s FROM {place} WHERE {place} MATCH {sql.value(match)}"
        f" LIMIT {2 * MOST_ROWS}"
    )
    whole = found.table is search.target.table
    joined = f"f.r = {sql.table}.{'rowid' if whole else sql.name(found.row_id)}"
    where = sql.conditions(search.wanted.filter)
    text = (
        f"SELECT {sql.keys()} FROM ({inner}) AS f JOIN {sql.table} ON {joined}{where}"
        f" ORDER BY f.s LIMIT {search.candidates}"
    )
    page = await search.handle(sql.query(text, search.candidates), Page)
    rows = [tuple(row) for row in rows_of(page)]
    return WordRanking(rows, found.columns, "fts5", name, capped)


async def _word_table(search: Search) -> _WordTable | None:
    """The FTS5 table with the most columns of the target's texts, or the target itself."""
    target = search.target
    best: _WordTable | None = None
    for table in (target.table, *search.catalog.tables):
        if table.kind != "virtual table":
            continue
        whole = table is target.table
        if not whole and (target.table.schema, target.table.name) not in table.reads:
            continue
        options = await _options(search, table)
        if options is None or (not whole and options.get("content") != target.table.name):
            continue
        columns = tuple([c.name for c in table.columns if c.name in target.texts])
        if columns and (best is None or len(columns) > len(best.columns)):
            best = _WordTable(table, options.get("content_rowid", "rowid"), columns)
    return best


async def _options(search: Search, table: Table) -> dict[str, str] | None:
    """The options of an FTS5 table; None if it is another kind of table."""
    try:
        made = await search.handle(Browse("ddl", table=table.name), Ddl)
    except TidegateError as error:
        if error.code in (Code.POLICY_TABLE, Code.POLICY_MASKED):
            return None
        raise
    found = _FTS5.search(made.text)
    if found is None:
        return None
    return {
        name.lower(): (single or double or bare).replace("''", "'")
        for name, single, double, bare in _OPTION.findall(found["arguments"])
    }


async def _counts(search: Search, found: _WordTable, wanted: Sequence[str]) -> dict[str, float]:
    """How many rows hold each word, counted up to a bound."""
    sql = Sql(search.target)
    place = identifier(found.table.name, "sqlite")
    counts = [
        f"(SELECT count(*) FROM (SELECT 1 FROM {place} WHERE {place} MATCH"
        f" {sql.value(_quoted(term))} LIMIT {MOST_COUNTED}))"
        for term in wanted
    ]
    page = await search.handle(sql.query(f"SELECT {', '.join(counts)}", 1), Page)
    return dict(zip(wanted, map(float, rows_of(page)[0]), strict=True))


def _quoted(term: str) -> str:
    """A word as FTS5 reads it: never as an operator."""
    escaped = term.replace('"', '""')
    return f'"{escaped}"'
