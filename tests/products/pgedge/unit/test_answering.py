"""Questions and statements without a model: what is run, and what the calling agent is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from products.pgedge.support.asking import AGENT, GateCaller, opened_shop
from tidegate.app import App
from tidegate.errors import Code, TidegateError
from tidegate.products.pgedge.text_to_sql.answering import answer
from tidegate.products.pgedge.text_to_sql.model import Answer, Question


def ask(directory: Path, question: Question, **settings: Any) -> Answer:
    async def work() -> Answer:
        async with opened_shop(directory, **settings) as app:
            return await answer(GateCaller(app), question)

    return asyncio.run(work())


def rows(answer: Answer) -> bytes:
    assert answer.page is not None
    return answer.page.rows


def test_a_statement_runs_as_it_was_sent(tmp_path: Path) -> None:
    sql = "SELECT full_name FROM customers WHERE city = 'London' -- a;b"
    found = ask(tmp_path, Question(text=sql))
    assert (found.origin, found.sql, rows(found)) == ("sql", sql, b'[["Ada Lovelace"]]')


@pytest.mark.parametrize(
    "text",
    ["DELETE FROM orders", "SELECT 1; DELETE FROM orders", "UPDATE orders SET total = 0"],
)
@pytest.mark.parametrize("access", ["read", "write"])
def test_a_statement_that_writes_is_refused_whatever_the_source_allows(
    tmp_path: Path, text: str, access: str
) -> None:
    with pytest.raises(TidegateError) as refused:
        ask(tmp_path, Question(text=text), access=access)
    assert refused.value.code in (Code.POLICY_READ_ONLY, Code.SQL_MULTIPLE)
    assert rows(ask(tmp_path, Question(text="SELECT count(*), sum(total) FROM orders"))) == (
        b"[[3,200.5]]"
    )


@pytest.mark.parametrize(
    "text",
    [
        "Which customers placed orders?",
        "Select the best customers",
        "select all customers from Berlin",
        "Show me all active users",
        "with orders in mind, who paid most",
        "table for two",
        "كم عدد الطلبات لكل عميل؟",
    ],
)
def test_a_question_without_a_model_gives_what_is_needed_to_write_the_statement(
    tmp_path: Path, text: str
) -> None:
    found = ask(tmp_path, Question(text=text))
    assert found.guide is not None
    assert found.sql is None
    assert "customer_id int>customers.id" in found.guide.schema
    assert any("SQLite" in rule for rule in found.guide.rules)


def test_a_statement_with_a_mistake_is_no_question(tmp_path: Path) -> None:
    with pytest.raises(TidegateError) as refused:
        ask(tmp_path, Question(text="SELECT * FORM orders"))
    assert refused.value.code is Code.SQL_UNREADABLE
    assert rows(ask(tmp_path, Question(text="-- total\nSELECT 1"))) == b"[[1]]"


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_an_empty_question_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(TidegateError) as refused:
        ask(tmp_path, Question(text=text))
    assert refused.value.code is Code.QUESTION_EMPTY


def test_a_question_of_a_megabyte_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TidegateError) as refused:
        ask(tmp_path, Question(text="how many orders " * 65_536))
    assert refused.value.code is Code.QUESTION_TOO_LONG


def test_masked_columns_are_left_out_of_what_an_agent_is_told(tmp_path: Path) -> None:
    masks = [{"column": "customers.email", "show": "hash"}]
    found = ask(tmp_path, Question(text="Which email has each customer?"), masks=masks)
    assert found.guide is not None
    assert "full_name" in found.guide.schema
    assert "email" not in found.guide.schema


def test_a_caller_is_told_of_no_table_that_it_may_not_see(tmp_path: Path) -> None:
    from msgspec import structs

    async def work(app: App) -> Answer:
        actor = structs.replace(AGENT, tables=frozenset({"customers"}))
        return await answer(GateCaller(app, actor), Question(text="orders of customers"))

    found = asyncio.run(_with_shop(tmp_path, work))
    assert found.guide is not None
    assert found.tables == ("customers",)
    assert "orders" not in found.guide.schema


async def _with_shop(directory: Path, work: Callable[[App], Coroutine[Any, Any, Answer]]) -> Answer:
    async with opened_shop(directory) as app:
        return await work(app)
