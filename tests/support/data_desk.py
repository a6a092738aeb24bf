"""A server with a console before one small shop in each of four databases, for the Data page.

The shop: `customers` (their `email` is masked for all), `orders` that refer to them, `ties` (many
equal values and NULLs), `keyless` (the same without a key), a view, and a trigger where there are
some. The operators: `ada` (admin of all), `vera` (viewer of all), `pru` (approver of all), and
`lee` (viewer of `lite` alone).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.command_line import Ended, Serving, serving, tidegate
from support.console_visitor import Visitor
from support.eventually import wait_until
from tidegate.engines import registry

PASSPHRASE = "correct horse 1"
SCHEMES = {"lite": "sqlite", "duck": "duckdb", "pg": "postgresql", "maria": "mysql"}
ENGINES = tuple([name for name, scheme in SCHEMES.items() if scheme in registry.ENGINES])
"""The shops, by the names of their sources, in the engines that are here."""
TIES = [
    (
        number,
        None if number % 5 == 0 else number % 3,
        None if number % 7 == 0 else f"b{number % 4}",
        None if number % 11 == 0 else (number % 6) / 4,
        f"2026-01-{1 + number % 9:02d} 0{number % 3}:00:00",
        None if number % 13 == 0 else f"{number % 8}.25",
    )
    for number in range(1, 61)
]
_SCRIPT = (
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(80) NOT NULL,"
    " email VARCHAR(80), city VARCHAR(40))",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, placed_at"
    " TIMESTAMP NOT NULL, total DECIMAL(10,2), note {text},"
    " CONSTRAINT of_customer FOREIGN KEY (customer_id) REFERENCES customers (id))",
    "CREATE INDEX orders_by_customer ON orders (customer_id)",
    "CREATE TABLE ties (id INTEGER PRIMARY KEY, a INTEGER, b VARCHAR(20), c {double},"
    " d TIMESTAMP NOT NULL, e DECIMAL(8,2))",
    "CREATE TABLE keyless (a INTEGER, b VARCHAR(20), c {double})",
    "CREATE VIEW big_orders AS SELECT id, total FROM orders WHERE total > 100",
    "INSERT INTO customers VALUES (1, 'Ada', 'ada@example.org', 'London'),"
    " (2, 'Hokusai', 'hokusai@example.org', NULL), (3, 'Omar', NULL, 'Nishapur')",
    "INSERT INTO orders VALUES (1, 1, '2026-01-02 10:00:00', 120.50, 'first'),"
    " (2, 1, '2026-01-03 11:00:00', 80, NULL), (3, 2, '2026-01-04 12:00:00', NULL, '{long}')",
    "INSERT INTO ties VALUES {ties}",
    "INSERT INTO keyless SELECT a, b, c FROM ties",
)
LONG = "long " * 2_000
_COUNT = range(1, 41)
ODD: dict[str, list[str]] = {
    "lite": [
        # A key that may be NULL, columns without types and with any value, a key of two columns.
        "CREATE TABLE loose (k TEXT PRIMARY KEY, v INTEGER)",
        "INSERT INTO loose VALUES (NULL, 1), (NULL, 1), (NULL, 2), ('a', 1), ('b', 2), ('c', 1)",
        "CREATE TABLE odd (p TEXT NOT NULL, q NOT NULL, v, w REAL, b BLOB, PRIMARY KEY (p, q))",
        *(
            f"INSERT INTO odd VALUES ('it''s {n % 3}', {n}, {value}, {n / 7}, x'00{n % 5:02x}')"
            for n, value in zip(
                _COUNT,
                ["1", "'1'", "1.5", "NULL", "x'31'", "'é'", "9e999", "-9e999"] * 5,
                strict=True,
            )
        ),
    ],
    "duck": [
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE odd (p VARCHAR, q BIGINT, f FLOAT, t TIMESTAMPTZ, u UUID, g BOOLEAN, m mood,"
        " b BLOB, d DATE, c TIME, h HUGEINT, PRIMARY KEY (p, q))",
        *(
            f"INSERT INTO odd VALUES ('it''s {n % 3}', {n}, {n} / 7,"
            f" TIMESTAMPTZ '2026-01-0{1 + n % 9} 00:00:00.12345{n % 3}+02',"
            f" '0000000{n % 4}-0000-0000-0000-000000000000',"
            f" {('NULL', 'TRUE', 'FALSE')[n % 3]}, {('NULL', chr(39) + 'sad' + chr(39))[n % 2]},"
            f" '\\x0{n % 5}'::BLOB, DATE '2026-02-0{1 + n % 7}', TIME '0{n % 4}:00:00',"
            f" 1701411834604692317316873037158841057{n % 4:02d})"
            for n in _COUNT
        ),
    ],
    "pg": [
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE odd (p TEXT, q BIGINT, f REAL, t TIMESTAMPTZ, u UUID, g BOOLEAN, m mood,"
        " b BYTEA, d DATE, c TIME, h NUMERIC, i INTERVAL, j JSONB, a INTEGER[],"
        " PRIMARY KEY (p, q))",
        *(
            f"INSERT INTO odd VALUES ('it''s {n % 3}', {n}, {n}::real / 7, '2026-01-0{1 + n % 9}"
            f" 00:00:00.12345{n % 3}+02', '0000000{n % 4}-0000-0000-0000-000000000000',"
            f" {('NULL', 'TRUE', 'FALSE')[n % 3]}, {('NULL', chr(39) + 'sad' + chr(39))[n % 2]},"
            f" '\\x0{n % 5}', {('NULL', chr(39) + 'infinity' + chr(39))[n % 2]}, '0{n % 4}:00:00',"
            f" {(chr(39) + 'NaN' + chr(39), '1e30', '-0.1')[n % 3]}, '{n % 3} days',"
            f" '{{\"a\": {n % 3}}}', '{{{n % 3}}}')"
            for n in _COUNT
        ),
        "CREATE TABLE loose (k INTEGER NOT NULL UNIQUE, v INTEGER)",
        "INSERT INTO loose SELECT n, n % 3 FROM generate_series(1, 20) AS n",
    ],
    "maria": [
        "CREATE TABLE odd (p VARCHAR(40), q BIGINT UNSIGNED, f FLOAT, t DATETIME(6), g BOOLEAN,"
        " m ENUM('sad', 'glad', 'bad'), b VARBINARY(20), d DATE, c TIME, h DECIMAL(40, 5), x TEXT,"
        " y YEAR, PRIMARY KEY (p, q))",
        *(
            f"INSERT INTO odd VALUES ('it''s {('a', 'A', 'é')[n % 3]}', {2**63 + n}, {n} / 7,"
            f" '2026-01-0{1 + n % 9} 00:00:00.12345{n % 3}', {('NULL', 'TRUE', '2')[n % 3]},"
            f" {('NULL', '2', '3')[n % 3]}, x'00{n % 5:02x}', '2026-02-0{1 + n % 7}',"
            f" '-{n % 4}:30:00', 12345678901234567890.1234{n % 3}, 'text {n % 3}', 2020 + {n % 3})"
            for n in _COUNT
        ),
        "CREATE TABLE loose (k INTEGER NOT NULL UNIQUE, v INTEGER)",
        "INSERT INTO loose SELECT id, id % 3 FROM ties",
    ],
}
"""Tables of types that are hard to begin a page by, in each database."""


class Desk(NamedTuple):
    """The server, its state, and where it is."""

    directory: Path
    state: Path
    server: Serving
    address: str
    visitors: list[Visitor]

    def run(self, *words: str) -> Ended:
        return tidegate(*words, state=self.state)

    def add_operator(self, name: str, *flags: str) -> None:
        file = self.directory / "passphrase"
        words = ["operator", "add", name, "--new-passphrase-file", str(file), *flags]
        ended = self.run(*words, "--passphrase-file", str(self.directory / "consent"))
        assert ended.status == 0, ended.err

    def visitor(self, name: str = "ada") -> Visitor:
        visitor = Visitor(self.address)
        self.visitors.append(visitor)
        visitor.sign_in(name=name, passphrase=PASSPHRASE)
        return visitor


def script(double: str, text: str) -> list[str]:
    """The statements that make the shop."""
    ties = ", ".join([f"({', '.join(map(_value, row))})" for row in TIES])
    return [
        each.replace("{double}", double)
        .replace("{text}", text)
        .replace("{ties}", ties)
        .replace("{long}", LONG)
        for each in _SCRIPT
    ]


def _value(value: Any) -> str:
    return "NULL" if value is None else repr(value)


def make_lite(directory: Path) -> str:
    path = directory / "lite.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        for each in (*script("DOUBLE", "TEXT"), *ODD["lite"]):
            connection.execute(each)
        connection.execute("CREATE TRIGGER stamp AFTER UPDATE ON orders BEGIN SELECT 1; END")
    return f"sqlite:///{path}"


def make_duck(directory: Path) -> str:
    import duckdb

    path = directory / "duck.duckdb"
    with duckdb.connect(str(path)) as connection:
        for each in (*script("DOUBLE", "VARCHAR"), *ODD["duck"]):
            connection.execute(each)
    return f"duckdb:///{path}"


def make_pg(_: Path) -> str:
    server = postgres_server.shared()
    statements = (
        *script("DOUBLE PRECISION", "TEXT"),
        *ODD["pg"],
        "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER stamp BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION stamp()",
    )
    return server.url(server.copy_of("; ".join(statements)))


def make_maria(_: Path) -> str:
    server = mysql_server.shared()
    name = server.new_database()
    for each in (
        *script("DOUBLE", "LONGTEXT"),
        *ODD["maria"],
        "CREATE TRIGGER stamp BEFORE UPDATE ON orders FOR EACH ROW SET NEW.note = NEW.note",
    ):
        server.script(each, name)
    return server.url(name)


MAKERS = {"lite": make_lite, "duck": make_duck, "pg": make_pg, "maria": make_maria}


@contextmanager
def desk(
    directory: Path,
    engines: Sequence[str] = ENGINES,
    flags: Mapping[str, Sequence[str]] | None = None,
    *,
    operators: bool = True,
    serves: Sequence[str] = (),
    masks: bool = True,
) -> Iterator[Desk]:
    """The server with shops in these engines; `flags` are further ones by source, `serves` of
    `serve`."""
    state = directory / "state"
    (directory / "consent").write_text("the gate's own\n")
    (directory / "passphrase").write_text(PASSPHRASE + "\n")
    words = ["passphrase", "set", "--new-passphrase-file", str(directory / "consent")]
    assert tidegate(*words, state=state).status == 0
    for name in engines:
        words = ["source", "add", name, MAKERS[name](directory), "--allow-writes"]
        words += [*(["--mask", "customers.email=nothing"] if masks else [])]
        words += [*(flags or {}).get(name, ())]
        words += ["--passphrase-file", str(directory / "consent")]
        ended = tidegate(*words, state=state)
        assert ended.status == 0, ended.err
    with serving(["serve", "--http", "127.0.0.1:0", "--console", *serves], state) as server:
        line = server.until("the console is at")
        address = re.search(r"http://[^/]+", line)
        assert address
        place = Desk(directory, state, server, address[0], [])
        place.add_operator("ada")
        if operators:
            place.add_operator("vera", "--role", "viewer")
            place.add_operator("pru", "--role", "approver")
            place.add_operator("lee", "--role", "viewer", "--source", "lite")
        yield place
    for visitor in place.visitors:
        visitor.client.close()


def answer(response: httpx.Response) -> Any:
    """The body of a response that must be a success."""
    assert response.status_code == 200, response.text
    return msgspec.json.decode(response.content)


def ended_run(visitor: Visitor, id: str) -> dict[str, Any]:
    """A run of the Data page, once it has ended."""

    def look() -> dict[str, Any] | None:
        run: dict[str, Any] = answer(visitor.get(f"data/runs/{id}"))
        return run if run["ended_at"] is not None else None

    found = wait_until(look, "the end of the run")
    assert found is not None
    return found


def all_pages(visitor: Visitor, body: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """The rows of all pages, and how each was found."""
    rows: list[Any] = []
    found: list[str] = []
    after = None
    while True:
        page = answer(visitor.post("data/rows", {**body, "after": after}))
        rows += page["rows"]
        found.append(page["paging"])
        after = page["next"]
        if after is None:
            return rows, found
        assert page["rows"], "an empty page that says there is another"
