"""What is judged a read leaves SQLite as it was: data, schema, settings and files.

Nothing but the judge stands between the statements and the database here: no authorizer, no
`query_only`, a connection that may do everything.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge_cases import load
from judge_mutations import mutate
from tidegate.sql.dialects.model import words
from tidegate.sql.judge import judge
from tidegate.sql.opinion import Refusal
from tidegate.types import Effect

SCHEMA = """
    CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL, d, name TEXT, x, y);
    CREATE TABLE u(id INTEGER PRIMARY KEY, b, c);
    CREATE TABLE users(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT);
    CREATE VIEW v AS SELECT * FROM t;
    CREATE INDEX ix ON t(a);
    CREATE TRIGGER tr AFTER DELETE ON u BEGIN UPDATE users SET name = 'gone'; END;
    CREATE VIRTUAL TABLE ft USING fts5(content);
    INSERT INTO t VALUES (1, 'one', 1.5, x'01', 'n', 1, 2), (2, 'two', 2.5, NULL, 'm', 3, 4);
    INSERT INTO u VALUES (1, 2, 3);
    INSERT INTO users(name) VALUES ('ann'), ('bob');
    INSERT INTO ft VALUES ('some words'), ('other words');
"""
ACTING_PRAGMAS = {
    *("optimize", "wal_checkpoint", "incremental_vacuum", "shrink_memory", "integrity_check"),
    *("quick_check", "foreign_key_check", "data_version"),
    *("module_list", "function_list"),  # they grow when a module is first used
}
ARGUMENTS = dict.fromkeys(("name", "n", "v", "a", "b", "id", "1", "2", "a::b"), 1)


class Shop:
    """A database file with something of everything, and a fingerprint of all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.connection = apsw.Connection(str(folder / "shop.db"))
        self.connection.execute(SCHEMA)
        self.connection.limit(apsw.SQLITE_LIMIT_LENGTH, 1_000_000)
        self._steps = 0  # how many more a statement under test may take; 0: no limit
        self.connection.set_progress_handler(self._step, 10_000)
        self.pragmas = sorted(
            str(name)
            for (name,) in self.connection.execute("PRAGMA pragma_list")
            if name not in ACTING_PRAGMAS
        )
        self.fingerprint()  # SQLite opens its temporary database when it is first looked at

    def _step(self) -> bool:
        if self._steps == 0:
            return False
        self._steps -= 1
        return self._steps == 0

    def run(self, text: str) -> None:
        self._steps = 20
        cursor = self.connection.cursor()
        try:
            for _ in cursor.execute(text, ARGUMENTS):
                pass
        except (apsw.Error, ValueError, TypeError, KeyError):
            pass
        finally:
            cursor.close(force=True)
            self._steps = 0

    def fingerprint(self) -> list[object]:
        rows = self.connection.execute
        tables = [str(name) for (name,) in rows("SELECT name FROM sqlite_schema ORDER BY name")]
        seen: list[object] = [list(rows("SELECT * FROM sqlite_schema ORDER BY name"))]
        seen += [list(rows(f'SELECT * FROM "{name}"')) for name in tables if name in _TABLES]
        seen += [(name, list(rows(f"PRAGMA {name}"))) for name in self.pragmas]
        seen.append(self.connection.in_transaction)
        seen.append(sorted(path.name for path in self.folder.iterdir()))
        seen.append(list(rows("SELECT * FROM sqlite_temp_schema")))
        return seen


_TABLES = {"t", "u", "users", "v", "ft", "ft_data", "sqlite_sequence"}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.chdir(tmp_path)
    shop = Shop(tmp_path)
    yield shop
    shop.connection.close()


def test_the_fingerprint_sees_a_change(shop: Shop) -> None:
    for text in (
        "UPDATE t SET b = 'x'",
        "CREATE TABLE z(a)",
        "PRAGMA user_version = 7",
        "PRAGMA query_only = 1",
        "PRAGMA query_only = 0",
        "CREATE TEMP TABLE z2(a)",
        "ATTACH 'other.db' AS other",
        "VACUUM INTO 'copy.db'",
    ):
        before = shop.fingerprint()
        shop.run(text)
        assert shop.fingerprint() != before, text


def test_cases_judged_reads_leave_the_database_unchanged(shop: Shop) -> None:
    before = shop.fingerprint()
    reads = 0
    for case in load():
        # Statements of other dialects too: what matters is what SQLite makes of them.
        if judge(case.sql, "sqlite").effect is Effect.READ:
            reads += 1
            shop.run(case.sql)
            assert shop.fingerprint() == before, case
    assert reads > 100


def test_mutated_cases_judged_reads_leave_the_database_unchanged(shop: Shop) -> None:
    chance = random.Random(20_261_122)
    before = shop.fingerprint()
    for case in load("sqlite"):
        for _ in range(4):
            try:
                text = mutate(case.sql, "sqlite", chance)
            except Refusal:
                break
            if judge(text, "sqlite").effect is Effect.READ:
                shop.run(text)
                assert shop.fingerprint() == before, text


_SHORT = words(
    """
    SELECT * FROM t u users WHERE a = 1 , ( ) ; 'x' "b" [c] `d` -- /* */ AS WITH RECURSIVE PRAGMA
    user_version query_only journal_mode table_info EXPLAIN VALUES UNION RETURNING BEGIN COMMIT
    ROLLBACK VACUUM load_extension ' " [ ] ` x' $a :name ?1 @b ft MATCH 'words' END INTO OR AND NOT
    NULL REINDEX ANALYZE \\ optimize(ft) json_each('[1]') pragma_user_version pragma_optimize
    """
)
_LONG = (
    *("INSERT INTO u VALUES (9,9,9)", "DELETE FROM u", "UPDATE u SET b = 5", "QUERY PLAN"),
    *("REPLACE INTO u VALUES (1,1,1)", "= 5", "(5)", "ATTACH 'z.db' AS z", "SAVEPOINT s"),
    *("CREATE TABLE z(a)", "DROP TABLE u", "ALTER TABLE u ADD COLUMN q", "VACUUM INTO 'w.db'"),
    *("ORDER BY", "LIMIT 1", "CASE WHEN", "FOR UPDATE", "pragma_table_info('t')"),
    *("\n", "\r", "\ufeff", "\f", "\u00a0"),
)
FRAGMENTS = st.sampled_from([*sorted(_SHORT), *_LONG])


@given(st.lists(FRAGMENTS, min_size=1, max_size=12), st.sampled_from((" ", "", "/**/", "\n")))
@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_generated_statements_judged_reads_leave_the_database_unchanged(
    shop: Shop, fragments: list[str], glue: str
) -> None:
    text = glue.join(fragments)
    if judge(text, "sqlite").effect is Effect.READ:
        before = shop.fingerprint()
        shop.run(text)
        assert shop.fingerprint() == before
