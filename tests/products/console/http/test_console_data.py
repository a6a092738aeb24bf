"""The Data page over HTTP: the tree, the search, tables and their rows, on four databases."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.audit_records import records
from support.console_visitor import Visitor
from support.data_desk import ENGINES, LONG, TIES, Desk, all_pages, answer, desk


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture(scope="module")
def ada(place: Desk) -> Visitor:
    return place.visitor("ada")


@pytest.fixture(scope="module")
def vera(place: Desk) -> Visitor:
    return place.visitor("vera")


@pytest.fixture(scope="module")
def lee(place: Desk) -> Visitor:
    return place.visitor("lee")


# The tree


def test_each_operator_sees_the_sources_it_has_a_role_on_and_what_it_may_do(
    place: Desk, ada: Visitor, vera: Visitor, lee: Visitor
) -> None:
    found = {each["name"]: each for each in answer(ada.get("data/sources"))["sources"]}
    assert set(found) == set(ENGINES)
    assert all(
        each["may"] == {"read": True, "write": True, "why_not": ""} for each in found.values()
    )
    assert {each["language"] for each in found.values()} == {"sql"}
    for visitor in (vera, place.visitor("pru")):
        for each in answer(visitor.get("data/sources"))["sources"]:
            assert each["may"]["read"] and not each["may"]["write"] and each["may"]["why_not"]
    assert [each["name"] for each in answer(lee.get("data/sources"))["sources"]] == ["lite"]


@pytest.mark.parametrize("source", ENGINES)
def test_the_tables_of_the_current_schema_are_listed_page_by_page(
    vera: Visitor, source: str
) -> None:
    schemas = answer(vera.get(f"data/schemas?source={source}"))["schemas"]
    (current,) = [each for each in schemas if each["current"]]
    assert current["tables"] >= 5
    names: list[str] = []
    after = ""
    while True:
        page = answer(vera.get(f"data/tables?source={source}&limit=2&after={after}"))
        names += [each["name"] for each in page["tables"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert names == sorted(names) and page["total"] == len(names)
    assert {"customers", "orders", "ties", "keyless", "big_orders"} <= set(names)
    found = answer(vera.get(f"data/tables?source={source}&q=order&schema={current['name']}"))
    assert {each["name"]: each["kind"] for each in found["tables"]} == {
        "big_orders": "view",
        "orders": "table",
    }


def test_a_search_finds_tables_and_columns_of_all_sources_that_the_operator_may_read(
    vera: Visitor, lee: Visitor
) -> None:
    found = answer(vera.get("data/search?q=custom"))
    assert found["unread"] == []
    tables = [each for each in found["matches"] if each["column"] is None]
    assert {each["source"] for each in tables} == set(ENGINES)
    assert {each["table"] for each in tables} == {"customers"}
    columns = {(each["source"], each["column"]) for each in found["matches"] if each["column"]}
    assert columns == {(source, "customer_id") for source in ENGINES}
    own = answer(lee.get("data/search?q=custom"))["matches"]
    assert {each["source"] for each in own} == {"lite"}
    assert answer(lee.get("data/search?q=custom&source=pg"))["matches"] == []
    words = answer(vera.get("data/search?q=orders+placed&source=pg"))["matches"]
    assert [(each["table"], each["column"]) for each in words] == [("orders", "placed_at")]


@pytest.mark.parametrize("source", ENGINES)
def test_a_table_is_described_with_its_keys_both_ways(vera: Visitor, source: str) -> None:
    orders = answer(vera.get(f"data/table?source={source}&table=orders"))
    (key,) = orders["foreign_keys"]
    assert key["columns"] == ["customer_id"]
    assert (key["to"]["table"], key["to"]["columns"]) == ("customers", ["id"])
    assert "CREATE TABLE" in orders["ddl"].upper() or orders["ddl_reason"]
    columns = {each["name"]: each for each in orders["columns"]}
    assert (columns["id"]["key"], columns["total"]["kind"]) == (1, "number")
    assert any(each["columns"] == ["customer_id"] for each in orders["indexes"])
    customers = answer(vera.get(f"data/table?source={source}&table=customers"))
    (back,) = customers["referenced_by"]
    assert (back["from"]["table"], back["from"]["columns"]) == ("orders", ["customer_id"])
    masked = [each["name"] for each in customers["columns"] if each["masked"]]
    assert masked == ["email"]
    if source == "duck":
        assert orders["triggers"] == []
    elif not orders["triggers_reason"]:
        (trigger,) = orders["triggers"]
        assert (trigger["name"], trigger["event"]) == ("stamp", "UPDATE")


def test_an_unknown_table_or_schema_is_refused(vera: Visitor) -> None:
    for query in ("source=lite&table=nothing", "source=lite&schema=none&table=orders", "table=x"):
        assert vera.get(f"data/table?{query}").status_code in (400, 404)


# Rows


def ties(rows: list[Any]) -> list[int]:
    return [int(row[0]) for row in rows]


SORTS = [
    [],
    *([(column, way)] for column in "abcde" for way in ("asc", "desc")),
    *(
        [(first, one), (second, two)]
        for first, second in (("a", "b"), ("b", "c"), ("c", "e"))
        for one, two in itertools.product(("asc", "desc"), repeat=2)
    ),
]


@pytest.mark.parametrize("source", ENGINES)
def test_the_pages_together_are_the_table_for_any_sort_with_ties_and_nulls(
    vera: Visitor, source: str
) -> None:
    for sort in SORTS:
        body = {
            "source": source,
            "table": "ties",
            "limit": 7,
            "sort": [{"column": name, "direction": way} for name, way in sort],
        }
        rows, found = all_pages(vera, body)
        assert sorted(ties(rows)) == [row[0] for row in TIES], sort
        assert set(found) == {"keyset"}, sort
        whole = answer(vera.post("data/rows", {**body, "limit": 1000}))
        assert ties(whole["rows"]) == ties(rows), sort


@pytest.mark.parametrize("source", ENGINES)
def test_the_pages_of_a_table_without_a_key_are_the_table_too(vera: Visitor, source: str) -> None:
    for sort in ([{"column": "a"}], [{"column": "b", "direction": "desc"}, {"column": "a"}]):
        body = {"source": source, "table": "keyless", "limit": 7, "sort": sort}
        rows, found = all_pages(vera, body)
        assert set(found) == {"offset"}
        shown = sorted((row[0] or "", row[1] or "", float(row[2] or -1)) for row in rows)
        there = ((row[1], row[2], row[3]) for row in TIES)
        assert shown == sorted(
            ("" if a is None else str(a), b or "", -1.0 if c is None else c) for a, b, c in there
        )


@pytest.mark.parametrize("source", ENGINES)
def test_the_pages_are_the_table_whatever_the_types_of_its_columns(
    vera: Visitor, source: str
) -> None:
    whole = answer(vera.post("data/rows", {"source": source, "table": "odd", "limit": 1000}))
    columns = [each["name"] for each in whole["columns"]]
    assert len(whole["rows"]) == 40
    for name, way in itertools.product(columns, ("asc", "desc")):
        body = {
            "source": source,
            "table": "odd",
            "limit": 6,
            "sort": [{"column": name, "direction": way}],
        }
        rows, found = all_pages(vera, body)
        assert sorted(map(str, rows)) == sorted(map(str, whole["rows"])), (name, way, found)
    loose = {"source": source, "table": "loose", "limit": 2, "sort": [{"column": "v"}]}
    if source != "duck":
        rows, found = all_pages(vera, loose)
        every = answer(vera.post("data/rows", {**loose, "limit": 1000}))["rows"]
        assert sorted(map(str, rows)) == sorted(map(str, every))
        assert set(found) == {"offset" if source == "lite" else "keyset"}


def kept(test: Any) -> list[int]:
    return [row[0] for row in TIES if test(*row)]


FILTERS = [
    ([("a", "=", "1")], kept(lambda i, a, b, c, d, e: a == 1)),
    ([("a", "!=", "1")], kept(lambda i, a, b, c, d, e: a not in (None, 1))),
    ([("a", "is null", None)], kept(lambda i, a, b, c, d, e: a is None)),
    ([("b", "is not null", None)], kept(lambda i, a, b, c, d, e: b is not None)),
    ([("b", "starts with", "B")], kept(lambda i, a, b, c, d, e: b is not None)),
    ([("b", "contains", "%")], []),
    ([("c", ">=", "0.75")], kept(lambda i, a, b, c, d, e: c is not None and c >= 0.75)),
    ([("e", "<", "3.25")], kept(lambda i, a, b, c, d, e: e is not None and float(e) < 3.25)),
    (
        [("d", "=", "2026-01-03 01:00:00")],
        kept(lambda i, a, b, c, d, e: d == "2026-01-03 01:00:00"),
    ),
    ([("b", "=", "b1' OR '1'='1")], []),
    (
        [("a", "=", "1"), ("b", "=", "b2")],
        kept(lambda i, a, b, c, d, e: a == 1 and b == "b2"),
    ),
]


@pytest.mark.parametrize("source", ENGINES)
def test_filters_keep_the_rows_that_fit_and_counts_say_how_many(vera: Visitor, source: str) -> None:
    for filters, expected in FILTERS:
        body = {
            "source": source,
            "table": "ties",
            "filters": [
                {"column": name, "operator": operator, "value": value}
                for name, operator, value in filters
            ],
        }
        rows, _ = all_pages(vera, {**body, "limit": 7})
        assert ties(rows) == expected, filters
        counted = answer(vera.post("data/count", body))
        assert counted == {"count": len(expected), "approximate": False}, filters
    either = {
        "source": source,
        "table": "ties",
        "logic": "or",
        "filters": [
            {"column": "id", "operator": "in", "value": ["3", "4"]},
            {"column": "id", "operator": "between", "value": "9", "second": "11"},
        ],
    }
    rows, _ = all_pages(vera, {**either, "limit": 2})
    assert ties(rows) == [3, 4, 9, 10, 11]
    listed = {"column": "id", "operator": "in", "value": "3, 4"}
    rows, _ = all_pages(vera, {**either, "filters": [listed]})
    assert ties(rows) == [3, 4]


@pytest.mark.parametrize("source", ENGINES)
def test_a_masked_column_is_shown_masked_and_neither_sorted_nor_filtered_by(
    vera: Visitor, place: Desk, source: str
) -> None:
    body = {"source": source, "table": "customers"}
    page = answer(vera.post("data/rows", body))
    place_of = [each["name"] for each in page["columns"]].index("email")
    assert page["columns"][place_of]["masked"]
    assert [row[place_of] for row in page["rows"]] == [None, None, None]
    for narrowed in (
        {"sort": [{"column": "email"}]},
        {"filters": [{"column": "email", "operator": "starts with", "value": "ada"}]},
        {"filters": [{"column": "email", "operator": "is null"}]},
    ):
        refused = vera.post("data/rows", {**body, **narrowed})
        assert (refused.status_code, refused.json()["error"]) == (403, "policy.masked")
    filters = [{"column": "email", "operator": "is null"}]
    assert vera.post("data/count", {**body, "filters": filters}).status_code == 403
    key = {"email": "ada@example.org"}
    refused = vera.post("data/cell", {**body, "key": key, "column": "name"})
    assert refused.status_code == 403
    cell = answer(vera.post("data/cell", {**body, "key": {"id": "1"}, "column": "email"}))
    assert cell["text"] is None


@pytest.mark.parametrize("source", ENGINES)
def test_a_long_value_is_cut_and_read_whole_by_the_key_of_its_row(
    vera: Visitor, source: str
) -> None:
    page = answer(vera.post("data/rows", {"source": source, "table": "orders"}))
    assert page["keys"] == [["1"], ["2"], ["3"]]
    names = [each["name"] for each in page["columns"]]
    cell = page["rows"][2][names.index("note")]
    assert (len(cell["text"]), cell["bytes"], cell["cut"]) == (4_096, len(LONG), True)
    key = dict(zip(["id"], page["keys"][2], strict=True))
    body = {"source": source, "table": "orders", "key": key, "column": "note"}
    whole = answer(vera.post("data/cell", body))
    assert (whole["text"], whole["binary"]) == (LONG, False)


def test_a_place_in_rows_of_another_order_is_refused(vera: Visitor) -> None:
    body = {"source": "lite", "table": "ties", "limit": 5}
    page = answer(vera.post("data/rows", body))
    for changes in ({"sort": [{"column": "a"}]}, {"after": "x" * 40}, {"after": ""}):
        sent = {**body, "after": page["next"], **changes}
        assert vera.post("data/rows", sent).json()["error"] == "argument.invalid"


def test_bodies_that_fit_no_request_are_refused(vera: Visitor) -> None:
    good: dict[str, Any] = {"source": "lite", "table": "ties"}
    for changes in (
        {"limit": 0},
        {"limit": 1001},
        {"unknown": 1},
        {"table": 7},
        {"sort": [{"column": "nothing"}]},
        {"filters": [{"column": "a", "operator": "like", "value": "1"}]},
        {"filters": [{"column": "a", "operator": "="}]},
        {"filters": [{"column": "a", "operator": "between", "value": "1"}]},
        {"filters": [{"column": "a", "operator": "in", "value": []}]},
    ):
        response = vera.post("data/rows", {**good, **changes})
        assert response.json()["error"] == "argument.invalid", changes


# What an operator may not see


READS: list[tuple[str, Any]] = [
    ("data/schemas?source={}", None),
    ("data/tables?source={}", None),
    ("data/table?source={}&table=orders", None),
    ("data/rows", {"table": "orders"}),
    ("data/count", {"table": "orders"}),
    ("data/cell", {"table": "orders", "key": {"id": "1"}, "column": "total"}),
]


def test_a_source_without_a_role_and_one_that_is_not_there_look_the_same(lee: Visitor) -> None:
    for path, body in READS:
        answers: list[str] = []
        for source in ("pg", "none"):
            if body is None:
                response = lee.get(path.format(source))
            else:
                response = lee.post(path, {**body, "source": source})
            assert response.status_code == 403, (path, source, response.text)
            answers.append(response.text)
        assert answers[0] == answers[1], path


def test_what_is_read_is_on_record_under_the_operators_name(place: Desk, vera: Visitor) -> None:
    page = answer(vera.post("data/rows", {"source": "lite", "table": "orders"}))
    lines = [each for each in records(place.state) if each.get("call_id") == page["call_id"]]
    assert lines, "the call is on record"
    assert {(each["actor"], each["surface"], each["source"]) for each in lines} == {
        ("operator:vera", "console", "lite")
    }


@pytest.mark.parametrize("source", ENGINES)
def test_columns_say_what_they_hold_and_a_masked_one_says_nothing(
    vera: Visitor, source: str
) -> None:
    found = answer(vera.post("data/columns", {"source": source, "table": "customers"}))
    assert (found["rows"], found["whole"]) == (3, True)
    columns = {each["name"]: each for each in found["columns"]}
    assert "email" not in columns
    city = columns["city"]
    assert (city["rows"], city["nulls"], city["distinct"], city["named"]) == (3, 1, 2, True)
    assert sum([each["count"] for each in city["bars"]]) == 2


def test_activity_leaves_out_what_the_page_read_for_itself_and_counts_it(tmp_path: Path) -> None:
    with desk(tmp_path, ("lite",)) as place:
        counts_what_the_page_read(place.visitor("vera"))


def counts_what_the_page_read(vera: Visitor) -> None:
    place_of = {"source": "lite", "table": "orders"}
    answer(vera.get("data/tables?source=lite"))
    answer(vera.post("data/rows", place_of))
    answer(vera.post("data/count", place_of))
    found = answer(vera.get("activity?limit=500&actor=vera"))
    whole = answer(vera.get("activity?limit=500&actor=vera&own=shown"))
    assert "rows" in {each["tool"] for each in found["lines"]}
    left = [each for each in whole["lines"] if each not in found["lines"]]
    assert {"browse", "count"} <= {each["tool"] for each in left}
    assert found["counts"]["own"] == {"left_out": len(left), "more": False}
    assert found["counts"]["total"] + len(left) == whole["counts"]["total"]
    assert sum(count for _, count in found["facets"]["actor"]) == len(found["lines"])
    (session,) = answer(vera.get("activity/sessions?actor=vera"))["sessions"]
    calls = [each["n"] for each in found["lines"] if each["call_id"]]  # signing in is none
    assert (session["calls"], session["own"]) == (len(calls), len(left))
    story = answer(vera.get(f"activity/story?session={session['call_id']}"))
    assert [each["n"] for each in reversed(story["lines"])] == calls
    for own, lines in ({}, found["lines"]), ({"own": "shown"}, whole["lines"]):
        filters = {"actor": "vera", **own}
        made = answer(vera.post("activity/export-ticket", {"format": "jsonl", "filters": filters}))
        assert made["rows"] == len(lines)
        assert bool(made["notes"]) == (not own)
    assert vera.get("activity?own=none").status_code == 400


def test_a_thousand_tables_are_listed_and_searched(tmp_path: Path) -> None:
    with desk(tmp_path, ("lite",), operators=False) as place:
        with closing(sqlite3.connect(tmp_path / "lite.db")) as connection, connection:
            for number in range(1_200):
                connection.execute(
                    f"CREATE TABLE part_{number:04d} (id INTEGER PRIMARY KEY, size_{number} TEXT)"
                )
        ada = place.visitor()
        page = answer(ada.get("data/tables?source=lite&limit=1000&q=part"))
        assert (len(page["tables"]), page["total"], page["next"]) == (1_000, 1_200, "1000")
        rest = answer(ada.get("data/tables?source=lite&limit=1000&q=part&after=1000"))
        assert len(rest["tables"]) == 200 and rest["next"] is None
        found = answer(ada.get("data/search?q=part_11&limit=20"))
        assert len(found["matches"]) == 20 and found["more"]
        (column,) = answer(ada.get("data/search?q=size_1199"))["matches"]
        assert (column["table"], column["column"]) == ("part_1199", "size_1199")
