"""Query tabs of a real server in Chromium, on SQLite and PostgreSQL."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import support.postgres_server as postgres_server
from products.console.support.chromium import Window, violations
from products.console.support.query_page import editor, judged, run_line
from support.console_visitor import Visitor
from support.data_desk import PASSPHRASE, Desk, answer, desk
from support.engine_cases import CASES
from support.eventually import wait_until

UNDO = ["--approval-for", "writes", "--undo", "keep"]
SOURCES: list[str] = ["lite", "pg"]
WORDS = "SELECT 'שלום 👩‍👧' AS x"
PLACE = {"database": None, "schema": None}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    directory = tmp_path_factory.mktemp("query")
    flags: dict[str, list[str]] = dict.fromkeys(SOURCES, UNDO)
    with desk(directory, SOURCES, flags, operators=False) as found:
        yield found


@pytest.fixture(scope="module")
def visitor(place: Desk) -> Visitor:
    return place.visitor("ada")


@pytest.fixture
def page(place: Desk, visitor: Visitor, window: Window) -> Page:
    """Signed in, with no tab open."""
    for tab in answer(visitor.get("data/tabs"))["tabs"]:
        assert visitor.post(f"data/tabs/{tab['id']}/close").status_code == 204
    window.expected = ["401"]
    found = window.tab(f"{place.address}/console#/data")
    found.get_by_label("Name").fill("ada")
    found.get_by_label("Passphrase").fill(PASSPHRASE)
    found.keyboard.press("Enter")
    expect(found.locator(".live.on")).to_be_visible()
    expect(found.get_by_role("treeitem", name="lite")).to_be_visible()
    return found


def open_query(page: Page, source: str, text: str = "") -> Locator:
    """A new query of a source, with this text, and the focus in it."""
    page.get_by_role("button", name="New query").click()
    page.locator("#new-query").get_by_role("button", name=source, exact=True).click()
    expect(editor(page)).to_have_value("")
    editor(page).fill(text)
    editor(page).click()
    page.keyboard.press("Control+End")
    return editor(page)


def cells(page: Page) -> Any:
    return page.locator(".run-panel .grid-cell")


def running(source: str) -> list[Any]:
    """What runs in the database at this moment, but for the question itself."""
    assert source == "pg"
    return postgres_server.shared().ask(
        "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND backend_type ="
        " 'client backend' AND pid <> pg_backend_pid() AND now() - query_start > '0.2s'"
    )


@pytest.mark.parametrize("source", SOURCES)
def test_a_statement_is_written_with_suggestions_judged_and_run(page: Page, source: str) -> None:
    text = open_query(page, source)
    page.keyboard.type("SELECT c.na")
    page.keyboard.press("Escape")
    page.keyboard.type("me FROM custo")
    expect(page.locator('.suggestions [aria-selected="true"]')).to_contain_text("customers")
    page.keyboard.press("Tab")
    page.keyboard.type(" c WHERE c.ci")
    expect(page.locator('.suggestions [aria-selected="true"]')).to_contain_text("city")
    page.keyboard.press("Enter")
    page.keyboard.type(" IS NOT NULL ORDER BY c.id")
    page.keyboard.press("Escape")
    expect(text).to_have_value(
        "SELECT c.name FROM customers c WHERE c.city IS NOT NULL ORDER BY c.id"
    )
    expect(judged(page)).to_contain_text("reads customers")
    expect(judged(page)).to_contain_text("allowed")
    expect(page.locator(".h-keyword").first).to_have_text("SELECT")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("2 rows")
    expect(cells(page)).to_have_text(["Ada", "Omar"])
    assert violations(page) == []


@pytest.mark.parametrize("source", SOURCES)
def test_all_statements_run_in_order_and_masked_values_stay_masked(page: Page, source: str) -> None:
    open_query(page, source, f"SELECT email FROM customers WHERE id = 1;\n-- two\n{WORDS}")
    page.keyboard.press("Control+Shift+Enter")
    tabs = page.get_by_role("tablist", name="Results").get_by_role("tab")
    expect(tabs).to_have_count(2)
    expect(cells(page)).to_have_text(["שלום 👩‍👧"])
    tabs.first.click()
    expect(cells(page)).to_have_count(1)
    expect(cells(page)).not_to_contain_text("example.org")


@pytest.mark.parametrize("source", SOURCES)
def test_a_slow_statement_is_cancelled_in_the_database_too(page: Page, source: str) -> None:
    engine = {"lite": "sqlite", "pg": "postgres"}[source]
    open_query(page, source, CASES[engine].spelling.runaway)
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("Running")
    if source == "pg":
        wait_until(lambda: running(source), "the statement in the database")
    page.keyboard.press("Escape")
    expect(run_line(page)).to_contain_text("Cancelled")
    if source == "pg":
        wait_until(lambda: not running(source), "the end of the statement")
    editor(page).fill("SELECT 1 AS one")
    page.keyboard.press("Control+Enter")
    expect(cells(page)).to_have_text(["1"])


def test_an_error_of_the_database_is_marked_where_it_is(page: Page) -> None:
    open_query(page, "pg", "SELECT '👩‍👧';\nSELECT id, nothing_such FROM orders")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".failure")).to_contain_text("nothing_such")
    expect(page.locator(".m-error")).to_have_text("nothing_such")
    page.get_by_role("button", name="Go to the place").click()
    expect(page.locator(".caret-place")).to_have_text("2:12")
    editor(page).fill("SELECT 'open")
    expect(judged(page)).to_contain_text("Line 1, column 8")
    expect(page.locator(".m-error")).to_have_count(1)


@pytest.mark.parametrize("source", SOURCES)
def test_a_write_asks_is_allowed_in_place_and_its_rows_are_put_back(
    visitor: Visitor, page: Page, source: str
) -> None:
    def value() -> object:
        body = {"source": source, "table": "ties", "filters": [equals], "limit": 1}
        rows = answer(visitor.post("data/rows", {**PLACE, **body}))
        return rows["rows"][0][2]

    equals = {"column": "id", "operator": "=", "value": "1", "second": ""}

    open_query(page, source, "UPDATE ties SET b = 'new' WHERE id = 1")
    expect(judged(page)).to_contain_text("changes ties")
    expect(judged(page)).to_contain_text("asks a person")
    page.keyboard.press("Control+Enter")
    question = page.locator(".question")
    expect(question.locator("td.change")).to_have_text("b1 → new")
    button = question.get_by_role("button", name="Allow once")
    button.hover()
    expect(button).to_have_attribute("aria-disabled", "false")
    button.click()
    expect(run_line(page)).to_contain_text("1 row changed")
    assert value() == "new"
    page.get_by_role("button", name="Put these rows back").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("td.change")).to_have_text("new → b1")
    page.keyboard.press("Enter")
    expect(run_line(page)).to_contain_text("The rows were put back")
    assert value() == "b1"


@pytest.mark.parametrize("source", SOURCES)
def test_a_no_changes_nothing(page: Page, source: str) -> None:
    open_query(page, source, "DELETE FROM orders WHERE id = 2")
    page.keyboard.press("Control+Enter")
    page.locator(".question .card-scroll").focus()
    page.keyboard.press("d")
    page.keyboard.type("Keep it.")
    page.keyboard.press("Enter")
    expect(run_line(page)).to_contain_text("Failed")
    editor(page).fill("SELECT count(*) FROM orders")
    page.keyboard.press("Control+Enter")
    expect(cells(page)).to_have_text(["3"])


@pytest.mark.parametrize(("source", "mark"), [("lite", "?"), ("pg", "$1")])
def test_parameters_are_asked_for_and_bound(page: Page, source: str, mark: str) -> None:
    open_query(page, source, "SELECT name FROM customers WHERE id = :wanted")
    # Without a value it does not run at once, as `= ''` may hold for rows that nobody meant.
    wanted = page.get_by_label(":wanted", exact=True)
    expect(wanted).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(wanted).to_be_focused()
    expect(page.locator("#said")).to_contain_text(":wanted has no value yet.")
    page.keyboard.type("2")
    page.keyboard.press("Enter")
    expect(cells(page)).to_have_text(["Hokusai"])
    editor(page).fill(f"SELECT id FROM customers WHERE name = {mark}")
    page.locator(".parameters input").fill("Omar")
    page.keyboard.press("Enter")
    expect(cells(page)).to_have_text(["3"])


@pytest.mark.parametrize("source", SOURCES)
def test_the_plan_is_a_tree(page: Page, source: str) -> None:
    open_query(page, source, "SELECT * FROM orders c JOIN orders o ON o.customer_id = c.id")
    page.keyboard.press("Control+Shift+E")
    steps = page.locator(".plan-tree [role=treeitem]")
    expect(steps.nth(1)).to_be_visible()
    expect(page.locator(".plan-text")).not_to_be_empty()
    assert violations(page) == []
    if source == "pg":
        expect(page.locator(".step.most")).to_have_count(1)
        page.get_by_role("button", name="More").click()
        page.get_by_role("button", name="Explain with measured times").click()
        page.get_by_role("dialog").get_by_role("button", name="Execute and measure").click()
        expect(page.locator(".step.head")).to_contain_text("Time, ms")


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_saved_is_what_is_shown(page: Page, source: str) -> None:
    open_query(page, source, "SELECT id, b, c FROM ties ORDER BY id")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("60 rows")
    saved: dict[str, str] = {}
    for label in ("CSV", "JSON", "JSON lines", "SQL"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save the rows as {label}", exact=True).click()
        saved[label] = Path(download.value.path()).read_text()
    shown = page.locator(".run-panel .grid-row").first.locator(".grid-cell")
    rows = list(csv.DictReader(io.StringIO(saved["CSV"])))
    lines = [json.loads(each) for each in saved["JSON lines"].splitlines()]
    assert len(rows) == len(lines) == len(json.loads(saved["JSON"])) == 60
    expect(shown).to_have_text([rows[0]["id"], rows[0]["b"], rows[0]["c"]])
    assert [str(each["id"]) for each in lines] == [each["id"] for each in rows]
    assert lines[6]["b"] is None
    assert saved["SQL"].count("INSERT INTO") == 60


def test_text_and_result_are_there_after_a_reload_and_the_statement_ran_once(
    page: Page,
) -> None:
    open_query(page, "lite", "SELECT hex(randomblob(8)) AS once")
    page.keyboard.press("Control+Enter")
    expect(cells(page)).to_have_text([re.compile("^[0-9A-F]{16}$")])
    value = cells(page).text_content()
    expect(page.locator(".judged-end")).to_contain_text("Saved")
    page.reload()
    expect(editor(page)).to_have_value("SELECT hex(randomblob(8)) AS once")
    expect(cells(page)).to_have_text([str(value)])


def test_the_history_has_the_operators_own_statements(page: Page) -> None:
    open_query(page, "lite", "SELECT 'a rare word' AS x")
    page.keyboard.press("Control+Enter")
    expect(cells(page)).to_have_count(1)
    page.keyboard.press("Control+Shift+H")
    page.keyboard.type("rare word")
    option = page.get_by_role("dialog").get_by_role("option").first
    expect(option).to_contain_text("SELECT 'a rare word' AS x")


def test_100_000_rows_are_scrolled_to_the_end_by_a_key(page: Page) -> None:
    open_query(page, "pg", "SELECT i, 'row ' || i AS label FROM generate_series(1, 100000) AS t(i)")
    page.get_by_role("button", name="More").click()
    page.get_by_label("Rows at most").select_option("100000")
    page.keyboard.press("Escape")
    editor(page).click()
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("100,000 rows")
    page.locator(".run-panel [role=grid]").focus()
    page.keyboard.press("Control+End")
    expect(cells(page).last).to_have_text("row 100000")


def test_a_text_is_formatted_by_keys_and_undone(page: Page) -> None:
    text = "select id,name from people where id=1 and id<2"
    made = "select id, name\nfrom people\nwhere id=1\n  and id<2"
    area = open_query(page, "lite", text)
    page.keyboard.press("Control+Shift+F")
    expect(area).to_have_value(made)
    expect(page.locator("#said")).to_have_text("The text is formatted.")
    expect(area).to_be_focused()
    page.keyboard.press("Control+z")
    expect(area).to_have_value(text)
    area.fill(f"-- kept   so\n{text}")
    page.keyboard.press("Control+End")
    page.keyboard.press("Shift+Home")
    page.get_by_role("button", name="Format").click()
    expect(area).to_have_value(f"-- kept   so\n{made}")
    page.keyboard.press("Control+Shift+F")
    expect(page.locator("#said")).to_have_text(re.compile("stays as it is"))
    expect(area).to_have_value(f"-- kept   so\n{made}")


DAYS = """SELECT date '2024-01-01' + i AS day, (ARRAY['tea', 'rice', NULL])[i % 3 + 1] AS kind,
  (i * 1.25)::numeric(12, 2) AS amount FROM generate_series(0, 199) AS i"""


def test_rows_are_plotted_changed_saved_and_kept_with_the_tab_by_the_keyboard(
    page: Page, window: Window
) -> None:
    open_query(page, "pg", DAYS)
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("200 rows")
    page.get_by_role("grid", name="Rows").focus()
    page.keyboard.press("c")
    chart = page.get_by_role("slider", name="Chart: choose a mark")
    expect(chart).to_be_focused()
    marks = page.locator(".chart-drawing path")
    expect(marks).to_have_count(3)
    page.keyboard.press("Home")
    said = "day: 2024-01-01, amount: 0.00, kind: tea"
    expect(page.locator(".chart-readout")).to_have_text(said)
    expect(chart).to_have_attribute("aria-valuetext", said)
    how = page.get_by_label("Across: how")
    how.focus()
    how.select_option("yearmonth")
    expect(page.get_by_label("Across: how")).to_be_focused()
    page.get_by_label("Up: how").select_option("sum")
    page.get_by_label("Drawn as").select_option("bar")
    expect(page.locator(".chart-drawing svg > g:nth-of-type(2) rect")).to_have_count(21)
    assert violations(page) == []

    page.get_by_text("As a table").focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("region", name="Chart as a table")
    expect(table.locator("tbody tr")).to_have_count(21)
    expect(table.locator("tbody tr").first).to_have_text("2024-01193.75NULL")
    for kind, begin in (("PNG", b"\x89PNG"), ("SVG", b"<svg "), ("CSV", b"day (by month),Sum")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=f"Save the chart as {kind}").press("Enter")
        assert Path(saved.value.path()).read_bytes().startswith(begin)

    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".chart-drawing text").first).to_have_attribute("fill", "#9ca8b8")
    assert violations(page) == []
    width = "({ scrollWidth, clientWidth }) => scrollWidth - clientWidth"
    assert page.locator(".chart-view").evaluate(width) == 0
    page.keyboard.press("Escape")
    expect(page.get_by_role("grid", name="Rows")).to_be_focused()

    expect(page.locator(".judged-end")).to_contain_text("Saved")
    page.reload()
    page.get_by_role("grid", name="Rows").press("c")
    expect(page.get_by_label("Drawn as")).to_have_value("bar")
    page.get_by_text("As text").press("Enter")
    page.get_by_label("The chart as Vega-Lite").fill('{"mark": "pie", "encoding": {}}')
    page.get_by_role("button", name="Draw it").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("mark must be one of bar, line")
    window.expected.append("400")
