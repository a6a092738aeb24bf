"""Data in Chromium: the tree, the tabs, the page of a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from products.console.support import console_cards as canned
from products.console.support.chromium import NARROW, Window, violations
from products.console.support.console_data import MANY, source
from products.console.support.console_site import Site

H = canned.HOSTILE
MOST_NODES = 2_000
CUSTOMERS = {"source": "shop", "kind": "table", "schema": "main", "table": "customers"}
ORDERS = {**CUSTOMERS, "table": "orders"}
QUERY = {"source": "crm", "kind": "query", "schema": "public", "title": "Deals", "text": ""}
TREE = "#data-tree"


def item(page: Page, name: str) -> Locator:
    exactly = page.locator(".tree-name bdi").get_by_text(name, exact=True)
    return page.locator(".tree-row").filter(has=exactly)


def cell(page: Page, row: int, column: int) -> Locator:
    """A cell of the grid in front, by numbers from 1."""
    rows = page.locator(f".tab-panel:not([hidden]) .grid-row[aria-rowindex='{row + 1}']")
    return rows.locator(f"[aria-colindex='{column + 1}']")


def shows_table(page: Page, name: str) -> None:
    expect(page.locator(".tab-panel:not([hidden]) .table-title h2")).to_have_text(f"main.{name}")


# Tree and search


def test_the_tree_opens_sources_schemas_and_tables_and_few_of_many_are_nodes(
    window: Window, url: str
) -> None:
    page = window.tab(f"{url}#/data")
    expect(page.locator(".tree-row")).to_have_count(3)
    item(page, "shop").click()
    expect(item(page, "t_0005")).to_be_visible()
    assert page.locator(".tree-row").count() < 80
    for first in range(200, MANY, 200):
        page.locator(TREE).evaluate("tree => tree.scrollTop = tree.scrollHeight")
        page.locator(f".is-table[aria-posinset='{first + 1}']").wait_for(state="attached")
    page.locator(TREE).evaluate("tree => tree.scrollTop = tree.scrollHeight")
    expect(item(page, f"t_{MANY - 1:04}")).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") < MOST_NODES
    page.locator(TREE).evaluate("tree => tree.scrollTop = 0")
    item(page, "shop").click()
    item(page, "crm").click()
    expect(item(page, "deals")).to_be_visible()
    expect(item(page, "log")).to_have_count(0)
    item(page, "audit").click()
    expect(item(page, "log")).to_have_attribute("aria-level", "3")


def test_the_tree_is_used_by_keys_alone(window: Window, url: str) -> None:
    page = window.tab(f"{url}#/data")
    expect(page.locator(".tree-row")).to_have_count(3)
    page.locator(TREE).focus()

    def current() -> str:
        return page.evaluate(
            f"""document.getElementById(document.querySelector({TREE!r})
                .getAttribute('aria-activedescendant'))?.querySelector('.tree-name')?.textContent"""
        )

    assert current() == "shop"
    page.keyboard.press("ArrowDown")
    assert current() == "crm"
    page.keyboard.press("ArrowRight")
    expect(item(page, "public")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowRight")
    assert current() == "public"
    expect(item(page, "deals")).to_be_visible()
    page.keyboard.type("de")
    assert current() == "deals"
    page.keyboard.press("ArrowLeft")
    assert current() == "public"
    page.keyboard.press("ArrowLeft")
    expect(item(page, "public")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("End")
    assert current() == "lake"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(item(page, "contacts")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("[role=tab][aria-selected=true]")).to_contain_text("contacts")
    expect(page.locator(".tab-panel")).to_be_focused()
    expect(cell(page, 2, 1)).to_have_text("2")
    for _ in range(9):  # the buttons of the table come before its rows
        page.keyboard.press("Tab")
    expect(page.locator(".grid-box")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(cell(page, 2, 1)).to_have_class(re.compile("active"))


def test_a_slash_searches_all_sources_and_says_which_it_could_not_read(
    window: Window, url: str
) -> None:
    page = window.tab(f"{url}#/data")
    expect(page.locator(".tree-row")).to_have_count(3)
    page.keyboard.press("/")
    page.keyboard.type("customer")
    expect(page.locator(".is-match")).to_have_text(["customersshop", "orders.customershop"])
    expect(page.locator(".is-note")).to_have_text(
        "lake was not searched: The file is locked by another process."
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    shows_table(page, "orders")
    expect(page.locator(".tab-panel:not([hidden])")).to_be_focused()
    page.keyboard.press("/")
    search = page.locator("input[type=search]").first
    expect(search).to_be_focused()
    search.fill("no such name")
    expect(page.locator(".is-note").first).to_contain_text("No table or column")
    page.keyboard.press("ArrowDown")
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".is-source")).to_have_count(3)


def test_a_source_that_cannot_be_read_says_why(window: Window, site: Site, url: str) -> None:
    site.data.sources.append(
        source("vault", 2, may={"read": False, "write": False, "why_not": "You have no role here."})
    )
    window.expected = ["503"]
    page = window.tab(f"{url}#/data")
    item(page, "lake").click()
    expect(page.locator(".is-note")).to_have_text(
        "The file is locked by another process. Close the other process."
    )
    item(page, "vault").click()
    expect(page.locator(".is-note").nth(1)).to_have_text("You have no role here.")


def test_ctrl_k_goes_to_a_table(window: Window, site: Site, url: str) -> None:
    page = window.tab(url)
    expect(page.locator(".live.on")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("t_0777")
    expect(page.get_by_role("option")).to_have_text("t_0777on shop")
    page.keyboard.press("Enter")
    shows_table(page, "t_0777")
    expect(page).to_have_url(re.compile("#/data\\?tab=tab-1$"))


# Tabs


def test_tabs_are_opened_once_closed_and_opened_again(window: Window, site: Site, url: str) -> None:
    page = window.tab(f"{url}#/data?source=shop&schema=main&table=orders")
    shows_table(page, "orders")
    page.goto(f"{url}#/data?source=shop&schema=main&table=customers")
    shows_table(page, "customers")
    page.goto(f"{url}#/data?source=shop&schema=main&table=orders")
    shows_table(page, "orders")
    tabs = page.get_by_role("tab")
    expect(tabs).to_have_count(2)
    page.keyboard.press("Alt+PageDown")
    shows_table(page, "customers")
    page.keyboard.press("Alt+w")
    expect(tabs).to_have_count(1)
    shows_table(page, "orders")
    page.keyboard.press("Alt+Shift+W")
    expect(tabs).to_have_count(2)
    shows_table(page, "customers")
    tabs.nth(1).focus()
    page.keyboard.press("ArrowLeft")
    expect(tabs.nth(0)).to_be_focused()
    page.keyboard.press("Delete")
    expect(tabs).to_have_count(1)
    expect(tabs.nth(0)).to_be_focused()
    page.locator(".tab-close").click()
    expect(page.get_by_role("heading", name="Open a table")).to_be_visible()
    assert list(site.data.tabs) == []
    page.reload()
    expect(page.get_by_role("heading", name="Open a table")).to_be_visible()


def test_a_new_query_on_a_source_is_written_at_once(window: Window, site: Site, url: str) -> None:
    site.data.open(CUSTOMERS)
    page = window.tab(f"{url}#/data")
    shows_table(page, "customers")
    page.get_by_role("button", name="New query").press("Enter")
    page.locator(".query-menu").get_by_role("button", name="crm").click()
    expect(page.get_by_role("tab", selected=True)).to_contain_text("crm")
    expect(page.locator(".tab-panel:not([hidden]) textarea")).to_be_focused()
    page.keyboard.type("SELECT 1")
    expect(page.locator(".tab-panel:not([hidden]) textarea")).to_have_value("SELECT 1")


def test_what_was_chosen_in_a_tab_stays_while_another_is_in_front(
    window: Window, site: Site, url: str
) -> None:
    site.data.open(CUSTOMERS)
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data?tab=tab-2")
    page.get_by_role("columnheader", name="status").click()
    expect(cell(page, 1, 3)).to_have_text("open")
    page.locator(".grid-box").evaluate("box => box.scrollTop = 2800")
    expect(cell(page, 105, 1)).to_be_visible()
    page.get_by_role("tab", name="customers").click()
    expect(cell(page, 1, 2)).to_have_text("Ada Lovelace")
    page.get_by_role("tab", name="orders").click()
    expect(cell(page, 105, 1)).to_be_visible()
    page.evaluate("location.hash = '#/inbox'")
    expect(page.locator(".list")).to_be_visible()
    page.evaluate("location.hash = '#/data'")
    expect(page.get_by_role("columnheader", name="status")).to_have_attribute(
        "aria-sort", "ascending"
    )


def test_a_tab_of_an_agent_is_shown_at_once_and_leaves_the_focus_where_it_is(
    window: Window, site: Site, url: str
) -> None:
    site.data.open(CUSTOMERS)
    page = window.tab(f"{url}#/data")
    shows_table(page, "customers")
    expect(page.locator(".live.on")).to_be_visible()
    page.locator("#tree-search").focus()
    site.data.open(ORDERS, by="claude-code")
    shows_table(page, "orders")
    expect(page.locator("#tree-search")).to_be_focused()
    tab = page.get_by_role("tab", selected=True)
    expect(tab).to_contain_text("opened by claude-code")
    expect(page.locator(".bar")).to_have_count(0)
    site.data.close("tab-2", by="claude-code")
    shows_table(page, "customers")


def test_a_tab_of_an_agent_takes_nothing_out_of_someones_hands(
    window: Window, site: Site, url: str
) -> None:
    site.data.open(CUSTOMERS)
    page = window.tab(f"{url}#/data")
    shows_table(page, "customers")
    expect(page.locator(".live.on")).to_be_visible()
    page.locator(".grid-box").focus()
    page.keyboard.press("ArrowDown")
    site.data.open(ORDERS, by="claude-code")
    notice = page.get_by_role("status").filter(has_text="claude-code opened orders on shop")
    expect(notice).to_be_visible()
    shows_table(page, "customers")
    expect(page.locator(".grid-box")).to_be_focused()
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)
    page.locator(".grid-box").focus()
    page.keyboard.press("ArrowDown")
    site.data.focus("tab-2", by="claude-code")
    notice = page.get_by_role("status").filter(has_text="claude-code went to orders on shop")
    notice.get_by_role("button", name="Show").click()
    shows_table(page, "orders")
    expect(notice).to_have_count(0)


def test_a_tab_of_an_agent_never_takes_the_place_of_the_inbox(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    expect(page.locator(".live.on")).to_be_visible()
    expect(page.locator("#card-title")).to_be_visible()
    site.data.open(ORDERS, by="claude-code")
    notice = page.get_by_role("status").filter(has_text="claude-code opened orders on shop")
    expect(notice).to_be_visible()
    expect(page.locator("#card-title")).to_be_visible()
    notice.get_by_role("button", name="Show").click()
    shows_table(page, "orders")


def test_eight_browser_tabs_hear_of_the_same_tabs(window: Window, site: Site, url: str) -> None:
    site.data.open(CUSTOMERS)
    pages = [window.tab(f"{url}#/data?tab=tab-1") for _ in range(8)]
    for page in pages:
        expect(page.locator(".live.on")).to_be_visible()
        shows_table(page, "customers")
    pages[0].evaluate("location.hash = '#/data?source=shop&schema=main&table=orders'")
    shows_table(pages[0], "orders")
    for page in pages[1:]:
        expect(page.get_by_role("tab")).to_have_count(2)
        shows_table(page, "customers")
    pages[3].evaluate("location.hash = '#/data?tab=tab-2'")
    shows_table(pages[3], "orders")
    pages[3].bring_to_front()
    pages[3].keyboard.press("Alt+w")
    for page in pages:
        expect(page.get_by_role("tab")).to_have_count(1)
        shows_table(page, "customers")
    assert site.most_streams == 1


# The page of a table


def test_rows_are_sorted_by_click_and_by_key_and_scroll_on_without_pages(
    window: Window, site: Site, url: str
) -> None:
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    expect(cell(page, 1, 1)).to_have_text("1")
    page.get_by_role("columnheader", name="total").click()
    expect(page.locator(".order-note")).to_contain_text("by total")
    expect(cell(page, 1, 4)).to_have_text("0.00")
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name="total")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(cell(page, 1, 4)).to_have_text(re.compile("^89"))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+Enter")
    sort = [{"column": "total", "direction": "desc"}, {"column": "status", "direction": "asc"}]
    expect(page.locator(".order-note")).to_have_text("by total descending, status")
    site.await_post("data/rows", sort=sort)
    page.get_by_role("button", name="Do not sort").click()
    expect(page.locator(".order-note")).to_have_count(0)
    page.locator(".grid-box").focus()
    page.keyboard.press("Control+End")
    for _ in range(4):
        expect(page.locator(".grid-cell.unloaded")).to_have_count(0)
        page.keyboard.press("Control+End")
    expect(page.locator(".status-line")).to_contain_text("2,000 rows, all")
    page.keyboard.press("Control+End")
    expect(cell(page, 2000, 1)).to_have_text("2000")
    expect(page.locator(".grid-box")).to_have_attribute("aria-rowcount", "2001")


def test_conditions_narrow_the_rows_and_can_be_counted(
    window: Window, site: Site, url: str
) -> None:
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    expect(cell(page, 1, 1)).to_have_text("1")
    expect(page.locator(".status-line")).to_contain_text("about 2,000 in all")
    page.get_by_role("button", name="Count").click()
    expect(page.locator(".status-line")).to_contain_text("2,000 rows")
    page.get_by_role("button", name="Filter").click()
    page.get_by_label("Column of condition 1").select_option("status")
    operators = page.get_by_label("Operator of condition 1")
    expect(operators.locator("option")).to_contain_text(["is", "is not", "contains"])
    page.get_by_label("Value of condition 1", exact=True).fill("shipped")
    page.get_by_label("Value of condition 1", exact=True).press("Enter")
    expect(cell(page, 1, 1)).to_have_text("3")
    expect(page.locator(".status-line")).to_contain_text("500 rows, all")
    page.get_by_role("button", name="Condition", exact=True).click()
    page.get_by_label("Column of condition 2").select_option("id")
    page.get_by_label("Operator of condition 2").select_option("between")
    page.get_by_label("Value of condition 2", exact=True).fill("1")
    page.get_by_label("Second value of condition 2").fill("9")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("button", name="Filter (2)")).to_be_visible()
    filters = [
        {"column": "status", "operator": "=", "value": "shipped", "second": ""},
        {"column": "id", "operator": "between", "value": "1", "second": "9"},
    ]
    site.await_post("data/rows", filters=filters)
    page.get_by_role("button", name="Show all rows").click()
    expect(page.locator(".conditions")).to_have_count(0)
    expect(cell(page, 2, 1)).to_have_text("2")


def test_a_table_under_a_row_filter_says_that_rows_may_be_hidden(
    window: Window, site: Site, url: str
) -> None:
    site.data.tables["shop", "main"]["customers"].facts["filtered"] = True
    site.data.open(CUSTOMERS)
    page = window.tab(f"{url}#/data")
    expect(page.locator(".filter-note")).to_have_text(
        "A row filter of the source may hide rows from you."
    )
    expect(page.locator(".status-line [role=status]")).to_have_text("500 rows")


def test_a_click_counts_though_the_rows_come_again_while_the_button_is_down(
    window: Window, site: Site, url: str
) -> None:
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    cell(page, 7, 2).locator(".follow").hover()
    page.mouse.down()
    shown = site.data.tables["shop", "main"]["orders"]
    before = shown.row
    shown.row = lambda n: [*before(n)[:2], "now", *before(n)[3:]]
    page.evaluate("document.querySelector('[title=\"Read the rows again\"]').click()")
    expect(cell(page, 7, 3)).to_have_text("now")
    page.mouse.up()
    shows_table(page, "customers")


def test_a_foreign_key_is_followed_there_and_back(window: Window, site: Site, url: str) -> None:
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    cell(page, 7, 2).locator(".follow").click()
    shows_table(page, "customers")
    expect(page.locator(".status-line:visible")).to_contain_text("1 row, all")
    expect(cell(page, 1, 1)).to_have_text("7")
    page.locator(".grid-box:visible").focus()
    page.keyboard.press("Enter")
    panel = page.locator(".cell-panel:visible")
    panel.get_by_role("button", name="orders where customer = 7").click()
    shows_table(page, "orders")
    expect(page.locator(".status-line:visible")).to_contain_text("4 rows, all")
    expect(page.get_by_role("tab")).to_have_count(2)
    page.go_back()
    shows_table(page, "customers")
    page.go_back()
    page.locator(".grid-box:visible").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Control+Enter")
    shows_table(page, "customers")


def test_masked_columns_are_shown_as_such_and_neither_sorted_nor_filtered(
    window: Window, site: Site, url: str
) -> None:
    site.data.open(CUSTOMERS)
    page = window.tab(f"{url}#/data")
    expect(cell(page, 1, 3)).to_have_class(re.compile("is-masked"))
    head = page.get_by_role("columnheader", name="email")
    expect(head).to_contain_text("masked")
    asked = len(site.posted("data/rows"))
    head.click()
    expect(page.locator("#said")).to_have_text("A masked column cannot be sorted.")
    assert len(site.posted("data/rows")) == asked
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_label("Column of condition 1").locator("option")).to_have_text(
        ["id", "name", "settings", "created_at"]
    )
    cell(page, 1, 3).dblclick()
    expect(page.locator(".cell-panel .tag")).to_contain_text("masked")
    expect(page.get_by_role("button", name="Only rows with this value")).to_have_count(0)


def test_structure_and_definition_are_shown_and_lead_on(
    window: Window, site: Site, url: str
) -> None:
    site.data.tables["shop", "main"]["orders"].columns[0]["type_definition"] = "enum('new')"
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    page.get_by_role("button", name="Structure").click()
    facts = page.locator(".structure")
    for text in ("enum('new')", "DECIMAL(10,2)", "orders_pkey", "orders_touch", "key 1"):
        expect(facts).to_contain_text(text)
    page.get_by_role("button", name="DDL").click()
    expect(page.locator(".definition .statement")).to_contain_text("CREATE TABLE orders (")
    page.get_by_role("button", name="Structure").click()
    facts.get_by_role("button", name="customers (id)").click()
    shows_table(page, "customers")


def test_a_value_is_shown_whole_and_json_is_printed_in_lines(
    window: Window, site: Site, url: str
) -> None:
    table = site.data.tables["shop", "main"]["customers"]
    old = table.row
    cut = {"text": "y" * 4_096, "bytes": 6_000_000, "cut": True}
    table.row = lambda n: [*old(n)[:4], cut] if n == 1 else old(n)
    site.data.whole = "y" * 5_000_003
    site.data.open(CUSTOMERS)
    page = window.tab(f"{url}#/data")
    cell(page, 1, 4).dblclick()
    value = page.locator(".cell-panel .value")
    expect(value).to_have_text('{\n  "vip": true,\n  "tags": [\n    "a",\n    "b"\n  ]\n}')
    page.locator(".grid-box").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    expect(page.locator(".cell-panel")).to_contain_text("Cut after 5,000,000 characters.")
    assert value.evaluate("node => node.textContent.length") == 5_000_000
    asked = site.posted("data/cell")[-1]
    assert (asked["key"], asked["column"]) == ({"id": "2"}, "created_at")
    page.locator(".cell-panel").press("Escape")
    expect(page.locator(".cell-panel")).to_have_count(0)
    expect(page.locator(".grid-box")).to_be_focused()


def test_rows_are_exported_by_a_ticket_with_conditions_and_order(
    window: Window, site: Site, url: str
) -> None:
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    page.get_by_role("columnheader", name="status").click()
    expect(page.locator(".order-note")).to_contain_text("status")
    page.get_by_role("button", name="Export").click()
    with page.expect_download():
        page.get_by_role("button", name="JSON lines").click()
    assert site.posted("data/export-ticket") == [
        {
            "source": "shop",
            "database": None,
            "schema": "main",
            "table": "orders",
            "filters": [],
            "logic": "and",
            "sort": [{"column": "status", "direction": "asc"}],
            "format": "jsonl",
        }
    ]
    assert site.posted("export") == [{"ticket": "data-jsonl"}]
    site.data.lacks = ("cut after 2 rows, the limit: there are more",)
    page.get_by_role("button", name="Export").click()
    with page.expect_download():
        page.get_by_role("button", name="CSV").click()
    said = page.locator(".save-state.warning")
    expect(said).to_have_text(
        "orders.first-2-rows.csv: cut after 2 rows, the limit: there are more."
    )


def test_errors_say_what_happened_and_one_thing_to_do(window: Window, site: Site, url: str) -> None:
    error = {"error": "source.timeout", "message": "It took too long.", "hint": "Add a condition."}
    site.refusals["data/rows"] = (504, error)
    site.data.open(ORDERS)
    window.expected = ["504"]
    page = window.tab(f"{url}#/data")
    alert = page.locator(".rows-error")
    expect(alert).to_contain_text("source.timeout")
    expect(alert).to_contain_text("It took too long.")
    expect(alert).to_contain_text("Add a condition.")
    site.refusals.clear()
    site.data.warnings = ["No index helps this order: it reads all rows."]
    alert.get_by_role("button", name="Try again").click()
    expect(cell(page, 1, 1)).to_have_text("1")
    expect(alert).to_have_count(0)
    expect(page.locator(".row-warning")).to_contain_text("No index helps this order")


def test_an_empty_table_says_so(window: Window, site: Site, url: str) -> None:
    site.data.tables["shop", "main"]["orders"].count = 0
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    expect(page.locator(".no-rows")).to_have_text("The table has no rows.")
    assert violations(page) == []


# Looks, and texts of others


def test_at_360_pixels_the_tree_is_a_drawer(open_window: Callable[..., Window], url: str) -> None:
    window = open_window(viewport=NARROW)
    page = window.tab(f"{url}#/data")
    expect(page.locator(".data-side")).to_be_hidden()
    page.get_by_role("button", name="Tables").click()
    expect(page.locator("#tree-search")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".data-side")).to_be_hidden()
    page.get_by_role("button", name="Tables").click()
    item(page, "shop").click()
    item(page, "customers").click()
    expect(page.locator(".data-side")).to_be_hidden()
    expect(cell(page, 1, 2)).to_be_visible()
    cell(page, 1, 2).dblclick()
    expect(page.locator(".cell-panel")).to_be_visible()
    expect(page.locator(".grid-box")).to_be_hidden()
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".grid-box")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def hostile_data(site: Site) -> None:
    from products.console.support.console_data import hostile

    site.data.sources = [source(H, 1, engine=H, message=H)]
    site.data.tables = {(H, H): {H: hostile()}}
    site.data.warnings = [H]
    site.data.whole = H


def test_texts_of_others_do_nothing_anywhere_in_data(window: Window, site: Site, url: str) -> None:
    hostile_data(site)
    tab: dict[str, Any] = {"source": H, "kind": "table", "schema": H, "table": H, "title": H}
    page = window.tab(f"{url}#/data")
    expect(page.locator(".live.on")).to_be_visible()
    site.data.open(tab, by=H)
    expect(page.locator(".grid-row").first).to_contain_text("onerror")
    page.keyboard.press("/")
    page.keyboard.type("onerror")
    expect(page.locator(".is-match").first).to_contain_text("onerror")
    cell(page, 1, 2).dblclick()
    expect(page.locator(".cell-panel .value")).to_have_text(H)
    expect(page.locator(".row-warning")).to_have_text(H)
    is_harmless(page)
    for view in ("Structure", "DDL"):
        page.get_by_role("button", name=view).click()
        expect(page.locator(".table-facts")).to_contain_text("onerror")
        is_harmless(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("onerror")
    expect(page.get_by_role("option").first).to_contain_text("onerror")
    page.keyboard.press("Escape")
    error = {"error": H, "message": H, "hint": H}
    site.refusals |= {"data/rows": (400, error), "data/table": (400, error)}
    window.expected = ["400"]
    page.get_by_role("button", name="Rows", exact=True).click()
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator(".rows-error")).to_contain_text("onerror")
    is_harmless(page)
    site.data.focus("tab-1", by=H)
    page.evaluate("location.hash = '#/inbox'")
    expect(page.locator(".list")).to_be_visible()
    site.data.focus("tab-1", by=H)
    expect(page.get_by_role("status").filter(has_text="went to")).to_contain_text("onerror")
    is_harmless(page)


def is_harmless(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, main script").count() == 0
