"""What is extracted from queries for JDBC: fields, conditions, parameters, tables, and bounds."""

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.products.jdbc.extraction.extraction import extract
from tidegate.sql import quoting

DIALECTS = ("generic", "postgres", "mysql", "sqlite", "duckdb", "h2", "hsqldb", "derby", "oracle")


def _fields(extraction):
    return [field.text for field in extraction.fields]


def _conditions(extraction):
    return [(found.field, found.operator) for found in extraction.conditions]


def test_the_example_of_the_document():
    found = extract("SELECT id, name, email FROM users WHERE status = ?")
    assert _fields(found) == ["id", "name", "email"]
    assert _conditions(found) == [("status", "=")]
    assert len(found.parameters) == 1


HARD = [
    ("SELECT COUNT(*), COALESCE(a, b) c, name FROM t",
     ["COUNT(*)", "COALESCE(a, b)", "name"], [], 0),
    ("SELECT a FROM t WHERE name like ? and age in (?,?,?) and d between ? and ?",
     ["a"], [("name", "LIKE"), ("age", "IN"), ("d", "BETWEEN")], 6),
    ("SELECT a FROM t WHERE note = 'it''s a = ?' AND id = ?", ["a"], [("id", "=")], 1),
    ("SELECT a FROM t WHERE ? = id AND ? < n AND name NOT LIKE ? AND k NOT IN (?)",
     ["a"], [("id", "="), ("n", ">"), ("name", "NOT LIKE"), ("k", "NOT IN")], 4),
    ("SELECT extract(year from ts) AS y, (SELECT max(b) FROM z) m FROM q",
     ["extract(year from ts)", "(SELECT max(b) FROM z)"], [], 0),
    ("SELECT \"Weird, Name\", 'a,b' AS lit FROM q", ['"Weird, Name"', "'a,b'"], [], 0),
    ("SELECT u.id FROM u JOIN t ON u.k=? WHERE x>=? GROUP BY 1 HAVING count(*)>? LIMIT ? OFFSET ?",
     ["u.id"], [("u.k", "="), ("x", ">="), ("count(*)", ">")], 5),
    ("SELECT a FROM t WHERE tags ?? 'a' AND tags ??| array['b'] AND id = ?",
     ["a"], [("id", "=")], 1),
    ("SELECT a FROM t WHERE id = ?::int AND b = ANY(?)", ["a"], [("id", "="), ("b", "=")], 2),
    ("SELECT a FROM t WHERE (a,b) = (?,?) AND r @> ? AND j->>'k' = ? AND s ILIKE ?",
     ["a"], [("(a,b)", "="), ("r", "@>"), ("j->>'k'", "="), ("s", "ILIKE")], 5),
    ("SELECT s.id FROM (SELECT id FROM users WHERE age > ?) s WHERE s.id < ?",
     ["s.id"], [("age", ">"), ("s.id", "<")], 2),
    ("SELECT a FROM t WHERE t.x = 'order by ? limit'", ["a"], [], 0),
    ("SELECT\n  id,\n  name\nFROM users\nWHERE status = ? -- ?", ["id", "name"],
     [("status", "=")], 1),
    ("select * from t where lower(name) = lower(?)", ["*"], [("lower(name)", "=")], 1),
    ("SELECT a FROM t WHERE NOT (a = ? OR b <> ?)", ["a"], [("a", "="), ("b", "!=")], 2),
    ("SELECT a FROM t WHERE x IS NOT DISTINCT FROM ? AND y = 1",
     ["a"], [("x", "IS NOT DISTINCT FROM")], 1),
    ("SELECT CASE WHEN a = ? AND b = 2 THEN ? END AS c FROM t WHERE d = ?",
     ["CASE WHEN a = ? AND b = 2 THEN ? END"], [("d", "=")], 3),
    ("SELECT a, 1 x FROM t WHERE k = ? UNION ALL SELECT b, 2 FROM v WHERE m > ?",
     ["a", "1"], [("k", "="), ("m", ">")], 2),
    ("(SELECT a FROM t WHERE k = ?) UNION (SELECT b FROM v) ORDER BY 1", ["a"], [("k", "=")], 1),
    ("WITH r AS (SELECT * FROM base WHERE k = ?) SELECT r.x y FROM r WHERE r.z < ?",
     ["r.x"], [("k", "="), ("r.z", "<")], 2),
    ("SELECT a FROM t WHERE ((((((a = ?))))) AND ((b = ?)))", ["a"], [("a", "="), ("b", "=")], 2),
    ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM k WHERE k.i = t.i AND k.z = ?)",
     ["a"], [("k.z", "=")], 1),
    ("SELECT a FROM t WHERE id IN (SELECT id FROM k WHERE z = ?)", ["a"], [("z", "=")], 1),
    ("SELECT {fn ucase(name)} FROM t WHERE d > {ts '2020-01-01 00:00:00'} AND z=?",
     ["{fn ucase(name)}"], [("z", "=")], 1),
    ("SELECT a FROM {oj a LEFT OUTER JOIN b ON a.x = ?} WHERE c = ?",
     ["a"], [("a.x", "="), ("c", "=")], 2),
    ("SELECT DISTINCT ON (a) a, b FROM t", ["a", "b"], [], 0),
    ("SELECT left(a, 2) FROM t LEFT JOIN v ON left(t.a, ?) = v.a", ["left(a, 2)"],
     [("v.a", "=")], 1),
    ("SELECT count(*) FILTER (WHERE q = ?) FROM t", ["count(*) FILTER (WHERE q = ?)"],
     [("q", "=")], 1),
    ("SELECT 1 WHERE 1=?AND 2=?", ["1"], [("1", "="), ("2", "=")], 2),
    ("VALUES (?, 2)", ["*"], [], 1),
]  # fmt: skip


@pytest.mark.parametrize(("query", "fields", "conditions", "parameters"), HARD)
def test_hard_cases(query, fields, conditions, parameters):
    found = extract(query)
    assert _fields(found) == fields
    assert _conditions(found) == conditions
    assert len(found.parameters) == parameters


@pytest.mark.parametrize("operator", ["=", ">", "<", ">=", "<=", "!=", "<>", "LIKE", "like", "IS"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_operator_of_the_document_in_every_dialect(operator, dialect):
    (found,) = extract(f"SELECT a FROM t WHERE b {operator} ?", dialect).conditions
    assert found.operator == {"<>": "!=", "like": "LIKE"}.get(operator, operator)
    assert (found.field, found.value, found.clause) == ("b", "?", "WHERE")


def test_aliases_are_told_apart_from_fields_and_tables():
    found = extract(
        'SELECT u.id AS "User Id", u.name n FROM app.users u JOIN v AS w ON u.id = w.id'
    )
    assert [(field.text, field.alias) for field in found.fields] == [
        ("u.id", '"User Id"'),
        ("u.name", "n"),
    ]
    assert [(table.name, table.alias) for table in found.tables] == [("app.users", "u"), ("v", "w")]


def test_a_common_table_expression_is_no_table():
    found = extract("WITH r AS (SELECT * FROM base) SELECT * FROM r, other")
    assert {table.name for table in found.tables} == {"base", "other"}


def test_conditions_without_a_parameter_are_filters():
    found = extract("SELECT a FROM t WHERE b = 1 AND c = ? AND d IS NULL")
    assert [(each.field, each.operator, each.value) for each in found.filters] == [
        ("b", "=", "1"),
        ("d", "IS", "NULL"),
    ]
    assert _conditions(found) == [("c", "=")]


def test_one_condition_counts_its_parameters():
    found = extract("SELECT a FROM t WHERE b IN (?, ?, ?) AND c BETWEEN ? AND ?")
    assert [each.parameter_count for each in found.conditions] == [3, 2]


def test_a_parameter_knows_its_clause():
    found = extract("SELECT ? FROM t JOIN v ON v.a = ? WHERE b = ? HAVING c = ? LIMIT ?")
    assert [each.clause for each in found.parameters] == [
        "SELECT",
        "ON",
        "WHERE",
        "HAVING",
        "LIMIT",
    ]
    assert found.parameters[2].field == "b"


@pytest.mark.parametrize(
    ("dialect", "query", "written"),
    [
        ("postgres", "SELECT ?,?::int WHERE j ?? 'a' AND x LIKE?",
         "SELECT $1,$2::int WHERE j ? 'a' AND x LIKE $3"),
        ("duckdb", "SELECT ? + ?", "SELECT $1 + $2"),
        ("sqlite", "SELECT ?, {fn ucase(x)}, {d '2020-01-01'}", "SELECT ?, upper(x), '2020-01-01'"),
        ("mysql", "SELECT ? FROM t WHERE {fn now()} > {d '2020-01-01'}",
         "SELECT ? FROM t WHERE CURRENT_TIMESTAMP > DATE '2020-01-01'"),
        ("postgres", "SELECT {fn ifnull(a, ?)} FROM t WHERE b LIKE 'x' {escape '!'}",
         "SELECT coalesce(a, $1) FROM t WHERE b LIKE 'x' ESCAPE '!'"),
        ("duckdb", "SELECT {'a': 1, 'b': {'c': ?}}", "SELECT {'a': 1, 'b': {'c': $1}}"),
    ],
)  # fmt: skip
def test_the_text_for_the_database(dialect, query, written):
    assert extract(query, dialect).source_text == written


@pytest.mark.parametrize(
    ("dialect", "query", "parameters"),
    [
        ("mysql", "SELECT `a?b`, \"x?\", 'it\\'s ?' FROM t # ?\n WHERE y=?", 1),
        ("postgres", "SELECT E'\\'?', $$ ? $$, $a$ ? $$ $a$ FROM t /* /* ? */ ? */ WHERE y=?", 1),
        ("sqlite", "SELECT [a?b], `c?` FROM t WHERE y=? -- ?", 1),
        ("tsql", "SELECT TOP 5 [a?b] FROM t WHERE y=?", 1),
        ("generic", "SELECT a FROM t WHERE b[?] = 1", 1),
    ],
)
def test_marks_inside_quotes_and_comments_are_no_parameters(dialect, query, parameters):
    assert len(extract(query, dialect).parameters) == parameters


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT 1; DELETE FROM t", Code.SQL_MULTIPLE),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", Code.SQL_UNKNOWN),
        ("SELECT * INTO z FROM t", Code.SQL_UNKNOWN),
        ("INSERT INTO t VALUES (?)", Code.SQL_UNKNOWN),
        ("{? = call f(?)}", Code.SQL_UNKNOWN),
        ("{call f(?)}", Code.SQL_UNKNOWN),
        ("SELEC * FORM t", Code.SQL_UNKNOWN),
        ("SELECT * FORM t WHRE a = ?", Code.SQL_UNREADABLE),
        ("", Code.SQL_EMPTY),
        (" -- nothing\n;", Code.SQL_EMPTY),
        ("SELECT ?1", Code.SQL_UNREADABLE),
        ("SELECT $1", Code.SQL_UNREADABLE),
        ("SELECT 'open", Code.SQL_UNREADABLE),
        ("SELECT 'it\\'s ?'", Code.SQL_UNREADABLE),
        ("SELECT [a?b] FROM t", Code.SQL_UNREADABLE),
        ("SELECT a FROM t WHERE b = ?)", Code.SQL_UNREADABLE),
        ("SELECT " + "(" * 5_000 + "?" + ")" * 5_000, Code.SQL_TOO_DEEP),
        ("SELECT '" + "x" * 1_000_000 + "'", Code.SQL_TOO_LONG),
        ("SELECT a FROM t WHERE " + "NOT " * 20_000 + "a = ?", None),
        ("SELECT " + "CASE WHEN a THEN " * 4_000 + "?" + " END" * 4_000, None),
        ("SELECT a FROM t WHERE b IN (" + "?," * 20_000 + "?)", Code.SQL_TOO_LONG),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_code(query, code):
    with pytest.raises(TidegateError) as caught:
        extract(query)
    assert caught.value.code in ({code} if code else {Code.SQL_TOO_DEEP, Code.SQL_TOO_LONG})
    assert caught.value.hint
    assert len(caught.value.message) < 300


def test_a_misspelled_first_word_gets_a_suggestion():
    with pytest.raises(TidegateError) as caught:
        extract("SELEC * FROM t")
    assert caught.value.hint == "Did you mean SELECT?"


@pytest.mark.parametrize("dialect", ["mysql", "sqlite", "h2"])
def test_an_escaped_operator_is_refused_where_there_is_none(dialect):
    with pytest.raises(TidegateError) as caught:
        extract("SELECT a ?? 'b' FROM t", dialect)
    assert caught.value.code is Code.SQL_UNREADABLE


def test_ten_thousand_parameters_are_counted():
    query = "SELECT a FROM t WHERE b IN (" + ",".join("?" * 10_000) + ")"
    (found,) = extract(query).conditions
    assert found.parameter_count == 10_000


@pytest.mark.parametrize(
    ("query", "fields", "tables"),
    [
        ("SELECT `id`, `na me` FROM `users`", ["`id`", "`na me`"], ["users"]),
        ("SELECT [id], [na me] FROM [users]", ["[id]", "[na me]"], ["users"]),
        ("SELECT u.[id] FROM [dbo].[users] u", ["u.[id]"], ["dbo.users"]),
        ("SELECT [it's] FROM [order]", ["[it's]"], ["order"]),
        ("SELECT a[1], b FROM t", ["a[1]", "b"], ["t"]),
        ("SELECT '[id]', '`' FROM t", ["'[id]'", "'`'"], ["t"]),
    ],
)
def test_without_a_connection_names_in_the_quotes_of_any_database_are_read(query, fields, tables):
    found = extract(f"{query} WHERE c = ?")
    assert _fields(found) == fields
    assert [each.name for each in found.tables] == tables
    assert (len(found.parameters), found.dialect) == (1, "generic")


@pytest.mark.parametrize("dialect", ["postgres", "h2", "hsqldb", "derby", "mysql", "duckdb"])
@pytest.mark.parametrize("name", ["`na me`", "[name]"])
def test_quotes_that_the_database_does_not_have_are_named_with_its_own(dialect, name):
    if (dialect, name) in {("mysql", "`na me`"), ("duckdb", "[name]")}:
        assert extract(f"SELECT {name} FROM t", dialect).tables
        return
    with pytest.raises(TidegateError) as caught:
        extract(f"SELECT '`' , {name} FROM {name}", dialect)
    assert caught.value.code is Code.SQL_UNREADABLE
    assert f"does not write names as {name}, at character 14" in caught.value.message
    assert quoting.identifier(name[1:-1], dialect) in caught.value.hint


def test_another_fault_is_not_taken_for_foreign_quotes():
    for query in ("SELECT '`a`' FROM t WHERE", "SELECT a[1] FROM t WHERE"):
        with pytest.raises(TidegateError) as caught:
            extract(query, "postgres")
        assert "WHERE" in caught.value.message
