"""Providers of embeddings over HTTP: what is sent, what is read, and each way to fail."""

from __future__ import annotations

import json
from email.utils import formatdate
from typing import Any

import msgspec
import pytest

from support.embedding_server import (
    Answer,
    EmbeddingServer,
    cut_off,
    endless,
    reply,
    silent,
    vectors,
)
from tidegate.config.embeddings import ModelSettings
from tidegate.errors import Code, TidegateError
from tidegate.retrying_http import Endpoint, post_json
from tidegate.search.embeddings.providers import provider_of

KEY = "sk-live-0123456789abcdef0123456789"


def settings(url: str, provider: str = "openai", **others: Any) -> ModelSettings:
    given = {"provider": provider, "base_url": url, "retries": 0, "model": "m", **others}
    return msgspec.convert(given, ModelSettings)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MODEL_KEY", KEY)
    return "${ENV:MODEL_KEY}"


@pytest.mark.parametrize(
    ("provider", "path", "sent"),
    [
        ("openai", "POST /v1/embeddings ", {"encoding_format": "float", "dimensions": 3}),
        ("voyage", "POST /v1/embeddings ", {"input_type": "query", "output_dimension": 3}),
        ("ollama", "POST /v1/api/embed ", {"dimensions": 3}),
    ],
)
async def test_each_provider_is_asked_in_its_own_way_and_vectors_come_in_the_order_of_the_texts(
    provider: str, path: str, sent: dict[str, Any], key: str
):
    model = EmbeddingServer(vectors(provider))
    async with model.running() as url:
        made = provider_of(settings(url, provider, api_key=key, dimensions=3))
        assert await made.embed(["a", "b"], "query") == [(0.0, 1.0, 1.0), (1.0, 1.0, 1.0)]
    line, headers, body = model.requests[0]
    assert line.startswith(path)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {"model": "m", "input": ["a", "b"], **sent}
    assert made.host in url


async def test_many_texts_go_in_several_calls_and_dimensions_are_learned():
    model = EmbeddingServer(vectors())
    async with model.running() as url:
        made = provider_of(settings(url))
        assert made.dimensions == 0
        assert len(await made.embed(["x"] * 130, "document")) == 130
        assert made.dimensions == 3
    assert [len(body["input"]) for *_, body in model.requests] == [64, 64, 2]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (reply(b"<html>Sign in</html>", kind="text/html"), Code.PROVIDER_REPLY),
        (reply(b"{}"), Code.PROVIDER_REPLY),
        (reply(b'{"data": [{"embedding": ["x"]}]}'), Code.PROVIDER_REPLY),
        (reply(b'{"data": [{"embedding": []}]}'), Code.PROVIDER_REPLY),
        (reply(b'{"data": []}'), Code.PROVIDER_REPLY),
        (vectors(dimensions=5), Code.EMBEDDING_DIMENSION),
        (cut_off, Code.PROVIDER_CUT_OFF),
        (endless, Code.PROVIDER_TOO_LARGE),
        (silent, Code.PROVIDER_TIMEOUT),
        (reply(b"", "500 Internal Server Error"), Code.PROVIDER_FAILED),
        (reply(b"", "429 Too Many Requests"), Code.PROVIDER_RATE),
        (reply(b"", "401 Unauthorized"), Code.PROVIDER_REFUSED),
        (reply(b"", "302 Found", location="http://127.0.0.1:1/"), Code.PROVIDER_FAILED),
    ],
)
async def test_each_fault_has_its_code_and_no_error_holds_the_key(
    answer: Answer, code: Code, key: str
):
    async with EmbeddingServer(answer).running() as url:
        slow = 0.2 if answer is silent else 60
        made = provider_of(settings(url, api_key=key, dimensions=3, timeout_s=slow))
        with pytest.raises(TidegateError) as caught:
            await made.embed(["text"], "query")
    assert caught.value.code is code
    assert KEY not in f"{caught.value.message} {caught.value.hint} {caught.value.details}"


async def test_what_a_provider_says_is_shown_without_what_may_be_a_key(key: str):
    said = json.dumps(
        {"error": {"message": f"Incorrect API key {KEY}; or sk-proj-AAAABBBBCCCC1111"}}
    )
    async with EmbeddingServer(reply(said.encode(), "401 Unauthorized")).running() as url:
        with pytest.raises(TidegateError) as caught:
            await provider_of(settings(url, api_key=key)).embed(["text"], "query")
    assert caught.value.message.endswith("Incorrect API key ***; or ***")


async def test_a_provider_that_is_down_is_named_by_its_host():
    async with EmbeddingServer(cut_off).running() as url:
        pass
    with pytest.raises(TidegateError) as caught:
        await provider_of(settings(url)).embed(["text"], "query")
    assert caught.value.code is Code.PROVIDER_UNREACHABLE
    assert "127.0.0.1" in caught.value.message


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7, 7), (None, 0.5, 0.7), (formatdate(4_000_000_000, usegmt=True), None, None)],
)
async def test_a_provider_that_is_busy_is_asked_again_after_the_time_that_it_names(
    header: str | None, least: float | None, most: float | None
):
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    named = {} if header is None else {"retry_after": header}
    model = EmbeddingServer(reply(b"", "429 Too Many Requests", **named), reply(b'{"ok": true}'))
    async with model.running() as url:
        endpoint = Endpoint("openai", url, retries=1)
        if least is None:  # decades: longer than a call may take
            with pytest.raises(TidegateError) as caught:
                await post_json(endpoint, "/x", {}, sleep=sleep)
            assert caught.value.code is Code.PROVIDER_RATE
            assert (caught.value.retry_after_s or 0) > 1_000_000
            assert waited == []
            return
        assert await post_json(endpoint, "/x", {}, sleep=sleep) == {"ok": True}
    (seconds,) = waited
    assert least <= seconds <= (most or 0)


async def test_a_failure_that_may_pass_is_tried_as_often_as_the_settings_say():
    async def sleep(seconds: float) -> None:
        return

    model = EmbeddingServer(reply(b"", "503 Service Unavailable"))
    async with model.running() as url:
        with pytest.raises(TidegateError):
            await post_json(Endpoint("openai", url, retries=2), "/x", {}, sleep=sleep)
    assert len(model.requests) == 3


async def test_a_refusal_is_not_tried_again():
    model = EmbeddingServer(reply(b"", "400 Bad Request"))
    async with model.running() as url:
        with pytest.raises(TidegateError):
            await post_json(Endpoint("openai", url, retries=5), "/x", {})
    assert len(model.requests) == 1
