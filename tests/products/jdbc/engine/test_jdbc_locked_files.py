"""A database in a file that another process has open, or that a killed one left locked."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from support import jdbc_cases, jdbc_drivers
from support.permits import permit_for
from tidegate.engines.registry import engine_of, find, open_engine
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.sources import Source
from tidegate.model.statements import Statement

IN_FILES = [name for name in jdbc_cases.PRODUCTS if name in jdbc_drivers.USERS]
SCRIPT = ("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)")


def _source(product: str, url: str, access: Any) -> Source:
    options = {
        "driver_path": jdbc_drivers.driver_path(product),
        "user": jdbc_drivers.USERS[product],
        "jvm_options": jdbc_drivers.QUICK,
    }
    return Source("s", "s", url, *engine_of(url), options=tuple(options.items()), access=access)


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize("product", IN_FILES)
async def test_two_processes_can_open_a_file_where_workers_may_share_it(product, access, tmp_path):
    url = jdbc_drivers.new_database(product, tmp_path, SCRIPT)
    source = _source(product, url, access)
    first: Any = await open_engine(source)
    second: Any = None
    try:
        second = await open_engine(source)
    except TidegateError as error:
        assert "Another process has the database's file open" in error.message
    finally:
        for each in filter(None, (first, second)):
            await each.close()
    is_exclusive = find(url).exclusive_path(url, changes=source.writable) is not None
    assert is_exclusive == (second is None)


@pytest.mark.parametrize("product", IN_FILES)
async def test_a_file_that_is_open_elsewhere_is_named_and_a_lost_lock_is_waited_for(
    product, tmp_path
):
    url = jdbc_drivers.new_database(product, tmp_path, SCRIPT)
    source = _source(product, url, "write")

    async def read() -> list[tuple[int]]:
        request = Query(Statement("SELECT a FROM t"))
        cursor = await engine.run(permit_for(source, request), NEVER)
        try:
            return [tuple(row) for row in await cursor.fetch(2)]
        finally:
            await cursor.close()

    engine: Any = await open_engine(source)
    try:
        with pytest.raises(TidegateError) as caught:
            await open_engine(source)
        assert caught.value.code is Code.SOURCE_UNREACHABLE
        assert "Another process has the database's file open" in caught.value.message
        assert str(tmp_path) not in caught.value.message
        os.kill(engine.process.pid, signal.SIGKILL)
        await engine.process.closed()
        assert await read() == [(1,)]
    finally:
        await engine.close()
