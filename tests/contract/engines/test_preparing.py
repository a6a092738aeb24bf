"""What a query gives and takes, before it runs."""

from __future__ import annotations

from contextlib import suppress

import pytest
from msgspec import structs

from tidegate.engines.api import can_prepare
from tidegate.errors import Code, TidegateError
from tidegate.model.cancellation import NEVER
from tidegate.model.requests import Prepare
from tidegate.model.results import Limits
from tidegate.model.statements import Effect, Statement

UNDESCRIBED = {"duckdb", "files", "jdbc-mariadb", "memory", "mysql"}
"""Engines that know the columns of a change only when it has run: MariaDB prepares one with
RETURNING as if it gave none."""


def _permit(case, text):
    return case.permit(Prepare(Statement(text)), limits=Limits(timeout_s=20))


def _known(columns, case):
    """The columns, as far as they are known before there is a row: SQLite's driver finds the class
    of a column in its values."""
    if case.name != "jdbc-sqlite":
        return columns
    return tuple([structs.replace(each, driver_type=None) for each in columns])


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
        assert _known(described.columns, case) == _known(cursor.columns, case)
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


async def test_a_change_that_returns_rows_is_described_without_running_it(case):
    text = case.spelling.add_and_return
    async with case.opened() as engine:
        if not can_prepare(engine) or not text:
            return
        before = await case.digest(engine)
        permit = case.permit(Prepare(Statement(text), changes=True), limits=Limits(timeout_s=20))
        try:
            described = await engine.prepare(permit, NEVER)
        except TidegateError as refused:  # an engine may know the columns only when it has run
            assert refused.code in (Code.UNSUPPORTED, Code.POLICY_READ_ONLY)
            assert case.name in UNDESCRIBED
            return
        assert case.name not in UNDESCRIBED
        cursor = await case.start(engine, text, (2, "two"), effect=Effect.WRITE)
        await cursor.close()
        assert _known(described.columns, case) == _known(cursor.columns, case)
        assert len(described.parameters) == 2
        assert await case.digest(engine) == before
