"""Search results and vectors as text, in the form of the postgres document's server. Pure."""

from __future__ import annotations

import json

from tidegate.search.model import ChunkHit, SearchResult, SimilaritySearch
from tidegate.search.requests import Embeddings

_RULE = "=" * 50


def search_text(wanted: SimilaritySearch, found: SearchResult) -> str:
    """The result of a search: what was asked, how it was searched, and the chunks or keys."""
    lines = [
        "Semantic Search Results",
        _RULE,
        f'Query: "{wanted.query_text}"',
        f"Table: {found.schema}.{found.table}",
        "",
        "Configuration:",
        f"  - Mode: {found.mode}",
    ]
    for leg in found.vectors:
        how = f"index {leg.index}" if leg.index else "exact"
        lines.append(
            f"  - Vector Column: {leg.column} ({leg.metric}, {how}, weight {leg.weight:.2f},"
            f" {leg.provider} {leg.model}, {leg.dimensions} dimensions)"
        )
    if found.words is not None:
        index = f", index {found.words.index}" if found.words.index else ""
        columns = ", ".join(found.words.columns)
        lines.append(f"  - Words: {columns} ({found.words.method}{index})")
    lines += [
        f"  - Top N: {wanted.top_n}",
        f"  - Chunk Size: {wanted.chunk_size_tokens} tokens",
        f"  - Lambda: {wanted.lambda_:g}",
        f"  - Max Output Tokens: {wanted.max_output_tokens}",
    ]
    lines += [f"  - Note: {note}" for note in found.notes]
    lines.append("")
    if wanted.output_format == "ids_only" or not found.chunks:
        for place, row in enumerate(found.rows, 1):
            lines.append(f"{place}. {_key(row.key)} (score {row.score:.6f})")
        lines.append(f"Total: {len(found.rows)} rows")
        return "\n".join(lines)
    for place, chunk in enumerate(found.chunks, 1):
        lines += _chunk(place, chunk)
    more = "; more were found than fit" if found.cut else ""
    lines.append(f"Total: {len(found.chunks)} chunks, ~{found.tokens} tokens{more}")
    return "\n".join(lines)


def _chunk(place: int, chunk: ChunkHit) -> list[str]:
    ranks = [
        f"{name} {rank}"
        for name, rank in (("vector", chunk.vector_rank), ("words", chunk.lexical_rank))
        if rank is not None
    ]
    return [
        f"Result {place}/{chunk.column}",
        f"Source: {chunk.schema}.{chunk.table} {_key(chunk.key)}, chunk {chunk.chunk}",
        f"Rank: {', '.join(ranks) or 'none'}",
        f"Relevance Score: {chunk.score:.6f}",
        f"Tokens: ~{chunk.tokens}",
        "",
        chunk.text,
        "",
    ]


def _key(key: dict[str, object]) -> str:
    return ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in key.items()
    )


def embedding_text(text: str, made: Embeddings) -> str:
    """The vector of one text, whole."""
    numbers = ", ".join([f"{value:.9g}" for value in made.vectors[0]])
    return (
        "Embedding Generated Successfully\n"
        f"{_RULE}\n\n"
        f"Provider: {made.provider}\nModel: {made.model}\nDimensions: {made.dimensions}\n"
        f"Text Length: {len(text)} characters\n\n"
        f"Text:\n{text}\n\n"
        f"Embedding Vector ({made.dimensions} dimensions):\n[{numbers}]"
    )
