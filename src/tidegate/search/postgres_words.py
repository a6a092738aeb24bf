"""Searches words in PostgreSQL: by a BM25 index, or by a tsvector with a GIN index.

PostgreSQL's own ranking knows no document frequencies and ranks every match. So rows with several
of the words and rows with the rarer ones are found by the index, up to a cap. Those that hold the
most telling words are then scored as BM25 does, with document frequencies from the statistics or,
for words that those do not list, from the rows that were found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Page
from tidegate.model.schema import Index
from tidegate.search.bm25 import K1, MOST_TERMS, B, idf
from tidegate.search.ranking import Search, WordRanking, essential
from tidegate.search.statements import Sql, rows_of
from tidegate.search.target import Target, is_textsearch

MOST_ROWS = 4_000
"""Rows that hold all words, two of them, or a rare one, and are read: so many of each."""
MOST_PARSED = 1_000
"""The same where their texts must be parsed again, because no column holds their words."""
MOST_PAIRED = 8
"""Words of which each pair is searched for, the rarest ones."""
MOST_COUNTED = 20_001
SCORED = 200

_CONFIG = re.compile(r"to_tsvector\('((?:[^']|'')+)'(?:::regconfig)?\s*,")
_EXPRESSION = re.compile(
    r"\(*to_tsvector\('(?P<config>(?:[^']|'')+)'(?:::regconfig)?,\s*\(*\"?(?P<column>[^\"():,]+)\"?"
    r"\)*(?:::text)?\)+"
)
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
        if is_textsearch(index):
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


class _Terms(NamedTuple):
    """The words of a query with about how many rows hold each. For those of `bounded` that is the
    most that it can be, and the statement that ranks the rows counts them."""

    counts: Mapping[str, float]
    bounded: frozenset[str]
    source: str


async def _by_tsvector(search: Search, found: WordIndex) -> WordRanking:
    terms = await _terms(search, found)
    method = "tsvector+df"
    if not terms.counts:
        return WordRanking([], found.columns, method, found.index.name)
    rare = essential(terms.counts, found.most_rows)
    capped = sum(terms.counts[term] for term in rare) > found.most_rows
    rows = await _best(search, found, terms, rare)
    return WordRanking(rows, found.columns, f"{method}:{terms.source}", found.index.name, capped)


async def _terms(search: Search, found: WordIndex) -> _Terms:
    """The words of the query as the index has them. Where the statistics do not list a word, no
    more rows hold it than the rarest that they list: all of these rows are read if they are
    few, else a count by the index comes first. So it does under a filter, because a count of
    the rows that meet it would make such words look rarer than the others."""
    known, least = await _statistics(search, found)
    rows = search.target.table.approximate_rows or 0
    counts = {term: share * rows for term, share in known.items() if share is not None and rows}
    unknown = [term for term in known if term not in counts]
    if not unknown:
        return _Terms(counts, frozenset(), "statistics")
    source = "statistics+counts" if counts else "counts"
    most = max(1.0, (least or 1.0) * rows)
    if rows and not search.wanted.filter and most * len(unknown) <= found.most_rows:
        return _Terms(counts | dict.fromkeys(unknown, most), frozenset(unknown), source)
    counts |= await _counted(search, found, unknown)
    return _Terms(counts, frozenset(), source)


async def _statistics(
    search: Search, found: WordIndex
) -> tuple[Mapping[str, float | None], float | None]:
    """The words of the query, the share of rows that holds each of them, None if the statistics do
    not list it, and the share of the rarest word that they list. None of the shares is there if the
    caller may not see them."""
    sql = Sql(search.target)
    words = _words_of(search, found, sql)
    if found.statistics is not None:
        table = search.target.table
        names = [sql.value(name) for name in (table.schema, table.name, found.statistics)]
        text = (
            "WITH s AS MATERIALIZED (SELECT most_common_elems::text::text[] AS terms,"
            " most_common_elem_freqs AS shares FROM pg_catalog.pg_stats"
            f" WHERE schemaname = {names[0]} AND tablename = {names[1]} AND attname = {names[2]})"
            " SELECT u.lexeme, s.shares[array_position(s.terms, u.lexeme)],"
            f" s.shares[cardinality(s.terms) + 1] FROM {words} LEFT JOIN s ON true"
            f" LIMIT {MOST_TERMS}"
        )
        try:
            rows = rows_of(await search.handle(sql.query(text, MOST_TERMS), Page))
        except TidegateError as error:
            if error.code not in _REFUSED:
                raise
            sql = Sql(search.target)
            words = _words_of(search, found, sql)
        else:
            return {str(term): share for term, share, _ in rows}, rows[0][2] if rows else None
    text = f"SELECT u.lexeme FROM {words} LIMIT {MOST_TERMS}"
    rows = rows_of(await search.handle(sql.query(text, MOST_TERMS), Page))
    return {str(row[0]): None for row in rows}, None


def _words_of(search: Search, found: WordIndex, sql: Sql) -> str:
    """The words of the query as rows `u`."""
    config = "" if found.config is None else f"{sql.value(found.config)}::regconfig, "
    return f"unnest(to_tsvector({config}{sql.value(search.wanted.query_text)}::text)) AS u"


async def _counted(search: Search, found: WordIndex, terms: Sequence[str]) -> dict[str, float]:
    """How many rows hold each word, counted by the index as the caller, up to `MOST_COUNTED`."""
    sql = Sql(search.target)
    counts = [
        f"(SELECT count(*) FROM (SELECT 1 FROM {sql.table} WHERE {found.term} @@"
        f" {sql.value(_quoted(term))}::tsquery LIMIT {MOST_COUNTED}) AS c)"
        for term in terms
    ]
    page = await search.handle(sql.query(f"SELECT {', '.join(counts)}", 1), Page)
    return dict(zip(terms, map(float, rows_of(page)[0]), strict=True))


def _total(target: Target, counts: Mapping[str, float]) -> float:
    """How many rows the table has, about; where that is hidden, more than hold any word."""
    return max(float(target.table.approximate_rows or 0), 2 * max(counts.values(), default=0), 1)


async def _best(
    search: Search, found: WordIndex, terms: _Terms, rare: Sequence[str]
) -> list[tuple[object, ...]]:
    """The best rows by BM25: found by their words, ordered as if each occurred there once, and the
    best of them scored by how often it does. One statement, which reads each row once."""
    sql = Sql(search.target)
    words = list(terms.counts)
    signs = [f"{sql.value(_quoted(word))}::tsquery" for word in words]
    holds = ", ".join(f"f.v @@ {sign} AS h{at}" for at, sign in enumerate(signs))
    keys = sql.key_names("f.")
    matched = (
        f"SELECT {keys}, f.v, length(f.v)::float8 AS n, {holds}"
        f" FROM ({' UNION ALL '.join(_tiers(search, found, terms, rare, sql))}) AS f"
    )
    weights = ", ".join(f"{_weight(sql, terms, at)} AS w{at}" for at in range(len(words)))
    worth = " + ".join(f"CASE WHEN m.h{at} THEN c.w{at} ELSE 0 END" for at in range(len(words)))
    scored = max(SCORED, 2 * search.candidates)
    text = (
        f"WITH m AS MATERIALIZED ({matched}),"
        f" c AS MATERIALIZED (SELECT greatest(avg(n), 1)::float8 AS a, {weights} FROM m),"
        f" p AS MATERIALIZED (SELECT {sql.key_names('m.')}, m.v, {B} * m.n / c.a AS l"
        f" FROM m CROSS JOIN c ORDER BY ({worth}) / (1 + {K1} * ({1 - B} + {B} * m.n / c.a)) DESC"
        f" LIMIT {scored})"
        f" SELECT {sql.key_names('p.')} FROM p CROSS JOIN c CROSS JOIN LATERAL"
        f" (SELECT sum(w.idf * u.tf * {K1 + 1} / (u.tf + {K1} * ({1 - B} + p.l))) AS s"
        f" FROM unnest({sql.value(words)}::text[],"
        f" ARRAY[{', '.join(f'c.w{at}' for at in range(len(words)))}]) AS w(term, idf)"
        " JOIN (SELECT x.lexeme, coalesce(cardinality(x.positions), 1)::float8 AS tf"
        " FROM unnest(p.v) AS x(lexeme, positions, weights)) AS u ON u.lexeme = w.term) AS b"
        f" ORDER BY b.s DESC NULLS LAST, {sql.key_names('p.')} LIMIT {search.candidates}"
    )
    page = await search.handle(sql.query(text, search.candidates), Page)
    return [tuple(row) for row in rows_of(page)]


def _weight(sql: Sql, terms: _Terms, at: int) -> str:
    """The idf of the word at a place, as a column over all rows that were found."""
    word = list(terms.counts)[at]
    total = _total(sql.target, terms.counts)
    if word not in terms.bounded:
        return f"{sql.value(idf(terms.counts[word], total))}::float8"
    count = f"least(count(*) FILTER (WHERE h{at}), {total:.0f})"
    return f"ln(({total:.0f} - {count} + 0.5) / ({count} + 0.5) + 1)::float8"


def _tiers(
    search: Search, found: WordIndex, terms: _Terms, rare: Sequence[str], sql: Sql
) -> list[str]:
    """The rows to read: those with all words, those with two of them, those with a rare one,
    each up to the cap. So the cap leaves out rows that hold little of the query."""
    counts = terms.counts
    words = sorted(counts, key=lambda word: (counts[word], word))
    wanted: list[str] = []
    if len(rare) < len(words):
        wanted.append(" & ".join(map(_quoted, words)))
        if len(words) > 2:
            pairs = combinations(map(_quoted, words[:MOST_PAIRED]), 2)
            wanted.append(" | ".join(f"({one} & {other})" for one, other in pairs))
    wanted.append(" | ".join(map(_quoted, rare)))
    # Once: each parameter must be used, and each is one of all parts.
    filters = sql.conditions(search.wanted.filter)
    parts: list[str] = []
    before = ""
    for each in wanted:
        query = f"{found.term} @@ {sql.value(each)}::tsquery"
        where = f"{filters or ' WHERE true'} AND {query}{before}"
        before += f" AND NOT {query}"
        parts.append(
            f"(SELECT {sql.keys()}, {found.term} AS v FROM {sql.table}{where}"
            f" LIMIT {found.most_rows})"
        )
    return parts


def _quoted(term: str) -> str:
    """A word as a tsquery reads it, whatever it holds."""
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
