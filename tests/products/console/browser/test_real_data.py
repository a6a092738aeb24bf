"""Data of a real server in Chromium: one small shop in SQLite and in PostgreSQL."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from products.console.support.chromium import Window, violations
from support.data_desk import LONG, PASSPHRASE, Desk, desk
from wire.wires import MODERN, HttpPeer

MANY = 1_200
TABLE = {"lite": "main", "pg": "public"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path, ("lite", "pg"), serves=("--surface", "workbench")) as found:
        yield found


def sign_in(window: Window, place: Desk, name: str = "ada", path: str = "#/data") -> Page:
    window.expected = ["401"]
    page = window.tab(f"{place.address}/console{path}")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.locator(".live.on")).to_be_visible()
    page.evaluate(f"location.hash = {path!r}")
    return page


def front(page: Page) -> Locator:
    return page.locator(".tab-panel:not([hidden])")


def rows(page: Page) -> list[list[str]]:
    """The rows that the grid in front has as nodes."""
    return [
        each.locator("[role=gridcell]").all_inner_texts()
        for each in front(page).locator(".grid-row").all()
    ]


def shows(page: Page, name: str, status: str) -> None:
    expect(front(page).locator(".table-title h2")).to_have_text(re.compile(rf"\b{name}$"))
    expect(front(page).locator(".status-line")).to_contain_text(status)


@pytest.mark.parametrize("source", ["lite", "pg"])
def test_a_shop_is_found_read_followed_and_exported(
    place: Desk, window: Window, source: str
) -> None:
    page = sign_in(window, place)
    expect(page.locator(".tree-row").first).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("#tree-search")).to_be_focused()
    page.keyboard.type("customer_id")
    match = page.locator(".is-match").filter(has_text=source).filter(has_text="orders.customer_id")
    match.click()
    shows(page, "orders", "3 rows, all")
    expect(front(page).locator(".follows")).to_have_count(3)
    found = rows(page)
    assert [each[:2] for each in found] == [["1", "1"], ["2", "1"], ["3", "2"]]
    assert found[1][-1] == "NULL"
    assert violations(page) == []
    front(page).get_by_role("columnheader", name="total").click()
    expect(front(page).locator(".order-note")).to_contain_text("by total")
    expect(front(page).locator(".grid-cell.unloaded")).to_have_count(0)
    assert sorted(rows(page)) == sorted(found)
    cut = front(page).locator(".grid-cell", has_text="long long")
    cut.click()
    page.keyboard.press("Enter")
    expect(front(page).locator(".cell-panel .value")).to_have_text(LONG.strip())
    page.keyboard.press("Escape")
    front(page).locator(".grid-row").filter(has_text="80").locator(".follow").click()
    shows(page, "customers", "1 row, all")
    assert rows(page) == [["1", "Ada", "NULL", "London"]]
    expect(front(page).locator(".is-masked")).to_have_count(1)
    front(page).get_by_role("button", name="Export").click()
    with page.expect_download() as saved:
        front(page).get_by_role("button", name="JSON lines").click()
    (line,) = Path(saved.value.path()).read_text().splitlines()
    assert json.loads(line) == {"id": 1, "name": "Ada", "email": None, "city": "London"}
    front(page).get_by_role("button", name="Structure").click()
    expect(front(page).locator(".structure")).to_contain_text("orders (customer_id)")
    front(page).get_by_role("button", name="Show what the columns hold").press("Enter")
    expect(front(page).locator(".figures-bar")).to_contain_text("Of all 3 rows.")
    city = front(page).get_by_role("row", name="city")
    expect(city).to_contain_text("33 %")
    expect(city.locator(".value-bars li")).to_have_count(2)
    expect(front(page).get_by_role("row", name="email").locator(".share-bar")).to_have_count(0)
    assert violations(page) == []
    front(page).get_by_role("button", name="DDL").click()
    expect(front(page).locator(".statement .t-keyword").first).to_have_text("CREATE")
    assert violations(page) == []


def test_conditions_are_bound_with_the_type_of_their_column(place: Desk, window: Window) -> None:
    page = sign_in(window, place, path="#/data?source=pg&schema=public&table=ties")
    shows(page, "ties", "60 rows, all")
    front(page).get_by_role("button", name="Filter").click()
    column = front(page).get_by_label("Column of condition 1")
    operator = front(page).get_by_label("Operator of condition 1")
    value = front(page).get_by_label("Value of condition 1", exact=True)
    for name, test, text, count in (
        ("b", "starts with", "b1", 13),
        ("b", "in", "b1, b2", 26),
        ("a", "is null", None, 12),
        ("id", ">=", "58", 3),
        ("d", "<", "2026-01-02 00:00:00", 6),
        ("e", "=", "7.25", 6),
    ):
        column.select_option(name)
        operator.select_option(test)
        if text is not None:
            value.fill(text)
        front(page).get_by_role("button", name="Apply").click()
        shows(page, "ties", f"{count} rows, all")
    column.select_option("id")
    operator.select_option("=")
    value.fill("no number")
    window.expected += ["400", "422", "500"]
    front(page).get_by_role("button", name="Apply").click()
    expect(front(page).locator(".rows-error")).to_contain_text("no number")
    assert violations(page) == []


def test_many_tables_are_searched_and_many_rows_scrolled(place: Desk, window: Window) -> None:
    with closing(sqlite3.connect(place.directory / "lite.db")) as connection, connection:
        for number in range(MANY):
            connection.execute(
                f"CREATE TABLE t_{number:04} (id INTEGER PRIMARY KEY, n{number} TEXT)"
            )
        connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, word TEXT)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
            " INSERT INTO big SELECT i, 'word ' || i FROM n"
        )
    page = sign_in(window, place)
    expect(page.locator(".tree-row")).to_have_count(2)
    page.keyboard.press("/")
    expect(page.locator("#tree-search")).to_be_focused()
    page.keyboard.type("n1199")
    expect(page.locator(".is-match")).to_contain_text("t_1199.n1199")
    page.locator("#tree-search").fill("big")
    page.locator(".is-match", has_text=re.compile("^big\\s*lite")).click()
    shows(page, "big", "rows so far")
    page.locator(".grid-box").focus()
    while ", all" not in front(page).locator(".status-line").inner_text():
        page.keyboard.press("Control+End")
        page.evaluate("new Promise(requestAnimationFrame)")
    page.keyboard.press("Control+End")
    expect(front(page).locator(".grid-row").last).to_contain_text("word 20000")
    page.keyboard.press("Control+Home")
    expect(front(page).locator(".grid-row").first).to_contain_text("word 1")
    front(page).get_by_role("columnheader", name="word").click()
    expect(front(page).locator(".row-warning")).to_contain_text("index")


def agent(place: Desk) -> HttpPeer:
    words = ["token", "create", "bot", "--scope", "readWrite", "--owner", "ada"]
    ended = place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    assert ended.status == 0, ended.err
    peer = HttpPeer(int(place.address.rpartition(":")[2]), MODERN, capabilities={})
    peer.token = ended.out.strip()
    return peer


def test_an_agent_opens_a_table_before_the_eyes_of_its_owner_alone(
    place: Desk, window: Window, open_window: Any
) -> None:
    page = sign_in(window, place)
    window.expected += ["404"]  # a tab is closed before it was said that it is in front
    expect(page.locator(".tree-row")).to_have_count(2)
    other = sign_in(open_window(), place, "vera")
    expect(other.locator(".tree-row")).to_have_count(2)
    bot = agent(place)
    listed = bot.call("list_connections", {}).result["structuredContent"]["connections"]
    (id,) = [each["id"] for each in listed if each["name"] == "lite"]
    opened = bot.call("open_table_tab", {"connection_id": id, "table_name": "orders"})
    assert "result" in opened.response, opened.text
    shows(page, "orders", "3 rows, all")
    expect(page.get_by_role("tab", selected=True)).to_contain_text("opened by")
    page.evaluate("location.hash = '#/inbox'")
    expect(page.locator(".list")).to_be_visible()
    expect(other.get_by_role("tab")).to_have_count(0)
    page.evaluate("location.hash = '#/data'")
    shows(page, "orders", "3 rows, all")
    page.keyboard.press("Alt+w")
    expect(page.get_by_role("tab", name="orders")).to_have_count(0)
    page.keyboard.press("Alt+Shift+W")
    shows(page, "orders", "3 rows, all")


def test_a_viewer_of_one_source_sees_that_source_alone(place: Desk, window: Window) -> None:
    page = sign_in(window, place, "lee")
    expect(page.locator(".is-source")).to_have_text(re.compile("^lite"))
    page.keyboard.press("/")
    expect(page.locator("#tree-search")).to_be_focused()
    page.keyboard.type("orders")
    expect(page.locator(".is-match").first).to_contain_text("lite")
    expect(page.locator(".is-match").filter(has_text="pg")).to_have_count(0)
    window.expected += ["403"]
    page.evaluate("location.hash = '#/data?source=pg&schema=public&table=orders'")
    expect(page.locator(".data-main > .error")).to_be_visible()
    expect(page.get_by_role("tab")).to_have_count(0)
