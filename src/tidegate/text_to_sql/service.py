"""Answers this package's requests to the gate, by the settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tidegate.config.language import LanguageSettings
from tidegate.model.requests import Call, Request
from tidegate.model.sources import Source
from tidegate.text_to_sql.knowledge import Knowledge, read_knowledge
from tidegate.text_to_sql.requests import Guidance, ReadGuidance


class AnswerService:
    """Handles the requests of `text_to_sql.requests`."""

    def __init__(self, settings: LanguageSettings) -> None:
        self._settings = settings
        self._knowledge: dict[str, tuple[float, Knowledge]] = {}

    async def read_guidance(self, call: Call, sources: tuple[Source, ...]) -> Guidance:
        """What holds for questions on the source. Raises: TidegateError CONFIG_INVALID if its
        knowledge file cannot be used."""
        settings, source = self._settings, sources[0]
        model = settings.model
        return Guidance(
            share=settings.share_of(source.name),
            schema_bytes=settings.schema_bytes,
            rounds=settings.rounds,
            max_cost=settings.max_cost,
            provider=model.provider if model else "",
            model=model.model if model else "",
            host=urlsplit(model.address).netloc if model else "",
            max_tokens=model.max_tokens if model else 2_048,
            sampling=settings.sampling,
            knowledge=self._knowledge_of(source.name),
        )

    def _knowledge_of(self, source: str) -> Knowledge:
        """The source's knowledge file, read again when it changes."""
        own = self._settings.sources.get(source)
        if own is None or own.knowledge is None:
            return Knowledge()
        try:
            changed = Path(own.knowledge).stat().st_mtime
        except OSError:
            changed = -1.0
        kept = self._knowledge.get(source)
        if kept is None or kept[0] != changed:
            kept = self._knowledge[source] = changed, read_knowledge(own.knowledge)
        return kept[1]


Handler = Callable[[Call, tuple[Source, ...]], Awaitable[Any]]


def answer_handlers(settings: LanguageSettings) -> dict[type[Request], Handler]:
    """The handlers of this package's requests, for a gateway."""
    service = AnswerService(settings)
    return {ReadGuidance: service.read_guidance}
