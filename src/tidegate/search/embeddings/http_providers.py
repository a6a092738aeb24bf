"""Providers over HTTP: those that speak OpenAI's `/embeddings`, Voyage and Ollama.

The shapes are those of the providers' API references: OpenAI `POST /embeddings` with `input` and
`encoding_format`, vectors in `data[].embedding` ordered by `index`; Voyage the same with
`input_type`; Ollama `POST /api/embed`, vectors in `embeddings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tidegate.errors import Code, TidegateError
from tidegate.retrying_http import Endpoint, post_json
from tidegate.search.embeddings.api import Vector, checked_vectors
from tidegate.search.requests import Purpose


class _HttpProvider:
    """What the three have in common: one endpoint, one model, lazily learned dimensions."""

    batch = 64
    path = ""

    def __init__(self, endpoint: Endpoint, model: str, dimensions: int | None) -> None:
        self.name = endpoint.name
        self.model = model
        self.host = endpoint.host
        self._endpoint = endpoint
        self._wanted = dimensions
        self._learned = 0

    @property
    def dimensions(self) -> int:
        return self._wanted or self._learned

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), self.batch):
            part = list(texts[start : start + self.batch])
            document = await post_json(self._endpoint, self.path, self._payload(part, purpose))
            found = self._vectors(document)
            vectors += checked_vectors(self.name, found, len(part), self.dimensions or None)
            self._learned = len(vectors[-1])
        return vectors

    async def close(self) -> None:
        return

    def _payload(self, texts: list[str], purpose: Purpose) -> dict[str, Any]:
        raise NotImplementedError

    def _vectors(self, document: Any) -> list[Any]:
        """The vectors in an answer. Raises: TidegateError PROVIDER_REPLY."""
        raise NotImplementedError

    def _member(self, document: Any, name: str) -> list[Any]:
        found: Any = None
        if isinstance(document, dict):
            found = cast("dict[str, Any]", document).get(name)
        if not isinstance(found, list):
            raise TidegateError(
                Code.PROVIDER_REPLY, f"{self.name} answered without a list `{name}`"
            )
        return cast("list[Any]", found)


class OpenAiProvider(_HttpProvider):
    """`openai`, and every server that speaks its `/embeddings`."""

    path = "/embeddings"

    def _payload(self, texts: list[str], purpose: Purpose) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": self.model,
            "input": texts,
            "encoding_format": "float",
        }
        if self._wanted is not None:
            payload["dimensions"] = self._wanted
        return payload

    def _vectors(self, document: Any) -> list[Any]:
        entries = [
            cast("dict[str, Any]", entry)
            for entry in self._member(document, "data")
            if isinstance(entry, dict)
        ]
        # A server that leaves `index` out answers in order.
        entries.sort(key=lambda entry: _place(entry.get("index")))
        return [entry.get("embedding") for entry in entries]


def _place(index: object) -> int:
    return index if isinstance(index, int) else 0


class VoyageProvider(OpenAiProvider):
    """`voyage`: tells queries from documents."""

    def _payload(self, texts: list[str], purpose: Purpose) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self.model, "input": texts, "input_type": purpose}
        if self._wanted is not None:
            payload["output_dimension"] = self._wanted
        return payload


class OllamaProvider(_HttpProvider):
    """`ollama`."""

    path = "/api/embed"

    def _payload(self, texts: list[str], purpose: Purpose) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self.model, "input": texts}
        if self._wanted is not None:
            payload["dimensions"] = self._wanted
        return payload

    def _vectors(self, document: Any) -> list[Any]:
        return self._member(document, "embeddings")
