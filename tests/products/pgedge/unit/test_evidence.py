"""The checks on statements: what they find, and what they must not call wrong."""

from __future__ import annotations

import pytest

from tidegate.model.profiles import ColumnProfile
from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Index, Table
from tidegate.products.pgedge.text_to_sql.binding import bind
from tidegate.products.pgedge.text_to_sql.evidence import check_statement, null_probes, used_joins
from tidegate.products.pgedge.text_to_sql.knowledge import Knowledge, KnownJoin, KnownTable


def table(name: str, columns: str, *keys: tuple[str, str, str]) -> Table:
    made = tuple(
        ColumnInfo(
            word.rstrip("*?"), "text" if "day" in word else "int", "?" in word, key=int("*" in word)
        )
        for word in columns.split()
    )
    return Table(
        "public",
        name,
        "table",
        made,
        indexes=(Index("u", ("code",), unique=True),) if "code" in columns else (),
        foreign_keys=tuple(ForeignKey("f", (own,), to, (ref,)) for own, to, ref in keys),
    )


CATALOG = Catalog(
    "shop",
    "public",
    ("public",),
    (
        table("customers", "id* code region"),
        table("orders", "id* customer_id total day? status", ("customer_id", "customers", "id")),
        table("items", "id* order_id qty note?", ("order_id", "orders", "id")),
        table("tags", "id* label"),
        table("tagged", "tag_id order_id", ("tag_id", "tags", "id"), ("order_id", "orders", "id")),
    ),
    "1",
    (),
    "postgres",
)


def found(sql: str, knowledge: Knowledge = Knowledge(), **profiles: ColumnProfile) -> set[str]:  # noqa: B008
    bound = bind(sql, CATALOG)
    assert bound is not None
    known = {("public", "orders"): dict(profiles)}
    names = {check.name for check in check_statement(bound, CATALOG, knowledge, known)}
    return names | {"null" for _ in null_probes(bound)}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(o.total) FROM orders o JOIN items i ON i.order_id = o.id",
        "SELECT c.region, sum(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id"
        " JOIN items i ON i.order_id = o.id GROUP BY c.region",
        "SELECT avg(total) FROM orders JOIN items ON orders.id = items.order_id",
        "SELECT count(c.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id",
        "SELECT sum(o.total) FROM orders o, tagged t WHERE t.order_id = o.id",
    ],
)
def test_a_sum_that_a_join_multiplies_is_found(sql: str) -> None:
    assert found(sql) == {"fanout"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(i.qty) FROM orders o JOIN items i ON i.order_id = o.id",
        "SELECT c.region, sum(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id"
        " GROUP BY c.region",
        "SELECT count(DISTINCT o.id) FROM orders o JOIN items i ON i.order_id = o.id",
        "SELECT count(*) FROM orders o JOIN items i ON i.order_id = o.id",
        "SELECT max(o.total) FROM orders o JOIN items i ON i.order_id = o.id",
        "SELECT t.label, sum(o.total) FROM orders o JOIN tagged g ON g.order_id = o.id"
        " JOIN tags t ON t.id = g.tag_id GROUP BY t.id, t.label",
        "SELECT sum(o.total) FROM orders o JOIN"
        " (SELECT order_id, sum(qty) q FROM items GROUP BY order_id) i ON i.order_id = o.id",
        "SELECT sum(o.total) FROM orders o WHERE EXISTS"
        " (SELECT 1 FROM items i WHERE i.order_id = o.id)",
        "SELECT sum(o.total) FROM orders o JOIN customers c ON c.id = o.customer_id"
        " AND c.code = 'x'",
        "SELECT o.id, o.total, sum(i.qty) FROM orders o JOIN items i USING (id) GROUP BY 1, 2",
    ],
)
def test_a_sum_that_is_right_is_not_called_wrong(sql: str) -> None:
    assert found(sql) - {"doubtful_join"} == set()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM orders WHERE day NOT IN (SELECT day FROM orders)", {"null"}),
        ("SELECT * FROM items WHERE note NOT IN (SELECT note FROM items)", {"null"}),
        ("SELECT * FROM items WHERE id NOT IN (SELECT id FROM orders)", set()),
        ("SELECT * FROM items WHERE note IN (SELECT note FROM items)", set()),
        (
            "SELECT * FROM items WHERE note NOT IN (SELECT note FROM items WHERE note IS NOT NULL)",
            set(),
        ),
    ],
)
def test_null_in_not_in_is_found(sql: str, expected: set[str]) -> None:
    assert found(sql) == expected


def test_dates_that_are_texts_are_found() -> None:
    sql = "SELECT * FROM orders WHERE day > '2024-01-01'"
    american = ColumnProfile(example="12/31/2024", remarks=("dates",))
    assert found(sql, day=american) == {"text_dates"}
    assert found(sql, day=ColumnProfile(example="2024-05-01")) == set()
    assert found(
        "SELECT * FROM orders WHERE day > '1/1/2024'",
        day=ColumnProfile(low="2024-05-01", high="2024-06-01"),
    ) == {"text_dates"}
    assert found("SELECT * FROM orders WHERE total > 3", day=american) == set()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("made::text > '5/1/2026'", {"text_dates"}),
        ("'5/1/2026' < CAST(made AS varchar(10))", {"text_dates"}),
        ("made::text BETWEEN '1/5/2026' AND '31/5/2026'", {"text_dates"}),
        ("to_char(made, 'MM/DD/YYYY') >= '05/01/2026'", {"text_dates"}),
        ("to_char(made, 'DD.MM.YYYY') BETWEEN '01.05.2026' AND '31.05.2026'", {"text_dates"}),
        ("made::text > '2026-05-01'", set()),
        ("to_char(made, 'YYYY-MM') >= '2026-05'", set()),
        ("to_char(made, 'MM') = '05'", set()),
        ("to_char(made, 'HH24') < '12'", set()),
        ("made > '5/1/2026'", set()),
        ("id::text > 'x'", set()),
        ("made::text > now()::text", set()),
    ],
)
def test_dates_that_a_statement_makes_texts_of_are_found(
    condition: str, expected: set[str]
) -> None:
    made = (ColumnInfo("id", "integer"), ColumnInfo("made", "timestamp with time zone"))
    catalog = Catalog(
        *("d", "public", ("public",), (Table("public", "events", "table", made),), "1"),
        dialect="postgres",
    )
    bound = bind(f"SELECT count(*) FROM events WHERE {condition}", catalog)
    assert bound is not None
    checks = check_statement(bound, catalog, Knowledge(), {})
    assert {check.name for check in checks} == expected


def test_a_name_taken_from_the_query_around_is_found() -> None:
    sql = "SELECT * FROM orders WHERE id IN (SELECT customer_id FROM items)"
    assert found(sql) == {"outer_name"}


def test_a_default_filter_that_is_left_out_is_found() -> None:
    known = Knowledge(tables={"orders": KnownTable(default_filter="status <> 'cancelled'")})
    assert found("SELECT count(*) FROM orders", known) == {"default_filter"}
    assert found("SELECT count(*) FROM orders WHERE status = 'paid'", known) == set()


def test_joins_are_declared_or_guessed() -> None:
    sql = (
        "SELECT 1 FROM customers c JOIN orders o ON o.customer_id = c.id"
        " JOIN tags t ON t.label = o.status"
    )
    bound = bind(sql, CATALOG)
    assert bound is not None
    assert {
        (join.left, join.right, join.declared) for join in used_joins(bound, CATALOG, Knowledge())
    } == {
        ("orders.customer_id", "customers.id", True),
        ("tags.label", "orders.status", False),
    }
    known = Knowledge(joins=(KnownJoin(left="tags.label", to="orders.status"),))
    assert all(join.declared for join in used_joins(bound, CATALOG, known))


@pytest.mark.parametrize(
    ("sql", "unknown"),
    [
        ("SELECT totl FROM orders", ("totl",)),
        ("SELECT o.totl FROM orders o", ("o.totl",)),
        ("SELECT x.total FROM (SELECT id FROM orders) x", ("x.total",)),
        ("SELECT total AS t FROM orders ORDER BY t", ()),
        ("WITH a AS (SELECT total AS t FROM orders) SELECT t FROM a", ()),
        ("SELECT anything FROM nowhere", ()),
        ("SELECT anything FROM orders, nowhere", ()),
        ("SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM items WHERE order_id = o.id)", ()),
        ("SELECT Orders.Total FROM ORDERS", ()),
        ("SELECT total FROM orders UNION SELECT id FROM items ORDER BY total", ()),
    ],
)
def test_only_names_that_no_table_has_are_unknown(sql: str, unknown: tuple[str, ...]) -> None:
    bound = bind(sql, CATALOG)
    assert bound is not None
    assert bound.unknown == unknown
