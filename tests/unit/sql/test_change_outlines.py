"""The outline of a change: which table and columns it is about, the query that finds its rows, and
the reason where there is no such query."""

from __future__ import annotations

import pytest

from tidegate.sql.change_outline import COLUMNS, REASONS, ChangeOutline, outline_change
from tidegate.sql.dml_parser import Part


def outline(text: str, dialect: str = "sqlite") -> ChangeOutline:
    found = outline_change(text, dialect)
    assert isinstance(found, ChangeOutline), found
    return found


def rows(text: str, dialect: str = "sqlite") -> tuple[str, tuple[int, ...]]:
    """The query that finds the rows, with its blanks made one, and the parameters that it takes."""
    part = outline(text, dialect).rows
    return " ".join(part.text.replace(COLUMNS, "*").split()), part.params


FOUND = [
    ("UPDATE t SET a = 1", "SELECT * FROM t", ()),
    ("DELETE FROM t", "SELECT * FROM t", ()),
    ("DELETE FROM t;", "SELECT * FROM t", ()),
    ("DELETE FROM a.b.c x WHERE x.d = 1", "SELECT * FROM a.b.c x WHERE ( x.d = 1 )", ()),
    (
        "UPDATE s.t AS x SET a = f(?) WHERE x.a > g(?) RETURNING x.a, ?",
        "SELECT * FROM s.t AS x WHERE ( x.a > g(?) )",
        (1,),
    ),
    (
        "UPDATE t x SET a = ? FROM u, v WHERE u.id = x.id AND u.c = ?",
        "SELECT * FROM t x , u, v WHERE ( u.id = x.id AND u.c = ? )",
        (1,),
    ),
    (
        "DELETE FROM t USING u WHERE u.id = 1 RETURNING *",
        "SELECT * FROM t , u WHERE ( u.id = 1 )",
        (),
    ),
    ("UPDATE t SET a = 1 FROM u", "SELECT * FROM t , u", ()),
    (
        "UPDATE t SET a = 1 WHERE a IS DISTINCT FROM ?",
        "SELECT * FROM t WHERE ( a IS DISTINCT FROM ? )",
        (0,),
    ),
    (
        "WITH a AS (SELECT ? AS n) UPDATE t SET b = h(?) FROM a WHERE t.n = a.n AND c = ?",
        "WITH a AS (SELECT ? AS n) SELECT * FROM t , a WHERE ( t.n = a.n AND c = ? )",
        (0, 2),
    ),
    (
        "WITH a AS (SELECT 1) DELETE FROM t WHERE id IN (SELECT * FROM a)",
        "WITH a AS (SELECT 1) SELECT * FROM t WHERE ( id IN (SELECT * FROM a) )",
        (),
    ),
    (
        "UPDATE t SET a = (SELECT 1 FROM w WHERE b = 2) WHERE (a, b) = (1, 2)",
        "SELECT * FROM t WHERE ( (a, b) = (1, 2) )",
        (),
    ),
    ("UPDATE t SET a = 1 -- x;y\n WHERE b = 1 ;", "SELECT * FROM t WHERE ( b = 1 )", ()),
]


@pytest.mark.parametrize(("text", "query", "params"), FOUND)
def test_the_rows_of_a_change_are_found_by_its_tables_and_its_condition(
    text: str, query: str, params: tuple[int, ...]
) -> None:
    assert rows(text) == (query, params)


def test_a_condition_ends_on_a_line_of_its_own() -> None:
    """A comment at its end hides nothing that is written behind it."""
    text = outline("DELETE FROM t WHERE a = 1 -- b").rows.text
    assert text == f"SELECT {COLUMNS} FROM t \nWHERE ( a = 1 -- b\n)"


def test_numbered_parameters_are_counted_again_in_the_query() -> None:
    text = "UPDATE t SET a = $1 FROM u WHERE c = $3 AND d = $2 AND e = $3"
    assert rows(text, "postgres") == (
        "SELECT * FROM t , u WHERE ( c = $1 AND d = $2 AND e = $1 )",
        (2, 1),
    )
    assert outline(text, "postgres").parameters == 3


@pytest.mark.parametrize(
    ("text", "name", "alias"),
    [
        ("UPDATE t SET a = 1", (("t", False),), "t"),
        ("UPDATE s.t SET a = 1", (("s", False), ("t", False)), "t"),
        ("UPDATE s.t AS x SET a = 1", (("s", False), ("t", False)), "x"),
        ('UPDATE "T" x SET a = 1', (("T", True),), "x"),
        ('DELETE FROM "A b" AS "x y" WHERE 1', (("A b", True),), '"x y"'),
        ('DELETE FROM "A ""b"', (('A "b', True),), '"A ""b"'),
        ("INSERT INTO s.t AS x (a) VALUES (1)", (("s", False), ("t", False)), "x"),
        ("INSERT INTO s.t (a) VALUES (1)", (("s", False), ("t", False)), "t"),
        ('INSERT INTO "T" VALUES (1)', (("T", True),), '"T"'),
    ],
)
def test_a_table_is_known_by_its_name_and_its_alias(
    text: str, name: tuple[tuple[str, bool], ...], alias: str
) -> None:
    found = outline(text)
    assert (found.name, found.alias) == (name, alias)


@pytest.mark.needs("mysql")
def test_a_name_is_quoted_as_the_dialect_writes_it() -> None:
    assert outline("UPDATE `t` AS `x y` SET a = 1", "mysql").alias == "`x y`"


@pytest.mark.parametrize(
    ("text", "calls", "row_calls", "qualified"),
    [
        ("UPDATE t SET a = f(1) WHERE g(a)", {"f", "g"}, {"g"}, False),
        ("UPDATE t SET a = f(1) FROM h(2) WHERE 1", {"f", "h"}, {"h"}, False),
        ("WITH a AS (SELECT f(1)) DELETE FROM t WHERE 1", {"as", "f"}, {"as", "f"}, False),
        ('DELETE FROM t WHERE "F"(a) RETURNING g(a)', {"F", "g"}, {"F"}, False),
        ("DELETE FROM t WHERE s.f(1)", {"f"}, {"f"}, True),
        ("UPDATE t SET a = s.f(1)", {"f"}, set(), True),
        ("INSERT INTO t (a) VALUES (f(1)) RETURNING g(a)", {"values", "f", "g"}, set(), False),
        ("INSERT INTO t (a) SELECT s.f(1)", {"f"}, set(), True),
        ("INSERT INTO t SELECT 1", set(), set(), False),
    ],
)
def test_what_a_change_calls_is_known_and_what_the_query_calls(
    text: str, calls: set[str], row_calls: set[str], qualified: bool
) -> None:
    found = outline(text)
    assert (found.calls, found.row_calls, found.qualified) == (calls, row_calls, qualified)


@pytest.mark.parametrize(
    ("text", "assigned"),
    [
        ('UPDATE t SET a = b, "C" = f(d, e) WHERE g = 1', {"a", "c"}),
        ("UPDATE t SET (a, b) = (1, 2)", {"a", "b"}),
        ("UPDATE t SET a = 1 FROM u WHERE b = 2", {"a"}),
        ("UPDATE t SET a = 1 RETURNING b = 2", {"a"}),
        ("DELETE FROM t WHERE a = 1", set()),
        ("INSERT INTO t (a) VALUES (1)", set()),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING", set()),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1, c = d WHERE e = 1",
            {"b", "c"},
        ),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1 RETURNING e = 1", {"b"}),
    ],
)
def test_the_columns_that_are_set_are_known(text: str, assigned: set[str]) -> None:
    assert outline(text).assigned == assigned


MERGE = (
    "MERGE INTO t AS x USING u ON x.id = u.id WHEN MATCHED AND u.c = 1 THEN UPDATE SET a = u.a"
    " WHEN MATCHED THEN UPDATE SET b = f(1), c = 2 WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)"
)


def test_a_merge_sets_the_columns_of_all_its_branches() -> None:
    found = outline(f"{MERGE} RETURNING x.id", "postgres")
    assert (found.verb, found.alias, found.upserts) == ("merge", "x", True)
    assert found.assigned == {"a", "b", "c"}
    assert (found.body, found.returning) == (f"{MERGE} ", " x.id")
    assert found.rows == Part()


@pytest.mark.parametrize(
    ("text", "upserts"),
    [
        ("INSERT INTO t (a) VALUES (1)", False),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING", False),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1", True),
        ("INSERT INTO t (a) SELECT a FROM u WHERE 1 ON CONFLICT (a) DO UPDATE SET b = 1", True),
        ("UPDATE t SET a = 1", False),
        ("DELETE FROM t", False),
    ],
)
def test_an_insert_may_change_rows_where_a_conflict_updates_them(text: str, upserts: bool) -> None:
    found = outline(text)
    assert found.upserts is upserts
    assert found.verb == text.split()[0].lower()


@pytest.mark.parametrize(
    ("text", "body", "returning"),
    [
        ("INSERT INTO t VALUES (1) RETURNING a, b ;", "INSERT INTO t VALUES (1) ", " a, b "),
        ("INSERT INTO t VALUES (1);", "INSERT INTO t VALUES (1)", ""),
        ("UPDATE t SET a = 1 RETURNING a, f(b); ", "UPDATE t SET a = 1 ", " a, f(b)"),
        ("DELETE FROM t WHERE a = 1 returning *", "DELETE FROM t WHERE a = 1 ", " *"),
        ("DELETE FROM t WHERE a = 1 ; ", "DELETE FROM t WHERE a = 1 ", ""),
    ],
)
def test_the_body_of_a_change_ends_before_its_returning(
    text: str, body: str, returning: str
) -> None:
    found = outline(text)
    assert (found.body, found.returning) == (body, returning)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("UPDATE t SET a = ?, b = ? WHERE c = ?", 3),
        ("DELETE FROM t", 0),
        ("INSERT INTO t VALUES (?, f(?))", 2),
    ],
)
def test_parameters_are_counted(text: str, count: int) -> None:
    assert outline(text).parameters == count


PLAIN = "it is not a plain INSERT, UPDATE, DELETE or MERGE"
SEVERAL = "it is about several tables"
WITHIN = "a query within it changes rows as well"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1", PLAIN),
        ("TRUNCATE t", PLAIN),
        ("CREATE TABLE t (a int)", PLAIN),
        ("EXPLAIN DELETE FROM t", PLAIN),
        ("REPLACE INTO t VALUES (1)", REASONS["REPLACE"]),
        ("WITH t AS (SELECT 1) DELETE FROM T", "a query within it is called like its table"),
        ("WITH a AS (DELETE FROM u RETURNING id) DELETE FROM t", WITHIN),
        ("WITH a AS (INSERT INTO u VALUES (1)) UPDATE t SET a = 1", WITHIN),
        ("UPDATE t SET a = (MERGE INTO u USING v ON 1 WHEN MATCHED THEN DELETE)", WITHIN),
        ("UPDATE t SET a = (UPDATE u SET b = 1)", WITHIN),
        ("UPDATE ONLY t SET a = 1", "it is no plain UPDATE of one table"),
        ("UPDATE", "it is no plain UPDATE of one table"),
        ("UPDATE (t) SET a = 1", "it is no plain UPDATE of one table"),
        ("UPDATE LOW_PRIORITY t SET a = 1", "it is no plain UPDATE of one table"),
        ("UPDATE OR IGNORE t SET a = 1", "it is no plain UPDATE of one table"),
        ("UPDATE t WHERE a = 1", "it is no plain UPDATE of one table"),
        ("UPDATE t SET a = 1 WHERE b = 1 WHERE c = 1", "it is no plain UPDATE of one table"),
        ("UPDATE t WHERE a = 1 SET b = 2", "it is no plain UPDATE of one table"),
        ("UPDATE t SET a = 1 RETURNING a WHERE b = 1", "it is no plain UPDATE of one table"),
        ("DELETE", "it is no plain DELETE of one table"),
        ("DELETE t", "it is no plain DELETE of one table"),
        ("DELETE FROM", "it is no plain DELETE of one table"),
        ("DELETE FROM ONLY t", "it is no plain DELETE of one table"),
        ("DELETE QUICK FROM t", "it is no plain DELETE of one table"),
        ("DELETE FROM t SET a = 1", "it is no plain DELETE of one table"),
        ("DELETE FROM t USING u FROM v", "it is no plain DELETE of one table"),
        ("INSERT t VALUES (1)", "it is no plain INSERT of one table"),
        ("INSERT INTO", "it is no plain INSERT of one table"),
        ("INSERT OR REPLACE INTO t VALUES (1)", "it is no plain INSERT of one table"),
        ("INSERT DELAYED INTO t VALUES (1)", "it is no plain INSERT of one table"),
        ("MERGE t USING u ON 1 WHEN MATCHED THEN DELETE", "it is no plain MERGE of one table"),
        ("INSERT IGNORE INTO t VALUES (1)", REASONS["IGNORE"]),
        ("INSERT INTO t PARTITION (p) VALUES (1)", REASONS["PARTITION"]),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2", REASONS["DUPLICATE"]),
        ("UPDATE t SET a = 1 LIMIT 5", REASONS["LIMIT"]),
        ("DELETE FROM t ORDER BY a LIMIT 5", REASONS["ORDER"]),
        ("DELETE FROM t WHERE 1 FETCH FIRST 1 ROW ONLY", REASONS["FETCH"]),
        ("DELETE FROM t WHERE CURRENT OF c", REASONS["CURRENT"]),
        ("UPDATE t SET a = 1 FROM u TABLESAMPLE system(1)", REASONS["TABLESAMPLE"]),
        ("UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a = 1", REASONS["PORTION"]),
        ("DELETE FROM t PARTITION (p)", REASONS["PARTITION"]),
        ("UPDATE t, u SET a = 1", SEVERAL),
        ("UPDATE t a b SET a = 1", SEVERAL),
        ("DELETE FROM t a b WHERE 1", SEVERAL),
        ("DELETE FROM t , u WHERE 1", SEVERAL),
        ("DELETE FROM t /* ; */ ;", "its last word, or a comment after it, holds a semicolon"),
        ("DELETE FROM t WHERE a = :a", "its parameters are not plain placeholders"),
        ("DELETE FROM t WHERE a = 'x", "The quotation at character 25 has no end"),
    ],
)  # fmt: skip
def test_a_form_whose_rows_are_not_known_beforehand_has_a_reason(text: str, reason: str) -> None:
    assert outline_change(text, "sqlite") == reason


def test_reasons_are_for_words_outside_brackets_and_functions_alone() -> None:
    assert rows("UPDATE t SET a = REPLACE(a, 'x', 'y')")[0] == "SELECT * FROM t"
    assert rows("UPDATE t SET a = (SELECT b FROM u ORDER BY c LIMIT 1)")[0] == "SELECT * FROM t"
    assert rows("UPDATE t SET a = (SELECT 1 FROM u FOR UPDATE)")[0] == "SELECT * FROM t"
    assert rows("UPDATE t SET a = (SELECT 1 FROM u FOR NO KEY UPDATE)")[0] == "SELECT * FROM t"
    assert rows("UPDATE t SET a = (insert('a', 1, 1, 'b'))")[0] == "SELECT * FROM t"


@pytest.mark.needs("duckdb", "mysql")
def test_a_database_that_joins_in_a_change_has_no_outline_of_several_tables() -> None:
    for text in ("UPDATE t AS x SET a = 1 FROM u WHERE 1", "DELETE FROM t USING u WHERE 1"):
        assert outline_change(text, "mysql") == SEVERAL
        assert isinstance(outline_change(text, "duckdb"), ChangeOutline)
