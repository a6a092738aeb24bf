"""Finds the rows of a table that are most like a text: by vectors, by words, or by both.

Every statement goes through the gate as the caller, so masks and row filters hold for all of them.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Request
from tidegate.search.model import SearchResult, SimilaritySearch

PayloadT = TypeVar("PayloadT")


class Handle(Protocol):
    """Sends a request about one source through the gate, as the caller.

    A surface gives its `ToolContext.handle` with the source, `reads_only` and `quiet` filled in.
    """

    async def __call__(self, request: Request, expected: type[PayloadT]) -> PayloadT:
        """The reply's payload. Raises: TidegateError."""
        ...


async def search(handle: Handle, wanted: SimilaritySearch) -> SearchResult:
    """The rows most like `wanted.query_text`, and the chunks of their texts that fit best.

    Raises: TidegateError TABLE_UNKNOWN; ARGUMENT_INVALID for a condition on a column that is not
    there; UNSUPPORTED for a table without texts; EMBEDDING_DIMENSION; what the gate and the
    provider of embeddings raise.
    """
    raise TidegateError(Code.UNSUPPORTED, "Search by similarity is not available")
