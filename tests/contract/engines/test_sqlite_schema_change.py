"""A large schema that changes underneath is read again off the event loop, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from support.permits import permit_for
from tidegate.engines.sqlite.cursor import ReadyCursor
from tidegate.engines.sqlite.engine import SqliteEngine
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Query
from tidegate.model.sources import Source
from tidegate.model.statements import Statement


def _large(path: Path) -> apsw.Connection:
    made = apsw.Connection(str(path))
    with made:
        for number in range(400):
            columns = ", ".join(f"c{column} TEXT" for column in range(20))
            made.execute(f"CREATE TABLE t{number}({columns})")
        made.execute("INSERT INTO t5(c0) VALUES ('here')")
    return made


def test_a_large_schema_opens_and_comes_back_to_the_lane_after_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To read from it is quick enough on a slow machine, too.
    monkeypatch.setattr("tidegate.engines.sqlite.connection.INLINE_SECONDS", 60.0)
    monkeypatch.setattr("tidegate.engines.sqlite.engine.SLOW_S", 60.0)
    monkeypatch.setattr("tidegate.engines.sqlite.engine.QUICK_S", 60.0)
    made = _large(tmp_path / "large.db")
    source = Source("1", "large", f"sqlite:///{tmp_path}/large.db", "sqlite", "sqlite")
    request = Query(Statement("SELECT c0 FROM t5 WHERE rowid = 1"))
    permit = permit_for(source, request)

    async def scenario() -> None:
        engine = await SqliteEngine.open(source)

        async def read() -> bool:
            """Read the row; whether the event loop's own connection did it."""
            cursor = await engine.run(permit, NEVER)
            assert [tuple(row) for row in await cursor.fetch(2)] == [("here",)]
            await cursor.close()
            return isinstance(cursor, ReadyCursor)

        try:
            await read()
            assert await read()
            made.execute("CREATE TABLE added(x)")
            await read()
            await read()
            assert await read()
        finally:
            await engine.close()

    asyncio.run(scenario())
    made.close()
