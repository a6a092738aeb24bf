"""A file is imported on a real server in Chromium: chosen by the keyboard, and dropped."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from products.console.browser.test_real_data import shows, sign_in
from products.console.browser.test_saved_queries import PHONE, key_to, said
from products.console.support.chromium import violations
from support.data_desk import Desk, desk
from support.eventually import wait_until

GOODS = (
    b"nr;amount;day;word\n007;1.234,50;01/02/2024;\n008;2,5;03/04/2024;x\n009;3,5;05/06/2024;y\n"
)
FAULTY = b"nr,amount,day,word\n010,1.5,2024-01-01,z\n011,much,2024-01-02,z\n"
DROP = """content => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([content], "more.csv"));
  const area = document.querySelector(".data-area");
  for (const name of ["dragover", "drop"])
    area.dispatchEvent(new DragEvent(name, {dataTransfer: transfer, cancelable: true}));
}"""


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("import"), ("lite",), masks=False) as found:
        yield found


def ask(place: Desk, text: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(place.directory / "lite.db")) as shop:
        return shop.execute(text).fetchall()


def press(page: Page, name: str) -> None:
    key_to(page, name)
    page.keyboard.press("Enter")


def test_a_file_becomes_a_new_table_and_one_with_faults_is_not_added(
    place: Desk, open_window: Any
) -> None:
    page = sign_in(open_window(viewport=PHONE), place)
    expect(page.locator(".tab-line")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("import a file")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Import a file")
    expect(dialog.locator("#import-file")).to_be_focused()
    dialog.locator("#import-file").set_input_files(
        {"name": "goods.csv", "mimeType": "text/csv", "buffer": GOODS}
    )
    expect(dialog.get_by_label("Delimiter", exact=True)).to_have_value(";")
    expect(dialog.get_by_label("Numbers", exact=True)).to_have_value(",")
    expect(dialog).to_contain_text("No date tells which number is the day")
    preview = dialog.get_by_label("First rows of the file")
    expect(preview.locator("tbody tr")).to_have_count(3)
    expect(preview.locator("tbody tr").first).to_contain_text("NULL")
    # The guess is changed, and the file is read again.
    key_to(page, "Dates")
    page.keyboard.press("ArrowDown")
    expect(dialog.get_by_label("Dates", exact=True)).to_have_value("mdy")
    assert violations(page) == []
    key_to(page, "Table")
    page.keyboard.type("New table")
    expect(dialog.get_by_label("Name of the table")).to_have_value("goods")
    expect(dialog.get_by_label("Type of column 1")).to_have_value("TEXT")
    key_to(page, "Column 1 is in the key")
    page.keyboard.press("Space")
    press(page, "Show the statement")
    expect(dialog).to_contain_text("CREATE TABLE")
    assert violations(page) == []
    press(page, "Make the table")
    said(page, "goods is made.")
    expect(dialog.get_by_label("Column for amount")).to_have_value("amount")
    press(page, "Check")
    expect(dialog).to_contain_text("3 rows can be added to goods")
    expect(dialog).to_contain_text("This cannot be taken back: The source keeps no rows")
    assert violations(page) == []
    assert not ask(place, "SELECT * FROM goods")
    press(page, "Import 3 rows")
    said(page, "3 rows added to goods.")
    assert ask(place, "SELECT * FROM goods ORDER BY nr") == [
        ("007", 1234.5, "2024-01-02", None),
        ("008", 2.5, "2024-03-04", "x"),
        ("009", 3.5, "2024-05-06", "y"),
    ]
    press(page, "Open the table")
    shows(page, "goods", "3 rows, all")
    # A file that is dropped goes into the table in front; a fault is named and nothing is added.
    page.evaluate(DROP, FAULTY.decode())
    expect(dialog.get_by_label("Table", exact=True)).to_have_value("goods")
    expect(dialog.get_by_label("Column for amount")).to_have_value("amount")
    press(page, "Check")
    faults = dialog.get_by_label("Faults by line")
    expect(faults.locator("tbody tr")).to_have_count(1)
    expect(faults).to_contain_text("'much' is no value of amount: it takes a number")
    expect(dialog.get_by_role("button", name="Import 2 rows")).to_have_count(0)
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert len(ask(place, "SELECT * FROM goods")) == 3


def test_what_is_chosen_while_the_file_is_read_counts_and_nothing_is_checked_before(
    place: Desk, open_window: Any
) -> None:
    page = sign_in(open_window(viewport=PHONE), place)
    expect(page.locator(".tab-line")).to_be_visible()
    page.evaluate(DROP, "id;customer_id;total\n9;1;1,5\n")
    dialog = page.get_by_role("dialog", name="Import a file")
    dialog.get_by_label("Table", exact=True).select_option("orders")
    check = dialog.get_by_role("button", name="Check")
    expect(check).to_be_enabled()
    held: list[Route] = []
    page.route("**/read", lambda route: route.continue_() if held else held.append(route))
    dialog.get_by_label("Encoding", exact=True).select_option("cp1252")
    wait_until(lambda: page.evaluate("1") and held, "the file to be read")
    expect(check).to_be_disabled()
    dialog.get_by_label("Numbers", exact=True).select_option(".")
    held[0].continue_()
    expect(check).to_be_enabled()
    expect(dialog.get_by_label("Encoding", exact=True)).to_have_value("cp1252")
    expect(dialog.get_by_label("Numbers", exact=True)).to_have_value(".")
