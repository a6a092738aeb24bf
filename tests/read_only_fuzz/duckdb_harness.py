"""DuckDB without its fences: a handle that writes, with files and settings open to it.

Only the network stays closed: no extension is fetched.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import tempfile
import threading
from pathlib import Path

import duckdb

from read_only_fuzz.harness import HOSTILE, TIMEOUT_S, Digest, files, short
from tidegate.engines.registry import open_engine
from tidegate.model.sources import Source
from tidegate.model.statements import Effect, Statement
from tidegate.sql.judge import judge

SCHEMA = """
    CREATE TABLE t (a INTEGER, b VARCHAR, c INTEGER, d VARCHAR, e DATE, f DOUBLE, x INTEGER,
      y INTEGER, id INTEGER, name VARCHAR, l INTEGER[], s STRUCT(a INTEGER, b VARCHAR),
      m MAP(VARCHAR, INTEGER), ts TIMESTAMP, j JSON, n DECIMAL(10, 2));
    CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER);
    CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR, email VARCHAR, age INTEGER);
    CREATE TABLE orders (id INTEGER, user_id INTEGER, amount DECIMAL(10, 2), total DOUBLE);
    CREATE TABLE seen (n INTEGER);
    CREATE SEQUENCE s;
    CREATE SCHEMA other;
    CREATE TABLE other.t (a INTEGER);
    CREATE TYPE mood AS ENUM ('ok', 'sad');
    CREATE VIEW v AS SELECT * FROM users;
    CREATE VIEW sly AS SELECT nextval('s') AS n;
    CREATE VIEW behind AS SELECT * FROM sly;
    CREATE MACRO m(x) AS x + 1;
    CREATE MACRO spy() AS nextval('s');
    CREATE MACRO editdist3(p, q) AS nextval('s');
    CREATE MACRO tm() AS TABLE SELECT nextval('s') AS n;
    CREATE INDEX ix ON u (a);
    INSERT INTO t VALUES (1, 'one', 1, 'x', '2026-01-02', 1.5, 1, 2, 1, 'n', [1, 2],
      {'a': 1, 'b': 'x'}, MAP {'a': 1}, '2026-01-02 03:04:05', '{"x": 1}', 1.5),
      (2, 'two', 2, NULL, NULL, 2.5, 3, 4, 2, 'm', [], NULL, NULL, NULL, NULL, NULL);
    INSERT INTO u VALUES (1, 2, 3, 4), (2, 1, 1, 1);
    INSERT INTO users SELECT i, 'user ' || i, i || '@example.org', 20 + i FROM range(10) AS n (i);
    INSERT INTO orders SELECT i, i % 10, i, i FROM range(50) AS n (i);
    SELECT nextval('s');
    CHECKPOINT;
"""
MEMORY = "200MB"
ROOM_BYTES = 3_000_000_000
VALUES = {
    **dict.fromkeys(("VARCHAR", "BLOB", "ANY"), ("'a'", "'1'", "b", "'t'", "'s'", *HOSTILE)),
    **dict.fromkeys(("BOOLEAN",), ("true",)),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"), ("DATE '2026-01-02'",)),
    **dict.fromkeys(("TIME",), ("TIME '01:02:03'",)),
    **dict.fromkeys(("INTERVAL",), ("INTERVAL 1 DAY",)),
    **dict.fromkeys(("JSON",), ("'{\"a\": 1}'::JSON", "j")),
    **dict.fromkeys(("STRUCT", "ROW"), ("{'a': 1}", "s")),
    **dict.fromkeys(("MAP",), ("MAP {'a': 1}",)),
    **dict.fromkeys(("LAMBDA",), ("lambda q: q",)),
}
NUMBERS = ("1", "0", "2", "a", "-1")
VOLATILE = ("duckdb_memory", "duckdb_temporary_files")


class DuckdbHarness:
    """A database file and one cursor that stays, so that what a statement leaves in its session
    is seen as well."""

    dialect = "duckdb"
    hiding = ("sly", "behind", "editdist3")

    def __init__(self) -> None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (ROOM_BYTES, hard))
        self.folder = Path(tempfile.mkdtemp(prefix="tidegate-untouched-"))
        os.chdir(self.folder)
        (self.folder / "other.csv").write_text("a,b\n1,2\n")
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": MEMORY,
            "threads": "1",
            "temp_directory": "",
            "secret_directory": str(self.folder / "secrets"),
            "home_directory": str(self.folder),
        }
        self._handle = duckdb.connect("harness.duckdb", config=config)
        self._handle.execute(SCHEMA)
        self._beside = Path(tempfile.mkdtemp(prefix="tidegate-untouched-"))
        shutil.copy("harness.duckdb", self._beside)
        self._cursor = self._handle.cursor()
        self._loop = asyncio.new_event_loop()
        url = f"duckdb:///{self._beside}/harness.duckdb?workers=1"
        source = Source("s1", "harness", url, "duckdb", "duckdb")
        self._engine = self._loop.run_until_complete(open_engine(source))
        self.digest()

    def calls(self) -> list[str]:
        """By the types of the parameters that the catalog tells."""
        listed = self._handle.execute(
            "SELECT DISTINCT function_name, function_type, parameter_types::VARCHAR[]"
            " FROM duckdb_functions() ORDER BY ALL"
        ).fetchall()
        found: list[str] = []
        for name, kind, types in listed:
            for turn in range(3 if types else 1):
                given = ", ".join(_value(kind_of, turn + at) for at, kind_of in enumerate(types))
                name_ = name if name.replace("_", "").isalnum() else f'"{name}"'
                if name_ != name and len(types) == 2:
                    first, second = given.split(", ")[0], given.split(", ")[-1]
                    found.append(f"{first} {name} {second}")
                found.append(f"{name_}({given})")
                if len(types) == 1:
                    found.append(f"{given}.{name_}()")
            if kind == "pragma":
                found.append(f"pragma_{name}()")
        return list(dict.fromkeys(found))

    def objects(self, text: str) -> bool:
        judgement = self._loop.run_until_complete(
            self._engine.inspect(Statement(text), judge(text, "duckdb"))
        )
        return judgement is not None and judgement.effect is not Effect.READ

    def run(self, text: str) -> bool:
        timer = threading.Timer(TIMEOUT_S, self._cursor.interrupt)
        timer.start()
        try:
            self._cursor.execute(text)
            self._cursor.fetchmany(500)
            return True
        except (duckdb.Error, ValueError, RuntimeError, MemoryError, OSError):
            return False
        finally:
            timer.cancel()

    def digest(self) -> Digest:
        seen: Digest = {"files": short(files(self.folder)), "transaction": self._open_one()}
        for part, query in PARTS.items():
            try:
                seen[part] = short(self._cursor.execute(query).fetchall())
            except duckdb.Error as error:
                seen[part] = f"failed: {error}"
        tables = self._cursor.execute(
            "SELECT database_name, schema_name, table_name FROM duckdb_tables() ORDER BY ALL"
        ).fetchall()
        for names in tables:
            quoted = ".".join(f'"{name}"' for name in names)
            rows = self._cursor.execute(f"SELECT * FROM {quoted}").fetchall()
            seen[f"table {quoted}"] = short(rows)
        return seen

    def _open_one(self) -> str:
        """Whether a transaction is open; it is ended."""
        try:
            self._cursor.rollback()
        except duckdb.Error:
            return "none"
        return "open"

    def close(self) -> None:
        self._loop.run_until_complete(self._engine.close())
        self._loop.close()
        self._cursor.close()
        self._handle.close()
        for folder in (self.folder, self._beside):
            shutil.rmtree(folder, ignore_errors=True)


PARTS = {
    "settings": "SELECT name, value FROM duckdb_settings() ORDER BY ALL",
    "databases": "SELECT database_name, path, type, readonly FROM duckdb_databases() ORDER BY ALL",
    "schemas": "SELECT database_name, schema_name, sql FROM duckdb_schemas() ORDER BY ALL",
    "tables": "SELECT database_name, schema_name, table_name, comment, sql FROM duckdb_tables()"
    " ORDER BY ALL",
    "views": "SELECT schema_name, view_name, comment, sql FROM duckdb_views()"
    " WHERE NOT internal ORDER BY ALL",
    "sequences": "SELECT * FROM duckdb_sequences() ORDER BY ALL",
    "indexes": "SELECT schema_name, index_name, sql FROM duckdb_indexes() ORDER BY ALL",
    # A PIVOT leaves an enumeration in the temporary schema of its session.
    "types": "SELECT database_name, schema_name, type_name FROM duckdb_types() WHERE NOT internal"
    " AND NOT (database_name = 'temp' AND type_name LIKE '\\_\\_pivot\\_%' ESCAPE '\\')"
    " ORDER BY ALL",
    "functions": "SELECT schema_name, function_name, macro_definition FROM duckdb_functions()"
    " WHERE NOT internal ORDER BY ALL",
    "extensions": "SELECT extension_name, installed FROM duckdb_extensions() ORDER BY ALL",
    "secrets": "SELECT name, type FROM duckdb_secrets() ORDER BY ALL",
    "variables": "SELECT * FROM duckdb_variables() ORDER BY ALL",
    "prepared": "SELECT name FROM duckdb_prepared_statements() ORDER BY ALL",
    "session": "SELECT current_database(), current_schema(), current_schemas(true)",
}


def _value(kind: str | None, turn: int) -> str:
    """A value of a type, by its name."""
    if kind is None:
        return "b"
    if kind.endswith("[]"):
        return "l" if turn % 2 else "[1, 2]"
    choices = VALUES.get(kind.partition("(")[0], NUMBERS)
    return choices[turn % len(choices)]
