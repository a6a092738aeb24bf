"""Joins of resources give what SQLite gives over plain tables with the same rows."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import apsw
import pytest

from products.cloud.contract.conftest import Ask
from products.cloud.support.cloud_twins import KINDS, Twins, random_query
from support.cloud_api import Farm
from tidegate.engines.registry import engine_of
from tidegate.errors import Code, TidegateError
from tidegate.model.sources import Source

COUNT = int(os.environ.get("TIDEGATE_JOIN_QUERIES", "60"))
"""Queries of each kind: more find more, with `TIDEGATE_JOIN_SEED` others."""
SEED = int(os.environ.get("TIDEGATE_JOIN_SEED", "1"))


@pytest.fixture(scope="module")
def twins() -> Twins:
    return Twins(SEED)


@pytest.fixture(scope="module")
def twin_api(twins: Twins) -> Iterator[Farm]:
    api = Farm(twins.answer)
    yield api
    api.close()


@pytest.fixture(scope="module")
def tables(twins: Twins) -> Iterator[apsw.Connection]:
    connection = twins.tables()
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def ask_twin(twins: Twins, twin_api: Farm, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    url = f"cloud://{twins.write(tmp_path_factory.mktemp('twin'))}"
    return Ask(Source("c", "c", url, *engine_of(url), access="write", options=twin_api.options))


class _Names(dict[str, str]):
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __missing__(self, name: str) -> str:
        return self._prefix + name


def _sorted(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("kinds", [("plain",), ("plain", "asked"), KINDS], ids="-".join)
async def test_random_joins_of_resources_equal_those_of_plain_tables(
    ask_twin: Ask, tables: apsw.Connection, kinds: tuple[str, ...]
) -> None:
    pick = random.Random(f"{SEED} {kinds}")
    refused = 0
    for _ in range(COUNT):
        text = random_query(pick, kinds)
        expected = tables.execute(text.format_map(_Names(""))).fetchall()
        try:
            given = await ask_twin(text.format_map(_Names("twin.all.")))
        except TidegateError as error:
            # A parameter that no condition binds for all rows cannot be asked for.
            assert "keyed" in text and error.code is Code.ARGUMENT_INVALID, (text, error)
            refused += 1
            continue
        assert _sorted(given) == _sorted(expected), text
    assert refused <= COUNT // 3


@pytest.mark.parametrize("join", ["LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "JOIN"])
async def test_a_condition_on_a_parameter_chooses_the_method_on_both_sides_of_every_join(
    ask: Ask, farm: Farm, join: str
) -> None:
    rows = await ask(
        f"SELECT a.id, b.id FROM farm.live.animals a {join} farm.live.animals b ON b.id = a.id"
        " WHERE a.field = 'north' AND b.field = 'north' AND (b.id < 7 OR a.weight < 100)"
    )
    assert sorted(rows) == [(3, 3), (6, 6)]
    assert {path for _, path, _ in farm.asked} == {"/fields/north/animals"}


async def test_rows_that_a_right_join_keeps_are_those_of_the_parameter_in_where(
    ask: Ask, farm: Farm
) -> None:
    rows = await ask(
        "SELECT f.name, h.id FROM farm.live.fields f RIGHT JOIN farm.live.herd h"
        " ON h.field = f.name AND f.size > 15 WHERE h.field IN ('north', 'south')"
    )
    assert sorted(rows, key=repr) == [
        *[("south", number) for number in (1, 10, 4, 7)],
        *[(None, number) for number in (12, 3, 6, 9)],
    ]
    error = await ask.refusal(
        "SELECT h.id FROM farm.live.fields f RIGHT JOIN farm.live.herd h ON h.field = f.name"
    )
    assert error.code is Code.ARGUMENT_INVALID
    assert "list(field)" in error.hint and "literals in WHERE" in error.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM farm.live.animals WHERE id = 3 OR field = 'north'",
        "SELECT id FROM farm.live.animals WHERE (id = 3 AND weight > 1) OR field = 'north'",
        "SELECT a.id FROM farm.live.animals a WHERE a.field = 'north' OR a.id IN (3, 6)",
    ],
)
async def test_a_row_that_two_parts_of_an_or_ask_for_comes_once(ask: Ask, text: str) -> None:
    assert sorted(await ask(text)) == [(3,), (6,), (9,), (12,)]


async def test_both_parts_of_an_or_that_ask_for_other_parameters_give_their_rows(ask: Ask) -> None:
    rows = await ask(
        "SELECT id FROM farm.live.herd WHERE (field = 'north' AND id > 6)"
        " OR (field = 'south' AND id < 6)"
    )
    assert sorted(rows) == [(1,), (4,), (9,), (12,)]


async def test_the_number_of_a_row_is_no_column(ask: Ask, farm: Farm) -> None:
    for name in ("rowid", "_rowid_", "oid"):
        for tables in ("farm.live.fields f", "farm.live.fields f JOIN (farm.live.fields g) ON 1"):
            error = await ask.refusal(f"SELECT f.{name} FROM {tables}")
            assert error.code is Code.SQL_FAILED
            assert "no such column: rowid" in error.message
            assert "fields" not in error.message
    assert farm.asked == []


@pytest.mark.parametrize(
    "text",
    [
        "{plain_a} a JOIN ({plain_b} b JOIN {plain_c} c ON b.k = c.k) ON a.k = b.k",
        "{plain_a} a LEFT JOIN ({plain_b} b LEFT JOIN {asked_c} c ON b.g = c.g) ON a.v = c.v",
        "({plain_a} a FULL JOIN {asked_b} b USING (k)) RIGHT JOIN {plain_c} c ON c.t = b.t",
        "{asked_a} a LEFT JOIN (({plain_b} b, {plain_c} c) JOIN {asked_a} d ON d.k = c.k)"
        " ON a.g = b.g AND c.v = 1",
    ],
)
async def test_joins_in_brackets_equal_those_of_plain_tables(
    ask_twin: Ask, tables: apsw.Connection, text: str
) -> None:
    query = f"SELECT count(*), a.k, b.v, c.t FROM {text} GROUP BY 2, 3, 4"
    expected = tables.execute(query.format_map(_Names(""))).fetchall()
    given = await ask_twin(query.format_map(_Names("twin.all.")))
    assert _sorted(given) == _sorted(expected)
