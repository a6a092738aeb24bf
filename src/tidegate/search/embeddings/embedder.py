"""Answers `EmbedTexts`: finds the model of a column and has it compute the vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from tidegate.config.embeddings import ColumnSettings, EmbeddingSettings, ModelSettings
from tidegate.config.kept_secrets import secrets_of
from tidegate.errors import Code, TidegateError
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.model_provider_limits import CallerLimits, ProviderLimits
from tidegate.search.requests import Embeddings, EmbedTexts
from tidegate.secrets.references import resolve_option
from tidegate.store.api import QuestionStore

if TYPE_CHECKING:
    from tidegate.search.embeddings.api import Provider, Vector

MOST_TEXTS = 1_024
MOST_CHARACTERS = 1_000_000


class Embedder:
    """The embeddings of one process. Providers are made when they are first used, and kept."""

    def __init__(self, settings: EmbeddingSettings, store: QuestionStore) -> None:
        self.settings = settings
        limits = CallerLimits(
            "embeddings",
            "characters",
            settings.characters_per_day,
            settings.seconds_per_day,
            settings.calls_per_minute,
        )
        self._limits = ProviderLimits(store, limits)
        self._providers: dict[tuple[ModelSettings, str | None], Provider] = {}

    async def answer(self, call: Call, sources: tuple[Source, ...]) -> Embeddings:
        """Raises: TidegateError ARGUMENT_INVALID, LIMIT_RATE, MODEL_LIMIT, CALL_CANCELLED, and what
        `Provider.embed` raises."""
        request = call.request
        if not isinstance(request, EmbedTexts):
            raise TypeError(type(request).__name__)
        if not request.texts or not all(text.strip() for text in request.texts):
            raise TidegateError(Code.ARGUMENT_INVALID, "There is no text to embed")
        size = sum(map(len, request.texts))
        if len(request.texts) > MOST_TEXTS or size > MOST_CHARACTERS:
            raise TidegateError(
                Code.ARGUMENT_INVALID,
                f"{len(request.texts)} texts of {size:,} characters are too many at once",
                hint=f"Send at most {MOST_TEXTS:,} texts with {MOST_CHARACTERS:,} characters.",
            )
        named = call.source is not None and len(sources) == 1
        column = self.column_of(sources[0].name, request.table, request.column) if named else None
        settings = self.model_of(column)
        async with secrets_of(settings.api_key or ""):
            provider = self.provider(settings)
        prefix = settings.query_prefix if request.purpose == "query" else settings.document_prefix
        texts = [prefix + text for text in request.texts]

        async def embed() -> tuple[list[Vector], int]:
            return await provider.embed(texts, request.purpose), size

        limited = call.surface != "cli"
        vectors = await self._limits.run(call, size, embed, limited=limited)
        return Embeddings(
            *(tuple(vectors), provider.name, provider.model, len(vectors[0]), provider.host),
            text=None if column is None else column.text,
        )

    def column_of(self, source: str, table: str, column: str) -> ColumnSettings | None:
        """What the settings say of a column; `table` is `schema.table`."""
        if not column:
            return None
        whole = f"{table}.{column}"
        for each in self.settings.columns:
            if each.source == source and (
                each.column == whole
                or (each.column.count(".") == 1 and whole.endswith(f".{each.column}"))
            ):
                return each
        return None

    def model_of(self, column: ColumnSettings | None) -> ModelSettings:
        """The model of a column, or the one of all others."""
        if column is not None and column.use is not None:
            return column.use
        own = {field: getattr(self.settings, field) for field in ModelSettings.__struct_fields__}
        return ModelSettings(**own)

    def provider(self, settings: ModelSettings) -> Provider:
        """The provider of these settings. Raises: as `provider_of`."""
        # Columns that differ in what is put before their texts share one model.
        settings = structs.replace(settings, query_prefix="", document_prefix="")
        # A key that was changed where it is referred to counts at once.
        key = None if settings.api_key is None else resolve_option(settings.api_key)
        provider = self._providers.get((settings, key))
        if provider is None:
            from tidegate.search.embeddings.providers import provider_of  # only embedding needs it

            provider = self._providers[settings, key] = provider_of(settings)
        return provider

    async def close(self) -> None:
        """End the processes of local models. A later request starts them again."""
        providers, self._providers = self._providers, {}
        for provider in providers.values():
            await provider.close()
