"""The databases and questions of Defog's evaluation set, on each of our engines.

They are not in the repository. The folder that holds them is named by `TIDEGATE_DEFOG` or by the
caller. For each database it has `NAME.sql`, a dump in PostgreSQL's SQL, and `NAME.json`, which
describes the columns. `*_DIALECT.csv` have questions with accepted statements. The tests bring a
small database of ours in the same form (`tests/support/defog_sample`).

A dump is read into values first, and each engine is filled from them: so all hold the same rows.
Some dates in the dumps are relative to the day on which they are loaded (`CURRENT_DATE - INTERVAL
'3 days'`), as are the questions; `now` says which day that is.

    folder = defog.find_folder()
    server = support.postgres_server.shared()
    defog.make_database("broker", server, folder)      # a database `broker` on the tests' server
    defog.make_database("broker", Path("broker.sqlite"), folder)
    questions = defog.read_questions(folder, "postgres", "broker")
"""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import json
import os
import re
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

VARIABLE = "TIDEGATE_DEFOG"
"""The environment variable that names the folder."""

Dialect = Literal["postgres", "sqlite", "mysql"]
"""The dialects in which the questions have accepted statements."""
Engine = Literal["postgres", "sqlite", "mariadb", "duckdb"]

_MARIADB_TYPES = {"timestamp": "datetime"}
_DUCKDB_TYPES = {"serial": "integer", "real": "float"}


class DefogAbsentError(Exception):
    """The folder is not here, or is not one of these."""


class Column(NamedTuple):
    """`type` is PostgreSQL's name in lower case, `default` a statement's text, `target` what a
    foreign key refers to: a table and a column."""

    name: str
    type: str
    nullable: bool = True
    key: bool = False
    unique: bool = False
    default: str | None = None
    target: tuple[str, str] | None = None
    comment: str = ""


class Table(NamedTuple):
    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]


class Database(NamedTuple):
    name: str
    tables: tuple[Table, ...]


class Question(NamedTuple):
    """`accepted` are statements whose results are right, one of them is enough. `instructions` say
    how the answer is to be found, for those questions that come with it."""

    database: str
    category: str
    text: str
    instructions: str
    accepted: tuple[str, ...]


class Server(Protocol):
    """A server of the tests: of PostgreSQL if it has `conninfo`, else of MariaDB."""

    def drop_database(self, name: str) -> None: ...


def find_folder(given: Path | None = None) -> Path:
    """The folder with the data. Raises: DefogAbsentError, which says how to name it."""
    named = given or Path(os.environ.get(VARIABLE, ""))
    if named == Path():
        raise DefogAbsentError(f"The Defog databases are not here: name their folder by {VARIABLE}")
    if not any(named.glob("*.sql")):
        raise DefogAbsentError(f"No dump (*.sql) in {named}: name the folder by {VARIABLE}")
    return named


def list_databases(folder: Path) -> list[str]:
    """The names of the databases in the folder."""
    return sorted(path.stem for path in folder.glob("*.sql"))


def make_database(
    name: str,
    where: Server | Path,
    folder: Path,
    *,
    comments: bool = False,
    keys: bool = True,
    now: dt.datetime | None = None,
) -> None:
    """Make the database on a server of the tests, under its own name and in place of an older one,
    or as a file: `.duckdb` for DuckDB, any other for SQLite. With `comments` its columns are
    described; without `keys` it declares no foreign keys.

    Raises: DefogAbsentError.
    """
    database = read_database(folder, name, now)
    if not keys:
        database = without_foreign_keys(database)
    if isinstance(where, Path):
        if where.suffix == ".duckdb":
            _fill_duckdb(database, where, comments=comments)
        else:
            _fill_sqlite(database, where)
    elif hasattr(where, "conninfo"):
        _fill_postgres(database, where, comments=comments)
    else:
        _fill_mariadb(database, where, comments=comments)


def without_foreign_keys(database: Database) -> Database:
    """The same database, whose foreign keys are not declared."""
    tables = tuple(
        table._replace(columns=tuple(column._replace(target=None) for column in table.columns))
        for table in database.tables
    )
    return database._replace(tables=tables)


# Reading.


def read_questions(folder: Path, dialect: Dialect, database: str | None = None) -> list[Question]:
    """The questions, of one database or of all, with what is accepted in the dialect."""
    questions: list[Question] = []
    for path in sorted(folder.glob(f"*_{dialect}.csv")):
        with path.open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                if database in (None, row["db_name"]):
                    accepted = tuple(
                        each for text in _split(row["query"], ";") for each in _choices(text)
                    )
                    questions.append(
                        Question(
                            row["db_name"],
                            row["query_category"],
                            row["question"].strip(),
                            (row.get("instructions") or "").strip(),
                            accepted,
                        )
                    )
    return questions


def read_database(folder: Path, name: str, now: dt.datetime | None = None) -> Database:
    """The tables of a dump, with their rows as Python values. Raises: DefogAbsentError."""
    import sqlglot
    from sqlglot import exp

    path = folder / f"{name}.sql"
    if not path.exists():
        raise DefogAbsentError(f"No {path.name} in {folder}: it has {list_databases(folder)}")
    moment = (now or dt.datetime.now(dt.UTC)).replace(tzinfo=None, microsecond=0)
    comments = _read_comments(folder / f"{name}.json")
    tables: dict[str, Table] = {}
    for tree in sqlglot.parse(path.read_text(encoding="utf-8"), read="postgres"):
        if isinstance(tree, exp.Create):
            table = tree.this.this.name
            columns = [
                _read_column(each, comments.get((table.lower(), each.name.lower()), ""))
                for each in tree.this.expressions
            ]
            tables[table] = Table(table, tuple(columns), ())
        elif isinstance(tree, exp.Insert):
            table = tables[tree.this.this.name]
            named = [each.name for each in tree.this.expressions]
            rows = tuple(
                _read_row(table, dict(zip(named, row.expressions, strict=True)), moment)
                for row in tree.expression.expressions
            )
            tables[table.name] = table._replace(rows=table.rows + rows)
    return Database(name, tuple(tables.values()))


def _read_comments(path: Path) -> dict[tuple[str, str], str]:
    if not path.exists():
        return {}
    return {
        (table.rpartition(".")[2].lower(), column["column_name"].lower()): column[
            "column_description"
        ]
        for table, columns in json.loads(path.read_text())["table_metadata"].items()
        for column in columns
    }


def _read_column(definition: Any, comment: str) -> Column:
    from sqlglot import exp

    column = Column(definition.name, definition.kind.sql("postgres").lower(), comment=comment)
    for constraint in definition.args.get("constraints") or ():
        kind = constraint.kind
        if isinstance(kind, exp.PrimaryKeyColumnConstraint):
            column = column._replace(key=True, nullable=False)
        elif isinstance(kind, exp.NotNullColumnConstraint):
            column = column._replace(nullable=False)
        elif isinstance(kind, exp.UniqueColumnConstraint):
            column = column._replace(unique=True)
        elif isinstance(kind, exp.DefaultColumnConstraint):
            moment = kind.this.find(exp.CurrentTimestamp) is not None
            column = column._replace(default="CURRENT_TIMESTAMP" if moment else "''")
        elif isinstance(kind, exp.Reference):
            target = (kind.this.this.name, kind.this.expressions[0].name)
            column = column._replace(target=target)
        else:
            raise ValueError(f"Unknown in the definition of {column.name}: {kind.sql()}")
    return column


def _read_row(table: Table, given: dict[str, Any], now: dt.datetime) -> tuple[Any, ...]:
    values: list[Any] = []
    for column in table.columns:
        if column.name in given:
            values.append(_fitted(_value(given[column.name], now), column.type))
        else:
            moment = column.default == "CURRENT_TIMESTAMP"
            values.append(now if moment else "" if column.default else None)
    return tuple(values)


def _value(tree: Any, now: dt.datetime) -> Any:
    """What the expression of a dump is on the day of `now`."""
    from sqlglot import exp

    match tree:
        case exp.Null():
            return None
        case exp.Boolean():
            return tree.this
        case exp.Literal():
            return tree.this if tree.is_string else Decimal(tree.this)
        case exp.Neg():
            return -_value(tree.this, now)
        case exp.Paren():
            return _value(tree.this, now)
        case exp.CurrentDate():
            return now.replace(hour=0, minute=0, second=0)
        case exp.CurrentTimestamp():
            return now
        case exp.TimestampTrunc():
            return _value(tree.this, now).replace(day=1, hour=0, minute=0, second=0)
        case exp.Add() | exp.Sub():
            sign = 1 if isinstance(tree, exp.Add) else -1
            return _moved(_value(tree.this, now), tree.expression, sign)
        case exp.Mul():
            return _value(tree.this, now) * _value(tree.expression, now)
        case exp.Extract():  # of the epoch
            return Decimal(int(_value(tree.expression, now).replace(tzinfo=dt.UTC).timestamp()))
        case exp.TimeToStr():  # the dumps write MySQL's pattern, which PostgreSQL does not know
            return _value(tree.this, now).strftime("%Y%m%d %H:%M:%S")
        case _:
            raise ValueError(f"Unknown in a dump: {tree.sql()}")


def _moved(moment: dt.datetime, interval: Any, sign: int) -> dt.datetime:
    number = sign * int(interval.this.name)
    unit = interval.unit.name.lower().removesuffix("s")
    if unit in ("month", "year"):
        months = moment.year * 12 + moment.month - 1 + number * (12 if unit == "year" else 1)
        first = moment.replace(year=months // 12, month=months % 12 + 1, day=1)
        following = (first + dt.timedelta(days=31)).replace(day=1)
        return first.replace(day=min(moment.day, (following - dt.timedelta(days=1)).day))
    return moment + dt.timedelta(**{f"{unit}s": number})


def _fitted(value: Any, type_name: str) -> Any:
    """The value as Python's type for the column's."""
    if value is None:
        return None
    if type_name in ("bigint", "int", "integer", "serial"):
        return int(value)
    if type_name in ("double precision", "real"):
        return float(value)
    if type_name == "date":
        return value.date() if isinstance(value, dt.datetime) else dt.date.fromisoformat(value)
    if type_name == "timestamp":
        return value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value)
    return value


def _split(text: str, mark: str) -> list[str]:
    """The parts between the marks, where these are in no quotes and no parentheses."""
    parts, start, depth = [], 0, 0
    for found in re.finditer(rf"'(?:[^']|'')*'|[(){mark}]", text):
        token = found.group()
        depth += (token == "(") - (token == ")")
        if token == mark and depth == 0:
            parts.append(text[start : found.start()])
            start = found.end()
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _choices(text: str) -> list[str]:
    """The statements that `{a,b}` stands for, any of these columns, and `{}` behind GROUP BY for
    the same."""
    found = re.search(r"\{([^{}]+)\}", text)
    if found is None:
        return [text]
    columns = _split(found.group(1), ",")
    chosen = itertools.chain.from_iterable(
        itertools.combinations(columns, count) for count in range(1, len(columns) + 1)
    )
    made: list[str] = []
    for each in chosen:
        rest = text[found.end() :]
        grouped = [re.sub(r"(?is)\s+as\s+\w+$", "", column) for column in each]
        rest = rest.replace("{}", ", ".join(grouped))
        made.append(text[: found.start()] + ", ".join(each) + rest)
    return made


# Writing.


def _type(column: Column, engine: Engine) -> str:
    """The column's type as the engine names it."""
    if engine == "sqlite" and column.type in ("serial", "bigint", "int"):
        return "integer"
    if engine == "mariadb" and column.type == "serial":
        return "integer auto_increment"
    if engine == "mariadb" and column.type == "text" and (column.key or column.unique):
        return "varchar(255)"
    types = {"mariadb": _MARIADB_TYPES, "duckdb": _DUCKDB_TYPES}.get(engine, {})
    return types.get(column.type, column.type)


def define(table: Table, engine: Engine, *, comments: bool = False) -> str:
    """The statement that makes the table."""
    lines: list[str] = []
    for column in table.columns:
        words = [column.name, _type(column, engine)]
        words += ["NOT NULL"] if not column.nullable and not column.key else []
        words += ["PRIMARY KEY"] if column.key else []
        words += ["UNIQUE"] if column.unique else []
        words += [f"DEFAULT {column.default}"] if column.default is not None else []
        words += [f"COMMENT {_text(column.comment)}"] if comments and engine == "mariadb" else []
        lines.append(" ".join(words))
        if column.target is not None:
            other, key = column.target
            lines.append(f"FOREIGN KEY ({column.name}) REFERENCES {other} ({key})")
    lines.sort(key=lambda line: line.startswith("FOREIGN KEY"))
    return f"CREATE TABLE {table.name} (\n  " + ",\n  ".join(lines) + "\n)"


def _comments(table: Table) -> list[str]:
    return [
        f"COMMENT ON COLUMN {table.name}.{column.name} IS {_text(column.comment)}"
        for column in table.columns
        if column.comment
    ]


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _insert(table: Table, mark: str) -> str:
    names = ", ".join(column.name for column in table.columns)
    return f"INSERT INTO {table.name} ({names}) VALUES ({', '.join([mark] * len(table.columns))})"


def _fill_sqlite(database: Database, path: Path) -> None:
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    connection = sqlite3.connect(draft)
    with connection:
        for table in database.tables:
            connection.execute(define(table, "sqlite"))
            rows = [[_plain(value) for value in row] for row in table.rows]
            connection.executemany(_insert(table, "?"), rows)
    connection.close()
    draft.rename(path)


def _plain(value: Any) -> Any:
    """As SQLite keeps it: numbers and text."""
    if isinstance(value, Decimal):
        return float(value)
    return str(value) if isinstance(value, dt.date) else value


def _fill_duckdb(database: Database, path: Path, *, comments: bool) -> None:
    import duckdb

    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        for table in database.tables:
            connection.execute(define(table, "duckdb"))
            if table.rows:
                connection.executemany(_insert(table, "?"), table.rows)
            for statement in _comments(table) if comments else ():
                connection.execute(statement)


def _fill_postgres(database: Database, server: Any, *, comments: bool) -> None:
    import psycopg

    server.drop_database(database.name)
    server.ask(f"CREATE DATABASE {database.name}")
    with psycopg.connect(server.conninfo(database.name), autocommit=True) as connection:
        for table in database.tables:
            connection.execute(define(table, "postgres").encode())
            with connection.cursor() as cursor:
                cursor.executemany(_insert(table, "%s").encode(), table.rows)
            for statement in _comments(table) if comments else ():
                connection.execute(statement.encode())
        connection.execute("ANALYZE")


def _fill_mariadb(database: Database, server: Any, *, comments: bool) -> None:
    server.drop_database(database.name)
    server.script(f"CREATE DATABASE {database.name} CHARACTER SET utf8mb4")

    async def fill(connection: Any) -> None:
        cursor = connection.cursor()
        for table in database.tables:
            await cursor.execute(define(table, "mariadb", comments=comments))
            await _insert_all(cursor, table)

    async def _insert_all(cursor: Any, table: Table) -> None:
        if table.rows:
            await cursor.executemany(_insert(table, "%s"), table.rows)
            await cursor.execute(f"ANALYZE TABLE {table.name}")
            await cursor.fetchall()

    server.connected(fill, database.name)
