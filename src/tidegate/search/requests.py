"""The request for vectors of texts, and its answer. A provider's call thereby passes the gate: it
is decided on and recorded like every other call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from tidegate.model.replies import RecordedPayload
from tidegate.model.requests import Request, metadata
from tidegate.model.statements import Judgement

Purpose = Literal["query", "document"]


class EmbedTexts(Request, frozen=True):
    """Compute the vectors of `texts`. With a source, `table` (`schema.table`) and `column` name the
    vector column that they are meant for, which may have a model of its own."""

    kind: ClassVar[str] = "embedding"
    judgement: ClassVar[Judgement | None] = metadata("embedding", "computes vectors of texts")
    spans_sources: ClassVar[bool] = True
    recorded_first: ClassVar[bool] = True
    """The texts may leave this machine."""

    texts: tuple[str, ...]
    purpose: Purpose = "query"
    table: str = ""
    column: str = ""

    def recorded_arguments(self) -> Mapping[str, Any]:
        digest = hashlib.sha256("\0".join(self.texts).encode("utf-8", "replace")).hexdigest()
        sizes: dict[str, Any] = {
            "texts": len(self.texts),
            "characters": sum(map(len, self.texts)),
            "sha256": digest,
            "purpose": self.purpose,
        }
        if self.column:
            sizes |= {"table": self.table, "column": self.column}
        return sizes


class Embeddings(RecordedPayload, frozen=True):
    """The vectors of texts in their order, all of `dimensions` numbers, with their provider.

    `host` is where the texts went, empty if they did not leave this machine. `text` is the column
    whose texts the vectors of the request's column are of, if the settings name it.
    """

    vectors: tuple[tuple[float, ...], ...]
    provider: str
    model: str
    dimensions: int
    host: str = ""
    text: str | None = None

    def recorded_arguments(self) -> Mapping[str, Any]:
        """Who made the vectors, and where the texts went."""
        return {"provider": self.provider, "model": self.model, "host": self.host}

    @property
    def row_count(self) -> int:
        return len(self.vectors)
