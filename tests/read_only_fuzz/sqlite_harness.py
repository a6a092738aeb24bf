"""SQLite without its fences: no authorizer, no `query_only`, and extensions may be loaded."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import apsw

from read_only_fuzz.harness import HOSTILE, Digest, files, short

SCHEMA = """
    CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c REAL, d TEXT, e, f, x, y, z,
      name TEXT, tags TEXT, ts TEXT, date TEXT, key TEXT, "desc" TEXT, count INT, "update" INT);
    CREATE TABLE u(id INTEGER PRIMARY KEY, a, b, c);
    CREATE TABLE v(a, b, c);
    CREATE TABLE w(id, a, d);
    CREATE TABLE a("delete", b);
    CREATE TABLE "a;b"(a);
    CREATE TABLE "table"("from", "select");
    CREATE TABLE 表(名前 TEXT);
    CREATE TABLE users(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, email TEXT, password TEXT);
    CREATE VIEW vw AS SELECT a, b FROM t WHERE a > 0;
    CREATE INDEX ix ON t(a);
    CREATE TRIGGER tr AFTER DELETE ON u BEGIN UPDATE users SET name = 'gone'; END;
    CREATE TRIGGER iv INSTEAD OF INSERT ON vw BEGIN DELETE FROM u; END;
    CREATE VIRTUAL TABLE ft USING fts5(content);
    CREATE VIRTUAL TABLE rt USING rtree(id, x1, x2);
    INSERT INTO t(a, b, c, d, x, y, name, tags, ts) VALUES
      (1, 'one', 1.5, x'01', 1, 2, 'n', '[1,2]', '2026-01-02'),
      (2, '{"x": 1}', 2.5, NULL, 3, 4, 'm', '[]', '2026-02-03');
    INSERT INTO u VALUES (1, 2, 3, 4), (2, 1, 1, 1);
    INSERT INTO v VALUES (1, 2, 3);
    INSERT INTO w VALUES (1, 2, 3);
    INSERT INTO users(name) VALUES ('ann'), ('bob');
    INSERT INTO ft VALUES ('some words'), ('other words');
    INSERT INTO rt VALUES (1, 0, 1);
"""
ACTING = {
    *("optimize", "wal_checkpoint", "incremental_vacuum", "shrink_memory", "integrity_check"),
    *("quick_check", "foreign_key_check", "data_version"),
    *("module_list", "function_list"),  # they grow when a module is first used
}
"""Pragmas that the digest does not ask, since asking does something or tells of the asking."""

STEPS = 30
PATIENCE = 10_000
ARGUMENTS = ("1", "'a'", "'%Y'", "'[1,2]'", "'{\"a\":1}'", "NULL", "b", "x'00'", *HOSTILE)


class SqliteHarness:
    """A database file, and a second connection that sees what the first commits."""

    dialect = "sqlite"
    hiding = ()

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tidegate-untouched-"))
        os.chdir(self.folder)
        (self.folder / "other.csv").write_text("a,b\n1,2\n")
        self._connection = apsw.Connection("harness.db")
        self._connection.execute(SCHEMA)
        self._connection.enable_load_extension(True)
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, 1_000_000)
        self._connection.set_progress_handler(self._step, PATIENCE)
        self._watcher = apsw.Connection("harness.db")
        self._steps = 0  # how many more the statement under test may take; 0: no limit
        self._pragmas = sorted(
            str(name)
            for (name,) in self._connection.execute("PRAGMA pragma_list")
            if name not in ACTING
        )
        self.digest()  # SQLite opens its temporary database when it is first looked at

    def _step(self) -> bool:
        if self._steps == 0:
            return False
        self._steps -= 1
        return self._steps == 0

    def calls(self) -> list[str]:
        """Of functions by their number of arguments, of modules as tables, of pragmas."""
        ask = self._connection.execute
        found: list[str] = []
        listed = ask(
            "SELECT DISTINCT name, narg FROM pragma_function_list ORDER BY 1, 2"
        ).fetchall()
        for name, count in listed:
            fixed = int(str(count))
            for number in (fixed,) if fixed >= 0 else (0, 1, 2, 3):
                for turn in range(4):
                    given = [ARGUMENTS[(turn * 3 + at) % len(ARGUMENTS)] for at in range(number)]
                    found.append(f"{name}({', '.join(given)})")
                found.append(f"{name}({', '.join(HOSTILE[at % 3] for at in range(number))})")
        for (name,) in ask("SELECT name FROM pragma_module_list ORDER BY 1").fetchall():
            found += [f"{name}", f"{name}('t')", f"{name}(1, 5)"]
        return list(dict.fromkeys(found))

    def objects(self, text: str) -> bool:
        """Nothing is hidden here: a view has no triggers that reading would fire."""
        return False

    def run(self, text: str) -> bool:
        for arguments in ({}, (1,), (1, 2), (1, 2, 3)):
            self._steps = STEPS
            cursor = self._connection.cursor()
            try:
                for _ in cursor.execute(text, arguments):
                    pass
                return True
            except apsw.BindingsError:
                continue
            except (apsw.Error, ValueError, TypeError):
                return False
            finally:
                self._steps = 0
                cursor.close(force=True)
        return False

    def digest(self) -> Digest:
        ask = self._connection.execute
        seen: Digest = {"files": short(files(self.folder))}
        for table in ("sqlite_schema", "sqlite_temp_schema", *self._tables()):
            seen[f"table {table}"] = short(ask(f'SELECT * FROM "{table}"').fetchall())
        for name in self._pragmas:
            seen[f"pragma {name}"] = short(ask(f"PRAGMA {name}").fetchall())
        seen["transaction"] = repr(self._connection.in_transaction)
        seen["changes"] = repr(self._connection.total_changes())
        seen["row id"] = repr(self._connection.last_insert_rowid())
        seen["commits"] = repr(self._watcher.execute("PRAGMA data_version").fetchall())
        return seen

    def _tables(self) -> list[str]:
        listed = self._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return sorted(str(name) for (name,) in listed)

    def close(self) -> None:
        self._watcher.close()
        self._connection.close(True)
        shutil.rmtree(self.folder, ignore_errors=True)


apsw.allow_missing_dict_bindings(True)
