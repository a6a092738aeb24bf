"""What DuckDB's own parser and planner say of a statement before it may run.

The engine asks in a process of its own; here the same functions are asked directly.
"""

from __future__ import annotations

import duckdb
import pytest
from msgspec import structs

from tidegate.errors import Code, TidegateError
from tidegate.model.statements import Effect
from tidegate.products.duckdb.engine.inspect import (
    EFFECTS,
    REFUSED,
    ParsedStatement,
    body,
    explained,
    read,
)
from tidegate.products.duckdb.engine.messages import UNPLANNED


@pytest.fixture
def shop(tmp_path):
    """Run a script in the database, and give it back as the planner sees it: to be read only."""

    def opened(script: str = "") -> duckdb.DuckDBPyConnection:
        with duckdb.connect(tmp_path / "shop.duckdb") as made:
            made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, kind TEXT, n INTEGER)")
            made.execute("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20); CREATE SEQUENCE s")
            made.execute(script or "SELECT 1")
        connections.append(duckdb.connect(tmp_path / "shop.duckdb", read_only=True))
        return connections[-1]

    connections: list[duckdb.DuckDBPyConnection] = []
    yield opened
    for connection in connections:
        connection.close()


MERGE = "MERGE INTO t USING (SELECT 1 AS id) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = 0"


@pytest.mark.parametrize(
    ("text", "gives"),
    [
        ("SELECT 1", True),
        ("INSERT INTO t VALUES (3, 'c', 1)", False),
        ("INSERT INTO t VALUES (3, 'c', 1) RETURNING id", True),
        ("UPDATE t SET n = 1", False),
        ("UPDATE t SET n = 1 RETURNING n", True),
        ("DELETE FROM t", False),
        ("DELETE FROM t RETURNING id", True),
        (MERGE, False),
        (f"{MERGE} RETURNING id", True),
        ("CREATE TABLE u (a INTEGER)", False),
    ],
)
def test_rows_come_from_what_reads_and_from_changes_that_return_some(text: str, gives: bool):
    assert read(text).returns is gives


@pytest.mark.parametrize(
    "text",
    [
        "PRAGMA table_info('t')",
        "pragma TABLE_INFO('t')",
    ],
)
def test_a_pragma_that_describes_is_a_read(text: str):
    assert read(text).judgement.effect is Effect.READ


@pytest.mark.parametrize(
    "text",
    [
        "PRAGMA memory_limit='1GB'",
        "PRAGMA enable_profiling",
        "PRAGMA threads=1",
        "PRAGMA database_size_of_nothing",
    ],
)
def test_a_pragma_that_is_not_known_to_describe_is_refused(text: str):
    judged = read(text).judgement
    assert judged.effect > Effect.READ
    assert judged.code == Code.POLICY_DENIED.value


def test_of_statements_that_stand_for_several_only_a_pivot_is_let_through(shop):
    cursor = shop()
    pivot = "PIVOT t ON kind USING sum(n)"
    assert read(pivot).kind == "MULTI"
    assert explained(read(pivot), cursor).effect is Effect.READ
    # The word alone, as a name or in a text, makes no pivot.
    assert read("PIVOT t ON kind USING sum(n) -- other").judgement.effect is Effect.READ


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW counted AS SELECT id, kind, nextval('s') AS n FROM t",
        "CREATE MACRO counted(a) AS nextval('s') + a",
    ],
)
def test_a_pivot_that_names_what_may_write_is_raised_to_a_write(shop, made: str):
    cursor = shop(made)
    over = "counted" if "VIEW" in made else "(SELECT id, kind, counted(n) AS n FROM t)"
    judged = explained(read(f"PIVOT {over} ON kind USING sum(n)"), cursor)
    assert judged.effect is Effect.WRITE


def test_a_view_that_no_pivot_names_changes_nothing_of_its_judgement(shop):
    cursor = shop("CREATE VIEW counted AS SELECT nextval('s') AS n")
    assert explained(read("PIVOT t ON kind USING sum(n)"), cursor).effect is Effect.READ


def test_the_planner_is_asked_about_queries_alone(shop):
    """A change that would fail to be planned keeps the effect that its kind has."""
    judged = explained(read("INSERT INTO nowhere VALUES (1)"), shop())
    assert judged.effect is Effect.WRITE


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", Code.SQL_EMPTY),
        ("SELECT 1; SELECT 2", Code.SQL_MULTIPLE),
        ("SELECT '\0'", Code.SQL_UNREADABLE),
        ("SELECT '\ud800'", Code.SQL_UNREADABLE),
    ],
)
def test_what_is_no_single_statement_is_refused_with_its_reason(text: str, code: Code):
    with pytest.raises(TidegateError) as caught:
        read(text)
    assert caught.value.code is code


def test_a_query_that_takes_the_next_of_a_sequence_is_raised_to_a_write(shop):
    cursor = shop()
    assert explained(read("SELECT nextval('s')"), cursor).effect is Effect.WRITE
    assert explained(read("SELECT n FROM t WHERE id = ?"), cursor).effect is Effect.READ


def test_a_word_in_a_text_or_a_name_is_no_keyword():
    assert not read("INSERT INTO t VALUES (3, 'returning', 1)").returns
    assert not read('INSERT INTO "returning" VALUES (3)').returns


@pytest.mark.parametrize(
    ("text", "kind", "effect"),
    [
        ("SELECT 1", "SELECT", Effect.READ),
        ("EXPLAIN SELECT 1", "EXPLAIN", Effect.READ),
        ("INSERT INTO t VALUES (1)", "INSERT", Effect.WRITE),
        ("UPDATE t SET n = 1", "UPDATE", Effect.WRITE),
        ("DELETE FROM t", "DELETE", Effect.WRITE),
        (MERGE, "MERGE_INTO", Effect.WRITE),
        ("CREATE TABLE u (a INTEGER)", "CREATE", Effect.WRITE),
        ("CREATE MACRO f(a) AS a", "CREATE", Effect.WRITE),
        ("ALTER TABLE t ADD COLUMN a INTEGER", "ALTER", Effect.WRITE),
        ("DROP TABLE t", "DROP", Effect.DESTRUCTIVE),
        ("SET threads = 1", "SET", Effect.SESSION),
        ("BEGIN", "TRANSACTION", Effect.SESSION),
        ("PREPARE p AS SELECT 1", "PREPARE", Effect.SESSION),
        ("EXECUTE p", "EXECUTE", Effect.SESSION),
        ("ATTACH 'x.db' AS x", "ATTACH", Effect.ADMIN),
        ("DETACH x", "DETACH", Effect.ADMIN),
        ("COPY t TO 'x.csv'", "COPY", Effect.ADMIN),
        ("EXPORT DATABASE 'x'", "EXPORT", Effect.ADMIN),
        ("LOAD x", "LOAD", Effect.ADMIN),
        ("CALL pragma_version()", "CALL", Effect.UNKNOWN),
    ],
)
def test_each_type_of_statement_has_the_effect_that_it_is_listed_with(
    text: str, kind: str, effect: Effect
) -> None:
    one = read(text)
    assert (one.kind, one.judgement.effect) == (kind, effect)
    allowed = effect in (Effect.READ, Effect.WRITE, Effect.DESTRUCTIVE)
    assert one.judgement.code == (None if allowed else Code.POLICY_DENIED.value)
    assert (kind in one.judgement.reason) is not allowed
    assert one.returns is (effect is Effect.READ)
    if allowed and effect is not Effect.READ:
        assert effect.label in one.judgement.reason


def test_types_that_no_text_has_alone_are_refused_or_known() -> None:
    assert {kind: effect.label for kind, effect in EFFECTS.items()} == {
        **dict.fromkeys(("SELECT", "EXPLAIN", "MULTI"), "read"),
        **dict.fromkeys(("INSERT", "UPDATE", "DELETE", "MERGE_INTO"), "write"),
        **dict.fromkeys(("CREATE", "CREATE_FUNC", "ALTER", "ANALYZE", "VACUUM"), "write"),
        "DROP": "destructive",
    }
    session = {"SET", "VARIABLE_SET", "TRANSACTION", "PREPARE", "EXECUTE"}
    assert {kind for kind, effect in REFUSED.items() if effect is Effect.SESSION} == session
    assert {kind for kind, effect in REFUSED.items() if effect is Effect.ADMIN} == {
        "ATTACH", "DETACH", "COPY", "COPY_DATABASE", "EXPORT", "EXTENSION", "LOAD",
    }  # fmt: skip


WRITING = "SELECT nextval('s')"


@pytest.mark.parametrize(
    "text",
    [
        f"EXPLAIN {WRITING}",
        f"EXPLAIN ANALYZE {WRITING}",
        f"explain analyze {WRITING}",
        f"; ;EXPLAIN {WRITING}",
        f";{WRITING}",
        f"/* a */ {WRITING}",
        f"EXPLAIN (FORMAT json) {WRITING}",
        f"EXPLAIN (ANALYZE, FORMAT json) {WRITING}",
        f"EXPLAIN ({WRITING})",
        f"EXPLAIN WITH a AS ({WRITING}) SELECT * FROM a",
        f"WITH a AS ({WRITING}) SELECT * FROM a",
        f"FROM ({WRITING})",
        f"DESCRIBE {WRITING}",
        f"EXPLAIN FROM ({WRITING})",
        "VALUES (nextval('s'))",
    ],
)
def test_a_query_that_writes_is_found_in_an_explanation_and_behind_semicolons(
    shop, text: str
) -> None:
    judged = explained(read(text), shop())
    assert (judged.effect, judged.rule) == (Effect.WRITE, "duckdb.planner")
    assert "writes" in judged.reason


@pytest.mark.parametrize(
    "text",
    [
        "EXPLAIN SELECT n FROM t",
        "EXPLAIN (FORMAT json) SELECT n FROM t",
        "EXPLAIN ANALYZE SELECT n FROM t",
        "EXPLAIN INSERT INTO t VALUES (3, 'c', 1)",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (3, 'c', 1)",
        "EXPLAIN (FORMAT json) DELETE FROM t",
        "SELECT n FROM t WHERE n = ? AND id = ?",
    ],
)
def test_a_query_that_only_reads_keeps_its_judgement(shop, text: str) -> None:
    one = read(text)
    assert explained(one, shop()) is one.judgement


@pytest.mark.parametrize("text", ["SELECT nothing FROM t", "SELECT n FROM t WHERE n = $a"])
def test_a_query_that_cannot_be_planned_is_judged_by_its_text_and_says_so(shop, text: str) -> None:
    one = read(text)
    found = explained(one, shop())
    assert found.rule == UNPLANNED
    assert structs.replace(found, rule=one.judgement.rule) == one.judgement


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            'CREATE MACRO "odd name"(a) AS a',
            'PIVOT (SELECT "odd name"(n) AS n, kind FROM t) ON kind',
        ),
        (
            "CREATE VIEW \"odd name\" AS SELECT *, nextval('s') AS x FROM t",
            'PIVOT "Odd Name" ON kind',
        ),
        (
            "CREATE SCHEMA o; CREATE VIEW o.counted AS SELECT *, nextval('s') AS x FROM t",
            "PIVOT o.COUNTED ON kind",
        ),
        (
            "CREATE TABLE u AS FROM t; CREATE VIEW gone AS FROM u; DROP TABLE u",
            "PIVOT gone ON kind",
        ),
    ],
)
def test_a_pivot_is_raised_by_names_however_they_are_written(shop, made: str, text: str) -> None:
    judged = explained(read(f"{text} USING sum(n)"), shop(made))
    assert (judged.effect, judged.rule) == (Effect.WRITE, "duckdb.planner")
    assert "is not known" in judged.reason


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW counted AS SELECT id, kind, n FROM t",
        'CREATE VIEW "odd name" AS SELECT id, kind, n FROM t',
    ],
)
def test_a_pivot_of_a_view_that_reads_stays_a_read(shop, made: str) -> None:
    for name in ("counted", '"odd name"'):
        if name in made:
            one = read(f"PIVOT {name} ON kind USING sum(n)")
            assert explained(one, shop(made)) is one.judgement


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT 1;", "SELECT 1"),
        ("SELECT 1 ; ; -- end", "SELECT 1 "),
        ("SELECT 'ä' -- ä", "SELECT 'ä' "),
        ("SELECT ';' /* a */ ;", "SELECT ';' "),
        ("/* a */ SELECT 1", "/* a */ SELECT 1"),
        (";", ""),
    ],
)
def test_the_body_of_a_text_ends_with_its_statement(text: str, kept: str) -> None:
    assert body(text) == kept


def test_placeholders_are_known_by_their_names() -> None:
    assert read("SELECT ?, ?").parameters == {"1", "2"}
    assert read("SELECT $a").parameters == {"a"}
    assert read("SELECT 1").parameters == frozenset()


@pytest.mark.parametrize("text", ["EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN (FORMAT", ";", ""])
def test_an_explanation_without_a_query_is_not_planned(shop, text: str) -> None:
    one = ParsedStatement(text, "EXPLAIN", frozenset())
    assert explained(one, shop()) is one.judgement
