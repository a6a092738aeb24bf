"""Searches words where no index has them: rows with any of the words, up to a cap of rows.

The database searches for the words in the texts of the first rows of the table and orders what it
finds by how much the words tell; the few best are then scored by `bm25.py`. Works on every dialect
with LIKE. What lies beyond the cap is not read, and the result reports it.
"""

from __future__ import annotations

from tidegate.judging_thread import compute_on_thread
from tidegate.model.results import Page
from tidegate.search.bm25 import idf, score, terms
from tidegate.search.ranking import Search, WordRanking
from tidegate.search.statements import Sql, rows_of
from tidegate.sql.dialects import find

MOST_ROWS = 200_000
"""Rows of the table whose texts are read."""
SCORED = 200
MOST_WORDS = 12
"""Words of a query that are searched for: each costs a search of every text."""
_TEXT = 5_000
_SHORT = 10_000
"""Characters of all texts that are scored on the event loop."""


async def by_scan(search: Search, columns: tuple[str, ...]) -> WordRanking:
    """The rows whose `columns` hold the query's words. Raises: TidegateError."""
    wanted = sorted(terms(search.wanted.query_text), key=lambda term: (-len(term), term))
    wanted = wanted[:MOST_WORDS]
    if not wanted or not columns:
        return WordRanking([], columns, "scan", None)
    counts, looked = await _counts(search, columns, wanted)
    capped = looked >= MOST_ROWS
    present = [term for term in wanted if counts[term]]
    if not present:
        return WordRanking([], columns, "scan", None, capped, counts, looked)
    sql = Sql(search.target)
    worth = " + ".join(
        f"CASE WHEN {_holds(sql, term)} THEN {idf(counts[term], looked):.6f} ELSE 0 END"
        for term in present
    )
    texts = [f"c.t{at}" for at in range(len(columns))]
    inner = _inner(search, sql, columns)
    scored = f"SELECT {sql.key_names('c.')}, {', '.join(texts)}, {worth} AS r FROM ({inner}) AS c"
    text = (
        f"SELECT {sql.key_names('s.')}, {', '.join(f's.t{at}' for at in range(len(columns)))}"
        f" FROM ({scored}) AS s WHERE s.r > 0 ORDER BY s.r DESC LIMIT {SCORED}"
    )
    rows = rows_of(await search.handle(sql.query(text, SCORED), Page))
    keys = [tuple(row[: -len(columns)]) for row in rows]
    whole = [" ".join(text or "" for text in row[-len(columns) :]) for row in rows]
    if sum(map(len, whole)) <= _SHORT:
        scores = score(whole, present, counts, looked)
    else:
        scores = await compute_on_thread(score, whole, present, counts, looked)
    order = sorted(range(len(rows)), key=lambda at: -scores[at])
    ranked = [keys[at] for at in order][: search.candidates]
    return WordRanking(ranked, columns, "scan", None, capped, counts, looked)


async def _counts(
    search: Search, columns: tuple[str, ...], wanted: list[str]
) -> tuple[dict[str, float], float]:
    """How many of the rows hold each word, and how many rows there are to read."""
    sql = Sql(search.target)
    sums = [f"sum(CASE WHEN {_holds(sql, term)} THEN 1 ELSE 0 END)" for term in wanted]
    text = f"SELECT count(*), {', '.join(sums)} FROM ({_inner(search, sql, columns)}) AS c"
    page = await search.handle(sql.query(text, 1), Page)
    looked, *found = rows_of(page)[0]
    return dict(zip(wanted, [float(each or 0) for each in found], strict=True)), float(looked)


def _inner(search: Search, sql: Sql, columns: tuple[str, ...]) -> str:
    """The rows to read: their keys, their texts, and all of those in lower case."""
    where = sql.conditions(search.wanted.filter)
    beginnings = [find(sql.dialect).beginning(sql.name(column), _TEXT) for column in columns]
    texts = [f"{beginning} AS t{at}" for at, beginning in enumerate(beginnings)]
    joined = " || ' ' || ".join([f"coalesce({beginning}, '')" for beginning in beginnings])
    return (
        f"SELECT {sql.keys()}, {', '.join(texts)}, lower({joined}) AS t"
        f" FROM {sql.table}{where} LIMIT {MOST_ROWS}"
    )


def _holds(sql: Sql, term: str) -> str:
    # A word holds neither of LIKE's signs: it is made of letters and digits.
    return f"c.t LIKE {sql.value(f'%{term}%')}"
