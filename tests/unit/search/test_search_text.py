"""Search results and vectors as text."""

from __future__ import annotations

from tidegate.search.model import (
    ChunkHit,
    RowHit,
    SearchResult,
    SimilaritySearch,
    VectorLeg,
    WordLeg,
)
from tidegate.search.requests import Embeddings
from tidegate.search.text import embedding_text, search_text

KEY = {"id": 7, "lang": "ж"}
FOUND = SearchResult(
    *("public", "docs", "hybrid"),
    (RowHit(KEY, 0.5, 1, None),),
    (ChunkHit("public", "docs", KEY, "content", 2, 0.25, "Red boots", 3, "hybrid", "i", 1),),
    (VectorLeg("content_embedding", "cosine", "i", 1.0, "local", "m", 384, 10),),
    WordLeg(("content",), "fts5", "docs_fts", 3),
    ("A note.",),
    3,
    True,
)


def test_the_text_says_what_was_searched_how_and_what_was_found():
    text = search_text(SimilaritySearch("docs", "boots"), FOUND)
    for part in (
        'Query: "boots"',
        "Table: public.docs",
        "Mode: hybrid",
        "content_embedding (cosine, index i, weight 1.00, local m, 384 dimensions)",
        "Words: content (fts5, index docs_fts)",
        "Note: A note.",
        'Source: public.docs id=7, lang="ж", chunk 2',
        "Rank: vector 1\nRelevance Score: 0.250000\nTokens: ~3\n\nRed boots",
        "Total: 1 chunks, ~3 tokens; more were found than fit",
    ):
        assert part in text


def test_ids_only_lists_keys():
    text = search_text(SimilaritySearch("docs", "boots", output_format="ids_only"), FOUND)
    assert '1. id=7, lang="ж" (score 0.500000)\nTotal: 1 rows' in text
    assert "Red boots" not in text


def test_a_vector_is_shown_whole_with_its_model():
    made = Embeddings(((0.5, -0.25),), "openai", "small", 2)
    text = embedding_text("red boots", made)
    assert text.startswith("Embedding Generated Successfully\n====")
    assert text.endswith(
        "Provider: openai\nModel: small\nDimensions: 2\nText Length: 9 characters\n\n"
        "Text:\nred boots\n\nEmbedding Vector (2 dimensions):\n[0.5, -0.25]"
    )
