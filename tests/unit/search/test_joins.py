"""Joins that no foreign key declares, guessed from names and types."""

from __future__ import annotations

import msgspec
import pytest

from tidegate.model.profiles import Join
from tidegate.model.schema import ColumnInfo, ForeignKey, Table
from tidegate.search.joins import Joins, confirm


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
    found = Joins(tables).of(next(each for each in tables if each.name == of))
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
    tables = table("a", "id"), table("b", "id", "a_id")
    assert Joins(tables).of(tables[1])["a_id"] == Join("a_id", "main", "a", "id")


def compared(of: str, *tables: Table, masked: tuple[str, ...] = ()) -> list[str]:
    """The joins of a table that values are to confirm, `sign column table.key` each."""
    own = next(each for each in tables if each.name == of)
    found = [(guess.sign, guess.comparison.join) for guess in Joins(tables).to_compare(own, masked)]
    return [f"{sign} {join.column} {join.table}.{join.key}" for sign, join in found]


def test_values_are_compared_for_names_that_say_too_little() -> None:
    tables = (
        table("sbCustomer", "sbCustId varchar", key="sbCustId"),
        table("author", "aid", "name text", key=""),
        table("writes", "aid", "pid", "sbTxCustId varchar", "name text", key=""),
    )
    assert joins("writes", *tables) == {}
    assert compared("writes", *tables) == [
        "same aid author.aid",
        "ending sbTxCustId sbCustomer.sbCustId",
    ]


def test_no_value_of_a_masked_column_or_key_is_compared() -> None:
    tables = table("customers", "id"), table("orders", "id", "customer_id")
    assert compared("orders", *tables) == ["name customer_id customers.id"]
    assert compared("orders", *tables, masked=("customer_id",)) == []
    assert compared("orders", *tables, masked=("id",)) == []


def confirmed(counts: list[int], *, filtered: bool = False, key: str = "id") -> list[str] | None:
    """What is decided on `customer_id` of orders, from rows, different values, values found, keys
    and different keys: the joined table if any, None if it stays a guess by name."""
    tables = table("customers", "id", key=key), table("orders", "no", "customer_id", key="no")
    guesses = Joins(tables).to_compare(tables[1])
    found = confirm(guesses, [[0, *counts]], filtered).get("customer_id")
    return None if found is None else [join.table for join in found if join.confirmed]


def test_values_confirm_a_join_with_few_orphans_and_contradict_one_without_keys() -> None:
    assert confirmed([100, 20, 20, 50, 50]) == ["customers"]
    assert confirmed([100, 20, 17, 50, 50]) == ["customers"]
    assert confirmed([100, 20, 10, 50, 50]) == []
    assert confirmed([100, 20, 0, 0, 0]) == []


def test_what_was_not_seen_neither_confirms_nor_contradicts() -> None:
    assert confirmed([0, 0, 0, 50, 50]) is None
    assert confirmed([100, 20, 10, 50, 50], filtered=True) is None
    assert confirmed([100, 20, 10, 20_000, 20_000], key="") is None  # more keys than were looked at


def test_a_key_that_repeats_is_none() -> None:
    assert confirmed([100, 20, 20, 50, 40], key="") == []


def test_of_two_tables_with_the_same_keys_the_names_say_which_refers_to_the_other() -> None:
    state = table("state", "state_name text", "area", key="")
    high = table("high_point", "state_name text", "height", key="")

    def decided(own: Table, other: Table, keys: int) -> dict[str, tuple[Join, ...]]:
        guesses = Joins((own, other)).to_compare(own)
        return confirm(guesses, [[0, 50, 50, 50, keys, keys]], filtered=False)

    assert [join.table for join in decided(high, state, 50)["state_name"]] == ["state"]
    assert decided(state, high, 50) == {"state_name": ()}
    assert [join.table for join in decided(state, high, 60)["state_name"]] == ["high_point"]


def signs(of: str, *tables: Table) -> set[tuple[str, str]]:
    found = Joins(tables).to_compare(next(each for each in tables if each.name == of))
    return {(each.comparison.join.column, each.comparison.join.table) for each in found}


@pytest.mark.parametrize(
    "column",
    [
        *("num_semesters", "semesters", "number_of_semesters", "semester_count"),
        *("NumSemester", "total_semester", "max_semester", "avgSemester"),
    ],
)
def test_a_column_that_counts_refers_to_nothing_whatever_its_values(column: str) -> None:
    tables = table("semester", "semester_id", key=""), table("program", "program_id", column)
    assert signs("program", *tables) == set()
    assert joins("program", *tables) == {}


def test_a_column_that_ends_like_a_key_refers_to_it() -> None:
    tables = table("semester", "semester_id", key=""), table("exam", "exam_id", "last_semester")
    assert signs("exam", *tables) == {("last_semester", "semester")}


def test_unrelated_schemas_refer_to_each_other_by_no_words_in_common() -> None:
    tables = (
        table("semester", "semester_id", schema="school", key=""),
        table("author", "aid", "name text", schema="library", key="aid"),
        table("trip", "trip_id", "last_semester", "aid", "author_id", schema="travel", key=""),
    )
    assert signs("trip", *tables) == set()
    assert joins("trip", *tables) == {}


def test_schemas_that_a_key_links_and_names_of_whole_keys_lead_across() -> None:
    author = table("author", "id", schema="library")
    key = ForeignKey("fk", ("author_ref",), "author", ("id",), schema="library")
    linked = (
        author,
        msgspec.structs.replace(
            table("review", "author_ref", "author_id", schema="press"), foreign_keys=(key,)
        ),
    )
    assert joins("review", *linked) == {"author_id": "library.author.id"}
    whole = (
        table("customers", "customer_no", schema="sales", key=""),
        table("visits", "visit_no", "customer_no", schema="web", key=""),
    )
    assert signs("visits", *whole) == {("customer_no", "customers")}  # if the values say so
    assert joins("visits", *whole) == {}
    whole = table("customers", "customer_no", schema="sales", key="customer_no"), whole[1]
    assert joins("visits", *whole) == {"customer_no": "sales.customers.customer_no"}
