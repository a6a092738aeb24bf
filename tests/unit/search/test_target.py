"""What of a table can be searched, by its catalog entry alone."""

from __future__ import annotations

import pytest

from tidegate.errors import Code, TidegateError
from tidegate.model.schema import Catalog, ColumnInfo, Index, Table
from tidegate.search.target import find_table, is_textsearch, target_of

COLUMNS = (
    ColumnInfo("id", "integer", False, None, 1),
    ColumnInfo("body", "text"),
    ColumnInfo("body_embedding", "vector(3)"),
)


def notes_on(index: Index) -> tuple[str, ...]:
    table = Table("public", "docs", "table", COLUMNS, indexes=(index,))
    catalog = Catalog("d", "public", ("public",), (table,), "1", (), "postgres")
    return target_of(catalog, table).notes


@pytest.mark.parametrize(
    "index",
    [
        Index("found", ("id", "body"), kind="bm25", operators=("anyelement_bm25_ops",)),
        Index("found", ("body",), kind="bm25", operators=("bm25_ops",)),
        Index("found", ("body",), kind="bm25"),
        Index("found", ("body_embedding",), kind="vchordrq", operators=("vector_l2_ops",)),
    ],
)
def test_an_index_of_an_extension_that_is_not_used_is_named(index: Index) -> None:
    assert not is_textsearch(index)
    (note,) = notes_on(index)
    assert "The index found " in note
    assert "was not used" in note


@pytest.mark.parametrize(
    "index",
    [
        Index("found", ("body",), kind="bm25", operators=("text_bm25_ops",)),
        Index("found", ("words",), kind="gin", operators=("tsvector_ops",)),
        Index("found", ("body_embedding",), kind="hnsw", operators=("vector_cosine_ops",)),
        Index("found", ("body",)),
    ],
)
def test_no_note_stands_for_an_index_that_is_used_or_not_for_searches(index: Index) -> None:
    assert notes_on(index) == ()


TABLES = (
    Table("public", "orders", "table"),
    Table("public", "Orders", "table"),
    Table("shop", "orders", "table"),
    Table("public", 'We"ird.T', "table"),
    Table("my.schema", "a.b", "table"),
)
NAMED = Catalog("d", "public", ("public", "shop"), TABLES, "1", (), "postgres")


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("orders", 0),
        ("public.orders", 0),
        ('"orders"', 0),
        ("ORDERS", 0),
        ("Orders", 1),
        ('"Orders"', 1),
        ('public."Orders"', 1),
        ('"public"."Orders"', 1),
        ("shop.orders", 2),
        ("SHOP.ORDERS", 2),
        ('"SHOP"."ORDERS"', 2),
        ('We"ird.T', 3),
        ('we"ird.t', 3),
        ('public.We"ird.T', 3),
        ('"We""ird.T"', 3),
        ('public."We""ird.T"', 3),
        ("a.b", 4),
        ("my.schema.a.b", 4),
        ('"my.schema"."a.b"', 4),
    ],
)
def test_a_table_is_found_by_each_way_to_write_its_name(name: str, at: int) -> None:
    assert find_table(NAMED, name) is TABLES[at]


@pytest.mark.parametrize("name", ["order", "shop.Ordres", '"', '""', '"a', "x.orders", "orders; x"])
def test_what_names_no_table_is_refused_with_names_as_they_are_written(name: str) -> None:
    with pytest.raises(TidegateError) as refused:
        find_table(NAMED, name)
    assert refused.value.code is Code.TABLE_UNKNOWN
    near = refused.value.hint.partition("Did you mean ")[2].rstrip("?")
    assert all(each in [table.name for table in TABLES] for each in near.split(", ") if each)
