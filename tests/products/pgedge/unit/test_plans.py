"""Costs of plans: what each database says, and that what costs too much is shown and not run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from products.pgedge.support.asking import GateCaller, opened_shop
from products.pgedge.support.scripted_model import ScriptedModel, scripted, wrote
from support import postgres_server
from tidegate.errors import Code
from tidegate.model.requests import Query
from tidegate.model.results import Column, Page
from tidegate.products.pgedge.text_to_sql.answering import answer
from tidegate.products.pgedge.text_to_sql.model import Answer, Question
from tidegate.products.pgedge.text_to_sql.plans import read_plan

SQL = "SELECT count(*) FROM generate_series(1, 1000) a JOIN lines b ON b.n = a.a"


def plan(names: str, *rows: list[object]) -> Page:
    return Page(
        tuple(Column(name, "") for name in names.split()), msgspec.json.encode(rows), len(rows)
    )


@pytest.mark.parametrize(
    ("page", "cost"),
    [
        (
            plan("QUERY_PLAN", ["Sort  (cost=12.5..1234.75 rows=9 width=4)"], ["  -> Seq Scan"]),
            1234.75,
        ),
        (
            plan(
                "id select_type table rows",
                [1, "SIMPLE", "a", 100],
                [1, "SIMPLE", "b", 20],
                [2, "UNION", "c", "7"],
                [3, "UNION RESULT", None, None],
            ),
            2008.0,
        ),
        (plan("id parent notused detail", [2, 0, 0, "SCAN orders"]), None),
        (plan("explain_key explain_value", ["physical_plan", "SEQ_SCAN (cost unknown)"]), None),
    ],
)
def test_the_cost_of_a_plan_is_read(page: Page, cost: float | None) -> None:
    assert read_plan(page).cost == cost


@pytest.fixture
def url() -> str:
    server = postgres_server.shared()
    database = server.new_database()
    server.ask("CREATE TABLE lines AS SELECT n FROM generate_series(1, 500) n", database)
    return server.url(database)


@pytest.mark.parametrize(("most", "runs"), [(1.0, False), (1e9, True)])
def test_a_statement_that_costs_too_much_is_shown_and_not_run(
    tmp_path: Path, url: str, most: float, runs: bool
) -> None:
    async def work(model: ScriptedModel) -> tuple[Answer, bool]:
        settings = {"model": model.settings(), "max_cost": most}
        async with opened_shop(tmp_path, settings, url=url) as app:
            caller = GateCaller(app)
            found = await answer(caller, Question(text="How many lines have a number in a?"))
            return found, any(
                isinstance(request, Query) and request.statement.text == SQL
                for request in caller.sent
            )

    with scripted(wrote(SQL)) as model:
        found, ran = asyncio.run(work(model))
    assert (found.sql, ran, found.page is not None) == (SQL, runs, runs)
    assert found.cost is not None
    if runs:
        assert found.refusal is None
    else:
        assert found.refusal is not None
        assert found.refusal.code is Code.QUESTION_COSTLY
        assert "cost=" in (found.plan or "")
