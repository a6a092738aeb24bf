"""Resources and the plain tables with the same rows, and random queries for both.

`plain_*` are lists without a parameter, `asked_*` have the optional parameter `g`, which the API
filters by, and `keyed_*` require it. Keys are NULL, repeat, and are of several types.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from support.cloud_api import Reply

COLUMNS = ("k", "v", "t", "g")
KINDS = ("plain", "asked", "keyed")
GROUPS = ("g1", "g2", "g3")
_PROVIDER = """
id: twin
name: twin
version: v00.00.00000
title: Twins of tables
config:
  auth: {type: null_auth}
providerServices:
  all:
    id: 'all:v1'
    name: all
    preferred: true
    service: {$ref: twin/v00.00.00000/services/all.yaml}
    title: All
"""
_ROW = {
    "type": "object",
    "properties": {
        "k": {},
        "v": {"type": "integer"},
        "t": {"type": "string"},
        "g": {"type": "string"},
    },
}


class Twins:
    """Three lists of rows, `a`, `b` and `c`, each under three kinds of resource."""

    def __init__(self, seed: int = 1) -> None:
        pick = random.Random(seed)
        keys: list[Any] = [None, 1, 2, "1", "2", "x", "X", 2.5, "2.5", 3.0, "", "a b"]
        self.rows: dict[str, list[tuple[Any, ...]]] = {
            name: [
                (
                    pick.choice(keys),
                    pick.choice([None, *range(5)]),
                    pick.choice([None, "x", "X", "y", "3", ""]),
                    pick.choice(GROUPS),
                )
                for _ in range(count)
            ]
            for name, count in (("a", 14), ("b", 11), ("c", 9))
        }

    def answer(self, verb: str, path: str, query: dict[str, str], body: Any) -> Reply:
        """What the API says: `/KIND/NAME`, with the group in the path or the query."""
        _, name, *group = path.strip("/").split("/")
        wanted = group[0] if group else query.get("g")
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in self.rows[name]]
        return Reply(200, [row for row in rows if wanted is None or row["g"] == wanted])

    def tables(self) -> apsw.Connection:
        """A database with the same rows, a table for each resource."""
        connection = apsw.Connection(":memory:")
        for kind in KINDS:
            for name, rows in self.rows.items():
                table = f"{kind}_{name}"
                connection.execute(f"CREATE TABLE {table}(k, v INTEGER, t TEXT, g TEXT)")
                connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", rows)
        return connection

    def write(self, folder: Path) -> Path:
        """The registry's folder, with the provider `twin`."""
        paths: dict[str, Any] = {}
        resources: dict[str, Any] = {}
        answer = {
            "200": {
                "description": "ok",
                "content": {"application/json": {"schema": {"type": "array", "items": _ROW}}},
            }
        }
        for kind in KINDS:
            for name in self.rows:
                path = f"/{kind}/{name}" + ("/{g}" if kind == "keyed" else "")
                operation: dict[str, Any] = {"responses": answer}
                if kind != "plain":
                    place = "path" if kind == "keyed" else "query"
                    operation["parameters"] = [
                        {"name": "g", "in": place, "required": kind == "keyed",
                         "schema": {"type": "string"}}
                    ]  # fmt: skip
                paths[path] = {"get": operation}
                link = path.replace("/", "~1")
                resource = f"{kind}_{name}"
                resources[resource] = {
                    "id": f"twin.all.{resource}",
                    "name": resource,
                    "methods": {
                        "list": {
                            "operation": {"$ref": f"#/paths/{link}/get"},
                            "response": {"mediaType": "application/json", "openAPIDocKey": "200"},
                        }
                    },
                    "sqlVerbs": {
                        "select": [
                            {"$ref": f"#/components/x-stackQL-resources/{resource}/methods/list"}
                        ]
                    },
                }
        document = {
            "openapi": "3.0.3",
            "info": {"title": "all", "version": "1"},
            "servers": [{"url": "https://api.farm.example"}],
            "paths": paths,
            "components": {"x-stackQL-resources": resources},
        }
        place = folder / "src" / "twin" / "v00.00.00000"
        (place / "services").mkdir(parents=True)
        (place / "provider.yaml").write_text(_PROVIDER)
        (place / "services" / "all.yaml").write_text(json.dumps(document))
        return folder


def random_query(pick: random.Random, kinds: Sequence[str] = KINDS) -> str:
    """A SELECT over `{kind_name}` marks, which are written as names of resources or of tables."""
    names = pick.sample(["a", "b", "c"], k=pick.choice([2, 2, 3]))
    if pick.random() < 0.15:
        names[1] = names[0]  # a self join
    tables = [f"{pick.choice(kinds)}_{name}" for name in names]
    aliases = [f"t{at}" for at in range(len(tables))]
    text = f"{{{tables[0]}}} AS t0"
    for at in range(1, len(tables)):
        text += _joined(pick, tables, aliases, at)
    where = [_condition(pick, pick.choice(aliases)) for _ in range(pick.choice([0, 0, 1, 1, 2]))]
    for alias, table in zip(aliases, tables, strict=True):
        if table.startswith("keyed") and pick.random() < 0.9:
            where.append(_group(pick, alias))
    if pick.random() < 0.25:
        where.append(_subquery(pick, pick.choice(aliases)))
    if len(where) > 1 and pick.random() < 0.35:
        where = [f"({' OR '.join(where[:2])})", *where[2:]]
    ending = f" WHERE {' AND '.join(where)}" if where else ""
    columns = ", ".join(f"{alias}.{name}" for alias in aliases for name in COLUMNS)
    shape = pick.random()
    if shape < 0.6:
        return f"SELECT {columns} FROM {text}{ending}"
    if shape < 0.7:
        return f"SELECT DISTINCT t0.k, t1.k FROM {text}{ending}"
    if shape < 0.8:
        return f"SELECT t1.g, count(*), count(t0.k), sum(t1.v) FROM {text}{ending} GROUP BY t1.g"
    if shape < 0.9:
        return (
            f"WITH w AS (SELECT t0.k AS k0, t1.k AS k1, t1.v AS v1 FROM {text}{ending})"
            " SELECT k0, k1, rank() OVER (PARTITION BY k1 ORDER BY v1) FROM w"
        )
    return (
        f"SELECT t0.k, t1.v FROM {text}{ending}"
        f" UNION{pick.choice(['', ' ALL'])} SELECT k, v FROM {{plain_c}}"
    )


def _joined(pick: random.Random, tables: list[str], aliases: list[str], at: int) -> str:
    side = pick.choice(["", "LEFT", "RIGHT", "FULL", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER"])
    table = f"{{{tables[at]}}} AS {aliases[at]}"
    form = pick.random()
    if form < 0.08:
        return pick.choice([f" CROSS JOIN {table}", f", {table}"])
    if form < 0.16 and at == 1:
        return f" NATURAL {side} JOIN {table}"
    if form < 0.26 and at == 1:
        return f" {side} JOIN {table} USING ({pick.choice(['k', 'g', 'k, v', 't'])})"
    other = pick.choice(aliases[:at])
    name = pick.choice(["k", "k", "v", "t", "g"])
    on = [f"{aliases[at]}.{name} = {other}.{name}"]
    if tables[at].startswith("keyed") and pick.random() < 0.5:
        on.append(_group(pick, aliases[at]))
    if pick.random() < 0.4:
        on.append(_condition(pick, pick.choice([aliases[at], other])))
    return f" {side} JOIN {table} ON {' AND '.join(on)}"


def _group(pick: random.Random, alias: str) -> str:
    first, second = pick.sample(GROUPS, k=2)
    return pick.choice([
        f"{alias}.g = '{first}'",
        f"{alias}.g IN ('{first}', '{second}')",
        f"({alias}.g = '{first}' OR {alias}.g = '{second}')",
        f"({alias}.g = '{first}' AND {alias}.v > 1 OR {alias}.g = '{second}' AND {alias}.v < 3)",
    ])  # fmt: skip


def _condition(pick: random.Random, alias: str) -> str:
    return pick.choice([
        f"{alias}.v > {pick.randint(0, 3)}",
        f"{alias}.v = {pick.randint(0, 4)}",
        f"{alias}.v = '{pick.randint(0, 4)}'",
        f"{alias}.v IN (1, 2, 3)",
        f"{alias}.k IS NULL",
        f"{alias}.k IS NOT NULL",
        f"{alias}.k = {pick.choice(['1', '2.5', chr(39) + '1' + chr(39), '3'])}",
        f"{alias}.t = 'x'",
        f"{alias}.t = 'x' COLLATE NOCASE",
        f"{alias}.g = '{pick.choice(GROUPS)}'",
        f"{alias}.g = 'G1' COLLATE NOCASE",
        f"{alias}.g IN ('g1', 'g3')",
        f"({alias}.v = 1 OR {alias}.v = 2)",
        f"({alias}.v = 1 OR {alias}.t = 'y')",
        f"({alias}.g = 'g1' OR {alias}.k = 2)",
        f"({alias}.g = 'g1' OR {alias}.g = 'g2' AND {alias}.v > 1)",
        f"NOT ({alias}.v = 1 OR {alias}.g = 'g2')",
        f"coalesce({alias}.v, 0) < 3",
    ])  # fmt: skip


def _subquery(pick: random.Random, alias: str) -> str:
    negated = pick.choice(["", "NOT "])
    return pick.choice([
        f"{negated}EXISTS (SELECT 1 FROM {{plain_b}} s WHERE s.k = {alias}.k)",
        f"{negated}EXISTS (SELECT 1 FROM {{asked_c}} s WHERE s.g = {alias}.g AND s.v = 2)",
        f"{alias}.k {negated}IN (SELECT s.k FROM {{plain_c}} s WHERE s.k IS NOT NULL)",
        f"{alias}.g IN (SELECT s.g FROM {{asked_a}} s WHERE s.v = 1)",
        f"({alias}.k, {alias}.g) IN (SELECT s.k, s.g FROM {{asked_b}} s)",
        f"{alias}.v = (SELECT max(s.v) FROM {{plain_a}} s WHERE s.g = {alias}.g)",
    ])  # fmt: skip
