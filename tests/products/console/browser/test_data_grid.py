"""The grid of Data in Chromium: many rows, keys, copying, widths, texts of all kinds."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from products.console.support import console_cards as canned
from products.console.support.chromium import Window, violations
from products.console.support.console_data import Table, column, wide
from products.console.support.console_site import Site

MOST_NODES = 2_000
MOST_HEAP_BYTES = 200_000_000
COLUMNS = 100
WIDE = {"source": "shop", "kind": "table", "schema": "main", "table": "wide"}
ORDERS = {**WIDE, "table": "orders"}
SCROLL = """async (top) => {
    const box = document.querySelector('.grid-box');
    let nodes = 0;
    for (let step = 0; step <= 60; step += 1) {
        box.scrollTop = (box.scrollHeight - box.clientHeight) * (top ? step / 60 : 1);
        box.scrollLeft = (box.scrollWidth - box.clientWidth) * (top ? 0 : step / 60);
        await new Promise(requestAnimationFrame);
        nodes = Math.max(nodes, document.querySelectorAll('*').length);
    }
    return nodes;
}"""


def grid(page: Page) -> Locator:
    return page.locator(".grid-box:visible")


def cell(page: Page, row: int, column: int) -> Locator:
    rows = grid(page).locator(f".grid-row[aria-rowindex='{row + 1}']")
    return rows.locator(f"[aria-colindex='{column + 1}']")


def active(page: Page) -> str:
    """What a screen reader says is active: the text, and where it is."""
    return page.evaluate(
        """() => {
            const box = document.activeElement;
            const cell = document.getElementById(box.getAttribute('aria-activedescendant'));
            const row = cell.closest('[role=row]').getAttribute('aria-rowindex') - 1;
            return `${row}:${cell.getAttribute('aria-colindex') - 1} ${cell.textContent}`;
        }"""
    )


def open_table(window: Window, site: Site, url: str, tab: dict[str, Any]) -> Page:
    site.data.open(tab)
    page = window.tab(f"{url}#/data")
    expect(cell(page, 1, 1)).to_be_visible()
    expect(grid(page).locator(".unloaded")).to_have_count(0)
    return page


@pytest.mark.whole
@pytest.mark.parametrize(("rows", "columns"), [(100_000, 10), (10_000, COLUMNS)])
def test_very_many_rows_or_columns_are_few_nodes_and_little_memory(
    window: Window, site: Site, url: str, rows: int, columns: int
) -> None:
    site.data.tables["shop", "main"]["wide"] = wide(rows, columns)
    page = open_table(window, site, url, WIDE)
    # Rows come page after page: each next page is in sight when the end is.
    while ", all" not in page.locator(".status-line").inner_text():
        page.evaluate(
            """async () => {
                const box = document.querySelector('.grid-box');
                for (let step = 0; step < 200; step += 1) {
                    box.scrollTop = box.scrollHeight;
                    await new Promise(requestAnimationFrame);
                }
            }"""
        )
    expect(grid(page)).to_have_attribute("aria-rowcount", str(rows + 1))
    expect(grid(page)).to_have_attribute("aria-colcount", str(columns + 1))
    assert page.evaluate(SCROLL, True) < MOST_NODES
    assert page.evaluate(SCROLL, False) < MOST_NODES
    expect(cell(page, rows, columns)).to_have_text(f"{rows - 1}:{columns - 1}")
    grid(page).focus()
    page.keyboard.press("Control+Home")
    expect(cell(page, 1, 1)).to_have_text("0")
    devtools = window.context.new_cdp_session(page)
    devtools.send("HeapProfiler.enable")
    devtools.send("HeapProfiler.collectGarbage")
    assert devtools.send("Runtime.getHeapUsage")["usedSize"] < MOST_HEAP_BYTES
    assert devtools.send("Memory.getDOMCounters")["nodes"] < 3 * MOST_NODES


def test_control_end_goes_to_the_last_row_of_the_table_or_says_that_it_did_not(
    window: Window, site: Site, url: str
) -> None:
    site.data.tables["shop", "main"]["wide"] = wide(6_000, COLUMNS)  # pages of 160 rows
    page = open_table(window, site, url, WIDE)
    grid(page).focus()
    page.keyboard.press("Control+End")
    expect(cell(page, 6_000, COLUMNS)).to_have_text(f"5999:{COLUMNS - 1}")
    expect(page.locator(".status-line")).to_contain_text("6,000 rows, all")
    assert active(page).startswith(f"6000:{COLUMNS} ")
    site.data.tables["shop", "main"]["wide"] = wide(20_000, COLUMNS)
    page.reload()
    expect(cell(page, 1, 1)).to_be_visible()
    grid(page).focus()
    page.keyboard.press("Control+End")
    expect(page.locator(".status-line")).to_contain_text("not the end: Ctrl End goes on")
    page.keyboard.press("Control+End")
    expect(cell(page, 20_000, COLUMNS)).to_have_text(f"19999:{COLUMNS - 1}")
    expect(page.locator(".status-line")).to_contain_text("20,000 rows, all")


def test_rows_that_were_forgotten_come_again(window: Window, site: Site, url: str) -> None:
    site.data.tables["shop", "main"]["wide"] = wide(9_000, COLUMNS)
    page = open_table(window, site, url, WIDE)
    while ", all" not in page.locator(".status-line").inner_text():
        page.evaluate(
            """async () => {
                const box = document.querySelector('.grid-box');
                for (let step = 0; step < 60; step += 1) {
                    box.scrollTop = box.scrollHeight;
                    await new Promise(requestAnimationFrame);
                }
            }"""
        )
    asked = len(site.posted("data/rows"))
    page.evaluate("document.querySelector('.grid-box').scrollTop = 0")
    expect(cell(page, 1, 1)).to_have_text("0")
    again = site.posted("data/rows")[asked:]
    assert again
    assert again[0]["after"] is None


def test_keys_reach_every_cell_and_the_head(window: Window, site: Site, url: str) -> None:
    page = open_table(window, site, url, ORDERS)
    grid(page).focus()
    steps = {
        "ArrowDown": "2:1 2", "ArrowRight": "2:2 2", "End": "2:6 2026-04-01 12:30:00",
        "Home": "2:1 2", "Control+ArrowRight": "2:6 2026-04-01 12:30:00",
        "Control+ArrowLeft": "2:1 2", "ArrowUp": "1:1 1", "PageDown": None, "PageUp": "1:1 1",
    }  # fmt: skip
    for key, spot in steps.items():
        page.keyboard.press(key)
        if spot is not None:
            assert active(page) == spot, key
        else:
            assert int(active(page).partition(":")[0]) > 10
    page.keyboard.press("Control+End")
    expect(page.locator(".status-line")).to_contain_text(", all")
    count = int(grid(page).get_attribute("aria-rowcount") or 0) - 1
    assert count >= 1_000
    expect(cell(page, count, 6)).to_be_visible()
    assert active(page).startswith(f"{count}:6 ")
    page.keyboard.press("Control+Home")
    assert active(page) == "1:1 1"
    page.keyboard.press("ArrowUp")
    assert active(page) == "0:1 idINTEGER"
    page.keyboard.press("ArrowUp")
    assert active(page) == "0:1 idINTEGER"
    expect(grid(page)).to_be_focused()
    assert violations(page) == []


def test_chosen_cells_are_copied_between_tabs(window: Window, site: Site, url: str) -> None:
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = open_table(window, site, url, ORDERS)

    def copied() -> str:
        page.keyboard.press("Control+c")
        return page.evaluate("navigator.clipboard.readText()")

    cell(page, 1, 3).click()
    assert copied() == "open"
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowRight")
    expect(grid(page).locator("[aria-selected=true]")).to_have_count(4)
    assert copied() == "open\t0.00\npaid\t79.19"
    expect(page.locator("#said")).to_have_text("Copied 2 rows")
    cell(page, 6, 5).click()
    assert copied() == '"first line\nsecond line"'
    cell(page, 2, 5).click()
    assert copied() == ""
    page.locator(".grid-number").nth(2).click()
    assert copied().split("\t")[:3] == ["3", "3", "shipped"]
    cell(page, 1, 1).hover()
    page.mouse.down()
    cell(page, 3, 2).hover()
    page.mouse.up()
    assert copied() == "1\t1\n2\t2\n3\t3"
    page.keyboard.press("Escape")
    assert copied() == "3"


def test_columns_are_made_wider_by_pointer_and_by_key(window: Window, site: Site, url: str) -> None:
    page = open_table(window, site, url, ORDERS)
    head = page.get_by_role("columnheader", name="status")

    def width() -> float:
        box = head.bounding_box()
        body = cell(page, 1, 3).bounding_box()
        assert box is not None
        assert body is not None
        assert (round(box["x"]), round(box["width"])) == (round(body["x"]), round(body["width"]))
        return box["width"]

    first = width()
    handle = head.locator(".grid-resize").bounding_box()
    assert handle is not None
    page.mouse.move(handle["x"] + 4, handle["y"] + 10)
    page.mouse.down()
    page.mouse.move(handle["x"] + 64, handle["y"] + 10, steps=4)
    page.mouse.up()
    assert width() == first + 60
    assert site.posted("data/rows")[-1]["sort"] == []
    cell(page, 1, 3).click()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowLeft")
    assert width() == first + 44
    head.locator(".grid-resize").dblclick()
    assert width() == first


def test_null_numbers_directions_and_hidden_characters_are_told_apart(
    window: Window, site: Site, url: str
) -> None:
    rows: list[list[Any]] = [
        ["1", None, "7"],
        ["2", "", "-7.5"],
        ["3", "NULL", None],
        ["4", canned.RTL, "12345678901234567890.123"],
        ["5", canned.FAMILY, "0"],
        ["6", canned.BIDI, "1"],
        ["7", "a\tb\nc", "2"],
        ["8", {"binary": 1_000, "text": "00ff10"}, "3"],
        ["9", {"text": "z" * 4_096, "bytes": 9_999, "cut": True}, "4"],
    ]
    columns = [column("id", "number"), column("text"), column("n", "number")]
    site.data.tables["shop", "main"]["orders"] = Table(columns, len(rows), lambda n: rows[n])
    page = open_table(window, site, url, ORDERS)
    null, empty, word = (cell(page, row, 2) for row in (1, 2, 3))
    expect(null).to_have_text("NULL")
    expect(null).to_have_class(re.compile("is-null"))
    expect(empty).to_have_text("")
    expect(word).not_to_have_class(re.compile("is-null"))
    rtl = cell(page, 4, 2)
    assert rtl.evaluate("node => getComputedStyle(node).direction") == "rtl"
    assert cell(page, 4, 1).evaluate("node => getComputedStyle(node).direction") == "ltr"
    assert cell(page, 4, 3).evaluate("node => getComputedStyle(node).textAlign") == "right"
    expect(cell(page, 4, 3)).to_have_text("12345678901234567890.123")
    assert cell(page, 5, 2).inner_text() == canned.FAMILY
    expect(cell(page, 6, 2)).to_have_text("adminU+202Egnp.exeU+2066")
    expect(cell(page, 6, 2).locator(".mark")).to_have_count(2)
    expect(cell(page, 7, 2)).to_contain_text("b↵c")
    expect(cell(page, 8, 2)).to_have_text("0x00ff10 1000 bytes")
    expect(cell(page, 9, 2)).to_have_text("z" * 256 + "…")
    assert violations(page) == []
