"""Generates reads of the worlds' tables: what an agent, a tool or an attacker would ask."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

Columns = dict[str, str]
"""Kinds by name: `i` a number, `t` a text, `d` a day, `m` a number that is masked."""

TABLES: dict[str, Columns] = {
    "people": {
        "id": "i", "team": "i", "name": "t", "email": "t", "pay": "m", "note": "t", "joined": "d",
    },
    "visits": {"id": "i", "person": "i", "room": "i", "cost": "i", "made": "d", "label": "t"},
    "orders": {"id": "i", "person": "i", "total": "i", "kind": "t"},
    "keyed": {"n": "i", "word": "t", "code": "t"},
    "staff": {"id": "i", "team": "i", "name": "t", "email": "t", "pay": "m"},
    "busy": {"name": "t", "cost": "i", "room": "i"},
}  # fmt: skip
FILTERED = ("visits", "busy")
_TEXTS = ("'Name 3'", "'a***11'", "'p'", "'w2'", "''", "'5'", "'x'")
_LIKES = ("'N%'", "'a%'", "'%***%'", "'%1'", "'_***%'", "'%x%'")
_LISTS = {
    "sqlite": "group_concat({}, '|')",
    "duckdb": "string_agg({}, '|')",
    "postgres": "string_agg({0}::text, '|' ORDER BY {0}::text)",
    "mysql": "group_concat({} SEPARATOR '|')",
}

RULES = {"people": 1, "staff": 1, "visits": 1, "keyed": 1, "busy": 2}
"""How many tables with rules each name stands for: `busy` is a view that joins two."""
_NAMED = re.compile(rf"\b(?:FROM|JOIN) ({'|'.join(RULES)})\b")
_GROUPS = re.compile(r"GROUP BY|DISTINCT|UNION|EXCEPT|INTERSECT|OVER \(")
_BY_PLAN = re.compile(r"LIMIT|row_number\(|lag\(|first_value\(| / \(|CAST\(")
"""What depends on the order in which rows come, or fails for one row and not for another."""
_NAME = re.compile(r" AS (c\d+|[abc])\b")

_MARK = re.compile(r"<<(\d+)>>")


def is_planned(text: str) -> bool:
    """Whether a statement joins several tables with rules, or groups the rows of one."""
    rules = sum(RULES[name] for name in _NAMED.findall(text))
    return rules > 1 or (rules == 1 and _GROUPS.search(text) is not None)


class Read(NamedTuple):
    """A statement with the values of its placeholders, which are written as `?` or `$1`."""

    text: str
    params: tuple[Any, ...] = ()


class Reads:
    """Writes reads; every choice is of `random`."""

    def __init__(self, random: Random, engine: str) -> None:
        self._random = random
        self._engine = engine
        self._numbered = engine in ("postgres", "duckdb")
        self._ctes: dict[str, Columns] = {}
        self._params: list[Any] = []
        self._names = 0
        self._filtered = 0

    def read(self) -> Read:
        """A read. PostgreSQL plans by estimates, which count what is hidden. What the guide names
        for that is left out: of statements that join tables with rules, or group their rows, those
        whose rows or errors depend on the order; the others are asked for in one order."""
        while True:
            lead, body = self._read()
            text = lead + body
            if self._engine != "postgres" or not is_planned(text):
                return self._numbered_read(text)
            if not _BY_PLAN.search(text):
                columns = dict.fromkeys(_NAME.findall(body.partition(" FROM ")[0]))
                order = ", ".join(str(place + 1) for place in range(len(columns)))
                return self._numbered_read(f"{lead}SELECT * FROM ({body}) AS o ORDER BY {order}")

    def _read(self) -> tuple[str, str]:
        """What comes before a query, and the query."""
        self._ctes, self._params, self._names = {}, [], 0
        self._filtered = 0
        lead = self._with() if self._chance(0.2) else ""
        explain = "EXPLAIN " if self._chance(0.1) else ""
        if explain and self._engine == "sqlite":
            explain = self._one("EXPLAIN QUERY PLAN ", "EXPLAIN ")
        body = self._query() if self._chance(0.88) else self._set()
        return f"{explain}{lead}", body

    def _numbered_read(self, text: str) -> Read:
        """With placeholders for the values that are still in the text: not all terms are taken."""
        used: list[Any] = []

        def place(found: re.Match[str]) -> str:
            used.append(self._params[int(found[1])])
            return f"${len(used)}" if self._numbered else "?"

        return Read(_MARK.sub(place, text), tuple(used))

    # Choices

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _one(self, *of: Any) -> Any:
        return self._random.choice(of)

    def _fresh(self, start: str) -> str:
        self._names += 1
        return f"{start}{self._names}"

    def _value(self, value: int) -> str:
        """A number, or a placeholder for it."""
        if self._chance(0.9):
            return str(value)
        self._params.append(value)
        return f"<<{len(self._params) - 1}>>"

    # Queries

    def _with(self) -> str:
        name, table = self._fresh("w"), self._table()
        columns = TABLES[table]
        where = f" WHERE {self._predicate(self._of(table, columns))}" if self._chance(0.5) else ""
        limit = f" LIMIT {self._random.randint(1, 20)}" if self._chance(0.3) else ""
        self._ctes[name] = columns
        return f"WITH {name} AS (SELECT {', '.join(columns)} FROM {table}{where}{limit}) "

    def _set(self) -> str:
        word = self._one("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
        limit = f" LIMIT {self._random.randint(1, 9)}" if self._chance(0.4) else ""
        return f"{self._pair()} {word} {self._pair()}{limit}"

    def _pair(self) -> str:
        source, columns = self._source(1)
        number, text = self._column(columns, "i"), self._column(columns, "t")
        return f"SELECT {number} AS a, {text} AS b FROM {source}{self._where(columns)}"

    def _query(self) -> str:
        shape: Callable[[], str] = self._one(
            self._list, self._list, self._list, self._grouped, self._grouped, self._window
        )
        return shape()

    def _list(self) -> str:
        source, columns = self._source(3)
        items = ", ".join(
            f"{self._item(columns)} AS c{place}" for place in range(self._random.randint(1, 4))
        )
        distinct = "DISTINCT " if self._chance(0.2) else ""
        return f"SELECT {distinct}{items} FROM {source}{self._where(columns)}{self._end(columns)}"

    def _grouped(self) -> str:
        source, columns = self._source(2)
        key, number = self._column(columns), self._column(columns, "i")
        listed = _LISTS[self._engine].format(self._column(columns, self._one("i", "t")))
        items = [key, "count(*)", f"sum({number})"]
        items += [self._one(listed, f"min({self._column(columns)})", f"avg({number} / 3.0)")]
        having = f" HAVING count(*) > {self._value(1)}" if self._chance(0.3) else ""
        order = self._one("", "", " ORDER BY 2", " ORDER BY 1", " ORDER BY 2 DESC")
        limit = f" LIMIT {self._random.randint(1, 6)}" if self._chance(0.3) else ""
        if self._chance(0.15):
            items, key = items[1:], ""
        group = f" GROUP BY {key}" if key else ""
        texts = ", ".join(f"{item} AS c{place}" for place, item in enumerate(items))
        return (
            f"SELECT {texts} FROM {source}{self._where(columns)}"
            f"{group}{having if group else ''}{order if group else ''}{limit}"
        )

    def _window(self) -> str:
        source, columns = self._source(2)
        parted = f"PARTITION BY {self._column(columns)} " if self._chance(0.5) else ""
        order = f"ORDER BY {self._column(columns, 'i')}" if self._chance(0.8) else ""
        call = self._one(
            "row_number()", "rank()", f"lag({self._column(columns)})",
            f"sum({self._column(columns, 'i')})", f"first_value({self._column(columns)})",
        )  # fmt: skip
        return (
            f"SELECT {self._column(columns)} AS a, {self._column(columns)} AS b,"
            f" {call} OVER ({parted}{order}) AS c FROM {source}{self._where(columns)}"
            f"{self._end(columns)}"
        )

    def _end(self, columns: Columns) -> str:
        order = ""
        if self._chance(0.4):
            order = f" ORDER BY {self._column(columns)}{self._one('', ' DESC')}"
        limit = f" LIMIT {self._random.randint(1, 25)}" if self._chance(0.35) else ""
        if limit and self._chance(0.3):
            limit += f" OFFSET {self._random.randint(1, 9)}"
        return order + limit

    # Tables

    def _table(self, *of: str) -> str:
        """A table. PostgreSQL is asked for one with a filter at most: of several it plans the
        joins by estimates, which is among what the guide names."""
        names = of or ("people", "people", "people", "visits", "visits", *TABLES)
        if self._filtered and self._engine == "postgres":
            names = tuple(name for name in names if name not in FILTERED)
        name = self._one(*names)
        self._filtered += name in FILTERED
        return name

    def _of(self, alias: str, columns: Columns) -> Columns:
        return {f"{alias}.{name}": kind for name, kind in columns.items()}

    def _relation(self) -> tuple[str, Columns]:
        name = self._one(*self._ctes) if self._ctes and self._chance(0.5) else self._table()
        columns = self._ctes.get(name) or TABLES[name]
        alias = self._fresh("t")
        if self._chance(0.15):
            inner = self._of(name, columns)
            limit = f" LIMIT {self._random.randint(1, 30)}" if self._chance(0.4) else ""
            listed = ", ".join(columns)
            text = f"(SELECT {listed} FROM {name}{self._where(inner)}{limit})"
            return f"{text} AS {alias}", self._of(alias, columns)
        return f"{name} AS {alias}", self._of(alias, columns)

    def _source(self, most: int) -> tuple[str, Columns]:
        text, columns = self._relation()
        for _ in range(self._random.randint(0, most - 1)):
            other, more = self._relation()
            kind = self._one("i", "i", "t")
            left = self._joining(columns, kind)
            on = f"{left} = {self._joining(more, kind)}"
            columns = columns | more
            word = self._one("JOIN", "JOIN", "LEFT JOIN", ",")
            if word == ",":
                text += f" JOIN {other} ON {on} AND {self._predicate(columns)}"
            else:
                text += f" {word} {other} ON {on}"
        return text, columns

    def _joining(self, columns: Columns, kind: str) -> str:
        wanted = [name for name in columns if name.endswith((".id", ".person"))]
        return self._one(*wanted) if kind == "i" and wanted else self._column(columns, kind)

    # Terms

    def _column(self, columns: Columns, kind: str = "") -> str:
        return self._one(*[name for name, of in columns.items() if not kind or of == kind])

    def _item(self, columns: Columns) -> str:
        column = self._column(columns)
        number, text = self._column(columns, "i"), self._column(columns, "t")
        if self._chance(0.65):
            return column
        inner = self._table()
        picked = self._column(self._of("s", TABLES[inner]), "i")
        return self._one(
            f"lower({text})",
            f"length({text})",
            f"coalesce({text}, 'none')",
            f"{number} / ({number} - {self._random.randint(1, 9)})",
            f"CASE WHEN {self._predicate(columns)} THEN {number} ELSE -1 END",
            f"CAST({text} AS {'SIGNED' if self._engine == 'mysql' else 'INTEGER'})",
            f"(SELECT {picked} FROM {inner} AS s WHERE {picked} >= {number} LIMIT 1)",
            f"(SELECT count(*) FROM {inner} AS s WHERE {picked} = {number})",
            f"substr({text}, 1, 3)",
        )

    def _where(self, columns: Columns) -> str:
        parts = [self._predicate(columns) for _ in range(self._one(0, 0, 1, 1, 2))]
        return f" WHERE {self._one(' AND ', ' OR ').join(parts)}" if parts else ""

    def _predicate(self, columns: Columns) -> str:
        number, text = self._column(columns, "i"), self._column(columns, "t")
        some = self._random.randint(0, 60)
        inner = self._table("people", "visits", "orders")
        key = self._one(*[n for n in TABLES[inner] if n in ("id", "person")])
        return self._one(
            f"{number} < {self._value(some)}",
            f"{number} = {self._value(some % 7)}",
            f"{number} BETWEEN {some // 2} AND {some}",
            f"{number} IN (1, 2, {some})",
            f"{text} LIKE {self._one(*_LIKES)}",
            f"{text} = {self._one(*_TEXTS)}",
            f"{self._column(columns)} IS {self._one('', 'NOT ')}NULL",
            f"{number} IN (SELECT s.{key} FROM {inner} AS s WHERE s.id < {some * 2})",
            f"EXISTS (SELECT 1 FROM {inner} AS s WHERE s.{key} = {number})",
            f"NOT {number} > {self._value(some)}",
            f"1 / ({number} - {some % 9}) >= 0",
        )
