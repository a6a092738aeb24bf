"""`similarity_search` and `generate_embedding`: rows that are like a text, and vectors of texts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidegate.errors import Code, TidegateError
from tidegate.products.pgedge.surface.databases import Databases
from tidegate.products.pgedge.surface.query import READS
from tidegate.protocol.model import ToolResult, text
from tidegate.search.hybrid import search
from tidegate.search.model import ChunkHit, RowHit, SearchResult, SimilaritySearch
from tidegate.search.requests import Embeddings, EmbedTexts
from tidegate.surfaces.api import SurfaceTool
from tidegate.surfaces.tool_context import ToolContext


class SimilarityArgs(SimilaritySearch, frozen=True, forbid_unknown_fields=True, kw_only=True):
    source: Annotated[str, Meta(description="The database, if there are several")] | None = None

    def wanted(self) -> SimilaritySearch:
        """What is searched, without the source."""
        names = SimilaritySearch.__struct_fields__
        return SimilaritySearch(**{name: getattr(self, name) for name in names})


class EmbeddingArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(description="The text to compute a vector of")]


async def _embed(context: ToolContext, args: EmbeddingArgs) -> ToolResult:
    if not args.text.strip():
        raise TidegateError(
            Code.ARGUMENT_INVALID,
            "Parameter text is empty",
            hint="Send the text to compute a vector of.",
            details={"parameter": "text", "problem": "value", "required": True},
        )
    found = await context.handle(EmbedTexts((args.text,)), None, Embeddings)
    vector = msgspec.json.encode(found.vectors[0])
    lines = (
        "Embedding Generated Successfully",
        "================================",
        "",
        f"Provider: {found.provider}",
        f"Model: {found.model}",
        f"Dimensions: {found.dimensions}",
        f"Text Length: {len(args.text)} characters",
        "",
        "Text:",
        args.text,
        "",
        f"Embedding Vector ({found.dimensions} dimensions):",
        vector.decode(),
    )
    body = {
        "provider": found.provider,
        "model": found.model,
        "dimensions": found.dimensions,
        "vector": msgspec.Raw(vector),
    }
    return ToolResult(content=[text("\n".join(lines))], body=msgspec.json.encode(body))


async def _search(databases: Databases, context: ToolContext, args: SimilarityArgs) -> ToolResult:
    source = await databases.name_of(context, args.source)

    async def handle(request: Any, expected: Any) -> Any:
        return await databases.handle(context, source, request, expected, quiet=True)

    found = await search(handle, args.wanted())
    return ToolResult(
        content=[text("\n".join(lines(args, found)))], body=msgspec.json.encode(found)
    )


def lines(args: SimilarityArgs, found: SearchResult) -> Iterator[str]:
    """What was found as text, line by line."""
    if args.output_format == "ids_only":
        yield from (msgspec.json.encode(row.key).decode() for row in found.rows)
        return
    yield "Similarity Search Results"
    yield "========================="
    yield f"\nQuery: {args.query_text}"
    yield f"Table: {found.schema}.{found.table}"
    yield f"Mode: {found.mode}"
    yield "\nConfiguration:"
    yield f"  Top N: {args.top_n}"
    yield f"  Chunk Size: {args.chunk_size_tokens} tokens"
    yield f"  Lambda: {args.lambda_}"
    yield f"  Max Output: {args.max_output_tokens} tokens"
    for leg in found.vectors:
        how = f"index {leg.index}" if leg.index else "exact"
        yield f"  Vector Column: {leg.column} ({leg.metric}, weight {leg.weight:.2f}, {how})"
    if found.words is not None:
        weight = f", weight {found.words.weight:.2f}" if found.words.weight != 1.0 else ""
        yield f"  Words: {', '.join(found.words.columns)} ({found.words.method}{weight})"
    yield from (f"  Note: {note}" for note in found.notes)
    for place, chunk in enumerate(found.chunks, 1):
        yield from _chunk(place, chunk, whole=args.output_format == "full")
    if not found.chunks and found.rows:
        yield "\nThe table has no texts to show. Rows, best first:"
        for place, row in enumerate(found.rows, 1):
            yield _row(place, row, found)
    cut = " (cut at the budget)" if found.cut else ""
    yield f"\nTotal: {len(found.chunks)} chunks, ~{found.tokens} tokens{cut}"


def _row(place: int, row: RowHit, found: SearchResult) -> str:
    key = msgspec.json.encode(row.key).decode()
    ranks = (("vectors", row.vector_rank), ("words", row.lexical_rank))
    rank = ", ".join(f"{at} by {name}" for name, at in ranks if at is not None)
    distance = f", distance {row.distance:.4f}" if row.distance is not None else ""
    return f"{place}. {found.schema}.{found.table} {key}: {rank}{distance}"


def _chunk(place: int, chunk: ChunkHit, *, whole: bool) -> Iterator[str]:
    key = msgspec.json.encode(chunk.key).decode()
    yield f"\nResult {place}"
    yield f"Source: {chunk.schema}.{chunk.table}.{chunk.column} {key} (chunk {chunk.chunk})"
    ranks = (("vectors", chunk.vector_rank), ("words", chunk.lexical_rank))
    yield f"Rank: {', '.join(f'{at} by {name}' for name, at in ranks if at is not None)}"
    yield f"Relevance Score: {chunk.score:.4f}"
    yield f"Tokens: ~{chunk.tokens}"
    yield chunk.text if whole else _beginning(chunk.text)


def _beginning(value: str) -> str:
    return value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN].rstrip()} ..."


_MOST_SHOWN = 160


def similarity_tool(databases: Databases) -> SurfaceTool:
    """The tool as the surface lists it."""
    return SurfaceTool(
        name="similarity_search",
        title="Search by similarity",
        description="Advanced hybrid search of a table's texts: vector similarity and BM25 are"
        " fused, and MMR chooses passages that differ. Works by words alone without vectors.",
        args=SimilarityArgs,
        run=partial(_search, databases),
        annotations=READS,
    )


EMBEDDING_TOOL = SurfaceTool(
    name="generate_embedding",
    title="Generate an embedding",
    description="Generate a vector embedding of a text with the configured AI model.",
    args=EmbeddingArgs,
    run=_embed,
    annotations=READS,
)
