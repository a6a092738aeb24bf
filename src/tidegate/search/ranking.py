"""What one way of searching gives, and what a dialect must have to be searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from tidegate.model.requests import Request
from tidegate.search.model import Metric, SimilaritySearch
from tidegate.search.statements import Key
from tidegate.search.target import Target, VectorColumn

PayloadT = TypeVar("PayloadT")


class Handle(Protocol):
    """Sends a request about one source through the gate, as the caller.

    A surface gives its `ToolContext.handle` with the source, `reads_only` and `quiet` filled in.
    """

    async def __call__(self, request: Request, expected: type[PayloadT], /) -> PayloadT:
        """The reply's payload. Raises: TidegateError."""
        ...


class VectorRanking(msgspec.Struct, frozen=True):
    """Rows by their vectors, nearest first, with exact distances."""

    column: VectorColumn
    rows: list[tuple[Key, float | None]]
    metric: Metric
    index: str | None
    notes: tuple[str, ...] = ()


class WordRanking(msgspec.Struct, frozen=True):
    """Rows by their words, best first. `frequencies` and `total` count documents of the table,
    where they are known."""

    rows: list[Key]
    columns: tuple[str, ...]
    method: str
    index: str | None
    capped: bool = False
    frequencies: dict[str, float] | None = None
    total: float | None = None


class Search(NamedTuple):
    """One search as its parts see it. `candidates` is how many rows each ranking gives."""

    handle: Handle
    target: Target
    wanted: SimilaritySearch
    candidates: int


class Legs(Protocol):
    """How the databases of one dialect are searched."""

    async def by_vector(
        self, search: Search, column: VectorColumn, vector: Sequence[float]
    ) -> VectorRanking:
        """The rows whose vectors are nearest. Raises: TidegateError."""
        ...

    async def by_words(self, search: Search) -> WordRanking | None:
        """The rows that hold the words of the query; None if this table has no index for words.

        Raises: TidegateError.
        """
        ...
