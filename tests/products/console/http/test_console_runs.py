"""Statements of the Data page over HTTP: judged, completed, run, held, cancelled, explained."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

import support.mysql_server as mysql_server
import support.postgres_server as postgres_server
from support.audit_records import records
from support.command_line import serving
from support.console_visitor import Visitor
from support.data_desk import ENGINES, LONG, PASSPHRASE, Desk, answer, desk, ended_run
from support.engine_cases import CASES
from support.eventually import wait_until

RUNAWAY = {
    "lite": CASES["sqlite"].spelling.runaway,
    "duck": CASES["duckdb"].spelling.runaway,
    "pg": CASES["postgres"].spelling.runaway,
    "maria": "SELECT sum(a.id ^ b.id ^ c.id ^ d.id ^ e.id ^ f.id)"
    " FROM ties a, ties b, ties c, ties d, ties e, ties f",
}
MANY = {
    "lite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {n})"
    " SELECT i, 'row ' || i AS label FROM n",
    "duck": "SELECT i, 'row ' || i AS label FROM range(1, {n} + 1) AS t(i)",
    "pg": "SELECT i, 'row ' || i AS label FROM generate_series(1, {n}) AS t(i)",
    "maria": "SELECT i, concat('row ', i) AS label FROM"
    " (SELECT (a.id - 1) * 3600 + (b.id - 1) * 60 + c.id AS i FROM ties a, ties b, ties c) AS t"
    " WHERE i <= {n} ORDER BY i",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    hides = {"lite": ("--filter", "loose: v < 2")}
    with desk(tmp_path_factory.mktemp("runs"), flags=hides) as found:
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


def begin(visitor: Visitor, source: str, statement: str, **more: Any) -> dict[str, Any]:
    body = {"source": source, "statement": statement, "tab": "t1", **more}
    run: dict[str, Any] = answer(visitor.post("data/runs", body))
    return run


def run(visitor: Visitor, source: str, statement: str, **more: Any) -> dict[str, Any]:
    return ended_run(visitor, begin(visitor, source, statement, **more)["id"])


def rows(visitor: Visitor, id: str, offset: int = 0, limit: int = 1000) -> list[Any]:
    page = answer(visitor.get(f"data/runs/{id}/rows?offset={offset}&limit={limit}"))
    found: list[Any] = page["rows"]
    return found


# Runs


@pytest.mark.parametrize("source", ENGINES)
def test_a_result_of_100_000_rows_is_held_and_its_statement_runs_once(
    vera: Visitor, place: Desk, source: str
) -> None:
    text = MANY[source].format(n=100_000)
    done = run(vera, source, text, max_rows=100_000)
    assert (done["state"], done["row_count"], done["truncated"]) == ("done", 100_000, False)
    assert [each["name"] for each in done["columns"]] == ["i", "label"]
    assert rows(vera, done["id"], 0, 2) == [["1", "row 1"], ["2", "row 2"]]
    assert rows(vera, done["id"], 54_321, 1) == [["54322", "row 54322"]]
    assert len(rows(vera, done["id"], 99_500, 1000)) == 500
    assert rows(vera, done["id"], 100_000, 10) == []
    calls = [
        each
        for each in records(place.state)
        if each.get("statement", each.get("sql")) == text and each.get("source") == source
    ]
    assert len({each["call_id"] for each in calls}) <= 1
    cut = run(vera, source, text, max_rows=1_000)
    assert (cut["row_count"], cut["truncated"], cut["limit"]) == (1_000, True, 1_000)
    for each in (done, cut):
        assert vera.post(f"data/runs/{each['id']}/close").status_code == 204
        assert vera.get(f"data/runs/{each['id']}/rows").status_code == 410


@pytest.mark.parametrize("source", ENGINES)
def test_a_chart_is_of_all_rows_that_are_held_and_exact(vera: Visitor, source: str) -> None:
    held = run(vera, source, MANY[source].format(n=3_000), max_rows=2_500)
    spec = {
        "mark": "bar",
        "encoding": {
            "x": {"field": "i", "bin": {"maxbins": 5}},
            "y": {"aggregate": "sum", "field": "i"},
        },
    }
    made = answer(vera.post(f"data/runs/{held['id']}/chart", {"spec": spec}))
    assert made["spec"] == spec
    chart = made["chart"]
    assert (chart["row_count"], chart["columns"]) == (2_500, ["i", "Sum of i"])
    assert chart["rows"][0] == ["0 – 500", str(sum(range(500)))]
    assert chart["notes"] == ["Cut after 2,500 rows, the limit: there are more."]


def test_a_result_and_its_chart_say_that_rows_may_be_hidden(vera: Visitor) -> None:
    held = run(vera, "lite", "SELECT * FROM (SELECT v AS n, count(*) AS c FROM loose GROUP BY v)")
    assert rows(vera, held["id"]) == [["1", "4"]]
    said = "row filter of the source may hide rows of loose"
    assert held["warnings"] == [f"a {said}"]
    chart = answer(vera.post(f"data/runs/{held['id']}/chart", {}))["chart"]
    assert chart["notes"] == [f"A {said}."]
    figures = answer(vera.post("data/columns", {"source": "lite", "table": "loose"}))
    assert (figures["rows"], figures["whole"], figures["filtered"]) == (4, True, True)


@pytest.mark.parametrize("source", ENGINES)
def test_a_result_is_plotted_by_its_column_types(vera: Visitor, source: str) -> None:
    held = run(vera, source, MANY[source].format(n=40))
    made = answer(vera.post(f"data/runs/{held['id']}/chart", {}))
    assert made["spec"]["encoding"]["x"] == {"field": "i", "type": "quantitative"}
    assert len(made["chart"]["marks"]) == 40
    spec = {"mark": "pie", "encoding": {}}
    refused = vera.post(f"data/runs/{held['id']}/chart", {"spec": spec})
    assert (refused.status_code, refused.json()["error"]) == (400, "argument.invalid")
    assert "`mark`" in refused.json()["message"]


@pytest.mark.parametrize("source", ENGINES)
def test_a_cell_is_cut_in_the_rows_and_whole_by_itself(vera: Visitor, source: str) -> None:
    done = run(vera, source, "SELECT note, id, total FROM orders ORDER BY id")
    shown = rows(vera, done["id"])
    assert shown[1][0] is None
    assert (shown[2][0]["cut"], shown[2][0]["bytes"]) == (True, len(LONG))
    whole = answer(vera.get(f"data/runs/{done['id']}/cell?row=2&column=0"))
    assert whole == {"text": LONG, "bytes": len(LONG), "binary": False}
    empty = answer(vera.get(f"data/runs/{done['id']}/cell?row=1&column=0"))
    assert empty["text"] is None
    assert float(shown[0][2]) == 120.5
    for place in ("row=3&column=0", "row=0&column=9"):
        refused = vera.get(f"data/runs/{done['id']}/cell?{place}")
        assert refused.json()["error"] == "argument.invalid"


def test_bytes_are_shown_as_such_and_text_that_is_none_does_no_harm(vera: Visitor) -> None:
    text = "SELECT x'00ff10' AS small, zeroblob(100) AS large, cast(x'ff41' AS TEXT) AS odd"
    done = run(vera, "lite", text)
    ((small, large, odd),) = rows(vera, done["id"])
    assert small == {"binary": 3, "text": "00ff10"}
    assert (large["binary"], large["text"]) == (100, "00" * 32)
    assert odd.endswith("A")
    for column, expected in ((0, "00ff10"), (1, "00" * 100)):
        whole = answer(vera.get(f"data/runs/{done['id']}/cell?row=0&column={column}"))
        assert (whole["text"], whole["binary"]) == (expected, True)


def sessions_of(source: str) -> list[Any]:
    if source == "pg":
        return postgres_server.shared().ask(
            "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND backend_type ="
            " 'client backend' AND pid <> pg_backend_pid() AND now() - query_start > '0.2s'"
        )
    return mysql_server.shared().script(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Execute')"
        " AND TIME_MS > 200 AND ID <> connection_id()"
    )


@pytest.mark.parametrize("source", ENGINES)
def test_a_cancelled_run_ends_in_the_database_too(vera: Visitor, source: str) -> None:
    begun = begin(vera, source, RUNAWAY[source])
    assert begun["state"] == "running"
    if source in ("pg", "maria"):
        wait_until(lambda: sessions_of(source), "the statement in the database")
    answer(vera.post(f"data/runs/{begun['id']}/cancel"))
    cancelled = ended_run(vera, begun["id"])
    assert (cancelled["state"], cancelled["code"]) == ("cancelled", "call.cancelled")
    if source in ("pg", "maria"):
        wait_until(lambda: not sessions_of(source), "the end of the statement")
    assert run(vera, source, "SELECT 1")["state"] == "done"


@pytest.mark.parametrize("source", ENGINES)
def test_an_error_of_the_database_is_shown_and_where_it_is(vera: Visitor, source: str) -> None:
    failed = run(vera, source, "SELECT nothing_such FROM orders")
    assert (failed["state"], failed["code"]) == ("failed", "sql.failed")
    assert "nothing_such" in failed["message"] and failed["call_id"]
    text = "SELECT 'שלום 👩', nothing_such FROM orders"
    failed = run(vera, source, text)
    if source in ("pg", "lite"):  # the others name no place
        assert failed["at"] == len("SELECT '") + len("שלום ") + 2 + len("', ")


@pytest.mark.parametrize("source", ENGINES)
def test_parameters_are_bound_by_name_and_by_place(vera: Visitor, source: str) -> None:
    named = run(
        vera, source, "SELECT note FROM orders WHERE note = :wanted", params={"wanted": "first"}
    )
    assert rows(vera, named["id"]) == [["first"]]
    mark = "$1" if source in ("pg", "duck") else "?"
    placed = run(vera, source, f"SELECT id FROM orders WHERE id = {mark}", params=[2])
    assert rows(vera, placed["id"]) == [["2"]]
    # After the page was loaded again it has what runs them again.
    held = {each["id"]: each for each in answer(vera.get("data/runs?tab=t1"))["runs"]}
    again = [
        (held[each["id"]]["statement"], held[each["id"]]["params"]) for each in (named, placed)
    ]
    assert again == [
        ("SELECT note FROM orders WHERE note = :wanted", {"wanted": "first"}),
        (f"SELECT id FROM orders WHERE id = {mark}", [2]),
    ]


def test_a_run_belongs_to_its_session_and_another_finds_nothing_of_it(
    place: Desk, vera: Visitor
) -> None:
    done = run(vera, "lite", "SELECT name FROM customers")
    listed = answer(vera.get("data/runs?tab=t1"))["runs"]
    assert done["id"] in [each["id"] for each in listed]
    for other in (place.visitor("vera"), place.visitor("ada")):
        for path in ("", "/rows", "/cell?row=0&column=0"):
            refused = other.get(f"data/runs/{done['id']}{path}")
            assert (refused.status_code, refused.json()["error"]) == (410, "result.gone")
        for what in ("cancel", "close"):
            assert other.post(f"data/runs/{done['id']}/{what}").status_code == 410
        assert answer(other.get("data/runs?tab=t1"))["runs"] == []
    assert len(rows(vera, done["id"])) == 3


def test_a_name_that_is_not_there_is_answered_with_the_nearest(vera: Visitor) -> None:
    for source in ("lite", "pg"):
        failed = run(vera, source, "SELECT nam FROM customers")
        assert failed["hint"].startswith("Nearest: customers.name"), failed
        # Where columns are masked, the gate itself knows no such table.
        failed = run(vera, source, "SELECT 1 FROM custmers")
        assert failed["hint"] == "Nearest: customers.", failed
        assert failed["at"] == len("SELECT 1 FROM "), failed
    failed = run(vera, "lite", "SELECT id FROM customers JOIN orders ON 1")
    assert failed["hint"].startswith("Say which: customers.id "), failed


def test_a_masked_column_is_masked_in_a_result_too(vera: Visitor) -> None:
    for source in ENGINES:
        done = run(vera, source, "SELECT id, email FROM customers ORDER BY id")
        assert [row[1] for row in rows(vera, done["id"])] == [None] * 3
        assert [each["masked"] for each in done["columns"]] == [False, True]
        assert done["warnings"]


@pytest.mark.parametrize("source", ["pg", "lite"])  # the others name no place
@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'שלום', nothing_such FROM customers",
        "SELECT id FROM customers AS c WHERE nothing_such = 1",
        "SELECT id FROM customers WHERE nothing_such = 1 AND id IN (SELECT id FROM customers)",
    ],
)
def test_an_error_about_a_masked_table_has_its_place_in_the_text_that_was_written(
    vera: Visitor, source: str, text: str
) -> None:
    failed = run(vera, source, text)
    assert (failed["state"], failed["code"]) == ("failed", "sql.failed")
    assert failed["at"] == text.index("nothing_such")


# Who may change


@pytest.mark.parametrize("source", ENGINES)
def test_a_viewer_and_an_approver_change_nothing(place: Desk, vera: Visitor, source: str) -> None:
    for visitor in (vera, place.visitor("pru")):
        for text in (
            "UPDATE orders SET total = 0",
            "DELETE FROM orders WHERE id = 1",
            "DROP TABLE orders",
            "INSERT INTO customers VALUES (9, 'Mallory', NULL, NULL)",
        ):
            refused = run(visitor, source, text)
            assert refused["state"] == "failed", text
            assert refused["code"] in ("policy.scope", "policy.read_only"), text
    counted = run(vera, source, "SELECT count(*) FROM orders WHERE total > 0")
    assert rows(vera, counted["id"]) == [["2"]]


@pytest.mark.parametrize("source", ENGINES)
def test_an_admin_changes_rows_and_reads_how_many(ada: Visitor, source: str) -> None:
    done = run(ada, source, "UPDATE keyless SET b = 'changed' WHERE a = 2")
    assert (done["state"], done["effect"]) == ("done", "write")
    assert done["affected"] == 16
    counted = run(ada, source, "SELECT count(*) FROM keyless WHERE b = 'changed'")
    assert rows(ada, counted["id"]) == [["16"]]


def asking(visitor: Visitor, id: str) -> Any:
    """The run, once it waits for a person."""
    found = answer(visitor.get(f"data/runs/{id}"))
    return found if found["state"] == "asking" else None


def test_what_needs_a_person_asks_and_runs_after_the_answer(tmp_path: Path) -> None:
    flags = {"lite": ("--approval-for", "writes")}
    with desk(tmp_path, ("lite",), flags, operators=False) as place:
        ada = place.visitor()

        def total() -> Any:
            with closing(sqlite3.connect(tmp_path / "lite.db")) as connection:
                return connection.execute("SELECT total FROM orders WHERE id = 1").fetchone()[0]

        begun = begin(ada, "lite", "UPDATE orders SET total = 7 WHERE id = 1", reason="a test")

        asked = wait_until(partial(asking, ada, begun["id"]), "the question")
        assert asked is not None and total() == 120.5

        def waiting() -> dict[str, Any] | None:
            card: dict[str, Any] = answer(ada.get(f"inbox/{asked['approval']}"))
            return card if card["waiting"]["until"] else None

        card = wait_until(waiting, "the card that says that it waits")
        assert card is not None
        assert (card["agent_reason"], card["state"]) == ("a test", "pending")
        assert card["sentence"].startswith("ada wants to ")
        assert (card["caller"]["name"], card["caller"]["in_console"]) == ("ada", True)
        body = {"digest": card["digest"], "passphrase": PASSPHRASE}
        assert ada.post(f"inbox/{card['id']}/allow", body).status_code == 200
        done = ended_run(ada, begun["id"])
        assert (done["state"], done["affected"], total()) == ("done", 1, 7)

        begun = begin(ada, "lite", "UPDATE orders SET total = 8 WHERE id = 1")
        asked = wait_until(partial(asking, ada, begun["id"]), "the question")
        assert asked is not None
        card = answer(ada.get(f"inbox/{asked['approval']}"))
        body = {"digest": card["digest"], "reason": "no"}
        assert ada.post(f"inbox/{card['id']}/deny", body).status_code == 200
        denied = ended_run(ada, begun["id"])
        assert (denied["state"], denied["code"], total()) == ("failed", "approval.declined", 7)

        begun = begin(ada, "lite", "UPDATE orders SET total = 9 WHERE id = 1")
        wait_until(partial(asking, ada, begun["id"]), "the question")
        answer(ada.post(f"data/runs/{begun['id']}/cancel"))
        assert ended_run(ada, begun["id"])["state"] == "cancelled" and total() == 7
        asked = answer(ada.get(f"data/runs/{begun['id']}"))
        assert answer(ada.get(f"inbox/{asked['approval']}"))["waiting"]["until"] is None


@pytest.mark.needs("duckdb")
def test_a_destructive_statement_of_an_admin_asks_a_person_without_a_phrase(
    tmp_path: Path,
) -> None:
    with desk(tmp_path, ("lite", "duck"), operators=False, masks=False) as place:
        ada = place.visitor()
        for source in ("lite", "duck"):
            for text in ("DROP TABLE keyless", "DELETE FROM keyless"):
                begun = begin(ada, source, text)
                asked = wait_until(partial(asking, ada, begun["id"]), "the question")
                card = answer(ada.get(f"inbox/{asked['approval']}"))
                body = {"digest": card["digest"], "reason": ""}
                assert ada.post(f"inbox/{card['id']}/deny", body).status_code == 200
                assert ended_run(ada, begun["id"])["code"] == "approval.declined"
            counted = run(ada, source, "SELECT count(*) FROM keyless")
            assert rows(ada, counted["id"]) == [["60"]]


# What ends with what


def waiting_file(visitor: Visitor, run: str = "", table: str = "") -> str:
    """The ticket of an export that was made and not downloaded."""
    wanted = {"run": run} if run else {"source": "lite", "table": table}
    found: str = answer(visitor.post("data/export-ticket", {**wanted, "format": "csv"}))["ticket"]
    return found


def download(visitor: Visitor, ticket: str) -> httpx.Response:
    return visitor.get(f"data/export?ticket={ticket}", x_tidegate_page=None)


def test_rows_are_gone_when_the_source_or_the_roles_change_and_after_a_restart(
    tmp_path: Path,
) -> None:
    with desk(tmp_path, ("lite",)) as place:
        vera, ada = place.visitor("vera"), place.visitor("ada")
        consent = ["--passphrase-file", str(tmp_path / "consent")]
        first = run(vera, "lite", "SELECT name FROM customers")
        files = [waiting_file(vera, run=first["id"]), waiting_file(vera, table="customers")]
        words = ["source", "update", "lite", "--mask", "customers.name=nothing", *consent]
        assert place.run(*words).status == 0
        assert vera.get(f"data/runs/{first['id']}/rows").status_code == 410
        assert [download(vera, ticket).status_code for ticket in files] == [403, 403]
        second = run(ada, "lite", "SELECT city FROM customers")
        file = waiting_file(ada, run=second["id"])
        roles = ["operator", "roles", "ada", "--role", "viewer", "--source", "lite", *consent]
        assert place.run(*roles).status == 0
        assert ada.get(f"data/runs/{second['id']}/rows").status_code == 410
        assert download(ada, file).status_code == 403
        third = run(vera, "lite", "SELECT city FROM customers")
        assert len(rows(vera, third["id"])) == 3
        assert not [name for name in os.listdir(place.state) if name.startswith("tmp")]
    with serving(["serve", "--http", "127.0.0.1:0", "--console"], tmp_path / "state") as server:
        address = server.until("the console is at").split()[-1].removesuffix("/console")
        again = Visitor(address)
        again.sign_in(name="vera", passphrase=PASSPHRASE)
        refused = again.get(f"data/runs/{third['id']}/rows")
        assert (refused.status_code, refused.json()["error"]) == (410, "result.gone")
        again.client.close()


def test_a_session_has_a_bounded_number_of_runs_at_once(place: Desk) -> None:
    vera = place.visitor("vera")
    begun = [begin(vera, "lite", RUNAWAY["lite"]) for _ in range(8)]
    body = {"source": "lite", "statement": "SELECT 1", "tab": ""}
    refused = vera.post("data/runs", body)
    assert (refused.status_code, refused.json()["error"]) == (429, "limit.rate")
    for each in begun:
        vera.post(f"data/runs/{each['id']}/close")


# Judging, completing, explaining


@pytest.mark.parametrize("source", ENGINES)
def test_each_statement_of_a_text_is_judged_without_running(
    ada: Visitor, vera: Visitor, source: str
) -> None:
    text = "SELECT '😀;' FROM orders; DELETE FROM orders WHERE id = 1;\n DROP TABLE orders"
    found = answer(vera.post("data/judge", {"source": source, "statement": text}))
    assert [each["effect"] for each in found["statements"]] == ["read", "write", "destructive"]
    assert [each["verdict"] for each in found["statements"]] == ["allow", "deny", "deny"]
    units = text.encode("utf-16-le")
    shown = [
        units[2 * each["start"] : 2 * each["end"]].decode("utf-16-le")
        for each in found["statements"]
    ]
    assert shown == [
        "SELECT '😀;' FROM orders",
        "DELETE FROM orders WHERE id = 1",
        "DROP TABLE orders",
    ]
    assert "".join(part for _, part in found["spans"]) == text
    assert found["error"] is None
    admin = answer(ada.post("data/judge", {"source": source, "statement": text}))
    assert [each["verdict"] for each in admin["statements"]] == ["allow", "allow", "deny"]
    # What is hidden counts, too: nothing is said to be allowed that its run refuses.
    text = (
        "UPDATE customers SET email = 'x' WHERE id = 1; CREATE TABLE m (i INT); DROP TABLE orders"
    )
    masked = answer(ada.post("data/judge", {"source": source, "statement": text}))["statements"]
    assert [each["verdict"] for each in masked] == ["deny"] * 3
    for each, statement in zip(masked, text.split("; "), strict=True):
        assert run(ada, source, statement)["message"] == each["why"]
    broken = answer(vera.post("data/judge", {"source": source, "statement": "SELECT 'x"}))
    assert broken["error"]["at"] == 7 and broken["statements"][0]["verdict"] == "deny"
    large = "SELECT 1 -- " + "x" * 110_000
    assert answer(vera.post("data/judge", {"source": source, "statement": large}))["spans"] is None


@pytest.mark.parametrize("source", ENGINES)
def test_a_text_is_laid_out_in_lines_with_the_same_tokens(vera: Visitor, source: str) -> None:
    text = "select '😀;', id from orders where id=1 and id<2; delete from orders -- all"
    found = answer(vera.post("data/format", {"source": source, "statement": text}))
    assert found["statement"] == (
        "select '😀;', id\nfrom orders\nwhere id=1\n  and id<2;\n\ndelete from orders -- all"
    )
    for same in ("SELECT 'x", "-- nothing", "", "SELECT 1"):
        assert answer(vera.post("data/format", {"source": source, "statement": same})) == {
            "statement": same
        }


@pytest.mark.parametrize("source", ENGINES)
def test_a_text_of_comments_alone_is_judged(vera: Visitor, source: str) -> None:
    found = answer(vera.post("data/judge", {"source": source, "statement": "-- later"}))
    assert found["statements"] == []
    assert "".join(part for _, part in found["spans"]) == "-- later"


def complete(visitor: Visitor, source: str, text: str) -> list[dict[str, Any]]:
    """The proposals at the sign | of a text."""
    at = len(text.partition("|")[0].encode("utf-16-le")) // 2
    body = {"source": source, "statement": text.replace("|", ""), "at": at}
    found: list[dict[str, Any]] = answer(visitor.post("data/complete", body))["items"]
    assert len(found) <= 100
    return found


def labels(items: list[dict[str, Any]], kind: str) -> list[str]:
    return [each["label"] for each in items if each["kind"] == kind]


@pytest.mark.parametrize("source", ENGINES)
def test_a_statement_is_completed_from_the_catalogue(vera: Visitor, source: str) -> None:
    assert labels(complete(vera, source, "SELECT * FROM or|"), "table")[0] == "orders"
    assert labels(complete(vera, source, "SELECT tot| FROM orders"), "column") == ["total"]
    assert labels(complete(vera, source, "SELECT o.| FROM orders o"), "column") == [
        *("id", "customer_id", "placed_at", "total", "note"),
    ]
    assert labels(complete(vera, source, "SELECT 1; SELECT c| FROM customers"), "column") == [
        "city"
    ]
    joined = complete(vera, source, "SELECT '😀' FROM orders o JOIN customers c ON |")
    assert joined[0]["insert"] == "o.customer_id = c.id"
    near = complete(vera, source, "SELECT * FROM orders o JOIN |")
    assert labels(near, "table")[0] == "customers"
    assert labels(complete(vera, source, "SELECT :wan FROM t WHERE x = :wanted AND y = :w|"),
                  "parameter") == [":wan", ":wanted"]  # fmt: skip
    assert "WHERE" in labels(complete(vera, source, "SELECT id FROM orders wh|"), "keyword")
    for quiet in ("SELECT 'or|'", "SELECT 1 -- or|"):
        assert complete(vera, source, quiet) == []


def test_nothing_of_a_source_without_a_role_is_judged_completed_run_or_explained(
    lee: Visitor,
) -> None:
    for path, more in (
        ("judge", {}),
        ("complete", {"at": 9}),
        ("runs", {"tab": ""}),
        ("explain", {}),
    ):
        refused = [
            lee.post(f"data/{path}", {"source": name, "statement": "SELECT 1", **more})
            for name in ("pg", "none")
        ]
        assert [each.status_code for each in refused] == [403, 403], path
        assert refused[0].text == refused[1].text, path


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for child in tree["children"]:
        yield from nodes(child)


@pytest.mark.parametrize("source", ENGINES)
def test_a_plan_is_shown_as_a_tree_and_measured_only_where_it_reads(
    ada: Visitor, vera: Visitor, source: str
) -> None:
    hidden = "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer_id;"
    if source != "lite":  # its plan has no figures
        refused = vera.post("data/explain", {"source": source, "statement": hidden})
        assert refused.json()["error"] == "policy.masked"
    text = "SELECT o.id, p.id FROM orders o JOIN orders p ON p.id = o.customer_id;"
    found = answer(vera.post("data/explain", {"source": source, "statement": text}))
    assert found["tree"] is not None, found
    shown = " ".join(each["label"] for each in nodes(found["tree"]))
    assert "orders" in shown or " o" in shown
    assert len(list(nodes(found["tree"]))) >= 2 and found["text"]
    body = {"source": source, "statement": text, "analyze": True}
    measured = vera.post("data/explain", body)
    if source == "lite":
        assert measured.json()["error"] == "engine.unsupported"
    elif source == "maria":  # its ANALYZE would tell of what is masked
        assert measured.json()["error"] == "policy.masked"
    else:
        tree = answer(measured)["tree"]
        assert any(each["actual_rows"] is not None for each in nodes(tree)), tree
    change = {"source": source, "statement": "DELETE FROM orders WHERE id = 3", "analyze": True}
    assert ada.post("data/explain", change).json()["error"] == "engine.unsupported"
    counted = run(vera, source, "SELECT count(*) FROM orders")
    assert rows(vera, counted["id"]) == [["3"]]


def test_what_runs_is_on_record_as_the_operator(place: Desk, vera: Visitor) -> None:
    done = run(vera, "lite", "SELECT 42 AS answer")
    lines = [each for each in records(place.state) if each.get("call_id") == done["call_id"]]
    assert lines and {each["actor"] for each in lines} == {"operator:vera"}
    assert "SELECT 42 AS answer" in json.dumps(lines)
