"""Searches words in PostgreSQL: by a BM25 index, or by a tsvector with a GIN index.

PostgreSQL's own ranking knows no document frequencies and ranks every match. So rows are found by
the rarer words first, up to a cap. Those that hold the most telling words are then scored as BM25
does, with document frequencies from the statistics or, for words that those do not list, from
bounded counts by the index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Page
from tidegate.model.schema import Index
from tidegate.search.bm25 import K1, MOST_TERMS, B, idf
from tidegate.search.ranking import Search, WordRanking, essential
from tidegate.search.statements import Sql, rows_of
from tidegate.search.target import Target

MOST_ROWS = 20_000
"""Rows that hold a word and are looked at."""
MOST_PARSED = 2_000
"""The same where their texts must be parsed again, because no column holds their words."""
MOST_COUNTED = 20_001
SCORED = 500

_CONFIG = re.compile(r"to_tsvector\('((?:[^']|'')+)'(?:::regconfig)?\s*,")
_EXPRESSION = re.compile(
    r"\(*to_tsvector\('(?P<config>(?:[^']|'')+)'(?:::regconfig)?,\s*\(*\"?(?P<column>[^\"():,]+)\"?"
    r"\)*(?:::text)?\)+"
)
_BM25 = re.compile(r"text_bm25_ops|varchar_bm25_ops|bpchar_bm25_ops")
_REFUSED = (Code.POLICY_MASKED, Code.POLICY_DENIED, Code.POLICY_TABLE, Code.SQL_FAILED)


class WordIndex(msgspec.Struct, frozen=True):
    """Where the words of texts are kept. `term` is the tsvector, `config` the name of its text
    search configuration, None for the database's default. `statistics` is the column of pg_stats
    that tells how often words occur."""

    index: Index
    term: str
    config: str | None
    columns: tuple[str, ...]
    statistics: str | None
    most_rows: int


async def by_words(search: Search) -> WordRanking | None:
    """The rows that hold the query's words; None if the table has no index for words.

    Raises: TidegateError.
    """
    for index in search.target.indexes:
        if index.kind == "bm25" and index.operators and _BM25.fullmatch(index.operators[0]):
            column = index.columns[0]
            if column in search.target.texts:
                return await _by_bm25(search, index, column)
    found = word_index_of(search.target, Sql(search.target))
    return None if found is None else await _by_tsvector(search, found)


async def _by_bm25(search: Search, index: Index, column: str) -> WordRanking:
    """By an index of the extension pg_textsearch, whose scores are negative; 0 is no match."""
    sql = Sql(search.target)
    name = sql.name(index.name)
    place = f"{sql.name(search.target.table.schema)}.{name}"
    score = (
        f"{sql.name(column)} <@> to_bm25query({sql.value(search.wanted.query_text)},"
        f" {sql.value(place)})"
    )
    where = sql.conditions(search.wanted.filter)
    inner = (
        f"SELECT {sql.keys()}, {score} AS s FROM {sql.table}{where}"
        f" ORDER BY {score} LIMIT {search.candidates}"
    )
    text = f"SELECT {sql.key_names('c.')} FROM ({inner}) AS c WHERE c.s < 0 ORDER BY c.s"
    page = await search.handle(sql.query(text, search.candidates), Page)
    rows = [tuple(row) for row in rows_of(page)]
    return WordRanking(rows, (column,), "bm25:pg_textsearch", index.name)


def word_index_of(target: Target, sql: Sql) -> WordIndex | None:
    """The best GIN index over words of the caller's columns: one of a stored tsvector first."""
    columns = {column.name: column for column in target.table.columns}
    masked = any(column.masked is not None for column in columns.values())
    parsed: WordIndex | None = None
    for index in target.indexes:
        if index.kind not in ("gin", "rum") or len(index.columns) != 1:
            continue
        name = index.columns[0]
        column = columns.get(name)
        if column is not None and column.type == "tsvector":
            made = column.default or ""
            generated = (column.extra or "").startswith("generated") and bool(made)
            sources = tuple(text for text in target.texts if generated and _names(made, text))
            hidden = [each.name for each in columns.values() if each.masked is not None]
            if masked and (not generated or any(_names(made, each) for each in hidden)):
                continue  # it may hold words of a column that is hidden
            config = _CONFIG.search(made)
            return WordIndex(
                *(index, sql.name(name), config[1].replace("''", "'") if config else None),
                *(sources or target.texts, name, MOST_ROWS),
            )
        match = _EXPRESSION.fullmatch(name)
        if match is not None and match["column"] in target.texts and parsed is None:
            config = match["config"].replace("''", "'")
            quoted = config.replace("'", "''")
            term = f"to_tsvector('{quoted}'::regconfig, {sql.name(match['column'])})"
            parsed = WordIndex(index, term, config, (match["column"],), None, MOST_PARSED)
    return parsed


def _names(expression: str, column: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(column)}(?![\w$])", expression) is not None


async def _by_tsvector(search: Search, found: WordIndex) -> WordRanking:
    terms = await _terms(search, found)
    method = "tsvector+df"
    if not terms:
        return WordRanking([], found.columns, method, found.index.name)
    counts, source = await _frequencies(search, found, terms)
    total = _total(search.target, counts)
    weights = {term: idf(counts[term], total) for term in terms}
    rare = essential(counts, found.most_rows)
    capped = sum(counts[term] for term in rare) > found.most_rows
    rows = await _best(search, found, weights, rare)
    return WordRanking(rows, found.columns, f"{method}:{source}", found.index.name, capped)


async def _terms(search: Search, found: WordIndex) -> list[str]:
    """The words of the query as the index has them."""
    sql = Sql(search.target)
    config = "" if found.config is None else f"{sql.value(found.config)}::regconfig, "
    words = f"to_tsvector({config}{sql.value(search.wanted.query_text)}::text)"
    text = f"SELECT u.lexeme FROM unnest({words}) AS u LIMIT {MOST_TERMS}"
    page = await search.handle(sql.query(text, MOST_TERMS), Page)
    return [str(row[0]) for row in rows_of(page)]


async def _frequencies(
    search: Search, found: WordIndex, terms: Sequence[str]
) -> tuple[dict[str, float], str]:
    """How many rows hold each word, and what says so. Where a filter or a policy hides rows, all
    are counted by the index, as the caller."""
    known: dict[str, float] = {}
    rows = search.target.table.approximate_rows
    if found.statistics is not None and rows:
        known = {
            term: share * rows for term, share in (await _statistics(search, found, terms)).items()
        }
    unknown = [term for term in terms if term not in known]
    if not unknown:
        return known, "statistics"
    sql = Sql(search.target)
    counts = [
        f"(SELECT count(*) FROM (SELECT 1 FROM {sql.table} WHERE {found.term} @@"
        f" {sql.value(_quoted(term))}::tsquery LIMIT {MOST_COUNTED}) AS c)"
        for term in unknown
    ]
    page = await search.handle(sql.query(f"SELECT {', '.join(counts)}", 1), Page)
    known |= zip(unknown, map(float, rows_of(page)[0]), strict=True)
    return known, "statistics+counts" if len(unknown) < len(terms) else "counts"


async def _statistics(
    search: Search, found: WordIndex, terms: Sequence[str]
) -> Mapping[str, float]:
    """The shares of rows that hold the most common words; nothing if the caller may not see
    them."""
    sql = Sql(search.target)
    table = search.target.table
    names = [sql.value(name) for name in (table.schema, table.name, found.statistics)]
    text = (
        "SELECT e.term, e.share FROM pg_catalog.pg_stats AS s CROSS JOIN LATERAL"
        " unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS e(term, share)"
        f" WHERE s.schemaname = {names[0]} AND s.tablename = {names[1]} AND s.attname = {names[2]}"
        f" AND e.term = ANY({sql.value(list(terms))})"
    )
    try:
        page = await search.handle(sql.query(text, MOST_TERMS), Page)
    except TidegateError as error:
        if error.code in _REFUSED:
            return {}
        raise
    return {str(term): float(share) for term, share in rows_of(page) if share is not None}


def _total(target: Target, counts: Mapping[str, float]) -> float:
    """How many rows the table has, about; where that is hidden, more than hold any word."""
    return max(float(target.table.approximate_rows or 0), 2 * max(counts.values(), default=0), 1)


async def _best(
    search: Search, found: WordIndex, weights: Mapping[str, float], rare: Sequence[str]
) -> list[tuple[object, ...]]:
    """The best rows by BM25: found by the rare words or by all words, roughly ordered by the words
    that they hold, then scored."""
    sql = Sql(search.target)
    terms = list(weights)
    signs = {term: sql.value(_quoted(term)) for term in terms}
    shares = {term: sql.value(weight) for term, weight in weights.items()}
    term = found.term

    filters = sql.conditions(search.wanted.filter)  # once: each parameter must be used

    def matching(*conditions: str) -> str:
        where = f"{filters or ' WHERE true'} AND {' AND '.join(conditions)}"
        return f"(SELECT {sql.keys()}, {term} AS v FROM {sql.table}{where} LIMIT {found.most_rows})"

    with_rare = f"{term} @@ {sql.value(' | '.join(map(_quoted, rare)))}::tsquery"
    parts = [matching(with_rare)]
    if len(rare) < len(terms):
        # Rows with all words are taken apart, so that the cap cuts only those with some.
        with_all = f"{term} @@ {sql.value(' & '.join(map(_quoted, terms)))}::tsquery"
        parts = [matching(with_all), matching(with_rare, f"NOT {with_all}")]
    rough = " + ".join(
        f"CASE WHEN f.v @@ {signs[each]}::tsquery THEN {shares[each]}::float8 ELSE 0 END"
        for each in terms
    )
    keys = sql.key_names("f.")
    words, idfs = sql.value(terms), sql.value(list(weights.values()))
    roughly = (
        f"SELECT {keys}, f.v, length(f.v)::float8 AS n, ({rough}) AS r"
        f" FROM ({' UNION ALL '.join(parts)}) AS f ORDER BY r DESC LIMIT {SCORED}"
    )
    measured = f"SELECT p.*, greatest(avg(p.n) OVER (), 1) AS a FROM ({roughly}) AS p"
    text = (
        f"SELECT {sql.key_names('m.')} FROM ({measured}) AS m CROSS JOIN LATERAL"
        f" (SELECT sum(w.idf * u.tf * {K1 + 1} / (u.tf + {K1} * ({1 - B} + {B} * m.n / m.a))) AS s"
        f" FROM unnest({words}::text[], {idfs}::float8[]) AS w(term, idf)"
        " JOIN (SELECT x.lexeme, coalesce(cardinality(x.positions), 1)::float8 AS tf"
        " FROM unnest(m.v) AS x(lexeme, positions, weights)) AS u ON u.lexeme = w.term) AS b"
        f" ORDER BY b.s DESC NULLS LAST, {sql.key_names('m.')} LIMIT {search.candidates}"
    )
    page = await search.handle(sql.query(text, search.candidates), Page)
    return [tuple(row) for row in rows_of(page)]


def _quoted(term: str) -> str:
    """A word as a tsquery reads it, whatever it holds."""
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
