"""Rows edited in the grid: values by their type, blocks, rows, and what is written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from products.console.support.chromium import Window, violations
from products.console.support.console_data import Table, column, place
from products.console.support.console_site import Site
from support.eventually import wait_until

ORDERS = {"source": "shop", "kind": "table", "schema": "main", "table": "orders"}


def grid(page: Page) -> Locator:
    return page.locator(".grid-box:visible")


def cell(page: Page, row: int, column: int) -> Locator:
    rows = grid(page).locator(f".grid-row[aria-rowindex='{row + 1}']")
    return rows.locator(f"[aria-colindex='{column + 1}']")


def editor(page: Page) -> Locator:
    return page.locator(".cell-editor :is(input:not(.calendar), textarea, select)").first


def bar(page: Page) -> Locator:
    return page.locator(".edit-bar")


def open_orders(window: Window, site: Site, url: str) -> Page:
    site.data.sources[0]["may"] = {"read": True, "write": True, "why_not": ""}
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    expect(cell(page, 1, 1)).to_be_visible()
    expect(bar(page).get_by_role("button", name="Row")).to_be_visible()
    grid(page).focus()
    return page


def staged(site: Site) -> list[dict[str, Any]]:
    """What the server keeps, without rows that were only opened."""
    (tab,) = site.data.edits.staged
    rows = site.data.edits.staged[tab].values()
    return [each for each in rows if each["kind"] != "update" or each["cells"]]


def test_values_are_edited_by_keys_and_what_is_only_opened_stays(
    window: Window, site: Site, url: str
) -> None:
    page = open_orders(window, site, url)
    null, empty = cell(page, 2, 5), cell(page, 1, 5)
    expect(null).to_have_text("NULL")
    # NULL is opened and left: it is still NULL, and nothing waits.
    null.click()
    page.keyboard.press("F2")
    expect(editor(page)).to_be_focused()
    expect(editor(page)).to_have_attribute("placeholder", "NULL")
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(null).to_have_text("NULL")
    expect(bar(page)).not_to_contain_text("changed")
    assert staged(site) == []
    # The empty text is another state, and a value typed over it a third.
    page.keyboard.press("ArrowUp")
    page.keyboard.press("F2")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(null).to_have_text("")
    expect(null).to_have_class(re.compile("is-empty.*changed"))
    expect(bar(page)).to_contain_text("1 changed")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Delete")
    expect(null).to_have_text("NULL")
    expect(bar(page)).not_to_contain_text("changed")
    empty.click()
    page.keyboard.type("written")
    page.keyboard.press("Tab")
    expect(empty).to_have_text("written")
    page.keyboard.press("ArrowDown")
    # A value that is none of its type stays in its editor, with the reason.
    cell(page, 3, 2).click()
    page.keyboard.type("12x")
    page.keyboard.press("Enter")
    expect(page.locator(".cell-editor [role=alert]")).to_have_text("customer takes a whole number.")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(cell(page, 3, 2)).to_have_text("12")
    expect(bar(page)).to_contain_text("2 changed")
    # Back, and again.
    grid(page).focus()
    page.keyboard.press("Control+z")
    expect(cell(page, 3, 2)).to_have_text("3")
    page.keyboard.press("Control+z")
    expect(bar(page)).not_to_contain_text("changed")
    page.keyboard.press("Control+Shift+z")
    page.keyboard.press("Control+y")
    expect(bar(page)).to_contain_text("2 changed")
    # They survive sorting, loading the page again, and signing in again.
    page.get_by_role("columnheader", name="total").click()
    expect(page.locator(".order-note")).to_be_visible()
    expect(bar(page)).to_contain_text("2 changed")
    page.reload()
    expect(bar(page)).to_contain_text("2 changed")
    expect(empty).to_have_text("written")
    assert violations(page) == []


def test_blocks_are_pasted_and_rows_are_made_doubled_deleted_and_written(
    window: Window, site: Site, url: str
) -> None:
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    site.data.edits.columns = {"total": {"editor": "decimal"}}
    page = open_orders(window, site, url)
    (tab,) = site.data.tabs

    def clip(text: str) -> None:
        page.evaluate("text => navigator.clipboard.writeText(text)", text)

    # A block of a spreadsheet: an empty field of numbers is NULL, of texts the empty text.
    cell(page, 1, 2).click()
    clip('7\topen\t1.50\t"two\nlines"\n\tpaid\t2\t\n')
    page.keyboard.press("Control+v")
    expect(bar(page)).to_contain_text("2 changed")
    expect(cell(page, 1, 4)).to_have_text("1.50")
    expect(cell(page, 2, 2)).to_have_text("NULL")
    expect(cell(page, 2, 5)).to_have_class(re.compile("is-empty"))
    page.keyboard.press("Control+z")
    expect(bar(page)).not_to_contain_text("changed")
    # What is copied here is pasted as it was: NULL stays NULL, the text NULL a text.
    cell(page, 2, 5).click()
    page.keyboard.press("Control+c")
    cell(page, 1, 5).click()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Control+v")
    expect(cell(page, 1, 5)).to_have_text("NULL")
    expect(cell(page, 1, 5)).to_have_class(re.compile("is-null"))
    expect(bar(page)).to_contain_text("1 changed")
    cell(page, 1, 3).click()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Control+d")
    expect(cell(page, 4, 3)).to_have_text("open")
    expect(bar(page)).to_contain_text("4 changed")
    # A new row is above the others; what is not said is DEFAULT.
    page.keyboard.press("Insert")
    expect(grid(page).locator(".grid-number").first).to_have_text("new")
    expect(cell(page, 1, 1)).to_have_text("DEFAULT")
    page.keyboard.press("ArrowRight")
    page.keyboard.type("77")
    page.keyboard.press("Enter")
    expect(cell(page, 1, 2)).to_have_text("77")
    expect(cell(page, 2, 1)).to_have_text("1")
    cell(page, 3, 1).click()
    page.keyboard.press("Control+Shift+d")
    expect(bar(page)).to_contain_text("2 new, 4 changed")
    expect(cell(page, 2, 1)).to_have_text("DEFAULT")
    expect(cell(page, 2, 3)).to_have_text("open")
    cell(page, 8, 1).click()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Control+Delete")
    expect(bar(page)).to_contain_text("2 new, 4 changed, 2 deleted")
    expect(grid(page).locator(".r-delete")).to_have_count(2)
    page.keyboard.press("Shift+F10")
    expect(page.get_by_role("menuitem", name="Keep 2 rows")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    bar(page).get_by_role("button", name="Show the SQL").press("Enter")
    expect(page.locator(".edit-sql")).to_contain_text(
        "8 statements, one transaction; asks a person"
    )
    bar(page).get_by_role("button", name="Show the SQL").press("Enter")
    grid(page).focus()
    page.keyboard.press("Control+s")
    expect(page.locator(".edit-part .done")).to_contain_text("Written: 2 new, 4 changed, 2 deleted")
    expect(bar(page)).not_to_contain_text("changed")
    # The rows are shown as they are stored: with what a trigger wrote.
    expect(cell(page, 1, 1)).to_have_text("9001")
    expect(cell(page, 1, 5)).to_have_text("stored")
    expect(cell(page, 4, 5)).to_have_text("stored")
    # One that was just written is edited as it is stored now.
    cell(page, 4, 5).click()
    page.keyboard.type("again")
    page.keyboard.press("Enter")
    expect(cell(page, 4, 5)).to_have_text("again")
    site.await_post(f"data/tabs/{tab}/edits", remove=[])
    assert site.posted(f"data/tabs/{tab}/edits")[-1]["put"][0]["seen"][4] == "stored"
    page.keyboard.press("Control+z")
    expect(grid(page).locator(".r-gone")).to_have_count(2)
    assert violations(page) == []
    page.get_by_role("button", name="Refresh").click()
    expect(cell(page, 1, 1)).to_have_text("1")
    expect(grid(page).locator(".r-gone")).to_have_count(0)


def typed_table() -> Table:
    columns = [
        column("id", "number"), column("size"), column("done", "bool"),
        column("due", "time", "DATE"), column("settings", "json"), column("raw", "binary", "BLOB"),
        column("customer", "number"), column("email", masked=True), column("story"),
    ]  # fmt: skip
    story = {"text": "x" * 4_096, "bytes": 9_000, "cut": True}

    def row(n: int) -> list[Any]:
        raw = {"binary": 2, "text": "00ff"}
        return [str(n + 1), "small", "false", "2026-01-31", '{"a":1}', raw, "3", "***", story]

    key = {"name": "of", "columns": ["customer"], "to": place("customers", "id")}
    return Table(columns, 3, row, foreign_keys=[key])


EDITORS: dict[str, dict[str, Any]] = {
    "size": {"editor": "enum", "values": ["small", "large"], "nullable": False},
    "due": {"editor": "date"},
    "raw": {"editor": "bytes"},
    "customer": {
        "references": {**place("customers", "id"), "from": ["customer"]},
        "has_default": True,
    },
}


@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "390 px"])
def test_each_type_has_its_editor_in_the_grid_and_in_a_form(
    open_window: Any, site: Site, url: str, *, narrow: bool
) -> None:
    size = {"width": 390, "height": 844} if narrow else {"width": 1280, "height": 800}
    window: Window = open_window(viewport=size)
    site.data.tables["shop", "main"]["orders"] = typed_table()
    site.data.edits.columns = EDITORS
    site.data.edits.exact = {"story": {"text": "a long story"}, "raw": {"hex": "00ff"}}
    page = open_orders(window, site, url)
    if not narrow:
        cell(page, 1, 2).click()
        page.keyboard.press("F2")
        editor(page).select_option("large")
        page.keyboard.press("Tab")
        page.keyboard.type("t")  # of true
        expect(editor(page)).to_have_value("=true")
        page.keyboard.press("Enter")
        expect(cell(page, 1, 3)).to_have_text("true")
        cell(page, 1, 5).click()
        page.keyboard.type("{")
        page.keyboard.press("Enter")
        expect(page.locator(".cell-editor [role=alert]")).to_contain_text("It is no JSON")
        page.keyboard.press("Escape")
        expect(cell(page, 1, 5)).to_have_text('{"a":1}')
        # A masked value takes none; a value that is shown in part is opened whole.
        cell(page, 1, 8).click()
        page.keyboard.press("F2")
        expect(page.locator("#said")).to_have_text("Its values are hidden from you.")
        cell(page, 1, 9).click()
        page.keyboard.press("F2")
        expect(editor(page)).to_have_value("a long story")
        page.keyboard.press("Escape")
        # The row that a key refers to is found by what is in it.
        cell(page, 1, 7).click()
        page.keyboard.press("F2")
        page.keyboard.press("Alt+ArrowDown")
        page.get_by_role("combobox", name="Search customers").press_sequentially("Customer 7")
        option = page.get_by_role("option")
        expect(option.first).to_contain_text("Customer 7")
        assert violations(page) == []
        page.keyboard.press("Enter")
        expect(cell(page, 1, 7)).to_have_text("8")
    grid(page).focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+F2")
    form = page.get_by_role("complementary", name="Row 2")
    expect(form.get_by_label("raw", exact=True)).to_have_value("00ff")
    assert violations(page) == []
    form.get_by_label("size", exact=True).select_option("large")
    due = form.get_by_label("due", exact=True)
    due.fill("2027-02-28")
    customer = form.locator(".form-field", has_text="customer")
    customer.get_by_role("button", name="DEFAULT").press("Enter")
    form.get_by_label("raw", exact=True).fill("0")
    page.keyboard.press("Control+Enter")
    expect(form.get_by_role("alert")).to_contain_text("hexadecimal")
    form.get_by_label("raw", exact=True).fill("00 0a")
    form.locator(".form-field", has_text="done").get_by_role("combobox").select_option("NULL")
    page.keyboard.press("Control+Enter")
    expect(form).to_have_count(0)
    wait_until(lambda: ["2"] in [each["key"] for each in staged(site)], "the row to be kept")
    (row,) = [each for each in staged(site) if each["key"] == ["2"]]
    assert row["cells"] == {
        "size": {"text": "large"},
        "due": {"text": "2027-02-28"},
        "customer": {"default": True},
        "raw": {"hex": "000a"},
        "done": None,
    }
    expect(bar(page)).to_contain_text("changed")
    assert violations(page) == []


def test_changes_are_asked_for_and_conflicts_are_resolved(
    window: Window, site: Site, url: str
) -> None:
    from products.console.support import console_cards as canned

    site.data.edits.asks = True
    site.add(canned.card(1))
    page = open_orders(window, site, url)
    cell(page, 1, 3).click()
    page.keyboard.type("mine")
    page.keyboard.press("Enter")
    page.keyboard.type("mine too")
    page.keyboard.press("Enter")
    expect(bar(page)).to_contain_text("2 changed")
    bar(page).get_by_role("button", name="Submit …").press("Enter")
    page.get_by_label("A word to the one who answers").fill("as agreed")
    page.get_by_role("button", name="Submit", exact=True).press("Enter")
    expect(page.locator(".edit-part")).to_contain_text("Waits for a person's answer")
    expect(page.locator(".edit-part .question")).to_contain_text("Allow once")
    assert site.posts[-1][1]["reason"] == "as agreed"
    # While it waits nothing can be edited.
    cell(page, 3, 3).click()
    page.keyboard.press("F2")
    expect(page.locator("#said")).to_have_text("The changes are being written.")
    one, two = staged(site)
    (tab,) = site.data.edits.staged
    theirs = {"id": {"text": "1"}, "status": {"text": "theirs"}}
    columns = [
        {
            "name": "status",
            "before": {"text": "open"},
            "theirs": theirs["status"],
            "yours": {"text": "mine"},
        }
    ]
    site.data.edits.conflicts = [
        {"id": one["id"], "problem": "changed", "columns": columns, "theirs": theirs},
        {"id": two["id"], "problem": "gone", "columns": columns, "theirs": None},
    ]
    site.data.edits.finish(tab, "conflict")
    conflicts = page.locator(".one-conflict")
    expect(conflicts).to_have_count(2)
    expect(conflicts.first.locator("tbody tr")).to_have_text("statusopentheirsmine")
    assert violations(page) == []
    conflicts.first.get_by_role("button", name="Keep mine").press("Enter")
    expect(conflicts).to_have_count(1)
    conflicts.get_by_role("button", name="Drop mine").press("Enter")
    expect(page.locator(".conflicts")).to_contain_text("All are decided")
    expect(bar(page)).to_contain_text("1 changed")
    wait_until(lambda: len(staged(site)) == 1, "the server to drop the row that is gone")
    (left,) = staged(site)
    assert left["id"] not in (one["id"], two["id"])
    assert (left["key"], left["cells"]) == (["1"], {"status": {"text": "mine"}})
    site.data.edits.asks, site.data.edits.conflicts = False, []
    page.reload()
    expect(cell(page, 1, 3)).to_have_text("mine")
    # A row that another has changed since it was read is not staged, and is shown as it is.
    site.data.edits.now = {"2": {"id": {"text": "2"}, "status": {"text": "newer"}}}
    cell(page, 2, 3).click()
    page.keyboard.type("x")
    page.keyboard.press("Enter")
    expect(page.locator(".edit-part > .error")).to_contain_text("The row was changed meanwhile")
    expect(cell(page, 2, 3)).to_have_text("newer")
    grid(page).focus()
    page.keyboard.press("Control+s")
    expect(page.locator(".edit-part .done")).to_contain_text("Written: 1 changed")


def test_why_rows_cannot_be_edited_is_there_before_anyone_types(
    window: Window, site: Site, url: str
) -> None:
    site.data.sources[0]["may"] = {"read": True, "write": True, "why_not": ""}
    site.data.edits.reason = "It is a view."
    site.data.open(ORDERS)
    page = window.tab(f"{url}#/data")
    expect(bar(page)).to_have_text("Read-only: It is a view.")
    cell(page, 1, 1).click()
    page.keyboard.press("F2")
    expect(page.locator("#said")).to_have_text("It is a view.")
    expect(page.locator(".cell-editor")).to_have_count(0)
    assert violations(page) == []
    why = "You may read shop, but not change it."
    site.data.sources[0]["may"] = {"read": True, "write": False, "why_not": why}
    page.reload()
    expect(page.locator(".status-line")).to_contain_text(f"Read-only: {why}")
    assert not [path for path, _ in site.posts if "edits" in path]
