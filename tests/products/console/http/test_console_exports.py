"""What leaves the Data page over HTTP as a file, and the operator's own history."""

from __future__ import annotations

import csv
import io
import json
import resource
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import support.postgres_server as postgres_server
from support.audit_records import records
from support.console_visitor import Visitor
from support.data_desk import ENGINES, LONG, Desk, answer, desk, ended_run
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


def run(visitor: Visitor, source: str, statement: str, **more: Any) -> dict[str, Any]:
    body = {"source": source, "statement": statement, "tab": "", **more}
    return ended_run(visitor, answer(visitor.post("data/runs", body))["id"])


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


# What is not whole


def made(visitor: Visitor, **wanted: Any) -> tuple[dict[str, Any], httpx.Response]:
    """What is said of a file before it is downloaded, and the file."""
    said = answer(visitor.post("data/export-ticket", wanted))
    file = visitor.get(f"data/export?ticket={said['ticket']}", x_tidegate_page=None)
    assert file.status_code == 200, file.text
    return said, file


def check_said(
    place: Desk, said: dict[str, Any], file: httpx.Response, form: str, rows: int, why: str
) -> None:
    """A cut file says so in its name, in the reply, in its headers, on record and, where its form
    has comments, at its end."""
    assert (said["complete"], said["rows"], said["bytes"]) == (False, rows, len(file.content))
    assert said["name"].endswith(f".first-{rows}-rows.{form}")
    assert said["name"] in file.headers["content-disposition"]
    assert why in said["notes"][0] and f"after {rows:,} rows" in said["notes"][0]
    assert file.headers["x-tidegate-complete"] == "no"
    assert said["notes"][0] in file.headers["x-tidegate-notes"]
    details = exported(place)[-1]["details"]
    assert (details["rows"], details["cut"]) == (str(rows), said["notes"][0])
    last = file.text.splitlines()[-1]
    assert (last == f"-- {said['notes'][0]}") == (form == "sql")


def test_a_large_table_leaves_up_to_the_limit_of_exports_and_says_so(
    place: Desk, vera: Visitor
) -> None:
    with closing(sqlite3.connect(place.directory / "lite.db")) as connection, connection:
        connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, word TEXT)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100100)"
            " INSERT INTO big SELECT i, 'word ' || i FROM n"
        )
    for form in ("csv", "sql"):
        said, file = made(vera, source="lite", table="big", format=form)
        check_said(place, said, file, form, 100_000, "the limit")
        lines = [each for each in records(place.state) if each.get("tool") == "export"]
        assert (lines[-1]["rows"], lines[-1]["truncated"]) == (100_000, "rows")
        if form == "csv":
            table = table_of(file)
            assert (len(table), table[-1]) == (100_001, ["100000", "word 100000"])
    wanted: dict[str, Any] = {"source": "lite", "table": "ties", "format": "csv"}
    said, file = made(vera, **wanted)
    assert (said["complete"], said["notes"], said["name"]) == (True, [], "ties.csv")
    assert file.headers["x-tidegate-complete"] == "yes"


@pytest.mark.parametrize("source", ENGINES)
def test_a_result_that_was_cut_leaves_as_such_in_every_form(
    place: Desk, vera: Visitor, source: str
) -> None:
    done = run(vera, source, "SELECT id, a FROM ties ORDER BY id", max_rows=7)
    assert done["truncated"]
    for form in ("csv", "json", "jsonl", "sql"):
        said, file = made(vera, run=done["id"], format=form)
        check_said(place, said, file, form, 7, "the limit")
    masked, file = made(vera, source=source, table="customers", format="sql")
    assert masked["complete"] and "customers.email is masked" in masked["notes"][0]
    assert "customers.email is masked" in file.text.splitlines()[-1]
    assert "customers.email is masked" in exported(place)[-1]["details"]["notes"]


def test_a_result_that_is_full_is_done_on_the_page_and_on_record(
    place: Desk, vera: Visitor
) -> None:
    text = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 60)"
        " SELECT i, zeroblob(4000000) AS z FROM n"
    )
    done = run(vera, "lite", text)
    kept = done["row_count"]
    assert (done["state"], done["truncated"], done["code"]) == ("done", True, "")
    assert 30 <= kept < 35 and f"first {kept} rows" in done["warnings"][0]
    (line,) = [each for each in records(place.state) if each.get("call_id") == done["call_id"]]
    assert (line["phase"], line.get("code", "")) == ("outcome", "")
    assert (line["rows"], line["truncated"]) == (kept, "bytes")
    assert 120_000_000 < line["bytes"] <= 128 * 1_048_576
    said = answer(vera.post("data/export-ticket", {"run": done["id"], "format": "jsonl"}))
    assert (said["complete"], said["name"]) == (False, f"result.first-{kept}-rows.jsonl")
    assert "too many bytes" in said["notes"][0]
    assert vera.post(f"data/runs/{done['id']}/close").status_code == 204


def test_what_runs_is_not_saved_and_what_was_cancelled_says_so(place: Desk, vera: Visitor) -> None:
    text = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT i FROM n WHERE i < 1000 OR i % 100000000 = 1"
    )
    body = {"source": "lite", "statement": text, "tab": "", "max_rows": 100_000}
    id = answer(vera.post("data/runs", body))["id"]
    wait_until(lambda: answer(vera.get(f"data/runs/{id}"))["row_count"] > 100, "the first rows")
    refused = vera.post("data/export-ticket", {"run": id, "format": "csv"})
    assert refused.json()["error"] == "argument.invalid" and "running" in refused.json()["message"]
    answer(vera.post(f"data/runs/{id}/cancel"))
    cancelled = ended_run(vera, id)
    assert cancelled["state"] == "cancelled"
    said, file = made(vera, run=id, format="jsonl")
    check_said(place, said, file, "jsonl", cancelled["row_count"], "was cancelled")


def test_a_result_that_was_let_go_is_gone_and_no_shorter_file(vera: Visitor) -> None:
    done = run(vera, "lite", "SELECT id FROM ties")
    assert vera.post(f"data/runs/{done['id']}/close").status_code == 204
    refused = vera.post("data/export-ticket", {"run": done["id"], "format": "csv"})
    assert (refused.status_code, refused.json()["error"]) == (410, "result.gone")


def test_who_leaves_an_export_ends_its_statement(place: Desk, vera: Visitor) -> None:
    server = postgres_server.shared()
    name = database_of(vera)
    server.ask("CREATE VIEW slow AS SELECT 1 AS id, pg_sleep(120)::text AS nothing", name)
    running = (
        "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%FROM%slow%'"
        f" AND datname = '{name}' AND pid <> pg_backend_pid()"
    )
    files = exported(place)
    leaver = place.visitor("vera")
    body = {"source": "pg", "table": "slow", "format": "csv"}
    request = leaver.client.build_request(
        "POST", "/console/api/data/export-ticket", json=body, headers=leaver.headers()
    )
    lines = [f"{key}: {value}" for key, value in request.headers.items()]
    with socket.create_connection((request.url.host, request.url.port or 80)) as connection:
        head = "\r\n".join([f"POST {request.url.path} HTTP/1.1", *lines, "", ""])
        connection.sendall(head.encode() + request.content)
        wait_until(lambda: server.ask(running), "the statement in the database")
    wait_until(lambda: not server.ask(running), "its end")
    (line,) = wait_until(
        lambda: [
            each
            for each in records(place.state)
            if each.get("tool") == "export" and "slow" in each.get("statement", "")
        ],
        "the record",
    )
    assert (line["phase"], line["code"]) == ("outcome", "call.cancelled")
    assert exported(place) == files


def database_of(visitor: Visitor) -> str:
    """The name of the database behind `pg`."""
    done = run(visitor, "pg", "SELECT current_database()")
    ((name,),) = answer(visitor.get(f"data/runs/{done['id']}/rows"))["rows"]
    return str(name)


def test_rows_that_are_large_together_are_paged_and_held_as_far_as_there_is_room(
    vera: Visitor,
) -> None:
    text = "SELECT i AS id, repeat('x', 4500000) AS x FROM generate_series(1, 33) AS t(i)"
    postgres_server.shared().ask(f"CREATE VIEW wide AS {text}", database_of(vera))
    page = answer(vera.post("data/rows", {"source": "pg", "table": "wide", "limit": 33}))
    assert [row[0] for row in page["rows"]] == [str(n) for n in range(1, 34)]
    assert page["rows"][32][1]["bytes"] == 4_500_000 and page["next"] is None
    done = run(vera, "pg", text)
    assert (done["state"], done["truncated"], done["code"]) == ("done", True, "")
    assert done["row_count"] == 128 * 1_048_576 // 4_504_200
    assert vera.post(f"data/runs/{done['id']}/close").status_code == 204


def test_a_full_disk_is_a_coded_error_and_the_server_goes_on(tmp_path: Path) -> None:
    with desk(tmp_path, ("lite",), masks=False) as place:
        vera = place.visitor("vera")
        pid = place.server.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        text = "SELECT a.id, hex(zeroblob(2000)) AS z FROM ties a, ties b"
        held = run(vera, "lite", text)
        assert held["state"] == "done"
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (8_000_000, before[1]))
        failed = run(vera, "lite", f"{text}, ties c")
        assert (failed["state"], failed["code"]) == ("failed", "state.failed")
        assert str(place.state) in failed["message"] and "`state`" in failed["hint"]
        assert failed["rows_gone"]
        refused = vera.post("data/export-ticket", {"run": held["id"], "format": "sql"})
        assert refused.json()["error"] == "state.failed"
        assert str(place.state) in refused.json()["message"]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        said, _ = made(vera, run=held["id"], format="sql")
        assert (said["complete"], said["rows"]) == (True, 3_600)


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
