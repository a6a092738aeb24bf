"""A statement is completed from a catalogue, wherever its reader is in it."""

from __future__ import annotations

import pytest

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.sql.completion import MOST_ITEMS, Item, complete
from tidegate.sql.completion_scope import MOST_COLUMNS, scope_tokens, tables_of_with


def table(
    name: str, columns: str, keys: tuple[ForeignKey, ...] = (), schema: str = "public"
) -> Table:
    infos = tuple(ColumnInfo(each, "integer") for each in columns.split())
    return Table(schema, name, "table", infos, foreign_keys=keys)


CATALOG = Catalog(
    "shop",
    "public",
    ("public", "audit"),
    (
        table("customers", "id name city"),
        table(
            "orders",
            "id customer_id total",
            (ForeignKey("of", ("customer_id",), "customers", ("id",)),),
        ),
        table("Odd Names", "select Größe"),
        table("lines", "at", schema="audit"),
    ),
    "1",
)


def at(text: str, dialect: str = "postgres") -> list[Item]:
    """The proposals at the sign | of a text."""
    return complete(text.replace("|", "", 1), text.index("|"), dialect, CATALOG).items


def names(items: list[Item], kind: str) -> list[str]:
    return [item.label for item in items if item.kind == kind]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("SELECT * FROM cu|", "table", ["customers"]),
        ("SELECT * FROM customers, or|", "table", ["orders"]),
        ("INSERT INTO or|", "table", ["orders"]),
        ("UPDATE or|", "table", ["orders"]),
        ("SELECT * FROM audit.|", "table", ["lines"]),
        ("SELECT * FROM aud|", "schema", ["audit"]),
        ("SELECT c.| FROM customers c", "column", ["id", "name", "city"]),
        ("SELECT c.ci| FROM customers AS c", "column", ["city"]),
        ("SELECT customers.na| FROM customers", "column", ["name"]),
        ("SELECT tot| FROM orders WHERE 1", "column", ["total"]),
        ("SELECT 1 FROM orders WHERE tot|", "column", ["total"]),
        ("SELECT 1 FROM orders ORDER BY tot|", "column", ["total"]),
        ("UPDATE orders SET tot|", "column", ["total"]),
        ("SELECT (SELECT na| FROM customers) FROM orders", "column", ["name"]),
        ("SELECT 1; SELECT ci| FROM customers; SELECT 2", "column", ["city"]),
        ("SELECT count(ci|) FROM customers", "column", ["city"]),
        ("SELECT ci| FROM", "column", []),
    ],
)
def test_what_may_come_is_proposed(text: str, kind: str, expected: list[str]) -> None:
    assert names(at(text), kind) == expected


def test_a_join_is_proposed_by_the_foreign_key_whichever_table_has_it() -> None:
    for text, condition in (
        ("SELECT 1 FROM orders o JOIN customers c ON |", "o.customer_id = c.id"),
        ("SELECT 1 FROM customers JOIN orders ON |", "orders.customer_id = customers.id"),
    ):
        assert at(text)[0].insert == condition
    assert names(at("SELECT 1 FROM orders JOIN |"), "table")[0] == "customers"


WITH = "WITH big AS (SELECT id, total * 2 AS twice FROM orders), named (a, b) AS (SELECT 1, 2)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What WITH names, by its list of names or by its SELECT.
        (f"{WITH} SELECT | FROM big", "id twice"),
        (f"{WITH} SELECT b.| FROM big b", "id twice"),
        (f"{WITH} SELECT | FROM named", "a b"),
        (f"{WITH} SELECT | FROM big JOIN named ON 1", "id twice a b"),
        ("WITH o AS (SELECT * FROM orders), t AS (SELECT | FROM o) SELECT 1",
         "id customer_id total"),
        ("WITH o AS (SELECT c.* FROM orders r JOIN customers c ON 1) SELECT | FROM o",
         "id name city"),
        ("WITH customers AS (SELECT total FROM orders) SELECT | FROM customers", "total"),
        ("WITH RECURSIVE n AS (SELECT 1 AS k UNION ALL SELECT k + | FROM n) SELECT 1", "k"),
        ("WITH gone AS (DELETE FROM orders RETURNING id, total) SELECT | FROM gone", "id total"),
        ("SELECT * FROM (WITH w AS (SELECT name FROM customers) SELECT | FROM w) q", "name"),
        # Queries in FROM.
        ("SELECT s.| FROM (SELECT name, count(*) AS n FROM customers GROUP BY name) s", "name n"),
        ("SELECT | FROM (SELECT o.total t, o.id FROM orders AS o) s", "t id"),
        ("SELECT | FROM (SELECT DISTINCT name FROM customers) s", "name"),
        ("SELECT | FROM (SELECT id FROM orders UNION SELECT city FROM customers) s", "id"),
        ("SELECT | FROM (VALUES (1, 2)) AS v (one, two)", "one two"),
        ("SELECT 1 FROM orders, (SELECT | FROM customers) s", "id name city"),
        ("SELECT 1 FROM orders o, LATERAL (SELECT o.| FROM customers) s", "id customer_id total"),
        # A condition sees the tables around it, and what is inside comes first.
        ("SELECT 1 FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE o.|)",
         "id customer_id total"),
        ("SELECT name FROM customers UNION SELECT | FROM orders", "id customer_id total"),
        ("SELECT | FROM customers UNION SELECT id FROM orders", "id name city"),
        # What is not finished.
        ("SELECT s.| FROM (SELECT name FROM customers s", "id name city"),
        ("WITH big AS (SELECT | FROM orders", "id customer_id total"),
        ("SELECT x.| FROM (SELECT", ""),
    ],
)  # fmt: skip
def test_columns_of_queries_are_proposed_where_they_are_seen(text: str, expected: str) -> None:
    assert names(at(text), "column") == expected.split()


def test_what_with_names_is_proposed_as_a_table_where_it_is_known() -> None:
    assert names(at(f"{WITH} SELECT * FROM |"), "table")[:2] == ["big", "named"]
    inside = "WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM |), c AS (SELECT 2) SELECT 1"
    assert names(at(inside), "table")[:2] == ["a", "customers"]


def test_the_type_of_a_column_comes_with_it_through_queries() -> None:
    found = at("SELECT | FROM (SELECT total AS t, 1 AS k FROM orders) s")
    assert [each.detail for each in found[:2]] == ["s: integer", "s"]


def test_names_are_written_as_the_dialect_reads_them() -> None:
    (odd,) = [item for item in at("SELECT * FROM odd|") if item.kind == "table"]
    assert (odd.label, odd.insert) == ("Odd Names", '"Odd Names"')
    (other,) = [item for item in at("SELECT * FROM lin|") if item.kind == "table"]
    assert other.insert == "audit.lines"
    inserts = [item.insert for item in at('SELECT o.| FROM "Odd Names" o')]
    assert inserts[0] == '"select"'
    found = complete('SELECT * FROM "Od', 17, "postgres", CATALOG)
    assert (found.start, found.end, found.items[0].insert) == (14, 17, '"Odd Names"')


def test_a_column_of_two_tables_is_written_with_its_table() -> None:
    items = [item for item in at("SELECT id| FROM orders o, customers c") if item.kind == "column"]
    assert [item.insert for item in items] == ["o.id", "c.id", "customer_id"]


def test_the_most_fitting_proposals_come_first_and_are_bounded() -> None:
    items = at("SELECT | FROM customers")
    assert len(items) <= MOST_ITEMS
    assert [item.kind for item in items[:3]] == ["column"] * 3
    assert names(at("SELECT id FROM orders wher|"), "keyword") == ["WHERE"]


@pytest.mark.parametrize(
    "text", ["SELECT 'or|'", "SELECT 'or|", "SELECT 1 -- or|", "SELECT /* or| */ 1", "SELECT 12|3"]
)
def test_nothing_is_proposed_in_strings_comments_and_numbers(text: str) -> None:
    assert at(text) == []


def test_parameters_of_the_text_are_proposed_behind_a_colon() -> None:
    items = at("SELECT * FROM orders WHERE id = :order_id AND total = :o|")
    assert [(item.label, item.kind) for item in items] == [(":order_id", "parameter")]


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "sqlite", "duckdb", "cloud"])
def test_no_text_is_too_broken_to_be_completed(dialect: str) -> None:
    text = "SELECT 'é😀\" $$ ` [ FROM orders JOIN ( ; -- x\n/* WHERE id = :a . , AS o.cu"
    for place in range(len(text) + 1):
        for end in (place, len(text)):
            found = complete(text[:end], place, dialect, CATALOG)
            assert 0 <= found.start <= place <= found.end <= end


SHOP = Catalog(
    "shop",
    "public",
    ("public", "audit"),
    (
        table(
            "lines",
            "id order_no part",
            (
                ForeignKey("a", ("order_no", "part"), "orders", ("no", "part")),
                ForeignKey("b", ("id",), "log", ("of",), "audit"),
            ),
        ),
        table("orders", "no part", (ForeignKey("c", ("no",), "orders", ("no",)),)),
        table("log", "of at", schema="audit"),
        table("log", "other"),
        table("notes", "of", (ForeignKey("d", ("of",), "log", ("of",)),), schema="audit"),
    ),
    "1",
)


def within(text: str, dialect: str = "postgres") -> list[Item]:
    return complete(text.replace("|", "", 1), text.index("|"), dialect, SHOP).items


def shown(items: list[Item], kind: str = "column") -> list[tuple[str, str, str]]:
    return [(each.label, each.insert, each.detail) for each in items if each.kind == kind]


def test_columns_say_of_which_table_they_are() -> None:
    assert shown(within("SELECT | FROM audit.log")) == [
        ("of", "of", "log: integer"), ("at", "at", "log: integer"),
    ]  # fmt: skip
    assert shown(within("SELECT | FROM audit.log AS l"))[0] == ("of", "of", "l: integer")
    assert shown(within("SELECT l.| FROM audit.log l"))[0] == ("of", "of", "integer")


def test_aliases_are_proposed_with_the_table_that_they_stand_for() -> None:
    assert shown(within("SELECT | FROM orders o, lines"), "table") == [("o", "o", "orders")]
    assert shown(within("SELECT | FROM orders"), "table") == []


@pytest.mark.parametrize(
    "word", ["WHERE", "WHERE 1 AND", "WHERE 1 OR", "SET", "RETURNING", "ORDER BY", "WHERE ("]
)
def test_behind_a_clause_of_a_statement_that_names_tables_no_other_table_is_proposed(
    word: str,
) -> None:
    assert shown(within(f"SELECT 1 FROM orders {word} |"), "table") == []


def test_without_a_table_all_of_them_are_proposed_last() -> None:
    items = within("SELECT |")
    assert [each.kind for each in items][-1] != "table"  # beyond the bound
    assert names(within("SELECT not|"), "table") == ["notes"]
    assert names(within("SELECT publ|"), "schema") == ["public"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM |", "SELECT * FROM orders, |", "SELECT * FROM orders JOIN |",
        "SELECT * FROM orders o LEFT JOIN |", "INSERT INTO |", "UPDATE |", "DROP TABLE |",
        "DESCRIBE |", "describe |",  "DELETE FROM |",
    ],
)  # fmt: skip
def test_only_tables_and_schemas_come_where_a_table_is_due(text: str) -> None:
    items = within(text)
    assert {each.kind for each in items} == {"table", "schema"}
    assert {each.insert for each in items if each.kind == "table"} == {
        "lines", "orders", "audit.log", "log", "audit.notes",
    }  # fmt: skip
    assert shown(items, "schema") == [
        ("public", "public.", "schema"), ("audit", "audit.", "schema"),
    ]  # fmt: skip
    assert ("log", "audit.log", "table in audit") in shown(items, "table")


@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM orders |", "SELECT * FROM orders o |", "UPDATE orders |",
     "SELECT * FROM orders, lines |", "SELECT (SELECT 1 FROM log) |"],
)  # fmt: skip
def test_behind_a_table_its_columns_and_keywords_are_proposed(text: str) -> None:
    kinds = {each.kind for each in within(text)}
    assert {"column", "keyword"} <= kinds
    assert "schema" not in kinds


def test_tables_that_a_key_joins_come_before_others() -> None:
    assert names(within("SELECT 1 FROM orders, |"), "table")[:2] == ["lines", "orders"]
    near = [each.insert for each in within("SELECT 1 FROM lines, |")][:2]
    assert near == ["orders", "audit.log"]
    assert [each.insert for each in within("SELECT 1 FROM audit.log, |")][:2] == [
        "lines", "audit.notes",
    ]  # fmt: skip


def test_a_key_of_several_columns_joins_by_all_of_them() -> None:
    joined = "l.order_no = orders.no AND l.part = orders.part"
    for text in ("SELECT 1 FROM lines l JOIN orders ON |", "SELECT 1 FROM orders, lines l ON |"):
        found = [item for item in within(text) if item.detail == "foreign key"]
        assert [(item.label, item.insert, item.kind) for item in found] == [
            (joined, joined, "column")
        ]
    assert [
        each for each in within("SELECT 1 FROM lines ON |") if each.detail == "foreign key"
    ] == []


def test_a_key_leads_to_the_schema_that_it_names_or_its_own() -> None:
    def joins(text: str) -> list[str]:
        return [each.insert for each in within(text) if each.detail == "foreign key"]

    assert joins("SELECT 1 FROM audit.log g JOIN lines ON |") == ["lines.id = g.of"]
    assert joins("SELECT 1 FROM log g JOIN lines ON |") == []
    assert joins("SELECT 1 FROM audit.log g JOIN audit.notes n ON |") == ["n.of = g.of"]
    assert joins("SELECT 1 FROM log g JOIN audit.notes n ON |") == []
    assert joins("SELECT 1 FROM audit.log g, orders o JOIN lines ON |") == [
        "lines.order_no = o.no AND lines.part = o.part", "lines.id = g.of",
    ]  # fmt: skip


def test_a_column_is_named_with_its_table_only_where_another_has_it_too() -> None:
    items = shown(within("SELECT | FROM lines l, orders"))
    assert {insert for _, insert, _ in items} == {
        "id", "order_no", "l.part", "orders.part", "no",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT log.|", ["of", "at"]),  # no table is named: the first of that name
        ("SELECT log.| FROM log", ["other"]),
        ("SELECT AUDIT.LOG.| FROM audit.log", ["of", "at"]),
        ("SELECT L.| FROM log l", ["other"]),
        ("SELECT nothing.| FROM log", []),
        ("SELECT a .| FROM orders a", ["no", "part"]),
        ('SELECT "a b".| FROM log, orders "a b"', ["no", "part"]),
        ('SELECT "a""b".| FROM log, orders "a""b"', ["no", "part"]),
    ],
)
def test_behind_a_dot_come_the_columns_of_what_is_called_so(text: str, expected: list[str]) -> None:
    assert names(within(text), "column") == expected


def test_behind_a_schema_come_its_tables() -> None:
    assert shown(within("SELECT * FROM AUDIT.|"), "table") == [
        ("log", "log", "table"), ("notes", "notes", "table"),
    ]  # fmt: skip
    assert within("SELECT * FROM nothing.|") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT | FROM audit.log l WHERE 1", "at of"),
        ("SELECT | FROM audit.log, orders o", "at no of part"),
        ("SELECT | FROM audit.log JOIN orders ON 1", "at no of part"),
        ("SELECT | FROM log WHERE 1", "other"),
        ("SELECT | FROM public.log", "other"),
        ("SELECT | FROM nothing.log", ""),
        ("SELECT | FROM notes", "of"),
        ("SELECT | FROM (SELECT * FROM orders), audit.log", "at no of part"),
        ("SELECT | FROM orders; SELECT * FROM log", "no part"),
        ("SELECT * FROM log; SELECT | FROM orders; SELECT * FROM log", "no part"),
        ("SELECT 1, | FROM orders WHERE no IN (1, 2), log", "no part"),
        ('SELECT | FROM "log"', "other"),
    ],
)
def test_the_tables_of_the_statement_give_the_columns(text: str, expected: str) -> None:
    assert sorted(label for label, *_ in shown(within(text))) == expected.split()


def test_a_bare_name_is_the_default_schema_s_table_before_another() -> None:
    assert shown(within("SELECT * FROM log x WHERE x.|")) == [("other", "other", "integer")]


def test_what_begins_so_comes_before_what_has_such_a_word_or_holds_it() -> None:
    listed = [each.label for each in within("SELECT no| FROM orders, lines, audit.notes")]
    assert listed[:2] == ["no", "NOT"] or listed[0] == "no"
    assert listed.index("no") < listed.index("order_no")
    assert [each.label for each in within("SELECT no| FROM lines")].index("order_no") > 0
    assert names(within("SELECT der| FROM lines"), "column") == ["order_no"]
    assert names(within("SELECT der| FROM lines"), "keyword") == []
    assert "ORDER BY" in names(within("SELECT 1 FROM lines by|"), "keyword")
    assert names(within("SELECT PAR| FROM lines"), "column") == ["part"]


def test_nothing_is_proposed_twice() -> None:
    items = within("SELECT o.| FROM orders o, orders o")
    assert [each.label for each in items] == ["no", "part"]
    own = [each.insert for each in within("SELECT | FROM orders o, orders p")]
    assert len(own) == len(set(own))


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("SELECT or|ders FROM", 7, 13),
        ("SELECT |", 7, 7),
        ('SELECT "or|d" FROM', 7, 12),
        ('SELECT "or| FROM', 7, 10),
        ("SELECT a.or|", 9, 11),
        ("SELECT :o|r", 7, 10),
        ("SELECT 'a|b'", 9, 9),
        ("|", 0, 0),
    ],
)
def test_the_word_at_the_place_is_what_a_proposal_replaces(text: str, start: int, end: int) -> None:
    found = complete(text.replace("|", "", 1), text.index("|"), "postgres", SHOP)
    assert (found.start, found.end) == (start, end)


def test_a_place_outside_of_the_text_is_its_nearest_end() -> None:
    assert complete("SELECT or", 99, "postgres", SHOP).start == 7
    assert complete(" SELECT or", -5, "postgres", SHOP).start == 0
    assert complete(" SELECT or", -5, "postgres", SHOP).end == 0


def test_right_before_and_behind_a_string_proposals_go_on() -> None:
    assert within("SELECT |'x'") != []
    assert within("SELECT 'x'|") != []


@pytest.mark.needs("mysql")
def test_backticks_and_brackets_are_quotes_where_the_dialect_has_them() -> None:
    found = complete("SELECT * FROM `or", 17, "mysql", SHOP)
    assert (found.start, [each.insert for each in found.items]) == (14, ["orders"])
    assert names(within("SELECT [a].| FROM log, orders [a]", "sqlite"), "column") == ["no", "part"]
    assert names(within("SELECT `a``b`.| FROM log, orders `a``b`", "mysql"), "column") == [
        "no",
        "part",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT $$or|$$",
        "SELECT $a$or|",
        "SELECT $a$ or|",
        "SELECT /* or|",
        "SELECT 1 -- or|\n",
        "SELECT 'a''|b'",
    ],
)
def test_nothing_is_proposed_in_other_strings_and_comments(text: str) -> None:
    assert within(text) == []


@pytest.mark.parametrize("text", ["SELECT 1 -- x\nFROM or|", "SELECT $$x$$ FROM or|",
                                  "/* ; */ SELECT 1 FROM or|", "SELECT 'x' FROM or|"])  # fmt: skip
def test_behind_strings_and_comments_proposals_go_on(text: str) -> None:
    assert names(within(text), "table") == ["orders"]


def test_a_cast_is_no_parameter() -> None:
    text = "SELECT :name, :named, :1x, a::na| FROM log"
    assert all(each.kind != "parameter" for each in within(text))
    found = [each.label for each in within("SELECT :name, :named, :other, :na|")]
    assert found == [":name", ":named"]
    assert [each.label for each in within("SELECT :name, a::int, :name| ")] == []


def test_functions_are_of_the_dialect_and_come_with_their_bracket() -> None:
    assert ("abs", "abs(", "") in shown(within("SELECT ab|"), "function")
    assert names(within("SELECT ifnul|", "mysql"), "function") == ["ifnull"]
    assert names(within("SELECT ifnul|", "postgres"), "function") == []


def test_queries_of_with_that_double_their_columns_have_a_bounded_number() -> None:
    doubled = [f"a{n} AS (SELECT x.*, y.* FROM a{n - 1} x, a{n - 1} y)" for n in range(1, 13)]
    text = f"WITH a0 AS (SELECT * FROM customers), {', '.join(doubled)} SELECT  FROM a12"
    found = tables_of_with(list(scope_tokens(text, "postgres")), len(text), CATALOG)
    assert len(found) == 13
    assert max(len(each.columns) for each in found) == MOST_COLUMNS
