"""What leaves the Data page over HTTP as a file, and the operator's own history."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from support.audit_records import records
from support.console_visitor import Visitor
from support.data_desk import ENGINES, LONG, Desk, answer, desk
from support.eventually import wait_until


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("exports")) as found:
        yield found


@pytest.fixture(scope="module")
def vera(place: Desk) -> Visitor:
    return place.visitor("vera")


def download(visitor: Visitor, **wanted: Any) -> httpx.Response:
    ticket = answer(visitor.post("data/export-ticket", wanted))["ticket"]
    return visitor.get(f"data/export?ticket={ticket}", x_tidegate_page=None)


def run(visitor: Visitor, source: str, statement: str) -> dict[str, Any]:
    body = {"source": source, "statement": statement, "tab": ""}
    id = answer(visitor.post("data/runs", body))["id"]

    def look() -> Any:
        found = answer(visitor.get(f"data/runs/{id}"))
        return found if found["ended_at"] is not None else None

    found: dict[str, Any] = wait_until(look, "the end of the run")
    return found


def ran(place: Desk) -> set[str]:
    """The calls on record that ran a statement of a person."""
    return {each["call_id"] for each in records(place.state) if each.get("tool") == "run"}


def exported(place: Desk) -> list[dict[str, Any]]:
    return [each for each in records(place.state) if each.get("name") == "console.exported"]


def table_of(response: httpx.Response) -> list[list[str]]:
    assert response.status_code == 200, response.text
    return list(csv.reader(io.StringIO(response.text, newline="")))


@pytest.mark.parametrize("source", ENGINES)
def test_a_table_leaves_as_it_is_filtered_and_sorted(vera: Visitor, source: str) -> None:
    wanted: dict[str, Any] = {
        "source": source,
        "table": "ties",
        "filters": [{"column": "id", "operator": "<=", "value": "4"}],
        "sort": [{"column": "id", "direction": "desc"}],
        "columns": ["id", "a"],
    }
    response = download(vera, **wanted, format="csv")
    assert table_of(response) == [["id", "a"], ["4", "1"], ["3", "0"], ["2", "2"], ["1", "1"]]
    assert response.headers["content-disposition"] == 'attachment; filename="ties.csv"'
    assert response.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert json.loads(download(vera, **wanted, format="json").text)[0] == {"id": 4, "a": 1}
    lines = download(vera, **wanted, format="jsonl").text.splitlines()
    assert json.loads(lines[-1]) == {"id": 1, "a": 1}
    inserts = download(vera, **wanted, format="sql").text.splitlines()
    assert len(inserts) == 4 and inserts[0].startswith("INSERT INTO")


@pytest.mark.parametrize("source", ENGINES)
def test_a_result_leaves_whole_and_its_statement_does_not_run_again(
    vera: Visitor, place: Desk, source: str
) -> None:
    done = run(vera, source, "SELECT id, total, note FROM orders ORDER BY id")
    calls, files = ran(place), exported(place)
    table = table_of(download(vera, run=done["id"], format="csv"))
    assert [row[0] for row in table] == ["id", "1", "2", "3"]
    assert (float(table[1][1]), table[2][2], table[3][2]) == (120.5, "", LONG)
    first = json.loads(download(vera, run=done["id"], format="jsonl").text.splitlines()[0])
    assert (first["id"], first["note"]) == (1, "first")
    assert ran(place) == calls
    assert len(exported(place)) == len(files) + 2
    assert exported(place)[-1]["details"]["rows"] == "3"
    other = place.visitor("vera")
    refused = other.post("data/export-ticket", {"run": done["id"], "format": "csv"})
    assert (refused.status_code, refused.json()["error"]) == (410, "result.gone")


def test_formulas_are_guarded_and_bytes_are_whole(vera: Visitor) -> None:
    text = "SELECT '=1+1' AS f, '-5' AS n, x'00ff' AS b, zeroblob(50) AS z, 1.5 AS d, NULL AS e"
    done = run(vera, "lite", text)
    (_, row) = table_of(download(vera, run=done["id"], format="csv"))
    assert (row[0], row[1], row[4], row[5]) == ("'=1+1", "-5", "1.5", "")
    inserts = download(vera, run=done["id"], format="sql").text
    assert "X'00FF'" in inserts.upper() and "00" * 50 in inserts


def test_masked_values_leave_in_no_form(vera: Visitor) -> None:
    for source in ENGINES:
        for form in ("csv", "json", "jsonl", "sql"):
            text = download(vera, source=source, table="customers", format=form).text
            assert "ada@example.org" not in text and "Hokusai" in text
        done = run(vera, source, "SELECT * FROM customers")
        assert "ada@example.org" not in download(vera, run=done["id"], format="csv").text
        body = {"source": source, "table": "customers", "format": "csv"}
        for narrowed in (
            {"sort": [{"column": "email"}]},
            {"filters": [{"column": "email", "operator": "=", "value": "x"}]},
        ):
            refused = vera.post("data/export-ticket", {**body, **narrowed})
            assert refused.json()["error"] == "policy.masked"


def test_a_ticket_is_used_once_by_its_session(place: Desk, vera: Visitor) -> None:
    body = {"source": "lite", "table": "ties", "format": "csv"}
    ticket = answer(vera.post("data/export-ticket", body))["ticket"]
    assert vera.get(f"data/export?ticket={ticket}").status_code == 200
    assert vera.get(f"data/export?ticket={ticket}").status_code == 403
    ticket = answer(vera.post("data/export-ticket", body))["ticket"]
    assert place.visitor("vera").get(f"data/export?ticket={ticket}").status_code == 403
    lee = place.visitor("lee")
    refused = [lee.post("data/export-ticket", {**body, "source": name}) for name in ("pg", "none")]
    assert [each.status_code for each in refused] == [403, 403]
    assert refused[0].text == refused[1].text
    for wrong in ({**body, "format": "xlsx"}, {"format": "csv"}, {**body, "columns": ["none"]}):
        assert vera.post("data/export-ticket", wrong).json()["error"] == "argument.invalid"


def test_a_large_table_leaves_up_to_the_limit_of_exports(place: Desk, vera: Visitor) -> None:
    with closing(sqlite3.connect(place.directory / "lite.db")) as connection, connection:
        connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, word TEXT)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100100)"
            " INSERT INTO big SELECT i, 'word ' || i FROM n"
        )
    table = table_of(download(vera, source="lite", table="big", format="csv"))
    assert (len(table), table[-1]) == (100_001, ["100000", "word 100000"])


# The history


def test_the_history_has_the_operators_own_statements_newest_first(
    place: Desk, vera: Visitor
) -> None:
    ada = place.visitor("ada")
    for number in range(3):
        run(vera, "lite", f"SELECT {number} AS mine")
    run(ada, "lite", "SELECT 9 AS hers")
    run(vera, "pg", "SELECT nothing_such")
    answer(vera.post("data/rows", {"source": "lite", "table": "orders"}))
    found = answer(vera.get("data/history?q=mine"))["entries"]
    assert [each["statement"] for each in found] == [
        *("SELECT 2 AS mine", "SELECT 1 AS mine", "SELECT 0 AS mine"),
    ]
    assert [(each["ok"], each["rows"], each["source"]) for each in found] == [(True, 1, "lite")] * 3
    failed = answer(vera.get("data/history?q=nothing_such"))["entries"]
    assert [(each["ok"], each["source"]) for each in failed] == [(False, "pg")]
    first = answer(vera.get("data/history?q=mine&source=lite&limit=2"))
    rest = answer(vera.get(f"data/history?q=mine&source=lite&limit=2&before={first['next']}"))
    assert [each["statement"] for each in rest["entries"]] == ["SELECT 0 AS mine"]
    assert rest["next"] is None
    assert answer(vera.get("data/history?q=hers"))["entries"] == []
    everything = json.dumps(answer(vera.get("data/history?limit=500")))
    assert "customer_id" not in everything  # rows of tables are no statements of hers
    lee = place.visitor("lee")
    assert lee.get("data/history?source=pg").status_code == 403
