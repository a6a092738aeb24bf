# ruff: noqa: E501
"""A unique index or an exclusion constraint that depends on a masked column does not tell of its
values: what it would compare with them is not written, whatever kind of index it is."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from support.masking_shop import ENGINES, Side, make, opened
from tidegate.errors import Code, TidegateError
from tidegate.model.data_rules import DataRules
from tidegate.model.statements import Effect

PAY = "CASE WHEN pay > 100 THEN team END"
POOR = "CASE WHEN pay IS NULL THEN team END"
UPDATES = tuple(f"UPDATE {{t}} SET team = 1 WHERE id = {row}" for row in (2, 3))
"""The first conflicts because of a value of `pay`, the second does not."""
INSERTS = tuple(f"INSERT INTO {{t}} (id, team) VALUES ({8 + row}, {row})" for row in (4, 3))
BOTH = (*UPDATES, *INSERTS)


class Shape(NamedTuple):
    """A unique index of the table `{t}` that depends on `team` and `pay`."""

    name: str
    engines: str
    changes: tuple[str, ...] = BOTH
    column: str = ""
    after: str = ""
    pay: str = "integer"
    is_known: bool = True
    """Whether the catalog says which columns it depends on."""


SHAPES = (
    Shape("partial", "postgres sqlite", after="CREATE UNIQUE INDEX {t}_u ON {t} (team) WHERE pay > 100"),
    Shape("quoted", "sqlite", after='CREATE UNIQUE INDEX {t}_u ON {t} (team) WHERE "PAY" > 100'),
    Shape("nulls", "postgres sqlite", after="CREATE UNIQUE INDEX {t}_u ON {t} (team) WHERE pay IS NULL"),
    Shape("expressed", "postgres sqlite duckdb", after=f"CREATE UNIQUE INDEX {{t}}_u ON {{t}} (({PAY}))"),
    Shape("filled", "postgres sqlite duckdb", after="CREATE UNIQUE INDEX {t}_u ON {t} (team, (coalesce(pay, 0)))"),
    Shape("stored", "postgres sqlite mysql", column=f", hot integer GENERATED ALWAYS AS ({PAY}) STORED UNIQUE"),
    Shape("virtual", "mysql", column=f", hot integer GENERATED ALWAYS AS ({PAY}) VIRTUAL UNIQUE"),
    Shape("virtually", "sqlite", column=f", hot integer AS ({POOR})", after="CREATE UNIQUE INDEX {t}_u ON {t} (hot)"),
    Shape("poor", "mysql", column=f", hot integer AS ({POOR}) VIRTUAL UNIQUE"),
    Shape("equal_nulls", "postgres", column=", UNIQUE NULLS NOT DISTINCT (team, pay)"),
    Shape("excluding", "postgres", UPDATES, ", EXCLUDE USING btree (team WITH =, pay WITH =)"),
    Shape("excluding_some", "postgres", column=", EXCLUDE USING btree (team WITH =) WHERE (pay > 100)"),
    Shape("never_null", "mysql", INSERTS, ", UNIQUE (team, pay)", pay="integer NOT NULL"),
    Shape("plain", "postgres sqlite mysql duckdb", UPDATES, ", UNIQUE (team, pay)"),
    Shape("whole", "postgres", after="CREATE UNIQUE INDEX {t}_u ON {t} (team) WHERE {t} IS NOT NULL", is_known=False),
    Shape(
        "called",
        "postgres",
        after="CREATE FUNCTION rich(i integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql"
        " AS 'BEGIN RETURN i; END';"
        " CREATE UNIQUE INDEX {t}_u ON {t} (team) WHERE rich(id) > 100",
        is_known=False,
    ),
)  # fmt: skip


def _shapes(engine: str) -> list[Shape]:
    return [shape for shape in SHAPES if engine in shape.engines.split()]


def _script(engine: str) -> list[str]:
    lines: list[str] = []
    for shape in _shapes(engine):
        poor = "0" if "NOT NULL" in shape.pay else "NULL"
        lines += [
            f"CREATE TABLE {shape.name} (id integer PRIMARY KEY, team integer, pay {shape.pay},"
            f" note varchar(9){shape.column})",
            f"INSERT INTO {shape.name} (id, team, pay) VALUES (1, 1, 500), (2, 2, 500), (3, 3, 1),"
            f" (4, 4, {poor})",
        ]
        if shape.after:
            lines.append(shape.after.format(t=shape.name))
    return lines


async def _rows(side: Side, table: str) -> list[tuple]:
    return (await side.ask(f"SELECT id, team, pay, note FROM {table} ORDER BY id"))[1]


async def _change(side: Side, text: str, masked: str) -> None:
    await side.ask(side.masked(text, DataRules(masks=((masked, "nothing"),))), Effect.WRITE)


async def _assert_refused(side: Side, text: str, masked: str, *tables: str) -> None:
    before = [await _rows(side, table) for table in tables]
    with pytest.raises(TidegateError) as caught:
        await _change(side, text, masked)
    assert caught.value.code is Code.POLICY_MASKED, text
    assert [await _rows(side, table) for table in tables] == before, text


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_a_unique_index_compares_with_masked_values_is_not_written(
    engine: str, tmp_path: Path
) -> None:
    async with opened(make(engine, tmp_path, "shop", _script(engine))) as (side,):
        for shape in _shapes(engine):
            for change in shape.changes:
                text = change.format(t=shape.name)
                await _assert_refused(side, text, f"{shape.name}.pay", shape.name)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_change_runs_if_no_unique_index_compares_it_with_masked_values(
    engine: str, tmp_path: Path
) -> None:
    async with opened(make(engine, tmp_path, "shop", _script(engine))) as (side,):
        for shape in _shapes(engine):
            if not shape.is_known:
                continue
            table, note = shape.name, f"{shape.name}.note"
            await _change(side, f"UPDATE {table} SET note = 'x' WHERE id = 1", f"{table}.pay")
            await _change(side, f"UPDATE {table} SET team = 7 WHERE id = 3", note)
            await _change(side, f"INSERT INTO {table} (id, team, pay) VALUES (9, 9, 900)", note)
            rows = await _rows(side, table)
            assert rows[0] == (1, 1, 500, "x"), table
            assert rows[2:] == [(3, 7, 1, None), (4, 4, rows[3][2], None), (9, 9, 900, None)], table


async def test_a_unique_index_of_a_partition_alone_tells_nothing_either(tmp_path: Path) -> None:
    lines = [
        "CREATE TABLE staff (id integer, team integer, pay integer, note text)"
        " PARTITION BY RANGE (id)",
        "CREATE TABLE first PARTITION OF staff FOR VALUES FROM (0) TO (100)",
        "CREATE UNIQUE INDEX ON first (team) WHERE pay > 100",
        "INSERT INTO staff VALUES (1, 1, 500), (2, 2, 500), (3, 3, 1)",
    ]
    async with opened(make("postgres", tmp_path, "shop", lines)) as (side,):
        for change in BOTH:
            await _assert_refused(side, change.format(t="staff"), "staff.pay", "staff")
        await _change(side, "UPDATE staff SET note = 'x' WHERE id = 1", "staff.pay")
        assert (await _rows(side, "staff"))[0] == (1, 1, 500, "x")


@pytest.mark.parametrize("engine", ["postgres", "sqlite", "mysql"])
async def test_a_key_is_not_carried_on_to_a_unique_index_with_masked_values(
    engine: str, tmp_path: Path
) -> None:
    lines = [
        "CREATE TABLE teams (id integer PRIMARY KEY, team integer UNIQUE, pay integer, note text)",
        "CREATE TABLE staff (id integer PRIMARY KEY, team integer, pay integer, note text,"
        " UNIQUE (id, pay), UNIQUE (team, pay),"
        " FOREIGN KEY (team) REFERENCES teams (team) ON UPDATE CASCADE)",
        "INSERT INTO teams (id, team) VALUES (1, 1), (2, 2)",
        "INSERT INTO staff (id, team, pay) VALUES (1, 1, 500), (2, 2, 500)",
    ]
    async with opened(make(engine, tmp_path, "shop", lines)) as (side,):
        change = "UPDATE teams SET team = 5 WHERE id = 2"
        await _assert_refused(side, change, "staff.pay", "teams", "staff")
        await _change(side, change, "staff.note")
        assert [row[1] for row in await _rows(side, "staff")] == [1, 5]
