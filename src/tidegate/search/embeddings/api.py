"""What every provider of embeddings offers."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import isfinite, sqrt
from typing import Any, Protocol

from tidegate.errors import Code, TidegateError
from tidegate.search.requests import Purpose

Vector = tuple[float, ...]


class Provider(Protocol):
    """Computes vectors with one model.

    `dimensions` is 0 until the first answer where only the model knows. `host` is where texts are
    sent, empty if they stay on this machine. `batch` is how many texts go into one call.
    """

    @property
    def name(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def host(self) -> str: ...

    @property
    def batch(self) -> int: ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        """The vectors of `texts`, in their order. No vector for no text.

        Raises: TidegateError PROVIDER_*, EMBEDDING_DIMENSION, EMBEDDING_MISSING, EMBEDDING_MODEL.
        """
        ...

    async def close(self) -> None:
        """End what the provider keeps running."""
        ...


def checked_vectors(name: str, found: Any, count: int, dimensions: int | None) -> list[Vector]:
    """What a provider answered, as vectors of finite numbers that fit what was asked.

    Raises: TidegateError PROVIDER_REPLY, EMBEDDING_DIMENSION.
    """
    if not isinstance(found, list) or len(found) != count:  # pyright: ignore[reportUnknownArgumentType] - parsed text has no type
        raise TidegateError(
            Code.PROVIDER_REPLY, f"{name} did not send one vector for each of {count} texts"
        )
    vectors: list[Vector] = []
    for entry in found:  # pyright: ignore[reportUnknownVariableType] - parsed text has no type
        try:
            vector = tuple(array("d", entry))  # pyright: ignore[reportUnknownArgumentType] - numbers, or TypeError
        except TypeError:
            vector = ()
        if not all(map(isfinite, vector)) or not any(vector):
            raise TidegateError(
                Code.PROVIDER_REPLY, f"{name} sent a vector that holds no numbers, or zeros alone"
            )
        vectors.append(vector)
    wanted = dimensions or (len(vectors[0]) if vectors else 0)
    for vector in vectors:
        if len(vector) != wanted:
            raise TidegateError(
                Code.EMBEDDING_DIMENSION,
                f"{name} sent a vector of {len(vector)} dimensions, not {wanted}",
                hint="Correct `embeddings.dimensions`, or use the model that it belongs to.",
            )
    return vectors


def normalized(vector: Sequence[float]) -> Vector:
    """The vector with length 1; one of zeros stays as it is."""
    length = sqrt(sum(value * value for value in vector))
    return tuple(value / length for value in vector) if length else tuple(vector)
