"""Tables for a question: ranking, families, joining tables, vectors."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from msgspec import structs

from products.pgedge.support.asking import GateCaller, opened_shop
from tidegate.model.profiles import ColumnProfile
from tidegate.model.schema import Catalog, ColumnInfo, ForeignKey, Table
from tidegate.products.pgedge.text_to_sql.answering import answer
from tidegate.products.pgedge.text_to_sql.knowledge import (
    Knowledge,
    KnownColumn,
    KnownJoin,
    KnownTable,
)
from tidegate.products.pgedge.text_to_sql.linking import Linker
from tidegate.products.pgedge.text_to_sql.model import Answer, Question
from tidegate.products.pgedge.text_to_sql.shared_schema import shared_catalog
from tidegate.search.requests import EmbedTexts


def table(name: str, columns: str = "id", key: tuple[str, str] | None = None, **more: str) -> Table:
    made = tuple(ColumnInfo(word, "int", key=int(word == "id")) for word in columns.split())
    keys = (ForeignKey("f", (key[0],), key[1], ("id",)),) if key else ()
    return Table("main", name, "table", made, foreign_keys=keys, comment=more.get("comment"))


def linker(*tables: Table, knowledge: Knowledge = Knowledge()) -> Linker:  # noqa: B008
    return Linker(Catalog("d", "main", ("main",), tables, "1", (), "sqlite"), knowledge)


def names(of: Linker, places: list[int]) -> list[str]:
    return [of.families[at].newest.name for at in places]


def test_what_is_known_of_a_column_is_found_in_any_case_of_letters() -> None:
    known = KnownTable(columns={"custId": KnownColumn("folded"), "Total": KnownColumn("by name")})
    assert known.column("custid") == KnownColumn("folded")
    both = structs.replace(known, columns={**known.columns, "total": KnownColumn("exact")})
    assert both.column("total") == KnownColumn("exact")
    assert both.column("Total") == KnownColumn("by name")
    assert both.column("tax") is None
    catalog = Catalog("d", "main", ("main",), (table("orders", "id custid"),), "1", (), "sqlite")
    shared = shared_catalog(catalog, "comments", Knowledge(tables={"ORDERS": known}))
    assert [each.comment for each in shared.tables[0].columns] == [None, "folded"]


def test_names_columns_comments_and_synonyms_find_a_table() -> None:
    known = Knowledge(tables={"x9": KnownTable(synonyms=("purchases",))})
    found = linker(
        table("orders", "id total"),
        table("t7", "id shipping_address"),
        table("t8", comment="salaries of people"),
        table("x9"),
        table("other"),
        knowledge=known,
    )
    for question, wanted in (
        ("how many orders", "orders"),
        ("the shipping address", "t7"),
        ("highest salary", "t8"),
        ("list all purchases", "x9"),
    ):
        assert names(found, found.rank(question))[0] == wanted
    assert found.rank("quantum") == []


def test_tables_that_differ_in_digits_are_one_family() -> None:
    months = [table(f"events_2024_{month:02}", "id kind") for month in range(1, 13)]
    found = linker(*months, table("people"))
    assert len(found.families) == 2
    (family,) = [each for each in found.families if len(each.members) == 12]
    assert family.newest.name == "events_2024_12"
    assert names(found, found.rank("events of a kind"))[0] == "events_2024_12"


def test_tables_of_different_columns_are_no_family() -> None:
    found = linker(table("a1", "id x"), table("a2", "id y"), table("a3", "id z"))
    assert len(found.families) == 3


@pytest.mark.parametrize("known", [False, True])
def test_a_table_that_joins_two_is_added(known: bool) -> None:
    knowledge = Knowledge(
        joins=(
            KnownJoin(left="bridge.a", to="authors.id"),
            KnownJoin(left="bridge.p", to="papers.id"),
        )
    )
    bridge = table("bridge", "a p") if known else table("bridge", "author_id paper_id")
    found = linker(
        table("authors"), table("papers"), bridge, knowledge=knowledge if known else Knowledge()
    )
    place = {family.newest.name: at for at, family in enumerate(found.families)}
    best = [place["authors"], place["papers"]]
    assert names(found, found.with_joining(best)) == [*names(found, best), "bridge"]


def test_a_value_in_the_question_finds_its_table() -> None:
    found = linker(table("t1", "id city"), table("t2", "id name"))
    seen = {("main", "t1"): {"city": ColumnProfile(values=("New York", "Oslo"))}}
    assert names(found, found.rank("who lives in new york", profiles=seen)) == ["t1"]


def test_tables_are_found_by_vectors_without_masked_columns(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        for number, word in enumerate(["invoice", "shipment", "ledger", "warehouse"] * 12):
            connection.execute(
                f"CREATE TABLE {word}_{chr(97 + number % 26)}{chr(97 + number // 26)}"
                " (id INTEGER PRIMARY KEY, secret_note TEXT, amount INT, owner TEXT)"
            )
    connection.close()

    async def work() -> tuple[Answer, list[EmbedTexts]]:
        settings = {"embeddings": True, "schema_bytes": 1_000}
        others = {
            "embeddings": {"provider": "hash-test"},
            "masks": [{"column": "invoice_aa.secret_note"}],
        }
        async with opened_shop(tmp_path, settings, others) as app:
            caller = GateCaller(app)
            question = Question(text="amount of each invoice")
            answers = [await answer(caller, question) for _ in range(2)]
            return answers[-1], [each for each in caller.sent if isinstance(each, EmbedTexts)]

    found, sent = asyncio.run(work())
    assert found.guide is not None
    assert found.tables[0].startswith("invoice")
    assert [each.purpose for each in sent] == ["document", "query", "query"]
    (masked,) = [text for text in sent[0].texts if text.startswith("invoice aa:")]
    assert "secret" not in masked
    assert sent[1].texts == ("amount of each invoice",)


def test_the_rest_of_a_small_schema_of_the_best_is_shown_where_there_is_room() -> None:
    small = [structs.replace(table(name), schema="crm") for name in ("leads", "xq1", "zz")]
    large = [structs.replace(table(f"t_{chr(97 + n % 26)}{n // 26}x"), schema="big")
             for n in range(100)]  # fmt: skip
    found = linker(*small, *large, table("leads_of_t"))
    best = found.rank("how many leads")
    shown = names(found, found.with_schemas(best, best[:10]))
    assert shown[: len(best)] == names(found, best)
    assert {"xq1", "zz"} <= set(shown) and "t_a0x" not in shown
    assert len(set(shown)) == len(shown)
