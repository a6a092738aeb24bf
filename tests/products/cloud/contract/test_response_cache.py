"""Replies that are kept for some seconds: for whom, until when, and what says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from support.cloud_api import Farm, Reply
from support.permits import permit_for
from tidegate.engines.api import Engine
from tidegate.engines.registry import engine_of, language_of, open_engine
from tidegate.errors import TidegateError
from tidegate.http_client.rules import HttpResponse
from tidegate.model.actors import Actor, Scope
from tidegate.model.cancellation import Cancellation
from tidegate.model.requests import Query
from tidegate.model.results import UpstreamUse
from tidegate.model.sources import Source
from tidegate.model.statements import Statement
from tidegate.products.cloud.engine.response_cache import CacheKey, ResponseCache
from tidegate.products.cloud.http.requests import ApiRequest

ADA = Actor("ada", "ada", Scope.FULL_ACCESS)
BOB = Actor("bob", "bob", Scope.FULL_ACCESS)
LIST = "SELECT count(*) FROM farm.live.animals"


class Asked:
    """One open source with a cache."""

    def __init__(self, source: Source, engine: Engine) -> None:
        self._source = source
        self._engine = engine
        self.used = UpstreamUse(0, 0)

    async def __call__(self, text: str, actor: Actor = ADA) -> list[tuple[Any, ...]]:
        query = Query(Statement(text))
        effect = language_of(self._source).classify(query, self._source).effect
        permit = permit_for(self._source, query, effect, actor=actor)
        cursor = cast("Any", await self._engine.run(permit, Cancellation()))
        try:
            rows: list[Any] = []
            while some := await cursor.fetch(1_000):
                rows += some
        finally:
            await cursor.close()
            self.used = cursor.upstream
        return [tuple(row) for row in rows]


@asynccontextmanager
async def cached(registry: Path, farm: Farm, **options: str) -> AsyncIterator[Asked]:
    url = f"cloud://{registry}"
    given = (*farm.options, *({"cache_seconds": "600"} | options).items())
    source = Source("c", "c", url, *engine_of(url), access="write", options=given)
    engine = await open_engine(source)
    try:
        yield Asked(source, engine)
    finally:
        await engine.close()


async def test_without_the_option_nothing_is_kept(registry: Path, farm: Farm) -> None:
    async with cached(registry, farm, cache_seconds="0") as ask:
        assert await ask(LIST) == await ask(LIST) == [(12,)]
        assert farm.paths() == ["/animals", "/animals"]
        assert ask.used.hits == 0


async def test_a_list_is_kept_whole_with_other_columns_and_says_how_old_it_is(
    registry: Path, farm: Farm
) -> None:
    async with cached(registry, farm) as ask:
        assert await ask("SELECT sum(n) FROM farm.live.numbers WHERE list = '3'") == [(123,)]
        assert ask.used.hits == 0 and len(farm.paths()) == 3
        rows = await ask("SELECT DISTINCT list FROM farm.live.numbers WHERE list = '3' AND n > 1")
        assert rows == [("3",)]
        assert (ask.used.calls, ask.used.hits) == (0, 1) and ask.used.age_s >= 0
        assert await ask("SELECT name FROM farm.live.animals WHERE id IN (99, 2)")
        assert await ask("SELECT name FROM farm.live.animals WHERE id IN (2, 99, 3)")
        assert (ask.used.calls, ask.used.hits) == (1, 2)  # that there is no 99 is kept as well


async def test_nothing_is_kept_of_a_list_that_failed_or_was_not_read_to_its_end(
    registry: Path, farm: Farm
) -> None:
    farm.special["/pages/40?page=3"] = lambda count: Reply(500, {"message": "no"})
    async with cached(registry, farm) as ask:
        with pytest.raises(TidegateError):
            await ask("SELECT count(*) FROM farm.live.numbers WHERE list = '40'")
        del farm.special["/pages/40?page=3"]
        assert len(await ask("SELECT n FROM farm.live.numbers WHERE list = '40' LIMIT 2")) == 2
        assert await ask("SELECT count(*) FROM farm.live.numbers WHERE list = '40'") == [(80,)]
        assert ask.used.hits == 0


async def test_another_caller_and_a_statement_that_says_fresh_ask_the_provider(
    registry: Path, farm: Farm
) -> None:
    async with cached(registry, farm) as ask:
        await ask(LIST)
        await ask(LIST, BOB)
        assert ask.used.hits == 0
        await ask(LIST, BOB)
        assert ask.used.hits == 1
        await ask(LIST.replace("SELECT", "SELECT /*+ FRESH */"), BOB)
        assert ask.used.hits == 0
        assert farm.paths() == ["/animals"] * 3


async def test_a_changed_secret_gets_no_reply_of_the_one_before(
    registry: Path, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (
        f'{{"endpoints": {{"https://api.farm.example": "{farm.url}"}},'
        ' "providers": {"farm": {"auth": {"type": "bearer", "credentialsenvvar": "FARM_TOKEN"}}}}'
    )
    monkeypatch.setenv("FARM_TOKEN", "first-secret")
    async with cached(registry, farm, settings=settings) as ask:
        await ask(LIST)
        await ask(LIST)
        monkeypatch.setenv("FARM_TOKEN", "second-secret")
        await ask(LIST)
        assert ask.used.hits == 0
        assert farm.logins == ["Bearer first-secret", "Bearer second-secret"]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM farm.live.animals WHERE id = 5",
        "EXEC farm.live.animals.feed @id = 3",
        "DELETE FROM farm.live.animals WHERE id = 500",
    ],
    ids=["delete", "exec", "failed"],
)
async def test_a_change_drops_what_is_kept_of_its_provider_for_everyone(
    registry: Path, farm: Farm, change: str
) -> None:
    async with cached(registry, farm) as ask:
        await ask(LIST)
        await ask(LIST, BOB)
        try:
            await ask(change)
        except TidegateError as error:
            assert "404" in error.message
        expected = [(len(farm.animals),)]
        assert await ask(LIST) == await ask(LIST, BOB) == expected
        assert farm.paths() == ["/animals"] * 4


KEY = CacheKey("a", "", b"", "m", "GET", "u", (), None)


def _reply(size: int) -> tuple[ApiRequest, HttpResponse]:
    return ApiRequest("GET", "u", (), None, False), HttpResponse(200, {}, b"x" * size, "u")


def test_the_cache_keeps_the_latest_used_within_its_size_and_its_time() -> None:
    now = [0.0]
    cache = ResponseCache(10, 100_000, lambda: now[0])
    for name in ("a", "b", "c"):
        cache.keep(KEY._replace(url=name), "p", cache.begin("p"), [_reply(30_000)])
    assert cache.find(KEY._replace(url="a"))
    cache.keep(KEY._replace(url="d"), "p", cache.begin("p"), [_reply(30_000)])
    assert cache.find(KEY._replace(url="b")) is None
    cache.keep(KEY._replace(url="e"), "p", cache.begin("p"), [_reply(100_000)])
    assert cache.find(KEY._replace(url="e")) is None
    now[0] = 9.0
    found = cache.find(KEY._replace(url="a"))
    assert found is not None and found[1] == 9.0
    now[0] = 10.0
    assert cache.find(KEY._replace(url="a")) is None


def test_a_reply_that_was_asked_for_before_a_change_ended_is_not_kept() -> None:
    cache = ResponseCache(10, 100_000)
    mark = cache.begin("p")
    other = cache.begin("q")
    cache.drop("p")
    cache.keep(KEY, "p", mark, [_reply(1)])
    cache.keep(KEY._replace(url="q"), "q", other, [_reply(1)])
    assert cache.find(KEY) is None
    assert cache.find(KEY._replace(url="q"))
