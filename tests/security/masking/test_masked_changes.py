"""Changes of tables with masked columns: those that neither read nor write what is hidden run, and
no other; nothing hidden is in what they return, move or say."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from support.masking_changes import MASKS, cases, script
from support.masking_shop import ENGINES, Side, make, opened, row_texts
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.statements import Effect
from tidegate.sql.judge import judge

RULES = DataRules(masks=MASKS)
HIDDEN = ("people", "watched", "accounts", "holders")
OPEN = ("copies", "logins", "places")


class Changed:
    """A fresh database of one engine for each use, within one event loop."""

    def __init__(self, engine: str, directory: Path) -> None:
        self.engine = engine
        self._directory = directory
        self._made = 0

    async def side(self, stack: AsyncExitStack) -> Side:
        self._made += 1
        url = make(self.engine, self._directory, f"made{self._made}", script(self.engine))
        (side,) = await stack.enter_async_context(opened(url))
        return side


@pytest.fixture(params=ENGINES)
def changed(request: pytest.FixtureRequest, tmp_path: Path) -> Changed:
    return Changed(request.param, tmp_path)


async def _hidden(side: Side) -> list[list[str]]:
    return [
        row_texts((await side.ask(f"SELECT * FROM {table} ORDER BY 1"))[1])
        for table in (*HIDDEN, *OPEN)
    ]


def test_a_change_that_could_read_or_write_what_is_masked_is_refused(changed: Changed) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            side = await changed.side(stack)
            before = await _hidden(side)
            let_through: list[str] = []
            for text in cases(changed.engine, "!"):
                try:
                    side.rewritten(text, RULES)
                    let_through.append(text)
                except TidegateError as error:
                    assert error.code is Code.POLICY_MASKED, text
                    assert "secret" not in error.message, text
            assert let_through == []
            assert await _hidden(side) == before

    asyncio.run(scenario())


def test_a_change_beside_masked_columns_runs_as_it_was_written(changed: Changed) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            side = await changed.side(stack)
            for text in cases(changed.engine, "="):
                masked = side.masked(text, RULES)
                assert masked.text == text
                assert judge(text, side.dialect).effect in (Effect.WRITE, Effect.DESTRUCTIVE), text
                _, rows = await side.ask(masked, Effect.WRITE)
                assert "secret" not in repr(row_texts(rows)), text
            for table in OPEN:
                found = row_texts((await side.ask(f"SELECT * FROM {table}"))[1])
                assert "secret" not in repr(found), table
            mails = (await side.ask("SELECT email FROM people WHERE id IN (1, 2) ORDER BY id"))[1]
            assert mails == [("secret1@mail.example",), ("secret2@mail.example",)]

    asyncio.run(scenario())


def test_a_table_with_masked_columns_and_triggers_is_not_changed(changed: Changed) -> None:
    if changed.engine == "duckdb":  # has no triggers, so nothing reacts
        return

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            side = await changed.side(stack)
            with_triggers = {table.name for table in side.catalog.tables if table.may_react}
            assert with_triggers == {"watched"}
            version = await side.engine.schema_version()
            drop = "DROP TRIGGER watching"
            drop += " ON watched" if changed.engine == "postgres" else ""
            await side.ask(drop, Effect.ADMIN)
            assert await side.engine.schema_version() != version
            await side.look()
            assert side.rewritten("UPDATE watched SET status = 'x'", RULES)

    asyncio.run(scenario())
