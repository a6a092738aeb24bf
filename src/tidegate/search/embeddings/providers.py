"""Makes the provider that the settings name."""

from __future__ import annotations

from tidegate.config.embeddings import ModelSettings
from tidegate.errors import Code, TidegateError
from tidegate.search.embeddings.api import Provider
from tidegate.secrets.references import resolve_option

_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "voyage": "https://api.voyageai.com/v1",
    "ollama": "http://127.0.0.1:11434",
}
_MODELS = {
    "openai": "text-embedding-3-small",
    "voyage": "voyage-3",
    "ollama": "nomic-embed-text",
}


def provider_of(settings: ModelSettings) -> Provider:
    """The provider that the settings name. Loads no model and sends nothing.

    Raises: TidegateError EMBEDDING_MISSING if there is none, CONFIG_INVALID, SOURCE_URL for a key
    that is not there.
    """
    name = settings.provider
    if name == "none":
        raise TidegateError(Code.EMBEDDING_MISSING, "No provider of embeddings is configured")
    if name == "hash-test":
        from tidegate.search.embeddings.hash_test import HashTestProvider

        return HashTestProvider(settings.dimensions, settings.model)
    if name == "local":
        from tidegate.search.embeddings.local import LocalProvider

        return LocalProvider(settings)
    from tidegate.retrying_http import Endpoint
    from tidegate.search.embeddings import http_providers

    kinds = {
        "openai": http_providers.OpenAiProvider,
        "voyage": http_providers.VoyageProvider,
        "ollama": http_providers.OllamaProvider,
    }
    key = None if settings.api_key is None else resolve_option(settings.api_key)
    endpoint = Endpoint(
        name,
        settings.base_url or _ADDRESSES[name],
        {} if key is None else {"Authorization": f"Bearer {key}"},
        () if key is None else (key,),
        settings.timeout_s,
        settings.retries,
    )
    return kinds[name](endpoint, settings.model or _MODELS[name], settings.dimensions)
