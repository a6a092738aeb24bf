"""Searches vectors in PostgreSQL with pgvector: by an index in its own metric, or exactly.

An index is used only if the statement sorts by exactly its expression and operator, ascending, with
a LIMIT. So the inner query sorts by that and takes more rows than are wanted; the outer one sorts
those by their exact distance. (pgvector's documentation, "Indexing" and "Iterative Index Scans".)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite, sqrt

import msgspec

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Explain
from tidegate.model.results import Page
from tidegate.model.schema import Index
from tidegate.model.statements import Statement
from tidegate.search.dimensions import require_dimensions
from tidegate.search.model import Metric
from tidegate.search.ranking import Search, VectorRanking
from tidegate.search.statements import Sql, ranked, rows_of
from tidegate.search.target import Target, VectorColumn

OPERATORS: dict[str, str] = {
    "cosine": "<=>",
    "l2": "<->",
    "ip": "<#>",
    "l1": "<+>",
    "hamming": "<~>",
    "jaccard": "<%>",
}
"""The operators of pgvector by the word in their operator classes."""
_WORDS: dict[Metric, str] = {"cosine": "cosine", "l2": "l2", "inner_product": "ip"}
_METRICS: dict[str, Metric] = {word: metric for metric, word in _WORDS.items()}
_CLASS = re.compile(r"(vector|halfvec|sparsevec|bit)_(cosine|l2|ip|l1|hamming|jaccard)_ops")
_CAST = re.compile(
    r"\(*\"?(?P<column>[^\"():]+)\"?\)?::(?:\w+\.)?(?P<type>halfvec|vector|sparsevec)\((?P<size>\d+)\)\)*"
)
_BITS = re.compile(
    r"\(*(?:\w+\.)?binary_quantize\(\"?(?P<column>[^\"()]+?)\"?\)\)?::bit\((?P<size>\d+)\)\)*"
)
_LISTS = re.compile(r"lists=(\d+)")
_ESTIMATE = re.compile(r"rows=(\d+)")
_INDEX_SCAN = re.compile(r"Index Scan using (\S+|\"[^\"]+\") on")

MOST_EF = 1_000
EF_PER_ROW = 2
"""Rows that HNSW keeps in sight for each one that it gives. With one, two indexes that were built
over the same 1,000,000 rows found 94 and 97 % of the ten nearest; with two the first 98 %."""
COARSE = 4
"""How many times as many rows an index over single bits gives to those who compare the vectors."""
EXACT_ROWS = 20_000
"""Rows that meet a filter up to which all of them are compared: an index would read as many."""
_NO_SUCH_SETTING = frozenset({"42602", "42704", "22023"})


class VectorIndex(msgspec.Struct, frozen=True):
    """An index that can serve a search. `word` is its metric in the name of the operator class;
    `term` and `query` are the indexed expression and the query's, with `{}` for the parameter.
    """

    index: Index
    word: str
    kind: str
    term: str
    query: str


def indexes_of(target: Target, column: VectorColumn, sql: Sql) -> list[VectorIndex]:
    """The usable vector indexes on a column."""
    found: list[VectorIndex] = []
    for index in target.indexes:
        if index.kind not in ("hnsw", "ivfflat", "diskann") or not index.operators:
            continue
        named = _CLASS.fullmatch(index.operators[0])
        if named is None:
            continue
        kind, word = named.groups()
        name, expression = sql.name(column.name), index.columns[0]
        if expression == column.name:
            query = _literal_of(column, kind)
            found.append(VectorIndex(index, word, kind, name, query))
            continue
        cast, bits = _CAST.fullmatch(expression), _BITS.fullmatch(expression)
        if cast is not None and cast["column"] == column.name:
            type_ = f"{cast['type']}({cast['size']})"
            found.append(VectorIndex(index, word, kind, f"{name}::{type_}", f"{{}}::{type_}"))
        elif bits is not None and bits["column"] == column.name:
            size = bits["size"]
            found.append(
                VectorIndex(
                    *(index, word, kind),
                    *(
                        f"binary_quantize({name})::bit({size})",
                        f"binary_quantize({{}}::vector({size}))",
                    ),
                )
            )
    return found


def _literal_of(column: VectorColumn, kind: str) -> str:
    """The query's vector for a column of this kind."""
    if kind == "bit":
        return f"binary_quantize({{}}::vector({column.dimensions}))"
    return f"{{}}::{kind}"


def choose_index(
    indexes: Sequence[VectorIndex], metric: Metric
) -> tuple[VectorIndex | None, tuple[str, ...]]:
    """The index to use: one of the metric that was asked for, else one of another metric, with a
    note that tells it."""
    asked = _WORDS[metric]
    for index in indexes:
        if index.word == asked:
            return index, ()
    for index in indexes:
        if index.word in _METRICS or index.word in ("hamming", "jaccard", "l1"):
            note = ()
            if index.word in _METRICS or index.word == "l1":
                note = (
                    f"The index {index.index.name} is for the metric {index.word}, so that was used"
                    f" and not {metric}; `exact` compares every vector by {metric}.",
                )
            return index, note
    return None, ()


def metric_of(index: VectorIndex) -> Metric | None:
    """The metric of an index, None for one of bits or sums of differences."""
    return _METRICS.get(index.word)


async def by_vector(search: Search, column: VectorColumn, vector: Sequence[float]) -> VectorRanking:
    """The nearest rows by one column of vectors. Raises: TidegateError."""
    wanted, target = search.wanted, search.target
    if _sized(column):
        size = f"vector_dims({Sql(target).name(column.name)})"
        await require_dimensions(search, column, size, len(vector))
    index, notes = choose_index(indexes_of(target, column, Sql(target)), wanted.distance_metric)
    if wanted.exact or index is None:
        return await exact(search, column, vector, ())
    if wanted.filter and await _matching(search) <= EXACT_ROWS:
        return await exact(search, column, vector, ())
    found = await by_index(search, column, vector, index)
    if len(found.rows) < min(wanted.top_n, search.candidates):
        # Fewer rows than were asked for: a filter, a policy of the table, or deleted rows.
        return await exact(search, column, vector, ())
    return msgspec.structs.replace(found, notes=notes)


def _sized(column: VectorColumn) -> bool:
    """Whether each vector of the column has a size of its own, which can be asked for."""
    return not column.dimensions and column.kind in ("vector", "halfvec")


def _present(column: VectorColumn, name: str, size: int) -> list[str]:
    """The conditions for rows that have a vector to compare."""
    found = [f"{name} IS NOT NULL"]
    return [*found, f"vector_dims({name}) = {size}"] if _sized(column) else found


async def _matching(search: Search) -> float:
    """About how many rows meet the filter, as the planner sees it; infinite if it does not say."""
    sql = Sql(search.target)
    where = sql.conditions(search.wanted.filter)
    text = f"SELECT 1 FROM {sql.table}{where}"
    lines = await _plan(search, text, sql, ())
    estimates = _ESTIMATE.findall(lines[0]) if lines else []
    return float(estimates[0]) if estimates else float("inf")


async def _plan(
    search: Search, text: str, sql: Sql, tuning: tuple[tuple[str, str], ...]
) -> list[str]:
    """The lines of the plan; none if the caller may not see plans."""
    statement = Statement(text, tuple(sql.params) or None)
    try:
        page = await search.handle(Explain(statement, tuning=tuning), Page)
    except TidegateError as error:
        if error.code in (Code.POLICY_MASKED, Code.POLICY_DENIED, Code.SQL_FAILED):
            return []
        raise
    return [str(row[0]) for row in rows_of(page)]


async def by_index(
    search: Search, column: VectorColumn, vector: Sequence[float], index: VectorIndex
) -> VectorRanking:
    """The nearest rows that an index finds. `index` of the answer is None if the planner did not
    use it. Raises: TidegateError."""
    sql = Sql(search.target)
    wanted = search.wanted
    text_of = sql.value(vector_text(vector, column.kind))
    name = sql.name(column.name)
    word = _WORDS[wanted.distance_metric] if index.word in ("hamming", "jaccard") else index.word
    if column.kind == "bit":
        distance = f"{name} {OPERATORS[index.word]} {index.query.format(text_of)}"
    else:
        distance = f"{name} {OPERATORS[word]} {text_of}::{column.kind}"
    order = f"{index.term} {OPERATORS[index.word]} {index.query.format(text_of)}"
    where = sql.conditions(wanted.filter, *_present(column, name, len(vector)))
    coarse = index.kind == "bit" and column.kind != "bit"
    count = min(MOST_EF, search.candidates * (COARSE if coarse else 1))
    inner = (
        f"SELECT {sql.keys()}, {distance} AS d FROM {sql.table}{where}"
        f" ORDER BY {order} LIMIT {count}"
    )
    text = f"SELECT {sql.key_names('c.')}, c.d FROM ({inner}) AS c ORDER BY c.d"
    if coarse:
        text += f" LIMIT {search.candidates}"
    tuning = _tuning(index.index, count, filtered=bool(wanted.filter))
    page = await _run(search, sql, text, tuning, column.schema)
    lines = await _plan(search, text, sql, tuning) if column.schema is None else []
    used = next(
        (found[1].strip('"') for line in lines if (found := _INDEX_SCAN.search(line))), None
    )
    return VectorRanking(
        column,
        ranked(page),
        _METRICS.get(index.word, wanted.distance_metric),
        index.index.name if used is None and not lines else used,
    )


async def _run(
    search: Search,
    sql: Sql,
    text: str,
    tuning: tuple[tuple[str, str], ...],
    schema: str | None,
) -> Page:
    """Run with the settings; without iterative scans where pgvector has none (before 0.8)."""
    try:
        return await search.handle(sql.query(text, search.candidates, tuning, schema), Page)
    except TidegateError as error:
        fewer = tuple((name, value) for name, value in tuning if "iterative" not in name)
        unknown = error.details.get("sqlstate") in _NO_SUCH_SETTING
        if not unknown or fewer == tuning:
            raise
    return await search.handle(sql.query(text, search.candidates, fewer, schema), Page)


async def exact(
    search: Search, column: VectorColumn, vector: Sequence[float], notes: tuple[str, ...]
) -> VectorRanking:
    """Compare every vector that meets the filter. The sum keeps an index from being used."""
    sql = Sql(search.target)
    metric = search.wanted.distance_metric
    name = sql.name(column.name)
    if column.kind == "bit":
        given = _literal_of(column, "bit").format(sql.value(vector_text(vector, "vector")))
        distance = f"{name} <~> {given}"
    else:
        given = sql.value(vector_text(vector, column.kind))
        distance = f"{name} {OPERATORS[_WORDS[metric]]} {given}::{column.kind}"
    where = sql.conditions(search.wanted.filter, *_present(column, name, len(vector)))
    text = (
        f"SELECT {sql.keys()}, {distance} AS d FROM {sql.table}{where}"
        f" ORDER BY ({distance}) + 0 LIMIT {search.candidates}"
    )
    page = await search.handle(sql.query(text, search.candidates, schema=column.schema), Page)
    return VectorRanking(column, ranked(page), metric, None, notes)


def _tuning(index: Index, count: int, *, filtered: bool) -> tuple[tuple[str, str], ...]:
    """How hard the index is searched: twice `count` rows, more lists than pgvector's one."""
    if index.kind == "hnsw":
        settings = [("hnsw.ef_search", str(min(MOST_EF, EF_PER_ROW * count)))]
    elif index.kind == "ivfflat":
        lists = next((int(m[1]) for each in index.options if (m := _LISTS.fullmatch(each))), 100)
        settings = [("ivfflat.probes", str(max(1, min(lists, round(2 * sqrt(lists))))))]
    else:
        return ()
    if filtered:
        settings.append((f"{index.kind}.iterative_scan", "relaxed_order"))
    return tuple(settings)


def vector_text(vector: Sequence[float], kind: str) -> str:
    """A vector as pgvector reads it; a sparse one counts its places from 1 on."""
    if not all(map(isfinite, vector)):
        raise TidegateError(Code.PROVIDER_REPLY, "The vector of the query holds no numbers")
    if kind == "sparsevec":
        pairs = ",".join(f"{at}:{value:.8g}" for at, value in enumerate(vector, 1) if value)
        return f"{{{pairs}}}/{len(vector)}"
    return f"[{','.join([f'{value:.8g}' for value in vector])}]"
