"""What the workers of a gate share: limits are those of all together, and a database that each
process would have for itself is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from support.command_line import Ended, tidegate
from tidegate.config.sources import SourceSettings
from tidegate.engines.registry import check_share, pool_of
from tidegate.errors import Code, TidegateError
from tidegate.gateway.configured_sources import source_from_settings
from tidegate.identity.request_rate import RequestRate
from tidegate.model import worker_share
from tidegate.model.sources import Source
from tidegate.model.worker_share import WorkerShare
from tidegate.products.cloud.engine.call_limits import CallRates
from tidegate.products.cloud.surface.capacity import Capacity
from tidegate.products.cloud.surface.settings import CloudSurfaceSettings, Server


def source(url: str, **options: str) -> Source:
    return source_from_settings(SourceSettings("shop", url, options=options))


@pytest.mark.parametrize("total", [4, 7, 10, 64])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_parts_of_all_workers_make_up_the_limit(total: int, count: int) -> None:
    parts = [WorkerShare(number, count).of(total) for number in range(1, count + 1)]
    assert sum(parts) == total and max(parts) - min(parts) <= 1
    assert WorkerShare().of(total) == total


def test_an_address_may_send_to_all_workers_what_the_settings_say() -> None:
    def sent(rate: RequestRate) -> int:
        for number in range(1_000):
            try:
                rate.check("10.0.0.1")
            except TidegateError as error:
                assert "600 requests a minute" in error.message
                return number
        raise AssertionError("it is never refused")

    def rate(number: int, count: int) -> RequestRate:
        share = WorkerShare(number, count)
        return RequestRate(600, 60, lambda name, details: None, lambda: 0.0, share)

    assert sent(rate(0, 1)) == 60
    assert sent(rate(1, 2)) + sent(rate(2, 2)) == 60


async def test_a_worker_has_its_part_of_what_providers_and_the_surface_cloud_admit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sent(most: int) -> int:
        rate = CallRates(most).of("tok_1")
        if rate is None:
            return 0
        for number in range(1_000):
            try:
                rate.take(1)
            except TidegateError as error:
                assert error.code is Code.LIMIT_RATE and "one of 2 workers" in error.message
                return number
        raise AssertionError("it is never refused")

    settings = CloudSurfaceSettings(
        server=Server(max_concurrent_requests=2, request_timeout="10ms")
    )
    monkeypatch.setattr(worker_share, "_own", WorkerShare(2, 2))
    assert (sent(11), sent(0)) == (5, 0)
    capacity = Capacity(settings)
    async with capacity.call():
        with pytest.raises(TidegateError, match="max_concurrent_requests"):
            async with capacity.call():
                pass


def test_workers_without_an_address_are_refused(tmp_path: Path) -> None:
    ended = tidegate("serve", "--workers", "2", state=tmp_path)
    assert ended.status != 0 and "2 workers need an address" in ended.err, ended.err


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite://"])
def test_a_database_in_memory_is_refused_by_name(url: str) -> None:
    with pytest.raises(TidegateError, match="`shop` is in the memory of one process") as caught:
        check_share(source(url), WorkerShare(1, 2))
    assert caught.value.code is Code.CONFIG_INVALID
    check_share(source(url), WorkerShare())


@pytest.mark.needs("duckdb")
def test_a_duckdb_in_memory_is_refused() -> None:
    with pytest.raises(TidegateError, match="in the memory of one process"):
        check_share(source("duckdb:///:memory:"), WorkerShare(1, 2))


@pytest.mark.needs("jdbc")
@pytest.mark.parametrize(
    "url", ["jdbc:h2:mem:shop", "jdbc:hsqldb:mem:shop", "jdbc:derby:memory:shop"]
)
def test_a_database_in_the_memory_of_java_is_refused(url: str) -> None:
    with pytest.raises(TidegateError, match="in the memory of one process"):
        check_share(source(url), WorkerShare(1, 2))


def test_a_directory_that_one_process_changes_is_refused_unless_it_is_read_or_at_a_server() -> None:
    def facts(url: str, access: Literal["read", "write", "admin"]) -> Source:
        return source_from_settings(SourceSettings("facts", url, access=access))

    directory = facts("datalevin:///srv/facts", "write")
    with pytest.raises(TidegateError, match="`facts` needs a process that has /srv/facts alone"):
        check_share(directory, WorkerShare(1, 2))
    with pytest.raises(TidegateError, match="that has /srv/facts alone"):
        check_share(facts("datalevin:///srv/facts", "admin"), WorkerShare(1, 2))
    check_share(directory, WorkerShare())
    check_share(facts("datalevin:///srv/facts", "read"), WorkerShare(1, 2))
    check_share(facts("dtlv://u@127.0.0.1/facts", "write"), WorkerShare(1, 2))


@pytest.mark.needs("jdbc")
@pytest.mark.parametrize(
    ("url", "access", "hint"),
    [
        ("jdbc:h2:/srv/shop", "write", "set its access to read"),
        ("jdbc:hsqldb:file:/srv/shop", "write", "set its access to read"),
        ("jdbc:derby:/srv/shop", "write", "at a server of the database or serve"),
        ("jdbc:derby:/srv/shop", "read", "at a server of the database or serve"),
    ],
)
def test_a_file_that_a_java_has_alone_is_refused(url: str, access: Any, hint: str) -> None:
    held = source_from_settings(SourceSettings("shop", url, access=access))
    with pytest.raises(TidegateError, match="`shop` needs a process that has /srv/shop") as caught:
        check_share(held, WorkerShare(1, 2))
    assert hint in caught.value.hint
    check_share(held, WorkerShare())


@pytest.mark.needs("jdbc")
@pytest.mark.parametrize(
    ("url", "access"),
    [
        ("jdbc:h2:/srv/shop", "read"),
        ("jdbc:h2:tcp://127.0.0.1/shop", "write"),
        ("jdbc:hsqldb:file:/srv/shop", "read"),
        ("jdbc:derby://127.0.0.1:1527/shop", "write"),
        ("jdbc:sqlite:/srv/shop.db", "write"),
    ],
)
def test_a_database_that_several_javas_may_open_is_shared(url: str, access: Any) -> None:
    shared = source_from_settings(SourceSettings("shop", url, access=access))
    check_share(shared, WorkerShare(1, 2))


def test_a_pool_of_less_than_a_connection_for_each_worker_is_refused() -> None:
    small = source("postgresql://u@127.0.0.1/shop?pool=3")
    assert pool_of(small) == 3 and pool_of(source("postgresql://u@127.0.0.1/shop")) == 10
    check_share(small, WorkerShare(1, 3))
    with pytest.raises(TidegateError, match="may have 3 connections"):
        check_share(small, WorkerShare(1, 4))


def test_a_gate_with_such_a_source_does_not_start(tmp_path: Path) -> None:
    words = ("serve", "--http", "127.0.0.1:0", "--no-auth", "--workers", "2")
    ended = tidegate(*words, "--source", "shop=sqlite:///:memory:", state=tmp_path / "state")
    assert ended.status == 78
    assert "The source `shop` is in the memory of one process" in ended.err


def test_the_check_of_settings_shows_what_workers_divide_and_refuses_what_they_cannot(
    tmp_path: Path,
) -> None:
    def checked(url: str) -> Ended:
        sources = [{"name": "shop", "url": url}]
        given = json.dumps({"workers": 4, "sources": sources})
        return tidegate("config", "check", "--config", given, state=tmp_path / "state")

    shown = checked("postgresql://u@127.0.0.1/shop?pool=8")
    assert shown.status == 0 and "4 workers x 2 = 8 connections" in shown.err
    refused = checked("postgresql://u@127.0.0.1/shop?pool=3")
    assert refused.status == 78 and "may have 3 connections" in refused.err
