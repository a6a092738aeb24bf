"""Finds the rows of a table that are most like a text: by vectors, by words, or by both.

Every statement goes through the gate as the caller, so masks and row filters hold for all of them.
What runs here grows with the number of candidates, never with the table: the database ranks, and
some hundred rows at most are read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, cast

import msgspec
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.judging_thread import compute_on_thread
from tidegate.model.requests import Browse
from tidegate.model.results import Page
from tidegate.model.schema import Catalog
from tidegate.search.bm25 import score, terms, words
from tidegate.search.chunks import Chunk, cut
from tidegate.search.model import (
    ChunkHit,
    RowHit,
    SearchResult,
    SimilaritySearch,
    VectorLeg,
    WordLeg,
)
from tidegate.search.privileges import NOT_PERMITTED, readable_catalog
from tidegate.search.ranking import Handle, Legs, Rankings, Search, VectorRanking, WordRanking
from tidegate.search.requests import Embeddings, EmbedTexts
from tidegate.search.selection import choose, fuse, places
from tidegate.search.statements import MOST_TEXT, Key, Sql, rows_of
from tidegate.search.target import Target, VectorColumn, find_table, target_of
from tidegate.search.word_scan import by_scan
from tidegate.sql.dialects import find

__all__ = ["Handle", "search"]

CANDIDATES_PER_ROW = 10
LEAST_CANDIDATES, MOST_CANDIDATES = 100, 1_000
WEIGHTS = {"equal": 1.0, "less": 0.1, "off": 0.0}
"""The weight of the words' ranking in the fusion; those of the vector columns add up to 1."""
_NAMING_SENTENCE = 0.25
"""The same for a sentence that names something by its capitals alone: measured by
`./dev bench ranking`, as is `less`."""
_SENTENCE = 5
"""Words from which on a query is a sentence."""
_NAMING = re.compile(r"[\"`«»“”„]|(?<!\w)'|\d|\w[_@#/.]\w")
"""What says that a query names something, beside capitals: quotes, digits, signs in a word."""
MOST_TEXT_COLUMNS = 8
MOST_CUT, LEAST_TEXT = 1_000_000, 1_000
"""Characters of all the rows' texts that are cut into chunks, and of each text at least."""
MOST_COMPARED, MOST_CHOSEN = 500, 250
"""Chunks that are compared with each other, the most relevant ones, and those that are chosen."""
_SHORT = 10_000
"""Characters of all texts that are cut and compared on the event loop."""
_NO_VECTORS = (Code.EMBEDDING_MISSING,)
_HIDDEN = (Code.POLICY_MASKED, Code.POLICY_TABLE)


async def search(handle: Handle, wanted: SimilaritySearch) -> SearchResult:
    """The rows most like `wanted.query_text`, and the chunks of their texts that fit best.

    Raises: TidegateError TABLE_UNKNOWN; ARGUMENT_INVALID for a condition on a column that is not
    there; UNSUPPORTED for a table without texts and vectors, and for a database that cannot be
    searched, or a table without a key of which something is hidden; EMBEDDING_DIMENSION; what
    the gate and the provider of embeddings raise.
    """
    if not wanted.query_text.strip():
        raise TidegateError(Code.ARGUMENT_INVALID, "`query_text` holds no text")
    catalog = await handle(Browse("catalog"), Catalog)
    legs = _legs(catalog.dialect)
    target = target_of(catalog, find_table(catalog, wanted.table_name))
    Sql(target).conditions(wanted.filter)  # a condition that cannot be is an error at once
    try:
        return await _search(handle, catalog, target, legs, wanted)
    except TidegateError as error:
        if error.details.get("sqlstate") == NOT_PERMITTED:
            seen = await readable_catalog(handle, catalog)
            if seen is not catalog:
                own = target_of(seen, find_table(seen, wanted.table_name))
                return await _search(handle, seen, own, legs, wanted)
        row_id = find(catalog.dialect).row_id
        if target.key or not row_id or error.code is not Code.SQL_FAILED:
            raise
        if row_id not in error.message:
            raise
        # Masks and row filters put a query in the table's place, which has no row ids.
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The rows of `{target.table.name}` have no key, and columns or rows of it are hidden"
            " from this caller: nothing is left that names a row",
            hint="Ask the operator for a primary key, or a unique index on columns that are not"
            " null and not masked.",
        ) from None


async def _search(
    handle: Handle, catalog: Catalog, target: Target, legs: Legs, wanted: SimilaritySearch
) -> SearchResult:
    """As `search`, of a table whose texts and vectors are known."""
    candidates = min(MOST_CANDIDATES, max(LEAST_CANDIDATES, CANDIDATES_PER_ROW * wanted.top_n))
    one = Search(handle, catalog, target, wanted, candidates)
    embedded, notes = await _embeddings(one)
    one = one._replace(target=_with_texts(target, embedded))
    if wanted.words == "off" and embedded:
        words = None
        vectors, others = await _by_vectors(one, legs, embedded)
    else:
        (vectors, others), words = await asyncio.gather(
            _by_vectors(one, legs, embedded), _by_words(one, legs)
        )
    embeddings = {column.name: made for column, made in embedded}
    notes += others
    notes += [note for ranking in vectors for note in ranking.notes]
    if not vectors and words is None:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"The table `{target.table.name}` has no texts to search, and {notes[0]}"
            if notes
            else f"The table `{target.table.name}` has nothing that can be searched",
        )
    return await _answer(one, Rankings(vectors, words), embeddings, (*target.notes, *notes))


def words_weight(wanted: SimilaritySearch) -> float:
    """What the ranking by words counts beside the vectors. Words rank a question of meaning worse
    than vectors do, and a query for a name or a number better."""
    if wanted.words != "auto":
        return WEIGHTS[wanted.words]
    text = wanted.query_text.strip()
    found = text.split()
    if len(found) < _SENTENCE or _NAMING.search(text):
        return WEIGHTS["equal"]
    capitals = any(word != "I" and any(map(str.isupper, word)) for word in found[1:])
    return _NAMING_SENTENCE if capitals else WEIGHTS["less"]


def _legs(dialect: str) -> Legs:
    """Raises: TidegateError UNSUPPORTED."""
    module = find(dialect).search
    if not module:
        raise TidegateError(
            Code.UNSUPPORTED,
            f"Search by similarity is not available for {dialect}",
            hint="Use a source on PostgreSQL, SQLite or DuckDB.",
        )
    return cast("Legs", import_module(module))


_Embedded = list[tuple[VectorColumn, Embeddings]]


async def _embeddings(search: Search) -> tuple[_Embedded, list[str]]:
    """The query's vector for each column of vectors that the model fits, and notes on the others.

    Raises: TidegateError EMBEDDING_DIMENSION if there are columns and none fits.
    """
    columns, notes = search.target.vectors, list[str]()
    if not columns:
        return [], ["the table has no vectors, so words alone were searched"]
    embedded: _Embedded = []
    mismatch: TidegateError | None = None
    for column in columns:
        try:
            found = await _embedded(search, column)
        except TidegateError as error:
            if error.code not in _NO_VECTORS:
                raise
            reason = f"no vector of the query could be made ({error.message})"
            return [], [f"{reason}, so words alone were searched"]
        if column.dimensions and column.dimensions != found.dimensions:
            mismatch = mismatch or _mismatch(search.target, column, found)
        else:
            embedded.append((column, found))
    if mismatch is not None:
        if not embedded:
            raise mismatch
        notes.append(mismatch.message)
    return embedded, notes


def _with_texts(target: Target, embedded: _Embedded) -> Target:
    """The target with the columns of texts that the settings name for columns of vectors."""
    named = {column.name: made.text for column, made in embedded if made.text in target.texts}
    vectors = [
        structs.replace(column, text=named.get(column.name, column.text))
        for column in target.vectors
    ]
    return structs.replace(target, vectors=tuple(vectors))


async def _by_vectors(
    search: Search, legs: Legs, embedded: _Embedded
) -> tuple[list[VectorRanking], list[str]]:
    """The rankings by each column of vectors, and notes on columns whose vectors do not fit.

    Raises: TidegateError; EMBEDDING_DIMENSION if there are columns and none fits.
    """

    async def ranking(column: VectorColumn, made: Embeddings) -> VectorRanking | TidegateError:
        try:
            return await legs.by_vector(search, column, made.vectors[0])
        except TidegateError as error:
            if error.code is not Code.EMBEDDING_DIMENSION:
                raise
            return error

    found = await asyncio.gather(*[ranking(column, made) for column, made in embedded])
    rankings = [each for each in found if isinstance(each, VectorRanking)]
    mismatches = [each for each in found if isinstance(each, TidegateError)]
    if mismatches and not rankings:
        raise mismatches[0]
    return rankings, [each.message for each in mismatches]


async def _embedded(search: Search, column: VectorColumn) -> Embeddings:
    table = search.target.table
    request = EmbedTexts(
        (search.wanted.query_text,), "query", f"{table.schema}.{table.name}", column.name
    )
    return await search.handle(request, Embeddings)


def _mismatch(target: Target, column: VectorColumn, found: Embeddings) -> TidegateError:
    return TidegateError(
        Code.EMBEDDING_DIMENSION,
        f"The vectors of `{target.table.name}.{column.name}` have {column.dimensions} dimensions,"
        f" and those of the model {found.model} ({found.provider}) have {found.dimensions}",
    )


async def _by_words(search: Search, legs: Legs) -> WordRanking | None:
    """The ranking by words; None if the table has no texts."""
    try:
        found = await legs.by_words(search)
    except TidegateError as error:
        if error.code not in _HIDDEN:
            raise
        found = None  # the index has words of what is hidden from this caller
    if found is not None:
        return found
    columns = searched_texts(search.target)
    return await by_scan(search, columns) if columns else None


def searched_texts(target: Target) -> tuple[str, ...]:
    """The columns of texts that are searched and shown: those that have vectors, else all."""
    named = [column.text for column in target.vectors if column.text is not None]
    return tuple(dict.fromkeys(named or target.texts))[:MOST_TEXT_COLUMNS]


async def _answer(
    search: Search,
    rankings: Rankings,
    embeddings: Mapping[str, Embeddings],
    notes: tuple[str, ...],
) -> SearchResult:
    vectors, words, by_vectors = rankings.vectors, rankings.words, rankings.by_vectors
    weight = words_weight(search.wanted) if by_vectors else 1.0
    lists = [(ranking.column.weight, [key for key, _ in ranking.rows]) for ranking in vectors]
    if words is not None and words.rows:
        lists.append((weight, words.rows))
    fused = fuse(lists)
    best = list(fused)[: search.wanted.top_n]
    if vectors and not by_vectors:
        names = ", ".join([f"`{ranking.column.name}`" for ranking in vectors])
        which = "row that meets the filter" if search.wanted.filter else "row"
        alone = "" if words is None else ", so words alone were searched"
        notes = (*notes, f"no {which} has a vector in {names} to compare with{alone}")
    rows = _row_hits(search, best, fused, rankings)
    chunks, tokens, was_cut = await _chunk_hits(search, rankings, rows, best)
    target = search.target
    if words is not None and words.capped:
        notes = (*notes, f"words were searched for in part of the table only ({words.method})")
    return SearchResult(
        target.table.schema,
        target.table.name,
        rankings.mode,
        tuple(rows),
        tuple(chunks),
        tuple([_vector_leg(ranking, embeddings[ranking.column.name]) for ranking in vectors]),
        None
        if words is None
        else WordLeg(
            *(words.columns, words.method, words.index, len(words.rows), words.capped, weight)
        ),
        notes,
        tokens,
        was_cut,
    )


def _vector_leg(ranking: VectorRanking, made: Embeddings) -> VectorLeg:
    column = ranking.column
    return VectorLeg(
        *(column.name, ranking.metric, ranking.index, column.weight),
        *(made.provider, made.model, made.dimensions, len(ranking.rows)),
    )


def _row_hits(
    search: Search,
    best: list[Key],
    fused: Mapping[Key, float],
    rankings: Rankings,
) -> list[RowHit]:
    vectors, words = rankings.vectors, rankings.words
    heaviest = max(vectors, key=lambda each: each.column.weight, default=None)
    distances = dict(heaviest.rows) if heaviest is not None else {}
    by_vector = fuse([(each.column.weight, [key for key, _ in each.rows]) for each in vectors])
    vector_places = places(list(by_vector))
    word_places = places(words.rows if words is not None else [])
    names = search.target.key or ("row_id",)
    return [
        RowHit(
            dict(zip(names, key, strict=True)),
            fused[key],
            vector_places.get(key),
            word_places.get(key),
            distances.get(key),
        )
        for key in best
    ]


class _Part(msgspec.Struct):
    row: int
    column: str
    chunk: Chunk


async def _chunk_hits(
    search: Search, rankings: Rankings, rows: list[RowHit], best: list[Key]
) -> tuple[list[ChunkHit], int, bool]:
    """The chunks of the rows' texts that are chosen within the token budget."""
    columns = searched_texts(search.target)
    if search.wanted.output_format == "ids_only" or not best or not columns:
        return [], 0, False
    texts = await _texts(search, best, columns)
    choose_chunks = partial(_choose_chunks, search, rankings, rows, best, columns, texts)
    length = sum(len(text or "") for row in texts.values() for text in row)
    return choose_chunks() if length <= _SHORT else await compute_on_thread(choose_chunks)


def _choose_chunks(
    search: Search,
    rankings: Rankings,
    rows: list[RowHit],
    best: list[Key],
    columns: tuple[str, ...],
    texts: Mapping[Key, Sequence[Any]],
) -> tuple[list[ChunkHit], int, bool]:
    """As `_chunk_hits`, of the texts that were read. Its work is bounded, whatever is asked for."""
    wanted, target = search.wanted, search.target
    parts, whole = _cut_texts(search, best, columns, texts)
    relevance = _relevance(search, parts, rows, rankings.words)
    if len(parts) > MOST_COMPARED:
        kept = sorted(range(len(parts)), key=lambda at: (-relevance[at], at))[:MOST_COMPARED]
        parts, relevance = [parts[at] for at in kept], [relevance[at] for at in kept]
        whole = False
    most = max(10, 2 * -(-wanted.max_output_tokens // wanted.chunk_size_tokens))
    chosen = choose(relevance, _Similarity(parts), wanted.lambda_, min(most, MOST_CHOSEN))
    index, mode = rankings.index, rankings.mode
    hits: list[ChunkHit] = []
    used = 0
    for place, value in chosen:
        part = parts[place]
        text, tokens = part.chunk.text, part.chunk.tokens
        if wanted.output_format == "summary":
            text, tokens = _summary(text, tokens)
        if used + tokens > wanted.max_output_tokens:
            continue  # a shorter one may still fit
        row = rows[part.row]
        hits.append(
            ChunkHit(
                *(target.table.schema, target.table.name, row.key, part.column),
                *(part.chunk.number, round(value, 6), text, tokens, mode),
                *(index, row.vector_rank, row.lexical_rank),
            )
        )
        used += tokens
    return hits, used, not whole or len(hits) < len(parts)


def _cut_texts(
    search: Search, best: list[Key], columns: tuple[str, ...], texts: Mapping[Key, Sequence[Any]]
) -> tuple[list[_Part], bool]:
    """The chunks of the texts, best rows first, and whether these are all."""
    parts: list[_Part] = []
    left = MOST_CUT
    for row, key in enumerate(best):
        for column, text in zip(columns, texts.get(key, ()), strict=False):
            if not text:
                continue
            if left <= 0:
                return parts, False
            for chunk in cut(text[:left], search.wanted.chunk_size_tokens):
                parts.append(_Part(row, column, chunk))
            left -= len(text)
    return parts, left >= 0


_SUMMARY_CHARACTERS = 160


def _summary(text: str, tokens: int) -> tuple[str, int]:
    """The beginning of a chunk."""
    if len(text) <= _SUMMARY_CHARACTERS:
        return text, tokens
    from tidegate.search.chunks import count_tokens

    short = text[:_SUMMARY_CHARACTERS].rsplit(" ", 1)[0] + " …"
    return short, min(tokens, count_tokens(short))


def _relevance(
    search: Search, parts: list[_Part], rows: list[RowHit], words: WordRanking | None
) -> list[float]:
    """Of each chunk, between 0 and 1: half its row's fused score, half its own words. Without
    words in common a chunk keeps the order of its row, which may come of its vector alone."""
    if not parts:
        return []
    wanted = terms(search.wanted.query_text)
    counts = None if words is None else words.frequencies
    total = None if words is None else words.total
    by_words = score([part.chunk.text for part in parts], wanted, counts, total)
    highest = max(by_words)
    top = max(row.score for row in rows)
    return [
        0.5 * rows[part.row].score / top + (0.5 * own / highest if highest > 0 else 0.0)
        for part, own in zip(parts, by_words, strict=True)
    ]


class _Similarity:
    """How alike two chunks are, between 0 and 1: by the words that they share, and neighbours of
    one text at least as much as their overlap."""

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts
        self._words: dict[int, frozenset[str]] = {}

    def __call__(self, one: int, other: int) -> float:
        a, b = self._parts[one], self._parts[other]
        least = 0.0
        if a.row == b.row:
            least = 0.5
            if a.column == b.column:
                least = 0.9 if abs(a.chunk.number - b.chunk.number) == 1 else 0.6
        mine, its = self._of(one), self._of(other)
        union = len(mine | its)
        return max(least, len(mine & its) / union if union else 0.0)

    def _of(self, place: int) -> frozenset[str]:
        found = self._words.get(place)
        if found is None:
            found = self._words[place] = frozenset(words(self._parts[place].chunk.text))
        return found


async def _texts(search: Search, keys: list[Key], columns: tuple[str, ...]) -> dict[Key, list[Any]]:
    """The texts of rows by their keys, shortened."""
    sql = Sql(search.target)
    # No more is read than is cut: to hold it all would delay every other caller.
    share = max(LEAST_TEXT, min(MOST_TEXT, MOST_CUT // (len(keys) * len(columns))))
    texts = ", ".join(sql.prefix(column, share) for column in columns)
    text = f"SELECT {sql.keys()}, {texts} FROM {sql.table} WHERE {sql.one_of(keys)}"
    page = await search.handle(sql.query(text, len(keys)), Page)
    size = len(keys[0])
    return {tuple(row[:size]): row[size:] for row in rows_of(page)}
