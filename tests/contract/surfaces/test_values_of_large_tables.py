"""What `core` says of the values of tables that a sample does not hold whole, on every engine."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from contract.surfaces.core_conversation import converse, samples
from contract.surfaces.engine_shops import ENGINE_SHOPS, EngineShop
from support.surface_client import READER, Peer
from tidegate.model.actors import Actor, Scope
from tidegate.model.source_settings import Mask, RowFilter

ROWS = 4_000
RARE = range(1_350, 1_355)
"""Rows with a state that stands in no part that a sample reads."""
FIRST_DAY = dt.date(2015, 1, 1)
LAST_DAY = "2025-12-13"


def log(*, key: str = "INTEGER PRIMARY KEY") -> str:
    """A table that was filled for years: states and owners came into use one after another."""
    rows: list[str] = []
    for number in range(ROWS):
        state = "closed" if number < 3_000 else ("open", "held")[number % 2]
        state = "lost" if number in RARE else state
        owner = "ada" if number < 2_500 else ("bo", "zoe")[number % 2]
        day = FIRST_DAY + dt.timedelta(days=number)
        rows.append(f"({7_000_000 + number * 3}, '{state}', '{owner}', '{day}', '{day}')")
    return (
        f"CREATE TABLE visits (id {key}, state VARCHAR(20), owner VARCHAR(20), day DATE,"
        f" noted DATE); CREATE INDEX visits_by_day ON visits (day);"
        f"INSERT INTO visits VALUES {', '.join(rows)};"
    )


async def describe(peer: Peer) -> str:
    """The line of the table. The meaning of signs follows it if the samples were not there when
    `search` answered, which explains those that it shows."""
    return (await peer.text("describe", tables=["visits"])).partition("\nSigns: ")[0]


def shown(line: str) -> dict[str, set[str]]:
    """By column, the values in braces."""
    found: dict[str, set[str]] = {}
    for part in line.split(", "):
        if "{" in part:
            values = part.partition("{")[2].rpartition("}")[0]
            found[part.split()[0]] = {value for value in values.split(",") if value != "…"}
    return found


def test_values_that_came_into_use_late_are_shown(engine_shop: EngineShop) -> None:
    engine_shop.script(log())
    line, _ = converse(engine_shop, describe)
    assert {"closed", "open", "held"} <= shown(line)["state"]
    assert {"ada", "bo", "zoe"} == shown(line)["owner"]
    assert line.count("…}") == 2


def test_the_range_of_an_indexed_column_is_that_of_all_rows(engine_shop: EngineShop) -> None:
    engine_shop.script(log())
    line, _ = converse(engine_shop, describe)
    day = line.partition(", day ")[2].partition(", noted")[0]
    assert day.endswith(f"[{FIRST_DAY}..{LAST_DAY}]")


def test_a_table_without_a_key_of_numbers_is_sampled_as_well(engine_shop: EngineShop) -> None:
    engine_shop.script(log(key="VARCHAR(20)"))
    line, _ = converse(engine_shop, describe)
    assert "closed" in shown(line)["state"]


def test_a_masked_column_of_a_large_table_stays_hidden(engine_shop: EngineShop) -> None:
    engine_shop.script(log())
    analyze(engine_shop)
    masks = (
        Mask(f"{engine_shop.schema}.visits.state"),
        Mask(f"{engine_shop.schema}.visits.day"),
    )
    line, _ = converse(engine_shop, describe, masks=masks)
    assert set(shown(line)) == {"owner"}
    assert {"ada", "bo", "zoe"} == shown(line)["owner"]
    assert "closed" not in line and "2015" not in line.partition(", noted")[0]


def test_a_filter_on_a_large_table_leaves_out_what_only_other_rows_have(
    engine_shop: EngineShop,
) -> None:
    engine_shop.script(log())
    analyze(engine_shop)
    only_ada = RowFilter(f"{engine_shop.schema}.visits", "owner = 'ada'")
    line, _ = converse(engine_shop, describe, filters=(only_ada,))
    assert shown(line)["owner"] == {"ada"}
    assert shown(line)["state"] <= {"closed", "lost"}
    last = FIRST_DAY + dt.timedelta(days=2_499)
    assert LAST_DAY not in line
    assert f"[{FIRST_DAY}..{last}]" in line.partition(", noted")[0]


def test_a_caller_with_a_list_of_tables_gets_the_values_of_its_own(engine_shop: EngineShop) -> None:
    engine_shop.script(log())
    analyze(engine_shop)
    listed = Actor("tok_listed", "listed", Scope.READ_ONLY, tables=frozenset({"shop:visits"}))
    line, _ = converse(engine_shop, describe, listed)
    assert {"closed", "open", "held"} <= shown(line)["state"]


@pytest.fixture
def postgres_shop(tmp_path: Path) -> EngineShop:
    """The one engine whose statistics are shown by the database's own privileges."""
    return ENGINE_SHOPS["postgres"](tmp_path)


def test_statistics_of_postgresql_add_rare_values_and_ranges(postgres_shop: EngineShop) -> None:
    postgres_shop.script(log())
    analyze(postgres_shop)
    line, _ = converse(postgres_shop, describe)
    assert shown(line)["state"] == {"closed", "open", "held", "lost"}
    assert f"noted date? [~{FIRST_DAY}..{LAST_DAY}]" in line
    texts = [event["statement"] for event in samples(postgres_shop)]
    assert any("pg_stats" in text for text in texts)


def test_statistics_are_refused_to_a_caller_from_whom_something_is_hidden(
    postgres_shop: EngineShop,
) -> None:
    postgres_shop.script(log())
    analyze(postgres_shop)
    asked = "SELECT most_common_vals::text FROM pg_stats WHERE tablename = 'visits'"

    async def ask(peer: Peer) -> tuple[str, str]:
        refused = (await peer.call("query", sql=asked))["result"]
        assert refused["isError"]
        return await describe(peer), str(refused)

    for hidden in (
        {"masks": (Mask(f"{postgres_shop.schema}.customers.email"),)},
        {"filters": (RowFilter(f"{postgres_shop.schema}.customers", "id = 1"),)},
    ):
        (line, refused), _ = converse(postgres_shop, ask, READER, **hidden)
        assert "lost" not in line and "lost" not in refused
    texts = [event.get("statement") or "" for event in samples(postgres_shop)]
    assert not any("pg_stats" in text for text in texts)


def analyze(shop: EngineShop) -> None:
    """Bring the database's statistics up to date."""
    shop.script({"MariaDB": "ANALYZE TABLE visits PERSISTENT FOR ALL"}.get(shop.product, "ANALYZE"))
