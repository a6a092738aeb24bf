"""Asks a model over HTTP, through the API of its provider.

Requests and replies follow the providers' API references: OpenAI `POST /chat/completions`,
Anthropic `POST /messages` (version 2023-06-01), Ollama `POST /api/chat`. Replies are not streamed:
a statement is short, and half of one is of no use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tidegate.config.kept_secrets import secrets_of
from tidegate.errors import Code, TidegateError
from tidegate.products.pgedge.settings import DEFAULT_URLS, ModelSettings
from tidegate.products.pgedge.text_to_sql.model import Message, ModelReply
from tidegate.retrying_http import Endpoint, post_json
from tidegate.secrets.references import resolve_option

MAX_REPLY_BYTES = 4_194_304
_CONTEXT_STEP = 1_024
_BYTES_PER_TOKEN = 3
"""Rather too few than too many: a prompt that is cut off loses its schema."""


async def ask_provider(
    settings: ModelSettings, system: str, messages: Sequence[Message]
) -> ModelReply:
    """The model's reply. Raises: TidegateError PROVIDER_* (see `retrying_http`), CONFIG_INVALID if
    the key's reference leads nowhere, SECRET_UNAVAILABLE."""
    async with secrets_of(settings.api_key or ""):
        key = _key(settings)
    endpoint = Endpoint(
        f"The model {settings.model}",
        settings.address,
        _headers(settings, key),
        (key,) if key else (),
        settings.timeout_s,
        settings.retries,
        MAX_REPLY_BYTES,
    )
    match settings.provider:
        case "anthropic":
            return await _anthropic(endpoint, settings, system, messages)
        case "ollama":
            return await _ollama(endpoint, settings, system, messages)
        case "openai":
            return await _openai(endpoint, settings, system, messages)


def _key(settings: ModelSettings) -> str:
    if settings.api_key is None:
        return ""
    try:
        return resolve_option(settings.api_key)
    except TidegateError as error:
        raise TidegateError(
            Code.CONFIG_INVALID,
            f"The key of the model {settings.model} is not there. {error.message}",
            hint="Set the variable or write the file that `language.model.api_key` names.",
            details=error.details,
        ) from None


def _headers(settings: ModelSettings, key: str) -> Mapping[str, str]:
    if settings.provider == "anthropic":
        return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
    return {"Authorization": f"Bearer {key}"} if key else {}


async def _openai(
    endpoint: Endpoint, settings: ModelSettings, system: str, messages: Sequence[Message]
) -> ModelReply:
    # The provider itself has renamed the limit; most servers that copy its API know the old name.
    own = settings.address == DEFAULT_URLS["openai"]
    document = await post_json(
        endpoint,
        "/chat/completions",
        {
            "model": settings.model,
            "messages": [{"role": "system", "content": system}, *_plain(messages)],
            "max_completion_tokens" if own else "max_tokens": settings.max_tokens,
            "stream": False,
            **_temperature(settings),
        },
    )
    choice = _first(_member(document, "choices"))
    content = _member(_member(choice, "message"), "content")
    usage = _member(document, "usage")
    return _reply(
        settings,
        content if isinstance(content, str) else _joined(content),
        _member(document, "model"),
        (_member(usage, "prompt_tokens"), _member(usage, "completion_tokens")),
        _member(choice, "finish_reason") != "length",
    )


async def _anthropic(
    endpoint: Endpoint, settings: ModelSettings, system: str, messages: Sequence[Message]
) -> ModelReply:
    document = await post_json(
        endpoint,
        "/messages",
        {
            "model": settings.model,
            "system": system,
            "messages": _plain(messages),
            "max_tokens": settings.max_tokens,
            **_temperature(settings),
        },
    )
    usage = _member(document, "usage")
    return _reply(
        settings,
        _joined(_member(document, "content")),
        _member(document, "model"),
        (_member(usage, "input_tokens"), _member(usage, "output_tokens")),
        _member(document, "stop_reason") != "max_tokens",
    )


async def _ollama(
    endpoint: Endpoint, settings: ModelSettings, system: str, messages: Sequence[Message]
) -> ModelReply:
    size = len(system.encode()) + sum(len(message.text.encode()) for message in messages)
    tokens = size // _BYTES_PER_TOKEN + settings.max_tokens
    document = await post_json(
        endpoint,
        "/api/chat",
        {
            "model": settings.model,
            "messages": [{"role": "system", "content": system}, *_plain(messages)],
            "stream": False,
            "options": {
                # Its default context cuts a longer prompt off without a word.
                "num_ctx": -(-tokens // _CONTEXT_STEP) * _CONTEXT_STEP,
                "num_predict": settings.max_tokens,
                **_temperature(settings),
            },
        },
    )
    return _reply(
        settings,
        _member(_member(document, "message"), "content"),
        _member(document, "model"),
        (_member(document, "prompt_eval_count"), _member(document, "eval_count")),
        _member(document, "done_reason") != "length",
    )


def _plain(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in messages]


def _temperature(settings: ModelSettings) -> dict[str, float]:
    return {} if settings.temperature is None else {"temperature": settings.temperature}


def _reply(
    settings: ModelSettings,
    text: object,
    model: object,
    tokens: tuple[object, object],
    complete: bool,
) -> ModelReply:
    """Raises: TidegateError PROVIDER_REPLY if there is no text."""
    if not isinstance(text, str):
        raise TidegateError(
            Code.PROVIDER_REPLY, f"The model {settings.model} answered with JSON that has no text"
        )
    used, written = (count if isinstance(count, int) and count >= 0 else None for count in tokens)
    named = model[:200] if isinstance(model, str) and model else settings.model
    return ModelReply(text, named, used, written, complete)


def _member(document: object, name: str) -> Any:
    return cast("dict[str, Any]", document).get(name) if isinstance(document, dict) else None


def _first(entries: object) -> Any:
    return cast("list[Any]", entries)[0] if isinstance(entries, list) and entries else None


def _joined(parts: object) -> str | None:
    """The texts of a list of content blocks, None if there is none."""
    if not isinstance(parts, list):
        return None
    texts = [_member(part, "text") for part in cast("list[object]", parts)]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found else None
