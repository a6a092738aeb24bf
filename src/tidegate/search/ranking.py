"""What one way of searching gives, and what a dialect must have to be searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from tidegate.model.requests import Request
from tidegate.model.schema import Catalog
from tidegate.search.model import Metric, Mode, SimilaritySearch
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
    rows: list[tuple[Key, float]]
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


class Rankings(msgspec.Struct, frozen=True):
    """What a search has found: a ranking for each column of vectors that was compared, and the one
    by words, None if the words were not looked for."""

    vectors: list[VectorRanking]
    words: WordRanking | None

    @property
    def by_vectors(self) -> bool:
        """Whether any row has a vector to compare with."""
        return any(ranking.rows for ranking in self.vectors)

    @property
    def mode(self) -> Mode:
        if self.words is None:
            return "vector"
        return "hybrid" if self.by_vectors else "lexical"

    @property
    def index(self) -> str | None:
        """The index that was read, of vectors before one of words."""
        found = next((each.index for each in self.vectors if each.index is not None), None)
        return found or (self.words.index if self.words is not None else None)


class Search(NamedTuple):
    """One search as its parts see it. `candidates` is how many rows each ranking gives."""

    handle: Handle
    catalog: Catalog
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


def essential(counts: Mapping[str, float], most_rows: int) -> list[str]:
    """The rarest words that together occur in at most `most_rows` rows, one word at least. A row
    without any of them holds frequent words alone, which tell little."""
    chosen: list[str] = []
    rows = 0.0
    for term in sorted(counts, key=lambda term: (counts[term], term)):
        rows += counts[term]
        if chosen and rows > most_rows:
            break
        chosen.append(term)
    return chosen
