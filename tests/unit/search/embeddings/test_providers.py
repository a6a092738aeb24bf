"""Providers of embeddings over HTTP: what is sent, what is read, and each way to fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

import msgspec
import pytest

from tidegate.config.embeddings import ModelSettings
from tidegate.errors import Code, TidegateError
from tidegate.provider_http import Endpoint, post_json
from tidegate.search.embeddings.providers import provider_of

KEY = "sk-live-0123456789abcdef0123456789"
Answer = Callable[[asyncio.StreamWriter, dict[str, Any], dict[str, str]], Awaitable[None]]


class Model:
    """A server on loopback that answers each request with the next of `answers`."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = json.loads(await reader.readexactly(int(headers["content-length"])))
            self.requests.append((head[0], headers, body))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            await answer(writer, body, headers)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def reply(
    body: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str
) -> Answer:
    async def answer(writer: asyncio.StreamWriter, *_: object) -> None:
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
        writer.write(f"{head}\r\n".encode() + body)

    return answer


def vectors(shape: str = "openai", dimensions: int = 3) -> Answer:
    """Vectors that tell the place of their text; OpenAI's in another order than asked."""

    async def answer(writer: asyncio.StreamWriter, body: dict[str, Any], _: object) -> None:
        found = [[float(at)] + [1.0] * (dimensions - 1) for at in range(len(body["input"]))]
        if shape == "ollama":
            document: dict[str, Any] = {"embeddings": found}
        else:
            entries = [{"index": at, "embedding": vector} for at, vector in enumerate(found)]
            document = {"data": entries[::-1]}
        await reply(json.dumps(document).encode())(writer, body, {})

    return answer


async def cut_off(writer: asyncio.StreamWriter, *_: object) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"data": [')


async def endless(writer: asyncio.StreamWriter, *_: object) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        await writer.drain()


async def silent(writer: asyncio.StreamWriter, *_: object) -> None:
    await asyncio.Event().wait()


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
    model = Model(vectors(provider))
    async with model.running() as url:
        made = provider_of(settings(url, provider, api_key=key, dimensions=3))
        assert await made.embed(["a", "b"], "query") == [(0.0, 1.0, 1.0), (1.0, 1.0, 1.0)]
    line, headers, body = model.requests[0]
    assert line.startswith(path)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert body == {"model": "m", "input": ["a", "b"], **sent}
    assert made.host in url


async def test_many_texts_go_in_several_calls_and_dimensions_are_learned():
    model = Model(vectors())
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
    async with Model(answer).running() as url:
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
    async with Model(reply(said.encode(), "401 Unauthorized")).running() as url:
        with pytest.raises(TidegateError) as caught:
            await provider_of(settings(url, api_key=key)).embed(["text"], "query")
    assert caught.value.message.endswith("Incorrect API key ***; or ***")


async def test_a_provider_that_is_down_is_named_by_its_host():
    async with Model(cut_off).running() as url:
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
    model = Model(reply(b"", "429 Too Many Requests", **named), reply(b'{"ok": true}'))
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

    model = Model(reply(b"", "503 Service Unavailable"))
    async with model.running() as url:
        with pytest.raises(TidegateError):
            await post_json(Endpoint("openai", url, retries=2), "/x", {}, sleep=sleep)
    assert len(model.requests) == 3


async def test_a_refusal_is_not_tried_again():
    model = Model(reply(b"", "400 Bad Request"))
    async with model.running() as url:
        with pytest.raises(TidegateError):
            await post_json(Endpoint("openai", url, retries=5), "/x", {})
    assert len(model.requests) == 1
