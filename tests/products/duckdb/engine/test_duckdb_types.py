"""Every type of DuckDB, with its least, greatest and missing values, is what DuckDB writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.duckdb_types import Oracle, given_leaves, is_same, make_types
from support.engine_cases import CASES
from tidegate.results.json_values import encode_rows


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Oracle]]:
    url = make_types(tmp_path_factory.mktemp("types") / "types.duckdb")
    oracle = Oracle(url)
    yield url, oracle
    oracle.close()


async def test_every_value_of_every_type_is_what_duckdb_writes(
    types: tuple[str, Oracle], tmp_path: Path
) -> None:
    url, oracle = types
    case = CASES["duckdb"].prepare(tmp_path)
    case.url = url
    case.source = type(case.source)("s1", "shop", url, "duckdb", "duckdb")
    async with case.opened() as engine:
        cursor = await case.start(engine, "SELECT * FROM types")
        rows = await cursor.fetch(10)
        await cursor.close()
        wrong = []
        for number, row in enumerate(json.loads(encode_rows(rows)), 1):
            for column, value in zip(oracle.columns, row, strict=True):
                wanted, found = oracle.leaves(column, number), list(given_leaves(value))
                if len(found) != len(wanted):  # structures name their parts, maps have keys
                    found = list(given_leaves(_values(value)))
                if len(found) != len(wanted) or not all(map(is_same, wanted, found)):
                    wrong.append((column, number, wanted, found))
    assert wrong == []


def _values(value: object) -> object:
    """The values of structures without their names."""
    if isinstance(value, dict):
        return [_values(each) for each in value.values()]
    return [_values(each) for each in value] if isinstance(value, list) else value
