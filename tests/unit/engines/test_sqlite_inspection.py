"""What SQLite's own authorizer says of a statement that is prepared and does not run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tidegate.engines.common.url import FileUrl
from tidegate.engines.sqlite.connection import SqliteSession
from tidegate.engines.sqlite.inspect import (
    MAX_PAUSE,
    MOST_LATE,
    REFUSALS,
    SLOW_PACE,
    Authorizer,
    CachedStatement,
    Mode,
    StatementCache,
    prepare,
)
from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect, Judgement

SCHEMA = """
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT);
    CREATE TABLE log (note TEXT);
    CREATE TABLE child (t INTEGER REFERENCES t(id) ON DELETE CASCADE);
    CREATE INDEX i ON t (a);
    CREATE VIEW v AS SELECT a FROM t;
    CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log VALUES (upper(new.a)); END;
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteSession]:
    path = tmp_path_factory.mktemp("shop") / "shop.db"
    with apsw.Connection(str(path)) as made:
        made.execute(SCHEMA)
    opened = SqliteSession(file_at(path), writes=True)
    yield opened
    opened.connection.close()


def file_at(path: Path) -> FileUrl:
    return FileUrl(str(path))


@pytest.mark.parametrize(
    ("text", "effect", "tables", "functions"),
    [
        ("SELECT a FROM t", Effect.READ, "t", ""),
        ("SELECT upper(a) FROM v", Effect.READ, "t v", "upper"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n FROM r) SELECT n FROM r",
         Effect.READ, "", ""),
        ("VALUES (1)", Effect.READ, "", ""),
        ("PRAGMA table_info(t)", Effect.READ, "", ""),
        ("PRAGMA user_version", Effect.READ, "", ""),
        ("INSERT INTO t (a) VALUES ('x')", Effect.WRITE, "child log t", "upper"),
        ("INSERT INTO log VALUES (lower('x')) RETURNING note", Effect.WRITE, "log", "lower"),
        ("UPDATE log SET note = 'x'", Effect.WRITE, "log", ""),
        ("DELETE FROM log", Effect.WRITE, "log", ""),
        ("CREATE TABLE u (b)", Effect.WRITE, "u", ""),
        ("CREATE INDEX j ON log (note)", Effect.WRITE, "log", ""),
        ("CREATE VIEW w AS SELECT 1", Effect.WRITE, "w", ""),
        ("ALTER TABLE t ADD COLUMN b TEXT", Effect.WRITE, "t", ""),
        ("ALTER TABLE t DROP COLUMN a", Effect.DESTRUCTIVE, "t", ""),
        ("DROP TABLE log", Effect.DESTRUCTIVE, "log", ""),
        ("DROP INDEX i", Effect.DESTRUCTIVE, "t", ""),
        ("DROP VIEW v", Effect.DESTRUCTIVE, "v", ""),
        ("DROP TRIGGER g", Effect.DESTRUCTIVE, "t", ""),
        ("VACUUM", Effect.ADMIN, "", ""),
        ("EXPLAIN DELETE FROM log", Effect.READ, "log", ""),
    ],
)  # fmt: skip
def test_a_statement_is_what_the_authorizer_saw_of_it(
    session: SqliteSession, text: str, effect: Effect, tables: str, functions: str
) -> None:
    found = prepare(session, text)
    judgement = found.judgement
    assert (judgement.effect, judgement.code) == (effect, None)
    named = {each for each in judgement.tables if not each.startswith("sqlite_")}
    assert named == set(tables.split())
    if not text.startswith("ALTER"):  # which calls functions of SQLite's own
        assert judgement.functions == tuple(functions.split())
    assert found.reads is (effect is Effect.READ)
    assert found.vacuums is (text == "VACUUM")
    assert found.explains == text.startswith("EXPLAIN")
    row_changes = ("INSERT", "UPDATE", "DELETE")
    changes_schema = Effect.WRITE <= effect <= Effect.DESTRUCTIVE
    assert found.changes_schema is (changes_schema and not text.startswith(row_changes))
    words = "explains" if found.explains else "reads" if found.reads else effect.label
    assert words in judgement.reason


@pytest.mark.parametrize(
    ("text", "effect", "code", "what"),
    [
        ("BEGIN", Effect.SESSION, Code.POLICY_DENIED, "transaction control"),
        ("SAVEPOINT s", Effect.SESSION, Code.POLICY_DENIED, "transaction control"),
        ("CREATE TEMP TABLE x (a)", Effect.SESSION, Code.POLICY_DENIED, "a temporary table"),
        ("CREATE TEMP VIEW x AS SELECT 1", Effect.SESSION, Code.POLICY_DENIED, "a temporary view"),
        ("CREATE TEMP TRIGGER x AFTER DELETE ON t BEGIN SELECT 1; END", Effect.WRITE,
         Code.POLICY_DENIED, "a temporary trigger"),
        ("ATTACH 'x' AS y", Effect.ADMIN, Code.POLICY_DENIED, "ATTACH"),
        ("DETACH y", Effect.ADMIN, Code.POLICY_DENIED, "DETACH"),
        ("PRAGMA user_version = 5", Effect.ADMIN, Code.POLICY_DENIED, "PRAGMA user_version"),
        ("PRAGMA writable_schema", Effect.ADMIN, Code.POLICY_DENIED, "PRAGMA writable_schema"),
        ("PRAGMA journal_mode(DELETE)", Effect.ADMIN, Code.POLICY_DENIED, "PRAGMA journal_mode"),
        ("SELECT load_extension('x')", Effect.ADMIN, Code.SQL_FUNCTION,
         "the function load_extension"),
    ],
)  # fmt: skip
def test_what_no_caller_may_do_is_refused_with_what_it_is(
    session: SqliteSession, text: str, effect: Effect, code: Code, what: str
) -> None:
    judgement = prepare(session, text).judgement
    assert (judgement.effect, judgement.code) == (effect, code.value)
    assert judgement.reason == f"SQLite refuses {what} to every caller."
    assert judgement.rule == "sqlite.authorizer"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", Code.SQL_EMPTY),
        (" ;\n; ", Code.SQL_EMPTY),
        ("-- a", Code.SQL_EMPTY),
        ("SELECT 1; SELECT 2", Code.SQL_MULTIPLE),
        ("SELECT 1; nonsense", Code.SQL_MULTIPLE),
        (";;SELECT 1;DELETE FROM t", Code.SQL_MULTIPLE),
    ],
)
def test_a_text_holds_one_statement(session: SqliteSession, text: str, code: Code) -> None:
    with pytest.raises(TidegateError) as caught:
        prepare(session, text)
    assert caught.value.code is code


def test_empty_statements_and_comments_may_be_around_it(session: SqliteSession) -> None:
    for text in (";SELECT 1", "SELECT 1;", "/* a */ ; -- b\n SELECT 1 ; ; /* c */"):
        assert prepare(session, text).reads
    with pytest.raises(apsw.SQLError):
        prepare(session, "SELECT nothing FROM t")


def test_placeholders_are_counted(session: SqliteSession) -> None:
    assert prepare(session, "SELECT ?, ?").parameters == 2
    assert prepare(session, "DELETE FROM log WHERE note = ?").parameters == 1
    assert prepare(session, "SELECT 1").parameters == 0


def asked(
    mode: Mode, action: int, first: str | None, second: str | None = None, database: str = "main"
) -> tuple[bool, Authorizer]:
    authorizer = Authorizer()
    authorizer.mode = mode
    answer = authorizer(action, first, second, database, None)
    assert authorizer.prepared
    return answer == apsw.SQLITE_OK, authorizer


@pytest.mark.parametrize("mode", [Mode.READ, Mode.OBSERVE, Mode.WRITE])
@pytest.mark.parametrize("action", sorted(REFUSALS))
def test_no_mode_of_a_caller_admits_what_is_refused(mode: Mode, action: int) -> None:
    admitted, authorizer = asked(mode, action, "x", "y")
    assert not admitted
    assert (authorizer.effect, authorizer.refused) == REFUSALS[action]
    assert not authorizer.changes


@pytest.mark.parametrize("action", [apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE])
def test_a_change_of_rows_is_admitted_where_changes_are(action: int) -> None:
    for mode, may in ((Mode.READ, False), (Mode.OBSERVE, True), (Mode.WRITE, True)):
        admitted, authorizer = asked(mode, action, "t")
        assert admitted is may
        assert (authorizer.effect, authorizer.changes) == (Effect.WRITE, True)
        assert (authorizer.changed, authorizer.tables) == ({"t"}, {"t"})
        assert not authorizer.schema
        assert authorizer.refused == (None if may else "a change of the database")
    own, silent = asked(Mode.OWN, action, "t")
    assert own
    assert (silent.effect, silent.changes, silent.tables) == (Effect.READ, False, set())


@pytest.mark.parametrize(
    ("action", "first", "second", "database", "effect", "tables"),
    [
        (apsw.SQLITE_CREATE_TABLE, "u", None, "main", Effect.WRITE, {"u"}),
        (apsw.SQLITE_CREATE_INDEX, "i", "t", "main", Effect.WRITE, {"t"}),
        (apsw.SQLITE_CREATE_TRIGGER, "g", "t", "main", Effect.WRITE, {"t"}),
        (apsw.SQLITE_DROP_INDEX, "i", "t", "main", Effect.DESTRUCTIVE, {"t"}),
        (apsw.SQLITE_DROP_TRIGGER, "g", "t", "main", Effect.DESTRUCTIVE, {"t"}),
        (apsw.SQLITE_DROP_TABLE, "t", None, "main", Effect.DESTRUCTIVE, {"t"}),
        (apsw.SQLITE_DROP_VIEW, "v", None, "main", Effect.DESTRUCTIVE, {"v"}),
        (apsw.SQLITE_DROP_VTABLE, "f", "fts5", "main", Effect.DESTRUCTIVE, {"f"}),
        (apsw.SQLITE_CREATE_VTABLE, "f", "fts5", "main", Effect.WRITE, {"f"}),
        (apsw.SQLITE_ALTER_TABLE, "main", "t", "", Effect.DESTRUCTIVE, {"t"}),
        (apsw.SQLITE_REINDEX, "i", None, "main", Effect.WRITE, set()),
        (apsw.SQLITE_ANALYZE, "t", None, "main", Effect.WRITE, {"t"}),
        (apsw.SQLITE_CREATE_TABLE, "sqlite_stat1", None, "main", Effect.WRITE, set()),
        (apsw.SQLITE_CREATE_TABLE, "u", None, "temp", Effect.WRITE, {"u"}),
        (apsw.SQLITE_REINDEX, "i", None, "temp", Effect.WRITE, set()),
    ],
)
def test_a_change_of_the_schema_is_about_the_table_that_it_is_made_for(
    action: int, first: str, second: str | None, database: str, effect: Effect, tables: set[str]
) -> None:
    admitted, authorizer = asked(Mode.OBSERVE, action, first, second, database)
    assert admitted
    expected = Effect.SESSION if database == "temp" else effect
    assert (authorizer.effect, authorizer.tables) == (expected, tables)
    assert authorizer.schema
    assert authorizer.changed == set()


def test_an_unknown_action_is_refused() -> None:
    admitted, authorizer = asked(Mode.WRITE, 9_999, "x")
    assert not admitted
    assert (authorizer.effect, authorizer.refused) == (Effect.UNKNOWN, "an unknown action")


def test_the_first_refusal_and_the_strongest_effect_are_noted_until_they_are_forgotten() -> None:
    authorizer = Authorizer()
    assert (authorizer.mode, authorizer.prepared) == (Mode.READ, False)
    authorizer.mode = Mode.WRITE
    authorizer(apsw.SQLITE_ATTACH, "x", None, None, None)
    authorizer(apsw.SQLITE_SAVEPOINT, "x", None, None, None)
    authorizer(apsw.SQLITE_INSERT, "t", None, "main", None)
    authorizer(apsw.SQLITE_DROP_TABLE, "t", None, "main", None)
    authorizer(apsw.SQLITE_READ, "u", "a", "main", None)
    authorizer(apsw.SQLITE_FUNCTION, None, "UPPER", None, None)
    authorizer(apsw.SQLITE_PRAGMA, "USER_VERSION", None, None, None)
    assert (authorizer.effect, authorizer.refused) == (Effect.ADMIN, "ATTACH")
    assert (authorizer.tables, authorizer.functions) == ({"t", "u"}, {"upper"})
    assert authorizer.reads and authorizer.pragma and authorizer.changes and authorizer.schema
    authorizer.forget()
    assert (authorizer.effect, authorizer.refused) == (Effect.READ, None)
    assert not (authorizer.reads or authorizer.pragma or authorizer.changes or authorizer.schema)
    assert not (authorizer.tables or authorizer.functions or authorizer.changed)
    assert authorizer.prepared and authorizer.mode is Mode.WRITE


READ = Judgement(Effect.READ, "r", "It reads")


def test_a_plan_for_texts_alike_is_the_same_but_for_its_columns() -> None:
    plan = CachedStatement(READ, parameters=2, explains=1, changes_schema=True, vacuums=True)
    plan.small, plan.fits_inline, plan.steady, plan.inline = False, True, True, True
    plan.max_value_bytes, plan.pace, plan.columns = 7, 9, ()
    copied = plan.for_likeness()
    for name in ("judgement", "parameters", "explains", "changes_schema", "small", "fits_inline",
                 "steady", "max_value_bytes", "pace", "inline"):  # fmt: skip
        assert getattr(copied, name) == getattr(plan, name), name
    assert (copied.vacuums, copied.columns, copied.like) == (False, None, plan)
    assert (copied.pause, copied.due) == (1, 1)


def test_texts_alike_go_to_a_worker_the_longer_the_more_often_they_were_slow(
    session: SqliteSession,
) -> None:
    bounded = prepare(session, "SELECT a FROM t WHERE a > 'x' LIMIT 3")
    bounded.fits_inline, bounded.steady = True, False
    bounded.pace = 1
    plan = CachedStatement(READ)
    assert (plan.inline, plan.fits_inline, plan.steady, plan.small) == (False, False, False, True)
    assert (plan.pause, plan.due, plan.like, plan.columns) == (1, 1, None, None)
    plan.was_quick()
    assert not plan.inline
    plan.was_slow()
    assert not plan.inline
    copied = bounded.for_likeness()
    copied.was_quick()
    assert copied.inline


def test_a_statement_is_slow_that_is_late_each_time_not_once() -> None:
    plan = CachedStatement(READ)
    plan.inline = True
    for _ in range(MOST_LATE):
        for _ in range(MOST_LATE - 1):
            plan.was_late()
        assert plan.inline
        plan.was_in_time()
    for _ in range(MOST_LATE):
        assert plan.inline
        plan.was_late()
    assert (plan.inline, plan.late) == (False, 0)


def test_texts_alike_that_are_late_are_counted_together() -> None:
    plan = CachedStatement(READ)
    plan.fits_inline, plan.pace, plan.inline = True, SLOW_PACE, True
    plan.for_likeness().was_late()
    assert plan.late == 1
    plan.for_likeness().was_in_time()
    assert plan.late == 0
    for _ in range(MOST_LATE):
        assert plan.inline
        plan.for_likeness().was_late()
    assert not plan.inline


def test_the_pause_of_texts_alike_doubles_up_to_a_bound() -> None:
    plan = CachedStatement(READ)
    plan.fits_inline, plan.pace, plan.inline = True, SLOW_PACE, True
    pauses: list[int] = []
    for _ in range(7):
        plan.for_likeness().was_slow()
        pauses.append(plan.pause)
        assert (plan.due, plan.inline) == (plan.pause, False)
    assert pauses == [2, 4, 8, 16, 16, 16, 16]
    assert MAX_PAUSE == 16
    for left in range(15, -1, -1):
        assert not plan.inline
        plan.for_likeness().was_quick()
        assert plan.due == left
    assert plan.inline
    plan.for_likeness().was_quick()
    assert plan.due == 0


def test_the_cache_of_plans_keeps_what_was_used_of_two_generations() -> None:
    cache = StatementCache(2)
    plans = {text: CachedStatement(READ) for text in "abcde"}
    for text in "abc":
        cache.put(text, plans[text])
    assert cache.get("a") is plans["a"]  # and so it is of the new generation again
    cache.put("d", plans["d"])
    assert [text for text in "abcd" if cache.get(text) is plans[text]] == ["a", "c", "d"]
    assert cache.get("e") is None
    cache.clear()
    assert [cache.get(text) for text in "abcd"] == [None] * 4
