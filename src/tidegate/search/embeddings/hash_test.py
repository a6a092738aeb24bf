"""The provider `hash-test`: vectors made of hashed words, for tests.

Texts that share words get similar vectors, and the same text always gets the same one. It knows no
meaning, so it is never a default and never takes another provider's place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from tidegate.search.embeddings.api import Vector, normalized
from tidegate.search.requests import Purpose

_WORD = re.compile(r"\w+")


class HashTestProvider:
    """`hash-test`. `dimensions` is 64 unless the settings say otherwise."""

    name = "hash-test"
    host = ""
    batch = 256

    def __init__(self, dimensions: int | None = None, model: str | None = None) -> None:
        self.dimensions = dimensions or 64
        self.model = model or f"words-{self.dimensions}"

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        return [self.vector(text) for text in texts]

    async def close(self) -> None:
        return

    def vector(self, text: str) -> Vector:
        """The vector of one text."""
        total = [0.0] * self.dimensions
        for word in _WORD.findall(text.casefold()) or [text]:
            digest = hashlib.sha256(f"{self.model} {word}".encode("utf-8", "replace")).digest()
            # Three places of each word: two words of a small vector seldom share all of them.
            for at in (0, 5, 10):
                place = int.from_bytes(digest[at : at + 4], "big") % self.dimensions
                total[place] += 1.0 if digest[at + 4] & 1 else -1.0
        if not any(total):
            total[0] = 1.0  # no vector of zeros: it has no direction
        return normalized(total)
