"""What a search for similar rows is asked, and what it answers. Frozen values.

The parameters and their defaults are those of `similarity_search` in the server that the postgres
document describes: top_n 10, chunks of 100 tokens, lambda 0.6, 1,000 tokens of output.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

Metric = Literal["cosine", "l2", "inner_product"]
OutputFormat = Literal["full", "summary", "ids_only"]
Mode = Literal["hybrid", "vector", "lexical"]
WordsWeight = Literal["auto", "equal", "less", "off"]
"""What the words of a query count beside its vectors."""
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "not_in", "is_null", "is_not_null"]

Value = str | int | float | bool


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One condition that rows must meet: `column` `op` `value`.

    `value` is a list for `in` and `not_in`, and is left out for `is_null` and `is_not_null`. It
    always travels as a parameter, never as SQL.
    """

    column: str
    op: Operator = "="
    value: Value | tuple[Value, ...] | None = None


class SimilaritySearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A search for the rows of one table that are most like a text.

    `top_n` rows are found, by their vectors and by their words. Their texts are cut into chunks of
    about `chunk_size_tokens` tokens. Chunks are chosen by relevance and by difference from those
    already chosen (`lambda`: 1 is relevance alone, 0 difference alone), until `max_output_tokens`
    are used. All conditions of `filter` must hold. `words` says what the ranking by words counts
    beside that by vectors: as much (`equal`), a tenth (`less`), nothing (`off`); `auto` is `less`
    for a question in a sentence, which names nothing, a quarter for one with capitals in it, and
    else `equal`. `exact` compares every vector and uses no approximate index.
    """

    table_name: Annotated[str, msgspec.Meta(min_length=1, max_length=400)]
    query_text: Annotated[str, msgspec.Meta(min_length=1, max_length=100_000)]
    top_n: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 10
    chunk_size_tokens: Annotated[int, msgspec.Meta(ge=10, le=10_000)] = 100
    lambda_: Annotated[float, msgspec.Meta(ge=0, le=1)] = msgspec.field(name="lambda", default=0.6)
    max_output_tokens: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1_000
    distance_metric: Metric = "cosine"
    output_format: OutputFormat = "full"
    filter: tuple[Condition, ...] = ()
    exact: bool = False
    words: WordsWeight = "auto"


class RowHit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that was found. `key` holds the columns that name the row.

    `score` is the fused score; `vector_rank` and `lexical_rank` are places from 1 on, None where
    that search did not find the row. `distance` is exact, of the vector column that counts most,
    in the search's metric.
    """

    key: dict[str, Any]
    score: float
    vector_rank: int | None = None
    lexical_rank: int | None = None
    distance: float | None = None


class ChunkHit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a text that was chosen. `chunk` is its place in the text of `column`, from 1 on."""

    schema: str
    table: str
    key: dict[str, Any]
    column: str
    chunk: int
    score: float
    text: str
    tokens: int
    mode: Mode
    index_used: str | None = None
    vector_rank: int | None = None
    lexical_rank: int | None = None


class VectorLeg(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one vector column was searched.

    `index` is the index that was used, None for an exact search; `metric` the metric of the search,
    which is the index's own where that differs from the one asked for. `weight` is its share in
    the fused score.
    """

    column: str
    metric: Metric
    index: str | None
    weight: float
    provider: str
    model: str
    dimensions: int
    rows: int


class WordLeg(msgspec.Struct, frozen=True, omit_defaults=True):
    """How words were searched. `method` names what ranked them, such as `bm25:pg_textsearch`,
    `tsvector+df`, `fts5` or `scan`; `capped`: not all rows that hold the words were read.
    `weight` is its share beside the 1 of all vectors together."""

    columns: tuple[str, ...]
    method: str
    index: str | None
    rows: int
    capped: bool = False
    weight: float = 1.0


class SearchResult(msgspec.Struct, frozen=True):
    """What was found: `rows` best first, at most `top_n`; `chunks` in the order of choice.

    `mode` says what the ranks come from; `notes` what the caller should know: a metric that was
    changed, no vectors, a cap that was reached. `cut` says that the token budget left chunks out.
    """

    schema: str
    table: str
    mode: Mode
    rows: tuple[RowHit, ...]
    chunks: tuple[ChunkHit, ...]
    vectors: tuple[VectorLeg, ...] = ()
    words: WordLeg | None = None
    notes: tuple[str, ...] = ()
    tokens: int = 0
    cut: bool = False
