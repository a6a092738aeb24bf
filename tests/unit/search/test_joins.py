"""Joins that no foreign key declares, guessed from names and types."""

from __future__ import annotations

from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.search.joins import Join, Joins


def table(name: str, *columns: str, schema: str = "main", key: str = "id") -> Table:
    """A table of `name type` columns; the one called `key` is the primary key."""
    infos = [column.partition(" ") for column in columns]
    return Table(
        schema,
        name,
        "table",
        tuple(ColumnInfo(own, kind or "int", key=int(own == key)) for own, _, kind in infos),
    )


def joins(of: str, *tables: Table) -> dict[str, str]:
    found = Joins(Catalog("d", "main", ("main",), tables, "1")).of(
        next(each for each in tables if each.name == of)
    )
    return {name: f"{join.schema}.{join.table}.{join.key}" for name, join in found.items()}


def test_a_name_with_id_refers_to_the_table_of_that_name() -> None:
    tables = table("customers", "id"), table("orders", "id", "customer_id", "total")
    assert joins("orders", *tables) == {"customer_id": "main.customers.id"}


def test_camel_case_and_a_word_before_it_are_understood() -> None:
    tables = table("Customer", "id"), table("orders", "id", "billingCustomerId")
    assert joins("orders", *tables) == {"billingCustomerId": "main.Customer.id"}


def test_a_table_of_the_same_family_comes_first() -> None:
    tables = (
        table("customer", "id"),
        table("shop_customer", "id"),
        table("shop_order", "customer_id"),
    )
    assert joins("shop_order", *tables) == {"customer_id": "main.shop_customer.id"}


def test_another_type_is_no_join() -> None:
    tables = table("customers", "id uuid"), table("orders", "id", "customer_id int")
    assert joins("orders", *tables) == {}


def test_the_same_telling_name_as_a_key_is_a_join() -> None:
    tables = (
        table("books", "isbn text", key="isbn"),
        table("loans", "id", "isbn varchar(20)", "code"),
        table("codes", "code", key="code"),
    )
    assert joins("loans", *tables) == {"isbn": "main.books.isbn"}


def test_what_fits_several_tables_refers_to_none_unless_one_is_in_the_same_schema() -> None:
    both = table("user", "id", schema="a"), table("user", "id", schema="b")
    assert joins("visits", *both, table("visits", "id", "user_id", schema="c")) == {}
    assert joins("visits", *both, table("visits", "id", "user_id", schema="b")) == {
        "user_id": "b.user.id"
    }


def test_a_declared_key_is_not_guessed_and_a_key_refers_to_nothing() -> None:
    orders = Table(
        "main",
        "orders",
        "table",
        (ColumnInfo("order_id", "int", key=1), ColumnInfo("customer_id", "int")),
        foreign_keys=(ForeignKey("f", ("customer_id",), "people", ("id",)),),
    )
    assert joins("orders", table("customers", "id"), table("order", "id"), orders) == {}


def test_without_declared_keys_a_first_column_called_id_counts() -> None:
    tables = table("customers", "id", key=""), table("orders", "order_id", "customer_id", key="")
    assert joins("orders", *tables) == {"customer_id": "main.customers.id"}


def test_a_join_names_its_column() -> None:
    catalog = Catalog("d", "main", ("main",), (table("a", "id"), table("b", "id", "a_id")), "1")
    assert Joins(catalog).of(catalog.tables[1])["a_id"] == Join("a_id", "main", "a", "id")
