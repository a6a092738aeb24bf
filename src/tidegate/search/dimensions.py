"""Refuses vectors of another number of dimensions than the query's, where a column's type does not
say how many its vectors have."""

from __future__ import annotations

from typing import Any

from tidegate.errors import Code, TidegateError
from tidegate.model.results import Page
from tidegate.search.ranking import Search
from tidegate.search.statements import Sql, rows_of
from tidegate.search.target import VectorColumn


async def require_dimensions(search: Search, column: VectorColumn, size: str, wanted: int) -> None:
    """At least one vector of the column must have `wanted` dimensions, unless it has none at all.
    `size` is the expression in SQL that counts them.

    Raises: TidegateError EMBEDDING_DIMENSION.
    """
    sql = Sql(search.target)

    async def first(condition: str) -> list[list[Any]]:
        text = f"SELECT {size} FROM {sql.table} WHERE {condition} LIMIT 1"
        return rows_of(await search.handle(sql.query(text, 1, schema=column.schema), Page))

    if await first(f"{size} = {wanted}"):
        return
    others = await first(f"{sql.name(column.name)} IS NOT NULL")
    if others:
        raise TidegateError(
            Code.EMBEDDING_DIMENSION,
            f"The vectors of `{search.target.table.name}.{column.name}` have {others[0][0]:g}"
            f" dimensions, and the model's have {wanted}",
        )
