"""Rows that stand in partitions, or in a module's order, by a masked column tell nothing of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import apsw
import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.engine_cases import CASES
from tidegate.model.data_rules import DataRules
from tidegate.model.statements import Statement
from tidegate.sql.masking.rewrite import rewrite

ROWS = 300
"""More than a node of an R-tree holds."""

SCRIPTS = {
    "sqlite": "CREATE VIRTUAL TABLE ranged USING rtree_i32(id, k, k2)",
    "postgres": """
CREATE TABLE ranged (id int, k int, k2 int) PARTITION BY RANGE (k);
CREATE TABLE ranged_low PARTITION OF ranged FOR VALUES FROM (0) TO (500);
CREATE TABLE ranged_high PARTITION OF ranged FOR VALUES FROM (500) TO (1000);
CREATE TABLE hashed (id int, k int, k2 int) PARTITION BY HASH (k);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE computed (id int, k int, k2 int) PARTITION BY LIST ((k % 2));
CREATE TABLE computed_0 PARTITION OF computed FOR VALUES IN (0);
CREATE TABLE computed_1 PARTITION OF computed FOR VALUES IN (1);
CREATE TABLE nested (id int, k int, k2 int) PARTITION BY RANGE (id);
CREATE TABLE nested_all PARTITION OF nested FOR VALUES FROM (0) TO (100000) PARTITION BY RANGE (k);
CREATE TABLE nested_low PARTITION OF nested_all FOR VALUES FROM (0) TO (500);
CREATE TABLE nested_high PARTITION OF nested_all FOR VALUES FROM (500) TO (1000);
CREATE VIEW seen AS SELECT id, k AS hidden FROM ranged;
CREATE VIEW over_seen AS SELECT id, hidden FROM seen;
""",
    "mysql": """
CREATE TABLE ranged (id int, k int, k2 int) PARTITION BY RANGE (k)
  (PARTITION low VALUES LESS THAN (500), PARTITION high VALUES LESS THAN (1000));
CREATE TABLE hashed (id int, k int, k2 int) PARTITION BY KEY (k) PARTITIONS 3;
CREATE TABLE computed (id int, k int, k2 int) PARTITION BY HASH (k % 7) PARTITIONS 3;
CREATE TABLE nested (id int, k int, k2 int) PARTITION BY RANGE (id) SUBPARTITION BY HASH (k)
  SUBPARTITIONS 2 (PARTITION every VALUES LESS THAN (100000));
CREATE TABLE keyed (id int, k int PRIMARY KEY, k2 int, KEY (id)) PARTITION BY KEY () PARTITIONS 3
""",
}
READS = (
    "SELECT id FROM {}",
    "SELECT id FROM {} LIMIT 5",
    "SELECT id, row_number() OVER () AS place FROM {}",
    "SELECT a.id FROM (SELECT id FROM {}) AS a WHERE a.id > 7",
)
MASKS = {"seen": "hidden", "over_seen": "hidden"}


def rows(world: int) -> str:
    keys = Random(world).sample(range(1000), ROWS)
    return ", ".join(f"({place + 1}, {key}, {key})" for place, key in enumerate(keys))


def run(name: str, url: str, text: str) -> None:
    database = url.partition("?")[0].rpartition("/")[2]
    if name == "postgres":
        postgres_server.shared().ask(text, database)
    elif name == "mysql":
        mysql_server.shared().script(text, database)
    else:
        with apsw.Connection(url.removeprefix("sqlite:///")) as connection:
            connection.execute(text)


def engine(name: str) -> object:
    there = {"mysql": mysql_server.available(), "postgres": bool(postgres_server.available())}
    mark = pytest.mark.skipif(not there.get(name, True), reason=f"needs a server of {name}")
    return pytest.param(name, marks=mark)


def tables(name: str) -> list[str]:
    words = SCRIPTS[name].split()
    kinds = ("TABLE", "VIEW")
    return [
        word
        for before, word in pairwise(words)
        if before in kinds and "_" not in word.removeprefix("over_")
    ]


@pytest.mark.parametrize("name", [engine(each) for each in SCRIPTS])
async def test_two_copies_that_differ_in_it_give_the_same_rows_in_the_same_order(
    name: str, tmp_path: Path
) -> None:
    shown: list[dict[str, object]] = []
    for world in (1, 2):
        place = tmp_path / str(world)
        place.mkdir()
        case = CASES[name].prepare(place)
        told: dict[str, object] = {}
        run(name, case.url, SCRIPTS[name])
        for table in tables(name):
            if table not in MASKS:
                run(name, case.url, f"INSERT INTO {table} VALUES {rows(world)}")
        async with case.opened() as opened:
            catalog = await case.browse(opened, "catalog")
            for table in tables(name):
                columns = (MASKS[table],) if table in MASKS else ("k", "k2")
                rules = DataRules(masks=tuple((f"{table}.{each}", "nothing") for each in columns))
                for read in READS:
                    text = read.format(table)
                    written = rewrite(Statement(text), name, rules, catalog, "k" * 16)
                    told[text] = await case.ask(opened, written.text)
        shown.append(told)
    assert len(shown[0]) == len(READS) * len(tables(name))
    assert shown[0] == shown[1]
