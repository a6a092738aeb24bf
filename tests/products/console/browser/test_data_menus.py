"""What is done in Data by menus, keys and Ctrl K: tabs, tables, values, and the text of a query."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from products.console.support.chromium import Window, violations
from products.console.support.console_site import Site
from products.console.support.query_page import editor, judged, open_query

ORDERS = {"source": "shop", "kind": "table", "schema": "main", "table": "orders"}


def titles(page: Page) -> Locator:
    return page.locator(".tab-title")


def menu_items(page: Page) -> Locator:
    return page.get_by_role("menu").get_by_role("menuitem")


def choose(page: Page, words: str) -> None:
    """Do what Ctrl K finds first by these words."""
    page.keyboard.press("Control+k")
    page.keyboard.type(words)
    page.keyboard.press("Enter")


def test_tabs_are_called_by_what_is_in_them_renamed_and_moved(
    window: Window, site: Site, url: str
) -> None:
    for text in (
        "SELECT * FROM customers JOIN orders ON 1",
        "-- monthly totals\nSELECT 1",
        "WITH x AS (SELECT * FROM t_0001) SELECT 1 FROM x, orders JOIN wide",
    ):
        site.data.open({"source": "shop", "kind": "query", "text": text})
    page = window.tab(f"{url}#/data")
    expect(titles(page)).to_have_text(["customers, orders", "monthly totals", "t_0001, wide"])
    # By keys: the menu, then a name.
    page.get_by_role("tab").nth(2).focus()
    page.keyboard.press("Shift+F10")
    expect(page.get_by_role("menu")).to_be_visible()
    expect(menu_items(page).first).to_be_focused()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(page.get_by_role("tab").nth(2)).to_be_focused()
    page.keyboard.press("F2")
    expect(page.get_by_role("textbox", name="Name")).to_have_value("t_0001, wide")
    page.keyboard.type("Repair")
    page.keyboard.press("Enter")
    expect(titles(page)).to_have_text(["customers, orders", "monthly totals", "Repair"])
    expect(page.get_by_role("tab").nth(2)).to_be_focused()
    # Moved by keys, by the menu and by the mouse.
    page.keyboard.press("Alt+Shift+PageUp")
    expect(titles(page)).to_have_text(["customers, orders", "Repair", "monthly totals"])
    page.get_by_role("tab").nth(0).click(button="right")
    page.keyboard.press("m")
    page.keyboard.press("m")
    expect(page.locator("[role=menuitem]:focus")).to_contain_text("Move right")
    page.keyboard.press("Enter")
    expect(titles(page)).to_have_text(["Repair", "customers, orders", "monthly totals"])
    page.get_by_role("tab", name="monthly totals").hover()
    page.mouse.down()
    first = page.get_by_role("tab", name="Repair").bounding_box()
    assert first
    page.mouse.move(first["x"] + 4, first["y"] + 8, steps=5)
    page.mouse.up()
    expect(titles(page)).to_have_text(["monthly totals", "Repair", "customers, orders"])
    page.reload()
    expect(titles(page)).to_have_text(["monthly totals", "Repair", "customers, orders"])
    # What was not named has a name of the text as it is now.
    page.get_by_role("tab", name="customers, orders").click()
    editor(page).fill("DELETE FROM customers")
    expect(titles(page).nth(2)).to_have_text("delete customers")
    choose(page, "rename the tab")
    page.keyboard.type("Clean up")
    page.keyboard.press("Enter")
    expect(titles(page).nth(2)).to_have_text("Clean up")


def test_tables_and_values_have_menus_by_keys_and_by_the_mouse(
    window: Window, site: Site, url: str
) -> None:
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = window.tab(f"{url}#/data")
    expect(page.locator(".live.on")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("orders")
    expect(page.get_by_role("treeitem").first).to_contain_text("orders")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ContextMenu")
    expect(menu_items(page)).to_have_text(
        [
            "Show the rows",
            "Show the structure",
            "Show the DDL",
            "Change it by a form",
            "Show the diagram",
            "New query here",
            "Copy the name",
        ]
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Structure")).to_have_attribute("aria-pressed", "true")
    choose(page, "rows of orders")
    grid = page.locator(".grid-box:visible")
    expect(grid.locator(".grid-cell").first).to_be_visible()
    grid.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+F10")
    page.keyboard.press("o")
    expect(page.locator("[role=menuitem]:focus")).to_have_text("Only rows with this value")
    page.keyboard.press("Enter")
    site.await_post(
        "data/rows",
        filters=[{"column": "status", "operator": "=", "value": "open", "second": ""}],
    )
    expect(page.locator(".status-line")).to_contain_text("500 rows, all")
    customer = grid.locator(".grid-row[aria-rowindex='3'] [aria-colindex='3']")
    customer.click(button="right")
    page.get_by_role("menuitem", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == customer.inner_text()
    expect(grid).to_be_focused()
    customer.click(button="right")
    page.get_by_role("menuitem", name="Go to customers").click()
    expect(page.get_by_role("tab", name="customers")).to_have_attribute("aria-selected", "true")


def test_text_is_found_and_replaced_by_keys_alone(window: Window, site: Site, url: str) -> None:
    text = "SELECT total, Total, subtotal\nFROM orders -- total"
    page = open_query(window, site, url, text)
    expect(judged(page)).to_contain_text("reads orders")
    page.keyboard.press("Control+f")
    find = page.get_by_label("Find", exact=True)
    expect(find).to_be_focused()
    page.keyboard.type("total")
    count = page.locator(".find-count")
    expect(count).to_have_text("4")
    expect(page.locator(".m-find")).to_have_text(["total", "Total", "total", "total"])
    page.keyboard.press("Enter")
    expect(count).to_have_text("1 of 4")
    expect(page.locator(".m-found")).to_have_text("total")
    page.keyboard.press("Shift+Enter")
    expect(count).to_have_text("4 of 4")
    page.get_by_role("button", name="Words").press("Enter")
    expect(count).to_have_text("3 of 3")
    page.get_by_role("button", name="Case").press("Enter")
    expect(count).to_have_text("2 of 2")
    assert violations(page) == []
    find.focus()
    page.keyboard.press("Control+h")
    expect(page.get_by_label("Replace by")).to_be_focused()
    page.keyboard.type("sum")
    page.keyboard.press("Enter")
    expect(editor(page)).to_have_value("SELECT total, Total, subtotal\nFROM orders -- sum")
    page.get_by_role("button", name="Case").press("Enter")
    page.get_by_role("button", name="Words").press("Enter")
    page.get_by_role("button", name="Replace all").press("Enter")
    expect(editor(page)).to_have_value("SELECT sum, sum, subsum\nFROM orders -- sum")
    expect(page.locator("#said")).to_have_text("3 replaced.")
    page.keyboard.press("Escape")
    expect(editor(page)).to_be_focused()
    expect(page.locator(".m-find")).to_have_count(0)
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(editor(page)).to_have_value(text)
