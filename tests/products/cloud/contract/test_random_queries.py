"""Random queries give over an API what they give over tables with the same rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import apsw
import pytest

from products.cloud.contract.conftest import Ask
from support.cloud_api import Farm

TABLES = """
CREATE TABLE fields(name TEXT, size INTEGER);
CREATE TABLE herd(id INTEGER, name TEXT, field TEXT, weight REAL, is_old INTEGER, tags TEXT);
CREATE TABLE animals(
    id INTEGER, name TEXT, field TEXT, weight REAL, is_old INTEGER, tags TEXT, diary TEXT
);
CREATE TABLE visits(animal INTEGER, cost REAL);
"""
RESOURCES = {each: f"farm.live.{each}" for each in ("fields", "herd", "animals", "visits")}


def shape_0(pick: random.Random) -> str:
    return (
        f"SELECT f.name, h.name FROM {{fields}} f {join(pick)} {{herd}} h ON h.field = f.name"
        f" AND {of_herd(pick)} WHERE {of_fields(pick)}"
    )


def shape_1(pick: random.Random) -> str:
    return (
        f"SELECT v.cost, a.name, a.diary FROM {{visits}} v {join(pick)} {{animals}} a"
        f" ON a.id = v.animal WHERE {of_visits(pick)}"
    )


def shape_2(pick: random.Random) -> str:
    return (
        f"SELECT h.field, count(*), sum(v.cost) FROM {{fields}} f {join(pick)} {{herd}} h"
        f" ON h.field = f.name {join(pick)} {{visits}} v ON v.animal = h.id AND {of_visits(pick)}"
        " GROUP BY 1"
    )


def shape_3(pick: random.Random) -> str:
    return (
        f"SELECT f.name FROM {{fields}} f WHERE {pick.choice(['', 'NOT '])}EXISTS"
        f" (SELECT 1 FROM {{herd}} h WHERE h.field = f.name AND {of_herd(pick)})"
    )


def shape_4(pick: random.Random) -> str:
    return (
        f"SELECT v.animal, v.cost FROM {{visits}} v WHERE v.animal {pick.choice(['', 'NOT '])}IN"
        f" (SELECT h.id FROM {{herd}} h WHERE h.field IN ('north', 'south') AND {of_herd(pick)})"
    )


def shape_5(pick: random.Random) -> str:
    return (
        "SELECT f.name, (SELECT max(h.weight) FROM {herd} h WHERE h.field = f.name"
        f" AND {of_herd(pick)}) FROM {{fields}} f"
    )


def shape_6(pick: random.Random) -> str:
    return (
        "WITH x AS (SELECT h.id, row_number() OVER (PARTITION BY h.field ORDER BY h.weight DESC)"
        " AS place FROM {herd} h WHERE h.field IN ('east', 'south'))"
        f" SELECT x.place, a.name, a.diary FROM x {join(pick)} {{animals}} a ON a.id = x.id"
        f" WHERE x.place < {pick.randint(1, 5)}"
    )


def shape_7(pick: random.Random) -> str:
    return (
        f"SELECT a.name, a.diary, b.name FROM {{animals}} a {join(pick)} {{herd}} b"
        " ON b.field = a.field AND b.weight > a.weight"
        f" WHERE a.id IN ({pick.randint(1, 6)}, {pick.randint(7, 14)}) AND a.diary IS NOT NULL"
    )


def shape_8(pick: random.Random) -> str:
    return (
        f"SELECT h.name FROM {{herd}} h WHERE h.field = 'north' AND {of_herd(pick)}"
        f" UNION{pick.choice([' ALL', ''])} SELECT a.name FROM {{animals}} a"
        f" WHERE a.field = '{pick.choice(['south', 'north'])}'"
        f" AND a.weight > {pick.randint(0, 200)}"
        " EXCEPT SELECT 'animal 3'"
    )


def shape_9(pick: random.Random) -> str:
    return (
        "SELECT f.name, a.name, v.cost FROM {fields} f JOIN {herd} h ON h.field = lower(f.name)"
        f" {join(pick)} {{animals}} a ON a.id = h.id {join(pick)} {{visits}} v"
        f" ON v.animal = a.id AND v.cost > {pick.randint(0, 30)} WHERE {of_fields(pick)}"
    )


SHAPES = (shape_0, shape_1, shape_2, shape_3, shape_4, shape_5, shape_6, shape_7, shape_8, shape_9)


def join(pick: random.Random) -> str:
    return pick.choice(["JOIN", "LEFT JOIN"])


def of_fields(pick: random.Random) -> str:
    return pick.choice(
        [
            f"f.size > {pick.choice([5, 10, 15, 25])}",
            "f.name IN ('north', 'east')",
            f"f.name LIKE '%{pick.choice('north')}%'",
            "f.size % 20 = 0",
        ]
    )


def of_herd(pick: random.Random) -> str:
    return pick.choice(
        [
            f"h.weight > {pick.randint(0, 300)}",
            "h.is_old = 1",
            "h.name <> 'animal 3'",
            "json_extract(h.tags, '$[1]') > '3'",
        ]
    )


def of_visits(pick: random.Random) -> str:
    return pick.choice(
        [
            f"v.cost > {pick.randint(0, 36)}",
            f"v.animal < {pick.randint(1, 13)}",
            "v.cost BETWEEN 3 AND 20",
        ]
    )


@pytest.fixture
def tables(farm: Farm) -> Iterator[apsw.Connection]:
    """Tables with what the API has."""
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    sizes = {"north": 10, "south": 20, "east": 30}
    connection.executemany("INSERT INTO fields VALUES (?, ?)", sizes.items())
    for each in farm.animals.values():
        row = (*list(each.values())[:5], json.dumps(each["tags"], separators=(",", ":")))
        connection.execute("INSERT INTO herd VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.execute(
            "INSERT INTO animals VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, f"day {each['id']}")
        )
    visits = [(n % 12 + 1, n * 1.5) for n in range(24)]
    connection.executemany("INSERT INTO visits VALUES (?, ?)", visits)
    yield connection
    connection.close()


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_query_gives_over_an_api_what_it_gives_over_tables(
    ask: Ask, tables: apsw.Connection, shape
) -> None:
    pick = random.Random(shape.__name__)
    for _ in range(8):
        text = shape(pick)
        expected = tables.execute(text.format(**{each: each for each in RESOURCES})).fetchall()
        given = await ask(text.format(**RESOURCES))
        assert sorted(map(repr, given)) == sorted(map(repr, expected)), text
