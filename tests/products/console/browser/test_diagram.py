"""A diagram in Chromium, of a real schema: found, read, moved and saved by keyboard alone."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from products.console.browser.test_real_data import sign_in
from products.console.support.chromium import NARROW, Window, violations
from support.data_desk import Desk, desk
from support.eventually import wait_until

MOST_NODES = 3_000
TABLES, KEYS = 200, 260


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path, ("lite",)) as found:
        yield found


def open_data(window: Window, place: Desk) -> Page:
    page = sign_in(window, place)
    expect(page.locator(".tree-row").first).to_be_visible()
    return page


def change(place: Desk, *statements: str) -> None:
    with closing(sqlite3.connect(place.directory / "lite.db")) as connection, connection:
        for each in statements:
            connection.execute(each)


def sheet(page: Page) -> Locator:
    return page.locator(".tab-panel:not([hidden]) .diagram-sheet")


def drawn(page: Page) -> None:
    expect(page.locator(".tab-panel:not([hidden]) [data-drawn=all]")).to_be_visible()


def places(page: Page) -> dict[str, str]:
    """Where each table stands that is drawn, by its name."""
    drawn(page)
    found: list[Any] = page.evaluate(
        """() => [...document.querySelectorAll(".scene .box")].map((box) =>
            [box.querySelector(".name").textContent, box.getAttribute("transform")])"""
    )
    return dict(found)


def open_diagram(page: Page) -> None:
    page.get_by_role("button", name="New tab of another kind").press("Enter")
    expect(page.get_by_label("Schema")).to_have_value("main")
    page.get_by_label("Schema").press("Enter")
    page.get_by_role("button", name="Open").press("Enter")
    expect(page.locator(".tab[aria-selected=true]")).to_contain_text("Diagram of main")


def saved_file(page: Page, kind: str) -> bytes:
    page.locator(".tab-panel:not([hidden])").get_by_role("button", name="Export").press("Enter")
    with page.expect_download() as saved:
        page.get_by_role("button", name=kind, exact=True).press("Enter")
    return Path(saved.value.path()).read_bytes()


def test_a_schema_is_drawn_moved_kept_and_saved_by_keyboard(place: Desk, window: Window) -> None:
    change(place, "CREATE TABLE visits (id INTEGER PRIMARY KEY, customer_id INTEGER)")
    page = open_data(window, place)
    open_diagram(page)
    before = places(page)
    assert {"orders", "customers", "visits", "ties"} <= set(before)
    expect(page.locator(".scene .wire")).to_have_count(2)
    expect(page.locator(".scene .wire.guessed")).to_have_count(1)
    assert violations(page) == []

    search = page.get_by_label("Search the tables and columns of the diagram")
    search.fill("orders")
    search.press("Enter")
    expect(page.locator(".scene .chosen .name")).to_contain_text("orders")
    sheet(page).focus()
    page.keyboard.press("n")
    expect(page.locator(".scene .chosen .name")).to_contain_text("customers")
    page.keyboard.press("Space")
    panel = page.get_by_role("complementary", name="Table customers")
    expect(panel).to_be_focused()
    expect(panel).to_contain_text("orders by customer_id")
    expect(panel).to_contain_text("email masked")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(sheet(page)).to_be_focused()
    page.keyboard.press("Shift+ArrowDown")
    moved = places(page)
    assert moved["customers"] != before["customers"]
    assert {**moved, "customers": ""} == {**before, "customers": ""}

    change(
        place, "CREATE TABLE parcels (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders)"
    )
    page.get_by_role("button", name="Read the tables again").press("Enter")
    expect(page.locator(".scene .name", has_text="parcels")).to_have_count(1)
    after = places(page)
    assert {name: after[name] for name in moved} == moved

    wait_until(lambda: "parcels" in tab_text(place, page), "the places on the server")
    page.reload()
    expect(page.locator(".scene .name", has_text="parcels")).to_have_count(1)
    assert places(page) == after

    svg = saved_file(page, "SVG").decode()
    assert svg.startswith("<svg ") and ">customers</text>" in svg and "stroke-dasharray" in svg
    assert saved_file(page, "PNG").startswith(b"\x89PNG")
    mermaid = saved_file(page, "Mermaid").decode()
    assert '"customers" ||--o{ "orders" : "customer_id"' in mermaid
    assert '"customers" ||..o{ "visits" : "customer_id (guessed)"' in mermaid
    page.get_by_label("All columns").press("Space")
    expect(page.locator(".scene .column", has_text="placed_at")).to_have_count(1)
    assert "Ada" not in page.content()


def tab_text(place: Desk, page: Page) -> str:
    """What the server keeps with the tab in front."""
    tab = re.search(r"tab=([\w-]+)", page.url)
    assert tab
    visitor = place.visitor()
    tabs = visitor.get("data/tabs").json()["tabs"]
    visitor.client.close()
    return str(next(each["text"] for each in tabs if each["id"] == tab[1]))


def test_many_tables_are_drawn_within_few_nodes(place: Desk, window: Window) -> None:
    statements: list[str] = []
    for number in range(TABLES):
        keys = [(number * 7 + step * 13) % TABLES for step in range(1 + (number < KEYS - TABLES))]
        columns = [f"k{at} INTEGER REFERENCES t_{key:03} (id)" for at, key in enumerate(keys)]
        columns += [f"column_{at} TEXT" for at in range(12)]
        statements.append(
            f"CREATE TABLE t_{number:03} (id INTEGER PRIMARY KEY, {', '.join(columns)})"
        )
    change(place, *statements)
    page = open_data(window, place)
    page.set_viewport_size(NARROW)
    open_diagram(page)
    drawn(page)
    assert page.locator(".scene .box").count() >= TABLES
    page.get_by_label("All columns").press("Space")
    sheet(page).focus()
    for key in ("+", "+", "+", "+", "Control+ArrowRight", "+", "+", "+", "0"):
        page.keyboard.press(key)
        drawn(page)
        count = page.evaluate("document.querySelectorAll('*').length")
        assert count <= MOST_NODES, (key, count)
    page.keyboard.press("ArrowDown")
    expect(page.locator(".scene .chosen")).not_to_have_count(0)
    assert violations(page) == []


def test_of_too_many_tables_a_person_chooses(place: Desk, window: Window) -> None:
    change(place, *(f"CREATE TABLE t_{n:03} (id INTEGER PRIMARY KEY)" for n in range(300)))
    page = open_data(window, place)
    open_diagram(page)
    names = page.get_by_label("Search the names")
    names.fill("r")
    page.get_by_role("button", name="Choose all that match").press("Enter")
    assert violations(page) == []
    page.get_by_role("button", name=re.compile("^Draw")).press("Enter")
    assert {"orders", "customers"} <= set(places(page))
    assert not any(name.startswith("t_") for name in places(page))
