"""The Data page before sources of every kind: databases by JDBC, cloud providers, folders of files.

What it shows of their tables is true, and what it cannot show is refused with a code.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from support.cloud_surface import ADDRESS, running_desk, write_desk
from support.console_visitor import Visitor
from support.data_desk import all_pages, answer, desk, ended_run
from support.jdbc_drivers import driver_path, new_database
from support.jdbc_surface import make_file

pytestmark = pytest.mark.needs("cloud", "duckdb", "jdbc")

ROWS = 23
SHOP = (
    "CREATE TABLE items (id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40), sold TIMESTAMP)",
    "CREATE TABLE loose (a INTEGER, b VARCHAR(20), c DOUBLE PRECISION)",
    "CREATE TABLE coded (code VARCHAR(9) NOT NULL PRIMARY KEY, n INTEGER)",
    *(f"INSERT INTO items VALUES ({n}, 'item {n % 3}', NULL)" for n in range(ROWS)),
    *(f"INSERT INTO loose VALUES ({n % 2}, 'b{n % 3}', {n / 8})" for n in range(ROWS)),
    *(f"INSERT INTO coded VALUES ('c{n}', {n % 2})" for n in range(ROWS)),
)
_ALL = os.environ.get("TIDEGATE_TEST_DRIVERS") == "all"
JDBC = ("derby", "sqlite", "h2", "hsqldb") if _ALL else ("derby", "sqlite")
"""Each that Java keeps takes a JVM for its tables and one to be read by."""
KEYS = {"items": "id", "coded": "code"}


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    folder = tmp_path_factory.mktemp("sources")
    sources: list[dict[str, Any]] = []
    for product in JDBC:
        options = {"driver_path": driver_path(product)}
        if product == "sqlite":
            url = make_file(folder / "shop.db", ";".join(SHOP))
        else:
            url = new_database(product, folder, SHOP)
        sources.append({"name": product, "url": url, "options": options})
    (folder / "files").mkdir()
    (folder / "files" / "towns.csv").write_text("id,name\n1,Köln\n2,Lviv\n")
    (folder / "files" / "broken.json").write_text("{not json")
    sources.append({"name": "files", "url": f"files://{folder}/files"})
    sources.append({"name": "cloud", "url": f"cloud://{write_desk(folder / 'registry')}"})
    with running_desk() as provider:
        settings = f'[cloud.endpoints]\n"{ADDRESS}" = "{provider.url}"\n'
        (folder / "settings.toml").write_text(
            settings + "".join(f"\n[[sources]]\n{_toml(each)}\n" for each in sources)
        )
        serves = ("--config", str(folder / "settings.toml"))
        with desk(folder, (), serves=serves, operators=False) as place:
            yield place.visitor()


def _toml(fields: dict[str, Any]) -> str:
    lines = [f"{name} = {json.dumps(text)}" for name, text in fields.items() if name != "options"]
    given = ", ".join(
        f"{name} = {json.dumps(text)}" for name, text in fields.get("options", {}).items()
    )
    return "\n".join([*lines, f"options = {{{given}}}"])


def listed(ada: Visitor, source: str) -> dict[str, str]:
    """The schema of each table of the source's current schema, by the name in small letters."""
    tables = answer(ada.get(f"data/tables?source={source}"))["tables"]
    return {each["name"].lower(): each["schema"] for each in tables}


@pytest.mark.parametrize("source", JDBC)
@pytest.mark.parametrize("name", ["items", "loose", "coded"])
def test_the_pages_of_a_table_behind_jdbc_are_the_table_for_any_sort(
    ada: Visitor, source: str, name: str
) -> None:
    tables = answer(ada.get(f"data/tables?source={source}"))["tables"]
    (table,) = [each for each in tables if each["name"].lower() == name]
    place = {"source": source, "schema": table["schema"], "table": table["name"], "limit": 5}
    query = f"source={source}&schema={table['schema']}&table={table['name']}"
    about = answer(ada.get(f"data/table?{query}"))
    names = [each["name"] for each in about["columns"]]
    whole = answer(ada.post("data/rows", {**place, "limit": 1000}))
    assert len(whole["rows"]) == ROWS
    sorts: list[list[dict[str, str]]] = [
        [{"column": column, "direction": way}]
        for column, way in itertools.product(names, ("asc", "desc"))
    ]
    for sort in [[], *sorts]:
        rows, _ = all_pages(ada, {**place, "sort": sort})
        assert sorted(map(str, rows)) == sorted(map(str, whole["rows"])), sort
    warned = any("no key" in each for each in whole["warnings"])
    assert warned == (name not in KEYS)
    del place["limit"]
    counted = answer(ada.post("data/count", place))
    assert counted["count"] == ROWS
    begins = {"column": names[1], "operator": "starts with", "value": "B1"}
    if name == "loose":
        found = answer(ada.post("data/rows", {**place, "limit": 100, "filters": [begins]}))
        assert {row[1] for row in found["rows"]} == {"b1"}
    if name in KEYS:
        cell = {**place, "key": {names[0]: whole["keys"][3][0]}, "column": names[1]}
        assert answer(ada.post("data/cell", cell))["text"] == whole["rows"][3][1]


def test_the_resources_of_a_provider_are_listed_by_service_and_their_rows_paged(
    ada: Visitor,
) -> None:
    schemas = answer(ada.get("data/schemas?source=cloud"))["schemas"]
    assert [(each["name"], each["tables"]) for each in schemas] == [("desk.tickets", None)]
    (table,) = answer(ada.get("data/tables?source=cloud&schema=desk.tickets"))["tables"]
    assert table["name"] == "tickets"
    about = answer(ada.get("data/table?source=cloud&schema=desk.tickets&table=tickets"))
    assert [each["name"] for each in about["columns"]] == ["id", "title", "open", "team"]
    assert about["ddl"] is None and about["ddl_reason"]
    place = {"source": "cloud", "schema": "desk.tickets", "table": "tickets"}
    refused = ada.post("data/rows", place)
    assert (refused.status_code, refused.json()["error"]) == (400, "argument.invalid")
    assert "SHOW METHODS IN desk.tickets.tickets" in refused.json()["message"]
    team = {"column": "team", "operator": "=", "value": "red"}
    page = answer(ada.post("data/rows", {**place, "filters": [team], "limit": 1}))
    assert len(page["rows"]) == 1 and page["next"]
    text = "SELECT * FROM "
    offered = answer(ada.post("data/complete", {"source": "cloud", "statement": text, "at": 14}))
    assert [each["insert"] for each in offered["items"]] == ["desk.tickets."]
    searched = answer(ada.get("data/search?q=tickets&source=cloud"))
    assert [each["source"] for each in searched["unread"]] == ["cloud"]


STATEMENTS = {
    **dict.fromkeys(JDBC, "SELECT name FROM items WHERE id = 1"),
    "files": "SELECT name FROM towns WHERE id = 1",
    "cloud": "SELECT title FROM desk.tickets.tickets WHERE team = 'red' AND id = '1'",
}
NAMES = {**dict.fromkeys(JDBC, "item 1"), "files": "Köln", "cloud": "Printer | on fire"}


@pytest.mark.parametrize("source", STATEMENTS)
def test_a_statement_is_explained_and_run_whatever_the_kind_of_its_source(
    ada: Visitor, source: str
) -> None:
    body = {"source": source, "statement": STATEMENTS[source]}
    explained = ada.post("data/explain", body)
    if explained.status_code == 200:
        assert explained.json()["text"]
    else:
        assert (explained.status_code, explained.json()["error"]) == (400, "engine.unsupported")
    measured = ada.post("data/explain", {**body, "analyze": True})
    assert measured.status_code == 200 or measured.json()["error"] == "engine.unsupported"
    begun = answer(ada.post("data/runs", {**body, "tab": ""}))
    run = ended_run(ada, begun["id"])
    assert run["state"] == "done", run
    assert answer(ada.get(f"data/runs/{begun['id']}/rows"))["rows"] == [[NAMES[source]]]


def test_a_file_that_cannot_be_read_is_said_to_be_and_the_others_are_shown(ada: Visitor) -> None:
    assert set(listed(ada, "files")) == {"broken", "towns"}
    refused = ada.post("data/rows", {"source": "files", "table": "broken"})
    assert (refused.status_code, refused.json()["error"]) == (400, "sql.failed")
    assert "broken.json" in refused.json()["message"]
    page = answer(ada.post("data/rows", {"source": "files", "table": "towns"}))
    assert page["rows"] == [["1", "Köln"], ["2", "Lviv"]]
