"""Two databases for each engine that differ only in what is hidden from the caller.

`people` has masked columns of each kind, with indexes on them; `visits` has rows that a filter
hides, another number of them in each world; `keyed` is stored by a masked key; `orders` is not
hidden at all. What is visible is the same in both worlds: of a `partial` value the ends that it
shows, of a `hash` whether it is there (no generated read names it), of `nothing` nothing.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import apsw
import duckdb

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server

ENGINES = ("sqlite", "duckdb", "postgres", "mysql")
_NUMBERS = count(1)
VISIBLE_ROOM = 50
RULES: dict[str, Any] = {
    "masks": [
        {"column": "people.email", "show": "partial"},
        {"column": "people.pay", "show": "nothing"},
        {"column": "people.note", "show": "nothing"},
        {"column": "people.card", "show": "hash"},
        {"column": "keyed.code", "show": "nothing"},
    ],
    "filters": [{"table": "visits", "where": f"room < {VISIBLE_ROOM}"}],
}
PEOPLE, VISITS, ORDERS, KEYED = 60, 90, 120, 40

_TABLES = (
    "CREATE TABLE people (id INTEGER PRIMARY KEY, team INTEGER, name VARCHAR(40),"
    " email VARCHAR(90), pay INTEGER, note VARCHAR(200), card VARCHAR(90), joined DATE)",
    "CREATE TABLE visits (id INTEGER PRIMARY KEY, person INTEGER, room INTEGER, cost INTEGER,"
    " made DATE, label VARCHAR(60))",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER, total INTEGER, kind VARCHAR(20))",
    "CREATE TABLE keyed (code VARCHAR(40) PRIMARY KEY, n INTEGER, word VARCHAR(20))",
    "CREATE VIEW staff AS SELECT id, team, name, email, pay FROM people WHERE team < 4",
    "CREATE VIEW busy AS SELECT p.name, v.cost, v.room FROM people p"
    " JOIN visits v ON v.person = p.id",
)
_INDEXES = (
    "CREATE INDEX people_email ON people (email)",
    "CREATE INDEX people_pay ON people (pay)",
    "CREATE INDEX people_team_pay ON people (team, pay)",
    "CREATE INDEX people_team ON people (team)",
    "CREATE UNIQUE INDEX people_card ON people (card)",
    "CREATE INDEX people_note ON people (note{length})",
    "CREATE INDEX visits_person ON visits (person)",
    "CREATE INDEX visits_room ON visits (room, cost)",
    "CREATE INDEX orders_person ON orders (person)",
)
_COVERING = "CREATE INDEX people_covering ON people (pay) INCLUDE (id, team, name)"


def _rows(world: str, seed: int) -> dict[str, list[tuple[Any, ...]]]:
    seen, hidden = Random(seed), Random(f"{seed}{world}")
    cards = hidden.sample(range(10_000, 99_999), PEOPLE)
    people: list[tuple[Any, ...]] = []
    for number in range(1, PEOPLE + 1):
        ends = seen.choice("abc"), f"{seen.randint(10, 14)}"
        middle = "".join(hidden.choices("xyz", k=hidden.randint(4, 4 if world == "a" else 40)))
        email = None if number % 11 == 0 else f"{ends[0]}{middle}{ends[1]}"
        pay = None if hidden.random() < 0.2 else hidden.randint(0, 9 if world == "a" else 10_000)
        note = "n" * hidden.randint(0, 3 if world == "a" else 180) + str(hidden.randint(0, 99))
        people.append(
            (
                *(number, seen.randint(0, 5), f"Name {seen.randint(1, 30)}"),
                *(email, pay, note, str(cards[number - 1]), f"2026-01-{seen.randint(1, 28):02}"),
            )
        )
    visits: list[tuple[Any, ...]] = []
    for number in range(1, VISITS + 1):
        visits.append(
            (
                *(number * 10, seen.randint(1, PEOPLE), seen.randint(1, VISIBLE_ROOM - 1)),
                *(seen.randint(0, 9) * 10, f"2026-02-{seen.randint(1, 28):02}", f"{number % 7}"),
            )
        )
        for extra in range(hidden.choice((0, 0, 1) if world == "a" else (0, 3, 9))):
            visits.append(
                (
                    *(number * 10 + 1 + extra, hidden.randint(1, PEOPLE), hidden.randint(50, 99)),
                    *(hidden.randint(0, 500), "2026-03-01", hidden.choice(("0", "x", "x" * 50))),
                )
            )
    codes = hidden.sample([f"c{number:05}" for number in range(10_000)], KEYED)
    return {
        "people": people,
        "visits": visits,
        "orders": [
            (number, seen.randint(1, PEOPLE + 9), seen.randint(0, 9), seen.choice("pqr"))
            for number in range(1, ORDERS + 1)
        ],
        "keyed": [(codes[n], seen.randint(0, 9), f"w{n % 5}") for n in range(KEYED)],
    }


def _literal(value: Any) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'"


def script(engine: str, world: str, seed: int, *, analyzed: bool = True) -> list[str]:
    """The statements that make a world, `a` or `b`."""
    statements = list(_TABLES[:4])
    for table, rows in _rows(world, seed).items():
        values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
        statements.append(f"INSERT INTO {table} VALUES {values}")
    length = "(100)" if engine == "mysql" else ""
    statements += [text.format(length=length) for text in _INDEXES]
    if engine == "postgres":
        statements.append(_COVERING)
    statements += _TABLES[4:]
    if analyzed and engine == "mysql":
        statements.append("ANALYZE TABLE people, visits, orders, keyed")
    elif analyzed:
        statements.append("ANALYZE")
    return statements


def make(engine: str, directory: Path, world: str, seed: int, *, analyzed: bool = True) -> str:
    """Make a world; its URL. `directory` gets its file where it is one."""
    text = ";\n".join(script(engine, world, seed, analyzed=analyzed))
    if engine == "postgres":
        postgres = postgres_server.shared()
        database = f"hidden_{os.getpid()}_{next(_NUMBERS)}"
        postgres.ask(f"CREATE DATABASE {database}")
        postgres.ask(text, database)
        return postgres.url(database)
    if engine == "mysql":
        mysql = mysql_server.shared()
        database = mysql.new_database()
        mysql.script(f"ALTER DATABASE {database} CHARACTER SET utf8mb4; {text}", database)
        return mysql.url(database)
    path = directory / f"{engine}.db"
    connection = apsw.Connection(str(path)) if engine == "sqlite" else duckdb.connect(str(path))
    connection.execute(text)
    connection.close()
    return f"{engine}:///{path}"
