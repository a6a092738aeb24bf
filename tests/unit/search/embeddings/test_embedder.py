"""Requests for vectors: which model answers, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tidegate.config.embeddings import ColumnSettings, EmbeddingSettings, ModelSettings
from tidegate.config.loading import load
from tidegate.errors import Code, TidegateError
from tidegate.model import worker_share
from tidegate.model.actors import Actor, Scope
from tidegate.model.requests import Call
from tidegate.model.sources import Source
from tidegate.model.worker_share import WorkerShare
from tidegate.model_provider_limits import AT_ONCE
from tidegate.search.embeddings.embedder import Embedder
from tidegate.search.requests import EmbedTexts
from tidegate.store.sqlite.state import SqliteState

SHOP = Source("1", "shop", "sqlite:///x", "sqlite", "sqlite")
HASHED = EmbeddingSettings(provider="hash-test", dimensions=8)


Make = Callable[[EmbeddingSettings], Embedder]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    state = SqliteState(tmp_path / "state.db")
    yield lambda settings: Embedder(settings, state.questions)
    state.close()


def call(
    request: EmbedTexts, source: str | None = None, surface: str = "core", actor: str = "a"
) -> Call:
    return Call(Actor(actor, actor, Scope.READ_ONLY), surface, "search", request, source)


async def test_the_same_text_gets_the_same_vector_and_another_text_another_one(make: Make):
    embedder = make(HASHED)
    answer = await embedder.answer(call(EmbedTexts(("red boots", "red boots", "tax law"))), ())
    first, again, other = answer.vectors
    assert first == again != other
    assert (answer.provider, answer.model, answer.dimensions) == ("hash-test", "words-8", 8)


async def test_a_column_of_the_settings_has_its_own_model(make: Make):
    own = ColumnSettings("shop", "docs.embedding", use=ModelSettings("hash-test", dimensions=3))
    embedder = make(msgspec.structs.replace(HASHED, columns=(own,)))
    request = EmbedTexts(("boots",), table="public.docs", column="embedding")
    assert (await embedder.answer(call(request, "shop"), (SHOP,))).dimensions == 3
    assert (await embedder.answer(call(request), (SHOP,))).dimensions == 8


async def test_a_prefix_of_the_settings_stands_before_the_text(make: Make):
    plain, prefixed = (
        make(msgspec.structs.replace(HASHED, query_prefix=prefix)) for prefix in ("", "query: ")
    )
    asked, written = EmbedTexts(("query: boots",)), EmbedTexts(("boots",))
    assert await plain.answer(call(asked), ()) == await prefixed.answer(call(written), ())


@pytest.mark.parametrize("texts", [(), ("",), (" \n",), ("x",) * 1_025, ("x" * 1_000_001,)])
async def test_no_text_and_too_much_text_are_refused(make: Make, texts: tuple[str, ...]):
    with pytest.raises(TidegateError) as refused:
        await make(HASHED).answer(call(EmbedTexts(texts)), ())
    assert refused.value.code is Code.ARGUMENT_INVALID


async def test_without_a_provider_the_answer_says_so(make: Make):
    with pytest.raises(TidegateError) as refused:
        await make(EmbeddingSettings(provider="none")).answer(call(EmbedTexts(("x",))), ())
    assert refused.value.code is Code.EMBEDDING_MISSING


async def test_a_worker_admits_its_part_of_the_calls_in_a_minute(
    make: Make, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker_share, "_own", WorkerShare(2, 2))
    embedder = make(msgspec.structs.replace(HASHED, calls_per_minute=3))
    request = call(EmbedTexts(("boots",)))
    await embedder.answer(request, ())
    with pytest.raises(TidegateError, match="its limit at one of 2 workers") as often:
        await embedder.answer(request, ())
    assert often.value.code is Code.LIMIT_RATE


async def test_each_caller_may_embed_so_much_in_a_day_and_ask_so_often_in_a_minute(make: Make):
    bounded = msgspec.structs.replace(HASHED, characters_per_day=30, calls_per_minute=4)
    embedder = make(bounded)
    request = call(EmbedTexts(("twelve chars",)))
    for _ in range(3):
        await embedder.answer(request, ())
    with pytest.raises(TidegateError) as spent:
        await embedder.answer(request, ())
    assert spent.value.code is Code.MODEL_LIMIT
    assert 0 < (spent.value.retry_after_s or 0) <= 86_400
    assert "36 characters" in spent.value.message
    assert "embeddings.characters_per_day" in spent.value.hint
    with pytest.raises(TidegateError) as often:
        await embedder.answer(request, ())
    assert often.value.code is Code.LIMIT_RATE
    assert 0 < (often.value.retry_after_s or 0) <= 60
    with pytest.raises(TidegateError) as elsewhere:  # of another process on the same state
        await make(bounded).answer(request, ())
    assert elsewhere.value.code is Code.MODEL_LIMIT
    await embedder.answer(call(EmbedTexts(("boots",)), actor="b"), ())
    for _ in range(5):  # the operator's own commands are not bounded
        await embedder.answer(call(EmbedTexts(("twelve chars",)), surface="cli"), ())


async def test_calls_at_the_same_time_do_not_pass_the_limit_together(make: Make):
    embedder = make(msgspec.structs.replace(HASHED, characters_per_day=30))
    request = call(EmbedTexts(("twelve chars",)))
    found = await asyncio.gather(
        *[embedder.answer(request, ()) for _ in range(50)], return_exceptions=True
    )
    refused = [each.code for each in found if isinstance(each, TidegateError)]
    assert len(refused) >= 50 - AT_ONCE - 30 // 12  # what was counted, and what was under way
    assert set(refused) == {Code.MODEL_LIMIT}


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
