"""The data of diagrams over HTTP: tables, declared keys, guessed ones, and what is not in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import support.postgres_server as postgres_server
from support.console_visitor import Visitor
from support.data_desk import Desk, answer, desk
from support.eventually import wait_until

_TABLES = (
    "CREATE TABLE authors (aid INTEGER PRIMARY KEY, name TEXT)",
    "CREATE TABLE books (isbn INTEGER PRIMARY KEY, author_id INTEGER, publisher_id INTEGER)",
    "CREATE TABLE publishers (id INTEGER PRIMARY KEY, name TEXT)",
    "INSERT INTO authors VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO books VALUES (11, 1, 901), (12, 2, 902), (13, 1, 903)",
    "INSERT INTO publishers VALUES (1, 'p'), (2, 'q')",
)
_SCHEMAS = (
    "CREATE SCHEMA far",
    "CREATE SCHEMA near",
    "CREATE TABLE far.customers (customer_no integer PRIMARY KEY)",
    "CREATE TABLE near.regions (region_id integer PRIMARY KEY)",
    "CREATE TABLE near.stores (store_id integer PRIMARY KEY, customer_no integer,"
    " region_id integer)",
    "CREATE TABLE near.visits (id integer PRIMARY KEY, order_id integer REFERENCES public.orders)",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("diagrams"), ("lite", "pg"), masks=True) as found:
        with closing(sqlite3.connect(found.directory / "lite.db")) as connection, connection:
            for each in _TABLES:
                connection.execute(each)
        yield found


def read(visitor: Visitor, source: str, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = answer(visitor.post("data/diagram", {"source": source, **body}))
    return found


def drawn(found: dict[str, Any]) -> set[tuple[str, str, bool, bool]]:
    names = [each["name"] for each in found["tables"]]
    return {
        (names[each["from"]], names[each["to"]], each["guessed"], each["confirmed"])
        for each in found["links"]
    }


@pytest.mark.parametrize("source", ["lite", "pg"])
def test_a_schema_has_its_tables_and_their_declared_keys(place: Desk, source: str) -> None:
    found = read(place.visitor(), source)
    tables = {each["name"]: each for each in found["tables"]}
    assert {"customers", "orders", "big_orders"} <= set(tables)
    assert ("orders", "customers", False, False) in drawn(found)
    columns = {each["name"]: each for each in tables["orders"]["columns"]}
    assert columns["id"]["key"] == 1
    assert columns["customer_id"]["refers"]
    masked = [each["name"] for each in tables["customers"]["columns"] if each["masked"]]
    assert masked == ["email"]


def test_a_key_that_names_suggest_is_guessed_until_values_decide(place: Desk) -> None:
    visitor = place.visitor()
    before = drawn(read(visitor, "lite"))
    assert ("books", "publishers", True, False) in before

    def decided() -> dict[str, Any] | None:
        found = read(visitor, "lite", compare=True)
        return None if found["comparing"] else found

    found = wait_until(decided, "the values")
    assert found is not None
    after = drawn(found)
    assert ("books", "authors", True, True) in after
    assert [each for each in after if each[:2] == ("books", "publishers")] == []


def test_a_table_comes_with_its_neighbours_alone(place: Desk) -> None:
    found = read(place.visitor(), "lite", table="customers")
    assert [each["name"] for each in found["tables"]] == ["customers", "orders"]
    gone = place.visitor().post("data/diagram", {"source": "lite", "table": "nowhere"})
    assert gone.status_code == 404


def test_guessed_keys_join_schemas_only_where_a_declared_one_does(place: Desk) -> None:
    server = postgres_server.shared()
    database = answer(place.visitor().get("data/schemas?source=pg"))["schemas"][0]["database"]
    for each in _SCHEMAS:
        server.ask(each, database)
    names = [["far", "customers"], ["near", "stores"], ["near", "regions"], ["near", "visits"]]
    names.append(["public", "orders"])

    def seen() -> set[tuple[str, str, bool, bool]] | None:
        found = read(place.visitor(), "pg", tables=names)
        return drawn(found) if len(found["tables"]) == 5 else None

    links = wait_until(seen, "the new tables")
    assert links == {("stores", "regions", True, False), ("visits", "orders", False, False)}


def test_with_more_tables_than_fit_it_asks_which(tmp_path: Path) -> None:
    with desk(tmp_path, ("lite",), operators=False) as found:
        with closing(sqlite3.connect(found.directory / "lite.db")) as connection, connection:
            for number in range(300):
                connection.execute(f"CREATE TABLE t_{number:03} (id INTEGER PRIMARY KEY)")
        visitor = found.visitor()
        whole = read(visitor, "lite")
        assert whole["tables"] == [] and whole["total"] > 300
        assert ["main", "orders", 1] in whole["choose"]
        some = read(visitor, "lite", tables=[["main", "orders"], ["main", "customers"]])
        assert drawn(some) == {("orders", "customers", False, False)}
        body = {"source": "lite", "tables": [["main", f"t_{n}"] for n in range(301)]}
        assert visitor.post("data/diagram", body).status_code == 400


def test_a_diagram_is_a_tab_that_keeps_its_places(place: Desk) -> None:
    visitor = place.visitor()
    body = {"source": "lite", "kind": "erDiagram"}
    tab = answer(visitor.post("data/tabs", body))
    assert (tab["kind"], tab["schema"], tab["table"]) == ("erDiagram", "main", None)
    assert answer(visitor.post("data/tabs", body))["id"] == tab["id"]
    near = answer(visitor.post("data/tabs", {**body, "table": "orders"}))
    assert (near["table"], near["title"]) == ("orders", "Diagram of orders")
    kept = {"version": tab["version"], "text": '{"mode":"keys"}'}
    assert answer(visitor.post(f"data/tabs/{tab['id']}", kept))["text"] == '{"mode":"keys"}'
    assert answer(visitor.post("data/tabs", {"source": "lite", "kind": "terminal"}))["title"]
    assert answer(visitor.post("data/tabs", {"source": "lite", "kind": "serverDashboard"}))["id"]
