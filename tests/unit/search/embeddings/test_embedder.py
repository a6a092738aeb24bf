"""Requests for vectors: which model answers, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from tidegate.config.embeddings import ColumnSettings, EmbeddingSettings, ModelSettings
from tidegate.config.loading import load
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.search.embeddings.embedder import Embedder
from tidegate.search.requests import EmbedTexts

SHOP = Source("1", "shop", "sqlite:///x", "sqlite", "sqlite")
HASHED = EmbeddingSettings(provider="hash-test", dimensions=8)


def call(request: EmbedTexts, source: str | None = None) -> Call:
    return Call(Actor("a", "a", Scope.READ_ONLY), "core", "search", request, source)


async def test_the_same_text_gets_the_same_vector_and_another_text_another_one():
    embedder = Embedder(HASHED)
    answer = await embedder.answer(call(EmbedTexts(("red boots", "red boots", "tax law"))), ())
    first, again, other = answer.vectors
    assert first == again != other
    assert (answer.provider, answer.model, answer.dimensions) == ("hash-test", "words-8", 8)


async def test_a_column_of_the_settings_has_its_own_model():
    own = ColumnSettings("shop", "docs.embedding", use=ModelSettings("hash-test", dimensions=3))
    embedder = Embedder(msgspec.structs.replace(HASHED, columns=(own,)))
    request = EmbedTexts(("boots",), table="public.docs", column="embedding")
    assert (await embedder.answer(call(request, "shop"), (SHOP,))).dimensions == 3
    assert (await embedder.answer(call(request), (SHOP,))).dimensions == 8


async def test_a_prefix_of_the_settings_stands_before_the_text():
    plain, prefixed = (
        Embedder(msgspec.structs.replace(HASHED, query_prefix=prefix)) for prefix in ("", "query: ")
    )
    asked, written = EmbedTexts(("query: boots",)), EmbedTexts(("boots",))
    assert await plain.answer(call(asked), ()) == await prefixed.answer(call(written), ())


@pytest.mark.parametrize("texts", [(), ("",), (" \n",), ("x",) * 1_025, ("x" * 1_000_001,)])
async def test_no_text_and_too_much_text_are_refused(texts: tuple[str, ...]):
    with pytest.raises(TidegateError) as refused:
        await Embedder(HASHED).answer(call(EmbedTexts(texts)), ())
    assert refused.value.code is Code.ARGUMENT_INVALID


async def test_without_a_provider_the_answer_says_so():
    with pytest.raises(TidegateError) as refused:
        await Embedder(EmbeddingSettings(provider="none")).answer(call(EmbedTexts(("x",))), ())
    assert refused.value.code is Code.EMBEDDING_MISSING


def test_the_record_of_a_request_holds_no_text():
    recorded = EmbedTexts(("a secret plan",), table="public.docs", column="v").recorded_arguments()
    assert "secret" not in repr(recorded)
    assert recorded["characters"] == 13


@pytest.mark.parametrize(
    "settings",
    [
        '{"provider": "openai", "api_key": "sk-plain"}',
        '{"provider": "openai", "base_url": "ftp://host"}',
        '{"provider": "openai", "base_url": "https://user:pw@host/v1"}',
        '{"columns": [{"source": "shop", "column": "embedding"}]}',
        '{"provider": "gemini"}',
    ],
)
def test_settings_that_cannot_work_are_refused(settings: str):
    with pytest.raises(TidegateError) as refused:
        load(f'{{"embeddings": {settings}}}')
    assert refused.value.code is Code.CONFIG_INVALID
    assert "sk-plain" not in str(refused.value) + refused.value.hint
