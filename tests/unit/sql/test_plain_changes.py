"""The outline of a plain change, for a dry run: its table, its rows, and why a form has none."""

from __future__ import annotations

import pytest

from tidegate.sql.dml_parser import HIDDEN_END, DmlStatement, Part, parse_dml

ONE_TABLE = "only a plain UPDATE or DELETE of one table is tried."
PLAIN_INSERT = "only a plain INSERT of VALUES or of a SELECT is tried."
READS_MORE = "it reads more than the table that it changes."
OTHER = "only a plain INSERT, UPDATE or DELETE is tried."


def outline(text: str, dialect: str = "sqlite") -> DmlStatement:
    found = parse_dml(text, dialect)
    assert isinstance(found, DmlStatement), found
    return found


@pytest.mark.parametrize(
    ("text", "target", "where"),
    [
        ("DELETE FROM t", "t", Part()),
        ("DELETE FROM t;", "t", Part()),
        ("DELETE FROM s.t AS x WHERE x.a = ?", "s.t AS x ", Part(" x.a = ?", (0,))),
        ('DELETE FROM "T" x WHERE a = 1 ; ', '"T" x ', Part(" a = 1 ")),
        ("UPDATE t SET a = ?, b = 2 WHERE c > f(?)", "t ", Part(" c > f(?)", (1,))),
        ("UPDATE t SET a = 1", "t ", Part()),
        ("UPDATE t AS x SET a = (b + 1)", "t AS x ", Part()),
    ],
)
def test_the_rows_of_a_plain_change_are_those_of_its_condition(
    text: str, target: str, where: Part
) -> None:
    found = outline(text)
    assert (found.verb, found.target, found.where) == (text.split()[0].lower(), target, where)
    assert (found.columns, found.query) == (None, Part())
    assert found.body.rstrip() == text.rstrip("; ")


def test_numbered_parameters_of_a_condition_are_counted_again() -> None:
    found = outline("UPDATE t SET a = $1 WHERE b = $3 AND c = $2 AND d = $3", "postgres")
    assert found.where == Part(" b = $1 AND c = $2 AND d = $1", (2, 1))
    assert found.parameters == 3


@pytest.mark.parametrize(
    ("text", "columns", "query"),
    [
        ("INSERT INTO t VALUES (1, 2)", None, Part()),
        ("INSERT INTO t (a) VALUES (1), (?)", (("a", False),), Part()),
        ('INSERT INTO t (a, "B") VALUES (1, 2)', (("a", False), ("B", True)), Part()),
        ("INSERT INTO t (a) VALUES (DEFAULT)", None, Part()),
        (
            "INSERT INTO t (a) SELECT b FROM u WHERE c = ?;",
            (("a", False),),
            Part("SELECT b FROM u WHERE c = ?", (0,)),
        ),
        ("INSERT INTO t SELECT 1", None, Part("SELECT 1")),
    ],
)
def test_an_insert_says_its_columns_and_where_its_rows_come_from(
    text: str, columns: tuple[tuple[str, bool], ...] | None, query: Part
) -> None:
    found = outline(text)
    assert (found.verb, found.columns, found.query) == ("insert", columns, query)
    assert (found.body, found.where) == (text.rstrip(";"), Part())
    assert (
        found.target
        == text[len("INSERT INTO ") : text.index("VALUES" if not query.text else "SELECT")]
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1", OTHER),
        ("DELETE t", OTHER),
        ("REPLACE INTO t VALUES (1)", OTHER),
        ("INSERT IGNORE INTO t VALUES (1)", OTHER),
        ("WITH a AS (SELECT 1) DELETE FROM t", OTHER),
        ("DELETE FROM t WHERE a IN (SELECT 1)", READS_MORE),
        ("UPDATE t SET a = (SELECT 1)", READS_MORE),
        ("UPDATE t SET a = DEFAULT", READS_MORE),
        ("UPDATE t SET a = (TABLE u)", READS_MORE),
        ("UPDATE t SET a = (VALUES (1))", READS_MORE),
        ("UPDATE ONLY t SET a = 1", ONE_TABLE),
        ("UPDATE OR IGNORE t SET a = 1", ONE_TABLE),
        ("UPDATE t, u SET a = 1", ONE_TABLE),
        ("UPDATE t a b SET a = 1", ONE_TABLE),
        ("UPDATE t SET a = 1 FROM u WHERE b = 1", ONE_TABLE),
        ("UPDATE t JOIN u SET a = 1", ONE_TABLE),
        ("DELETE FROM t USING u", ONE_TABLE),
        ("DELETE FROM t WHERE a = 1 RETURNING a", ONE_TABLE),
        ("DELETE FROM t ORDER BY a", ONE_TABLE),
        ("DELETE FROM t WHERE a = 1 LIMIT 1", ONE_TABLE),
        ("DELETE FROM t WHERE CURRENT OF c", ONE_TABLE),
        ("DELETE FROM t INDEXED BY i WHERE a = 1", ONE_TABLE),
        ("DELETE FROM t WHERE a = 1 WHERE b = 1", ONE_TABLE),
        ("INSERT INTO t SET a = 1", PLAIN_INSERT),
        ("INSERT INTO t TABLE u", PLAIN_INSERT),
        ("INSERT INTO t DEFAULT VALUES", PLAIN_INSERT),
        ("INSERT INTO t (a) WITH x AS (SELECT 1) SELECT * FROM x", PLAIN_INSERT),
        ("INSERT INTO t AS x VALUES (1)", PLAIN_INSERT),
        ("INSERT INTO t () VALUES (1)", PLAIN_INSERT),
        ("INSERT INTO t (a b) VALUES (1)", PLAIN_INSERT),
        ("INSERT INTO t (a.b) VALUES (1)", PLAIN_INSERT),
        ("INSERT INTO t (1) VALUES (1)", PLAIN_INSERT),
        ("INSERT INTO t (a VALUES", "Brackets do not match at character 18."),
        ("INSERT INTO", PLAIN_INSERT),
        ("INSERT INTO t VALUES ((SELECT 1))", PLAIN_INSERT),
        ("INSERT INTO t VALUES (1) RETURNING a", PLAIN_INSERT),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", PLAIN_INSERT),
        ("INSERT INTO t SELECT 1 RETURNING a", PLAIN_INSERT),
        ("INSERT INTO t SELECT 1 WHERE 1 ON CONFLICT DO NOTHING", PLAIN_INSERT),
        ("INSERT INTO t SELECT 1 ON DUPLICATE KEY UPDATE a = 1", PLAIN_INSERT),
        ("INSERT INTO t SELECT a FROM u FOR UPDATE", PLAIN_INSERT),
        ("DELETE FROM t /* ; */ ;", HIDDEN_END),
        ("INSERT INTO t VALUES (1) /* ; */ ;", HIDDEN_END),
        ("DELETE FROM t WHERE a = :a", "its parameters are not plain placeholders."),
        ("DELETE FROM t WHERE a = NEXT VALUE FOR s", "it takes a number from a sequence."),
        ("DELETE FROM t WHERE a = 'x", "The quotation at character 25 has no end."),
    ],
)
def test_a_form_that_is_not_plain_has_a_reason(text: str, reason: str) -> None:
    assert parse_dml(text, "sqlite") == reason


@pytest.mark.parametrize(
    ("text", "calls", "qualified", "assigned"),
    [
        ("UPDATE t SET a = F(1), b = 2 WHERE s.g(a)", {"f", "g"}, True, {"a", "b"}),
        ('DELETE FROM t WHERE "F"(a)', {"F"}, False, set()),
        ("INSERT INTO t (a) VALUES (f(1))", {"f"}, False, set()),
        ("INSERT INTO t (a) SELECT s.f(1)", {"f"}, True, set()),
    ],
)
def test_what_a_plain_change_calls_and_sets_is_known(
    text: str, calls: set[str], qualified: bool, assigned: set[str]
) -> None:
    found = outline(text)
    assert (found.calls, found.qualified, found.assigned) == (calls, qualified, assigned)
