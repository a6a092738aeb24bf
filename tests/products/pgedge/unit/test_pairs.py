"""Confirmed pairs: who confirms, what they answer, when they lapse."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec import structs

from products.pgedge.support.asking import AGENT, PERSON, GateCaller, opened_shop
from products.pgedge.support.scripted_model import ScriptedModel, scripted, wrote
from tidegate.app import App
from tidegate.errors import Code, TidegateError
from tidegate.model.actors import Scope
from tidegate.products.pgedge.text_to_sql.answering import answer
from tidegate.products.pgedge.text_to_sql.model import Answer, Question
from tidegate.products.pgedge.text_to_sql.pair_import import import_pairs, read_pairs
from tidegate.products.pgedge.text_to_sql.pairs import check_pairs, confirm, export
from tidegate.products.pgedge.text_to_sql.slots import make_pattern, match
from tidegate.store.records import PairEntry

T = TypeVar("T")

ASKED = "How many orders since 2026-01-03 have customers in 'London'?"
SQL = (
    "SELECT count(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id"
    " WHERE o.placed_at >= '2026-01-03' AND c.city = 'London'"
)


def work(directory: Path, model: ScriptedModel, run: Callable[[App], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with opened_shop(directory, {"model": model.settings()}) as app:
            return await run(app)

    return asyncio.run(whole())


async def confirmed(app: App, text: str = ASKED) -> PairEntry:
    found = await answer(GateCaller(app), Question(text=text))
    assert found.handle is not None, found.refusal
    return await confirm(GateCaller(app, PERSON), "shop", found.handle)


def n(found: Answer) -> bytes:
    assert found.page is not None, found.refusal
    return found.page.rows


def test_a_confirmed_question_is_answered_without_a_model_also_with_other_values(
    tmp_path: Path,
) -> None:
    async def run(app: App) -> tuple[PairEntry, list[Answer]]:
        pair = await confirmed(app)
        asked = [
            ASKED,
            "how many  orders since 2026-01-01 have customers in 'London'",
            "How many orders since 2026-01-01 have customers in london?",
            "How many orders since 2026-01-01 have customers in 'Nowhere'?",
        ]
        return pair, [await answer(GateCaller(app), Question(text=text)) for text in asked]

    with scripted(wrote(SQL)) as model:
        pair, found = work(tmp_path, model, run)
    assert len(model.prompts) == 1
    assert "London" not in pair.sql + pair.question
    assert [(slot.kind, slot.column) for slot in pair.slots] == [
        ("date", ""),
        ("text", "main.customers.city"),
    ]
    assert [each.origin for each in found] == ["pair"] * 4
    assert [n(each) for each in found] == [b"[[1]]", b"[[2]]", b"[[2]]", b"[[0]]"]


@pytest.mark.parametrize(
    "text",
    [
        "How many orders since 2026-01-03 have customers in the North?",
        "How many orders since yesterday have customers in 'London'?",
        "How many orders since 2026-02-31 have customers in 'London'?",
        "How many big orders since 2026-01-03 have customers in 'London'?",
    ],
)
def test_another_question_goes_to_the_model(tmp_path: Path, text: str) -> None:
    async def run(app: App) -> Answer:
        await confirmed(app)
        return await answer(GateCaller(app), Question(text=text))

    with scripted(wrote(SQL)) as model:
        found = work(tmp_path, model, run)
    assert found.origin == "model"
    assert "{1:date}" in model.prompts[1].text
    assert "Confirmed before" in model.prompts[1].text


@pytest.mark.parametrize("value", ["x' OR '1'='1", "'; DROP TABLE orders; --"])
def test_a_value_stays_a_value(tmp_path: Path, value: str) -> None:
    async def run(app: App) -> Answer:
        await confirmed(app)
        text = f'How many orders since 2026-01-01 have customers in "{value}"?'
        return await answer(GateCaller(app), Question(text=text))

    with scripted(wrote(SQL)) as model:
        found = work(tmp_path, model, run)
    assert (found.origin, n(found)) == ("pair", b"[[0]]")


def test_only_a_person_or_full_access_confirms(tmp_path: Path) -> None:
    async def run(app: App) -> tuple[list[Code], PairEntry]:
        found = await answer(GateCaller(app), Question(text=ASKED))
        codes: list[Code] = []
        for scope in (Scope.READ_ONLY, Scope.READ_WRITE):
            with pytest.raises(TidegateError) as refused:
                actor = structs.replace(AGENT, scope=scope)
                await confirm(GateCaller(app, actor), "shop", str(found.handle))
            codes.append(refused.value.code)
        assert app.state.questions.pairs(app.connections.sources()[0].id) == ()
        trusted = structs.replace(AGENT, scope=Scope.FULL_ACCESS)
        return codes, await confirm(GateCaller(app, trusted), "shop", str(found.handle))

    with scripted(wrote(SQL)) as model:
        codes, pair = work(tmp_path, model, run)
    assert codes == [Code.POLICY_SCOPE, Code.POLICY_SCOPE]
    assert pair.confirmed_by == "agent"


def test_a_pair_is_not_used_for_a_caller_who_may_not_see_its_tables(tmp_path: Path) -> None:
    async def run(app: App) -> Answer:
        await confirmed(app)
        actor = structs.replace(AGENT, tables=frozenset({"customers"}))
        return await answer(GateCaller(app, actor), Question(text=ASKED))

    with scripted(wrote(SQL), wrote(SQL)) as model:
        found = work(tmp_path, model, run)
    assert found.refusal is not None
    assert all("{1:date}" not in prompt.text for prompt in model.prompts)


def test_a_pair_lapses_when_a_table_of_it_changes(tmp_path: Path) -> None:
    def change(statement: str) -> None:
        connection = sqlite3.connect(tmp_path / "shop.db")
        connection.execute(statement)
        connection.commit()
        connection.close()

    async def states(app: App) -> list[str]:
        return [each.state for each in await check_pairs(GateCaller(app, PERSON), "shop")]

    async def run(app: App) -> tuple[list[list[str]], Answer]:
        await confirmed(app)
        total = await confirmed(app, "What is the total of all orders?")
        assert total.slots == ()
        seen = [await states(app)]
        change("INSERT INTO orders VALUES (9, 1, '2026-01-09', 5)")
        seen.append(await states(app))
        change("ALTER TABLE orders ADD COLUMN status TEXT")
        seen.append(await states(app))
        return seen, await answer(GateCaller(app), Question(text=ASKED))

    with scripted(wrote(SQL), wrote("SELECT sum(total) AS t FROM orders"), wrote(SQL)) as model:
        seen, found = work(tmp_path, model, run)
    assert seen == [["runs", "same"], ["runs", "differs"], ["lapsed", "lapsed"]]
    assert found.origin == "model"


def test_pairs_are_exported_with_ids_that_stay(tmp_path: Path) -> None:
    import yaml

    async def run(app: App) -> PairEntry:
        return await confirmed(app)

    with scripted(wrote(SQL)) as model:
        pair = work(tmp_path, model, run)
        other = (
            work(tmp_path / "again", model, run) if (tmp_path / "again").mkdir() is None else pair
        )
    assert pair.id == other.id
    (listed,) = yaml.safe_load(export([pair]))["pairs"]
    assert (listed["id"], listed["sql"], listed["tables"]) == (
        pair.id,
        pair.sql,
        ["main.customers", "main.orders"],
    )


def test_a_value_that_is_in_the_question_twice_is_no_slot() -> None:
    pattern = make_pattern("Top 5 of the 5 regions", "SELECT 1 FROM t LIMIT 5", None, "sqlite")
    assert pattern.slots == ()
    pattern = make_pattern("Top 5 regions", "SELECT 5.0 FROM t LIMIT 5", None, "sqlite")
    assert pattern.sql == "SELECT 5.0 FROM t LIMIT {1:number}"
    pair = PairEntry("p", "s", pattern.question, pattern.sql, pattern.slots, (), "", "", "", 0.0)
    filled = match(pair, "top 12 regions?")
    assert filled is not None
    assert [each.value for each in filled] == ["12"]
    assert match(pair, "top twelve regions?") is None


def test_what_was_exported_is_imported_elsewhere_and_answers_there(tmp_path: Path) -> None:
    async def leave(app: App) -> str:
        return export([await confirmed(app), await confirmed(app, "What is the total?")])

    async def arrive(app: App) -> tuple[list[PairEntry], str, Answer, list[str]]:
        person = GateCaller(app, PERSON)
        kept = await import_pairs(person, "shop", read_pairs(text))
        again = await import_pairs(person, "shop", read_pairs(text))
        assert [pair.id for pair in again] == [pair.id for pair in kept]
        states = [each.state for each in await check_pairs(person, "shop")]
        asked = Question(text="How many orders since 2026-01-01 have customers in 'London'?")
        pairs = app.state.questions.pairs(app.connections.sources()[0].id)
        return kept, export(pairs), await answer(GateCaller(app), asked), states

    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    with scripted(wrote(SQL), wrote("SELECT sum(total) AS t FROM orders")) as model:
        text = work(tmp_path / "here", model, leave)
        kept, exported, found, states = work(tmp_path / "there", model, arrive)
    assert len(model.prompts) == 2
    assert len(kept) == 2
    assert exported.replace("confirmed_by: cli", "") == text.replace("confirmed_by: cli", "")
    assert (found.origin, n(found)) == ("pair", b"[[2]]")
    assert sorted(states) == ["runs", "same"]


GOOD = "pairs:\n- {question: 'How many orders?', sql: 'SELECT count(*) FROM orders'}\n"


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("- {question: 'Delete?', sql: 'DELETE FROM orders'}", "cannot be kept"),
        ("- {question: 'Two?', sql: 'SELECT 1; SELECT 2'}", "cannot be kept"),
        ("- {question: 'Gone?', sql: 'SELECT 1 FROM nowhere'}", "cannot be kept"),
        ("- {question: 'None?', sql: 'SELECT 1'}", "which tables"),
        ("- {question: 'In {1:text}?', sql: 'SELECT {1:text} FROM orders'}", "slots"),
        ("- {question: 'How many  orders', sql: 'SELECT 5 FROM orders'}", "twice"),
        ("- {question: 'A?', sql: 'SELECT 1 FROM orders', colour: red}", "colour"),
        ("- {question: 'A?'}", "sql"),
        ("- [", "not one of"),
    ],
)
def test_if_one_question_of_a_file_cannot_be_kept_none_is(
    tmp_path: Path, bad: str, said: str
) -> None:
    async def run(app: App) -> tuple[str, int]:
        with pytest.raises(TidegateError) as refused:
            await import_pairs(GateCaller(app, PERSON), "shop", read_pairs(f"{GOOD}{bad}\n"))
        source = app.connections.sources()[0]
        return refused.value.message, len(app.state.questions.pairs(source.id))

    with scripted("") as model:
        message, count = work(tmp_path, model, run)
    assert said in message
    assert count == 0


def test_an_agent_imports_nothing(tmp_path: Path) -> None:
    async def run(app: App) -> int:
        with pytest.raises(TidegateError) as refused:
            await import_pairs(GateCaller(app), "shop", read_pairs(GOOD))
        assert refused.value.code is Code.POLICY_SCOPE
        return len(app.state.questions.pairs(app.connections.sources()[0].id))

    with scripted("") as model:
        assert work(tmp_path, model, run) == 0
