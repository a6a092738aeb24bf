"""Tables in shorthand: what an agent reads instead of DDL."""

from __future__ import annotations

import pytest

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Index, Table
from tidegate.search.shorthand import short_type, with_keys
from tidegate.sql.quoting import shortest

CATALOG = Catalog("shop", "main", ("main", "sales"), (), "1")


def orders(**changes: object) -> Table:
    fields: dict[str, object] = {
        "schema": "main",
        "name": "orders",
        "kind": "table",
        "columns": (
            ColumnInfo("id", "INTEGER", nullable=False, key=1),
            ColumnInfo("customer_id", "INTEGER", nullable=False),
            ColumnInfo("note", "TEXT"),
        ),
        "foreign_keys": (ForeignKey("fk", ("customer_id",), "customers", ("id",)),),
    }
    return Table(**(fields | changes))  # pyright: ignore[reportArgumentType]


def test_keys_types_and_nulls_stand_with_their_columns() -> None:
    assert with_keys(orders(), CATALOG) == (
        "orders(id int pk, customer_id int>customers.id, note text?)"
    )


def test_a_name_or_comment_with_line_breaks_stays_on_its_line() -> None:
    table = orders(
        name="a\nb(id int)",
        comment="c\n\x1b[2Jd",
        columns=(ColumnInfo("x\r\n\u2028y\u202e", "TEXT", comment="e\u2029f"),),
        foreign_keys=(),
    )
    line = with_keys(table, CATALOG)
    assert line == '"a·b(id int)"("x···y·" text? /*e f*/) -- c ·[2Jd'


def test_long_comments_and_types_leave_room_for_the_columns() -> None:
    table = orders(
        comment="c" * 5_000,
        columns=(ColumnInfo("x", f"enum({'e' * 5_000})", comment="d" * 5_000),),
        foreign_keys=(),
    )
    line = with_keys(table, CATALOG)
    assert line.endswith(f"-- {'c' * 200}…")
    assert f"/*{'d' * 200}…*/" in line
    assert len(line) < 800


def test_columns_that_were_not_asked_for_are_counted() -> None:
    assert with_keys(orders(), CATALOG, only=()) == (
        "orders(id int pk, customer_id int>customers.id, +1 more)"
    )


def test_another_schema_and_a_view_are_said() -> None:
    table = orders(schema="sales", kind="view", foreign_keys=())
    assert with_keys(table, CATALOG) == "view sales.orders(id int pk, customer_id int, note text?)"


def test_keys_of_several_columns_stand_at_the_end() -> None:
    table = orders(
        columns=(
            ColumnInfo("line", "int", nullable=False, key=2),
            ColumnInfo("order_id", "int", nullable=False, key=1),
            ColumnInfo("region", "int", nullable=False),
        ),
        indexes=(Index("u", ("line", "region"), unique=True),),
        foreign_keys=(
            ForeignKey("fk", ("order_id", "region"), "orders", ("id", "region"), schema="sales"),
        ),
    )
    assert with_keys(table, CATALOG) == (
        "orders(line int, order_id int, region int, pk(order_id,line), unique(line,region),"
        " (order_id,region)>sales.orders(id,region))"
    )


def test_unique_columns_comments_and_row_counts_are_said() -> None:
    table = orders(
        columns=(ColumnInfo("sku", "text", nullable=False, comment="as on\nthe box */ x"),),
        indexes=(Index("u", ("sku",), unique=True),),
        foreign_keys=(),
        comment="What  we sell",
        approximate_rows=1200,
    )
    assert with_keys(table, CATALOG) == (
        "orders(sku text unique /*as on the box * / x*/) ~1.2k rows -- What we sell"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("orders", "orders"),
        ("Orders", "Orders"),
        ("Order", '"Order"'),
        ("größe", "größe"),
        ("order details", '"order details"'),
        ('a"b', '"a""b"'),
        ("2nd", '"2nd"'),
    ],
)
def test_names_are_quoted_only_if_they_must_be(name: str, shown: str) -> None:
    assert shortest(name, "sqlite") == shown


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("INTEGER", "int"),
        ("int(11) unsigned", "int unsigned"),
        ("character varying(255)", "varchar(255)"),
        ("timestamp without time zone", "timestamp"),
        ("timestamp(3) with time zone", "timestamptz(3)"),
        ("double precision", "double"),
        ("numeric(10,2)", "numeric(10,2)"),
        ("integer[]", "int[]"),
        ("point", "point"),
        ("time without time zone", "time"),
        ("characteristic", "characteristic"),
    ],
)
def test_long_type_names_are_made_short(name: str, short: str) -> None:
    assert short_type(name) == short


@pytest.mark.parametrize(
    ("dialect", "shown"),
    [
        ("postgres", '"Big"."it""s"(id int)'),
        ("mysql", 'Big.`it"s`(id int)'),
        ("sqlite", 'Big."it""s"(id int)'),
    ],
)
def test_names_are_quoted_as_the_sources_dialect_quotes_them(dialect: str, shown: str) -> None:
    catalog = Catalog("shop", "main", ("main", "Big"), (), "1", dialect=dialect)
    table = Table("Big", 'it"s', "table", (ColumnInfo("id", "int", nullable=False),))
    assert with_keys(table, catalog) == shown
