"""MariaDB's engine runs nothing as a read that changes its server, with no judgement before it:
whatever a statement is, its data, schema, accounts, settings and files stay as they were.

That the judge calls nothing a read that changes something, `tests/read_only_fuzz` shows.
"""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import support.mysql_server as mysql_server
from support.engine_cases import CASES
from support.judge_cases import load
from tidegate.errors import TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Explain, Query
from tidegate.model.results import Limits
from tidegate.model.statements import Effect, Statement

pytestmark = pytest.mark.skipif(not mysql_server.available(), reason="needs mariadb-server-core")

LIMITS = Limits(max_rows=50, timeout_s=0.3)


def test_nothing_that_the_engine_runs_as_a_read_changes_the_server(tmp_path) -> None:
    case = CASES["mysql"].prepare(tmp_path)

    async def attempt(engine, request) -> None:
        with contextlib.suppress(TidegateError):
            cursor = await engine.run(case.permit(request, Effect.READ, LIMITS), NEVER)
            await cursor.fetch(50)
            await cursor.close()

    async def work() -> None:
        async with case.opened() as engine:
            before = await case.digest(engine)
            for text in (one.sql for one in load()):
                statement = Statement(text)
                await attempt(engine, Query(statement, limits=LIMITS))
                await attempt(engine, Explain(statement, limits=LIMITS))
                with contextlib.suppress(TidegateError):
                    await case.inspect(engine, statement.text)
            assert await case.digest(engine) == before

    asyncio.run(work())
