"""What a query gives and takes, before it runs."""

from __future__ import annotations

from contextlib import suppress

import pytest

from tidegate.engines.api import can_prepare
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Prepare
from tidegate.model.results import Limits
from tidegate.model.statements import Statement


def _permit(case, text):
    return case.permit(Prepare(Statement(text)), limits=Limits(timeout_s=20))


async def test_the_columns_of_a_query_are_those_of_its_result(case):
    text = case.spelling.table.format(name="items")
    async with case.opened() as engine:
        if not can_prepare(engine):
            assert not hasattr(engine, "prepare")
            return
        before = await case.digest(engine)
        described = await engine.prepare(_permit(case, text), NEVER)
        cursor = await case.start(engine, text)
        await cursor.close()
        assert described.columns == cursor.columns
        assert described.parameters == ()
        assert await case.digest(engine) == before


async def test_each_placeholder_is_a_parameter(case):
    async with case.opened() as engine:
        if can_prepare(engine):
            described = await engine.prepare(_permit(case, case.spelling.echo), NEVER)
            assert len(described.parameters) == 3


async def test_nothing_runs_when_a_query_is_prepared(case):
    async with case.opened() as engine:
        if can_prepare(engine):
            described = await engine.prepare(_permit(case, case.spelling.runaway), NEVER)
            assert len(described.columns) == 1


async def test_what_changes_something_and_what_cannot_be_read_is_not_prepared(case):
    async with case.opened() as engine:
        if not can_prepare(engine):
            return
        before = await case.digest(engine)
        with pytest.raises(TidegateError) as refused:
            await engine.prepare(_permit(case, case.spelling.nonsense), NEVER)
        assert refused.value.code in (Code.SQL_FAILED, Code.POLICY_READ_ONLY, Code.SQL_UNREADABLE)
        add = case.spelling.add
        with suppress(TidegateError):
            await engine.prepare(_permit(case, add), NEVER)
        assert await case.digest(engine) == before


async def test_a_permit_to_prepare_runs_nothing(case):
    async with case.opened() as engine:
        with pytest.raises(TidegateError) as refused:
            await engine.run(_permit(case, case.spelling.one), NEVER)
        assert refused.value.code is Code.UNSUPPORTED
