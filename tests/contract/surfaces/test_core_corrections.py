"""Errors that correct: what `core` says after each kind of mistake, on every engine and through
JDBC, and that it says nothing of what is hidden from the caller."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contract.surfaces.engine_shops import ENGINE_SHOPS, SHOP, EngineShop
from support import jdbc_cases, jdbc_drivers
from support.surface_client import READER, Peer
from tidegate.model.source_settings import Mask, RowFilter
from tidegate.surfaces import core

TASKS = """
CREATE TABLE tasks (task_no INTEGER PRIMARY KEY, state VARCHAR(20), level INTEGER,
  cost VARCHAR(20), weight VARCHAR(20), owner VARCHAR(20));
INSERT INTO tasks VALUES (1, 'open', 10, '1,250', '0,5', 'ada');
INSERT INTO tasks VALUES (2, 'Open', 20, '30,000', '1,25', 'bo'), (4, 'open', 20, '8', '3', 'bo'),
  (5, 'Open', 20, '9', '4', 'bo'), (6, 'open', 20, '9', '4', 'bo'), (7, 'open', 20, '8', '3', 'bo');
INSERT INTO tasks VALUES (3, 'done ', 10, '7', '2', 'ada'), (8, 'open', 10, '9', '4', 'ada'),
  (9, 'open', 10, '9', '4', 'ada'), (10, 'open', 10, '9', '4', 'ada');
"""


class H2Shop(EngineShop):
    """The shop in H2, behind its JDBC driver. Names are as H2 folds them."""

    product = "H2"

    def build(self) -> str:
        text = f"{SHOP};{TASKS}"
        script = tuple([each.strip() for each in text.split(";\n") if each.strip(" ;\n")])
        return jdbc_drivers.new_database("h2", self.directory, script)

    def script(self, text: str) -> None:
        assert text == TASKS  # it is there

    def source(self, **settings: Any) -> Any:
        return super().source(options=jdbc_cases.options("h2")(), **settings)

    @property
    def schema(self) -> str:
        return "PUBLIC"


SHOPS: dict[str, type[EngineShop]] = {**ENGINE_SHOPS, "h2": H2Shop}


@pytest.fixture(params=sorted(SHOPS))
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> EngineShop:
    made = SHOPS[request.param](tmp_path)
    made.script(TASKS)
    return made


def answers(shop: EngineShop, *statements: str, **settings: Any) -> list[str]:
    """What core answers to each, after it has learned what the columns hold."""

    async def whole() -> list[str]:
        gate = shop.gate(**settings)
        async with gate.opened():
            peer = Peer(core.surface(gate))
            await peer.open()
            await peer.text("search", words="tasks")
            profiles = gate.connections.find("shop", READER).profiles
            if profiles is not None:
                await profiles.settle()
            return [await peer.text("query", sql=each) for each in statements]

    return asyncio.run(whole())


CASES = (
    # What was wrong, the statement, what the answer has to say; a database that does not mind
    # converts by itself, and then the answer is about the rows.
    ("an unknown column", "SELECT stat FROM tasks", "Nearest: tasks.state varchar"),
    ("one with an alias", "SELECT c.emial FROM customers c", "Nearest: customers.email varchar"),
    ("a part of a name", "SELECT no FROM tasks", "Nearest: tasks.task_no int"),
    (
        "a name like none",
        "SELECT zzz FROM tasks",
        "tasks has task_no, state, level, cost, weight, owner.",
    ),
    ("an unknown table", "SELECT task_no FROM taskz", "Nearest: tasks"),
    (
        "an ambiguous column",
        "SELECT id FROM customers JOIN orders ON customers.id = orders.customer_id",
        "Say which: customers.id int, orders.id int.",
    ),
    (
        "a text compared with a column of codes",
        "SELECT task_no FROM tasks WHERE level = 'open'",
        "tasks.level has numbers (10, 20)",
    ),
    (
        "a number with a comma",
        "SELECT sum(CAST(cost AS DECIMAL(10, 2))) FROM tasks",
        "has a comma: before the cast",
    ),
    ("a text that is added up", "SELECT avg(cost) FROM tasks", "Cast the argument: avg(CAST("),
    (
        "no row for a text",
        "SELECT task_no FROM tasks WHERE state = 'OPEN!'",
        "tasks.state has no 'OPEN!', but",
    ),
    (
        "no row to count for a text",
        "SELECT count(*) FROM tasks WHERE state = 'opn'",
        "tasks.state has no 'opn', but 'open'",
    ),
)
CONVERTS = {"a number with a comma", "a text that is added up"}
"""What SQLite and MariaDB take for a number, and calculate with its first digits."""


def test_each_mistake_gets_what_corrects_it(shop: EngineShop) -> None:
    given = answers(shop, *(statement for _, statement, _ in CASES))
    for (mistake, _, wanted), said in zip(CASES, given, strict=True):
        if mistake in CONVERTS and shop.product in ("SQLite", "MariaDB"):
            assert said.startswith('{"columns":'), (mistake, said)
        elif mistake == "a text that is added up" and shop.product == "H2":
            assert "Cast the argument: AVG(CAST(" in said, said
        else:
            plain = said.replace("\\", "").replace('"', "").casefold()
            assert wanted.casefold() in plain, (mistake, said)


def test_an_error_does_not_repeat_the_statement_or_list_every_function(shop: EngineShop) -> None:
    for said in answers(shop, "SELECT no FROM tasks", "SELECT avg(cost) FROM tasks"):
        assert len(said.encode()) < 350 and "\\n" not in said and "\n" not in said


HIDDEN = (
    "SELECT task_no FROM tasks WHERE state = 'opn'",
    "SELECT count(*) FROM tasks WHERE state = 'opn'",
    "SELECT task_no FROM tasks WHERE state = 5",
    "SELECT task_no FROM tasks WHERE level = state",
    "SELECT CAST(state AS INTEGER) FROM tasks",
    "SELECT sum(CAST(cost AS INTEGER)) FROM tasks",
    "SELECT task_no FROM tasks WHERE level = 'opn'",
)
"""Mistakes for which databases and hints name a value of `state`, `cost` or `level`."""


def test_no_value_of_a_masked_column_is_named(shop: EngineShop) -> None:
    masks = tuple([Mask(f"{shop.schema}.tasks.{each}") for each in ("state", "cost", "level")])
    for statement, said in zip(HIDDEN, answers(shop, *HIDDEN, masks=masks), strict=True):
        values = ("open", "Open", "done", "1,250", "30,000", "10, 20", "(10")
        assert not any(value in said for value in values), (statement, said)


def test_no_value_of_a_row_that_is_filtered_away_is_named(shop: EngineShop) -> None:
    only = RowFilter(f"{shop.schema}.tasks", "owner = 'ada'")
    asked = (*HIDDEN, "SELECT task_no FROM tasks WHERE owner = 'adu'")
    given = answers(shop, *asked, filters=(only,))
    for statement, said in zip(asked, given, strict=True):
        hidden = ("Open", "30,000", "20", '1,25"', "bo")
        assert not any(value in said for value in hidden), (statement, said)
    if shop.product == "H2":  # its statements cannot be rewritten, so all of them are refused
        assert all(said.startswith("policy.masked: ") for said in given)
    else:
        assert "has no 'adu', but 'ada'" in given[-1]


def test_a_column_of_a_table_of_another_schema_is_not_proposed(shop: EngineShop) -> None:
    if shop.elsewhere is None:
        pytest.skip("needs a database with a second schema")
    said = answers(
        shop, "SELECT id FROM customers JOIN orders ON customers.id = orders.customer_id"
    )
    assert shop.elsewhere not in said[0]


def test_the_rest_of_an_answer_is_not_searched_for_hints(shop: EngineShop) -> None:
    found, none = answers(
        shop,
        "SELECT count(*) FROM tasks WHERE state = 'open'",
        "SELECT count(*) FROM tasks WHERE task_no = 99",
    )
    assert "note" not in msgspec.json.decode(found)
    assert "note" not in msgspec.json.decode(none)
