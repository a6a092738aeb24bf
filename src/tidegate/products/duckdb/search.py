"""How DuckDB is searched (`ranking.Legs`): vectors exactly, words without an index."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.model.results import Page
from tidegate.search.dimensions import require_dimensions
from tidegate.search.model import Metric
from tidegate.search.ranking import Search, VectorRanking, WordRanking
from tidegate.search.statements import Sql, ranked
from tidegate.search.target import VectorColumn

_FUNCTIONS: dict[Metric, str] = {
    "cosine": "cosine_distance",
    "l2": "distance",
    "inner_product": "negative_inner_product",
}


async def by_vector(search: Search, column: VectorColumn, vector: Sequence[float]) -> VectorRanking:
    """The nearest rows; every vector is compared. Raises: TidegateError."""
    sql = Sql(search.target)
    metric = search.wanted.distance_metric
    name = sql.name(column.name)
    size = len(vector)
    given = f"CAST({sql.value(list(vector))} AS FLOAT[{size}])"
    kind = "array" if column.kind == "array" else "list"
    if kind == "list":
        given = f"CAST({given} AS FLOAT[])"
    distance = f"{kind}_{_FUNCTIONS[metric]}({name}, {given})"
    others = [f"{name} IS NOT NULL"]
    if kind == "list":
        await require_dimensions(search, column, f"len({name})", size)
        others.append(f"len({name}) = {size}")
    where = sql.conditions(search.wanted.filter, *others)
    text = (
        f"SELECT {sql.keys()}, {distance} AS d FROM {sql.table}{where}"
        f" ORDER BY d LIMIT {search.candidates}"
    )
    page = await search.handle(sql.query(text, search.candidates), Page)
    return VectorRanking(column, ranked(page), metric, None)


async def by_words(search: Search) -> WordRanking | None:
    """None: DuckDB has no index of words."""
    return None
