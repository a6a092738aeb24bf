"""Providers of embeddings that fail, as a caller of the surface `postgres` meets them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from support.postgres_surface import PostgresShop, SurfaceUnderTest, served

KEY = "sk-live-0123456789abcdef0123456789"
SCRIPT = """
CREATE EXTENSION vector;
CREATE TABLE notes (id integer PRIMARY KEY, body text, body_embedding vector(3));
INSERT INTO notes VALUES (1, 'Blue shoes', '[1, 1, 1]'), (2, 'A straw hat', '[1, 1, 0]');
CREATE TABLE nothing (id integer PRIMARY KEY, body text, body_embedding vector(3));
"""


@pytest.fixture(scope="module")
def shop() -> Iterator[PostgresShop]:
    shop = PostgresShop.lasting(SCRIPT)
    yield shop
    shop.drop()


async def zeros(writer: asyncio.StreamWriter, *_: object) -> None:
    await reply(b'{"data": [{"embedding": [0, 0, 0]}]}')(writer, {}, {})


def play(
    directory: Path,
    shop: PostgresShop,
    answer: Answer,
    calls: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    surface: dict[str, Any] | None = None,
    **settings: Any,
) -> list[str]:
    """The texts of these tool calls, one after the other."""
    monkeypatch.setenv("MODEL_KEY", KEY)

    async def run() -> list[str]:
        async with EmbeddingServer(answer).running() as url:
            model: dict[str, Any] = {
                "provider": "openai",
                "base_url": url,
                "model": "m",
                "retries": 0,
                "api_key": "${ENV:MODEL_KEY}",
                "timeout_s": 20,
                **settings,
            }
            own = {"embeddings": model, "surface": surface or {}}
            async with served(directory, shop, **own) as served_:
                return [await _text(served_, tool, given) for tool, given in calls]

    return asyncio.run(run())


async def _text(surface: SurfaceUnderTest, tool: str, arguments: dict[str, Any]) -> str:
    peer = await surface.peer()
    found = await peer.request("tools/call", name=tool, arguments=arguments)
    if "error" in found:
        return f"{found['error']['code']} {found['error']['message']}"
    (block,) = found["result"]["content"]
    return f"{'error ' if found['result'].get('isError') else ''}{block['text']}"


EMBED = ("generate_embedding", {"text": "blue shoes"})
SEARCH = ("similarity_search", {"table_name": "notes", "query_text": "blue shoes"})


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (reply(b"<html>Sign in</html>", kind="text/html"), "provider.invalid_reply"),
        (reply(b"", "429 Too Many Requests"), "provider.rate_limited"),
        (reply(b"", "429 Too Many Requests", retry_after="7200"), "provider.rate_limited"),
        (reply(b"", "500 Internal Server Error"), "provider.failed"),
        (reply(f'{{"error": "bad key {KEY}"}}'.encode(), "401 No"), "provider.refused"),
        (cut_off, "provider.cut_off"),
        (endless, "provider.too_large"),
        (silent, "provider.timeout"),
        (zeros, "provider.invalid_reply"),
        (vectors(dimensions=5), "embedding.dimension"),
    ],
)
def test_each_fault_has_its_code_in_both_tools_and_shows_no_key(
    tmp_path: Path,
    shop: PostgresShop,
    answer: Answer,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = {"timeout_s": 0.3} if answer is silent else {}
    settings = {"dimensions": 3, **slow}
    for text in play(tmp_path, shop, answer, [EMBED, SEARCH], monkeypatch, **settings):
        assert text.startswith(f"error {code}"), text
        assert KEY not in text
        assert "0123456789abcdef" not in text
    log = "".join(file.read_text() for file in (tmp_path / "state").rglob("*.jsonl"))
    assert code in log
    assert KEY not in log


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_how_long_a_provider_asks_to_wait_is_said(
    tmp_path: Path, shop: PostgresShop, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = reply(b"", status, retry_after="7200")
    for detail, said in (
        ("development", "Retry in 7,200 s, as the provider asks."),
        ("production", "The model could not be asked. Retry in 7,200 s. Correlation id: "),
    ):
        own = {"postgres": {"error_detail": detail}}
        for text in play(
            tmp_path, shop, answer, [EMBED, SEARCH], monkeypatch, surface=own, dimensions=3
        ):
            assert said in text


def test_a_model_of_another_size_than_the_column_is_an_error_in_the_search_alone(
    tmp_path: Path, shop: PostgresShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded, searched = play(tmp_path, shop, vectors(dimensions=5), [EMBED, SEARCH], monkeypatch)
    assert "Dimensions: 5" in embedded
    assert searched.startswith("error embedding.dimension")
    assert "have 3 dimensions" in searched


def test_a_search_without_an_index_or_without_rows_says_how_it_was_made(
    tmp_path: Path, shop: PostgresShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = ("similarity_search", {"table_name": "nothing", "query_text": "blue shoes"})
    found, none = play(tmp_path, shop, vectors(), [SEARCH, empty], monkeypatch)
    assert "body_embedding (cosine, weight 1.00, exact)" in found
    assert "Total: 2 chunks" in found
    assert "Rank: 1 by vectors, 1 by words\n" in found
    assert "Rank: 2 by vectors\n" in found
    assert "Total: 0 chunks" in none


def test_a_text_of_a_megabyte_is_refused_before_it_is_sent(
    tmp_path: Path, shop: PostgresShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "shoe " * 209_716
    calls = [(tool, {**given, key: long}) for (tool, given), key in (
        (EMBED, "text"), (SEARCH, "query_text"))]  # fmt: skip
    embedded, searched = play(tmp_path, shop, endless, calls, monkeypatch)
    for text in (embedded, searched):
        assert "provider." not in text
        assert len(text) < 2_000
    assert "1,048,580 characters" in embedded
    assert "query_text" in searched


def test_a_caller_that_has_used_its_share_is_told_when_it_may_go_on(
    tmp_path: Path, shop: PostgresShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"characters_per_day": 15, "calls_per_minute": 3}
    *given, spent, often = play(
        tmp_path, shop, vectors(), [EMBED, EMBED, EMBED, EMBED], monkeypatch, **settings
    )
    assert all("Dimensions: 3" in text for text in given)
    assert spent.startswith("error model.limit")
    assert "Wait until tomorrow (UTC)" in spent
    assert often.startswith("error limit.rate")
    assert "Wait " in often
