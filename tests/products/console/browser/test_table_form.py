"""A table by form on a real server in Chromium, by the keyboard."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from products.console.browser.test_real_data import front, shows, sign_in
from products.console.browser.test_saved_queries import PHONE, go_to, key_to, said
from products.console.support.chromium import violations
from support.data_desk import Desk, desk


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("form"), ("lite",), masks=False) as found:
        yield found


def fill(page: Page, name: str, text: str) -> None:
    key_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def steps(page: Page) -> Any:
    return front(page).locator(".form-steps > li")


def test_a_table_is_made_and_changed_by_a_form(place: Desk, open_window: Any) -> None:
    page = sign_in(open_window(viewport=PHONE), place)
    expect(page.locator(".tab-line")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("table by form")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Kind", exact=True)).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_label("Schema", exact=True)).to_have_value("main")
    key_to(page, "Open")
    page.keyboard.press("Enter")
    expect(front(page).get_by_label("Name of the table")).to_be_visible()
    # A key, a column with a default, a foreign key, an index.
    fill(page, "Name of the table", "gifts")
    fill(page, "Name of column 1", "id")
    key_to(page, "key")
    page.keyboard.press("Space")
    expect(page.locator(":focus")).to_be_checked()
    key_to(page, "Column")
    page.keyboard.press("Enter")
    fill(page, "Name of column 2", "weight")
    fill(page, "Type of column 2", "REAL")
    key_to(page, "Default of column 2")
    page.keyboard.type("default value")
    fill(page, "What is the default of column 2", "1.5")
    key_to(page, "Column")
    page.keyboard.press("Enter")
    fill(page, "Name of column 3", "customer")
    key_to(page, "Foreign key")
    page.keyboard.press("Enter")
    key_to(page, "Table of foreign key 1")
    page.keyboard.type("customers")
    key_to(page, "Columns of foreign key 1, column 1", "Shift+Tab")
    page.keyboard.type("customer")
    key_to(page, "Index")
    page.keyboard.press("Enter")
    fill(page, "Name of index 1", "by_weight")
    key_to(page, "Columns of index 1, column 1")
    page.keyboard.type("weight")
    expect(steps(page)).to_have_count(2)
    expect(steps(page).first).to_contain_text('FOREIGN KEY ("customer") REFERENCES "customers"')
    expect(front(page).locator(".form-plan")).to_contain_text("those before it stay done")
    expect(front(page).locator(".form-lacks")).to_contain_text("SQLite keeps no comments.")
    assert violations(page) == []
    page.keyboard.press("Control+Enter")
    said(page, "gifts is made.")
    with closing(sqlite3.connect(place.directory / "lite.db")) as shop:
        (text,) = shop.execute("SELECT sql FROM sqlite_schema WHERE name = 'gifts'").fetchone()
    assert '"weight" REAL DEFAULT 1.5' in text
    # What was typed stays, and the table is changed from its structure.
    key_to(page, "Open the table")
    page.keyboard.press("Enter")
    shows(page, "gifts", "0 rows, all")
    front(page).get_by_role("button", name="Structure").focus()
    page.keyboard.press("Enter")
    front(page).get_by_role("button", name="Change by a form").focus()
    page.keyboard.press("Enter")
    expect(front(page).get_by_label("Type of column 2")).to_be_disabled()
    expect(front(page).locator(".form-plan")).to_contain_text("Nothing is changed.")
    fill(page, "Name of column 2", "mass")
    key_to(page, "Column")
    page.keyboard.press("Enter")
    fill(page, "Name of column 4", "note")
    expect(steps(page)).to_have_count(2)
    assert violations(page) == []
    page.keyboard.press("Control+Enter")
    said(page, "gifts is changed.")
    expect(front(page).get_by_label("Name of column 2")).to_have_value("mass")
    expect(front(page).get_by_label("Type of column 4")).to_be_disabled()  # it was read again
    with closing(sqlite3.connect(place.directory / "lite.db")) as shop:
        columns = [each[1] for each in shop.execute("PRAGMA table_info(gifts)")]
    assert columns == ["id", "mass", "customer", "note"]
    # What another adds meanwhile is not dropped by a form that does not know of it.
    with closing(sqlite3.connect(place.directory / "lite.db")) as shop, shop:
        shop.execute("ALTER TABLE gifts ADD COLUMN theirs")
    fill(page, "Name of column 2", "heft")
    expect(front(page).locator(".form-plan")).to_contain_text("changed since this form was opened")
    assert violations(page) == []
    key_to(page, "Read the table again, and drop what was typed")
    page.keyboard.press("Enter")
    expect(front(page).get_by_label("Name of column 5")).to_have_value("theirs")
    expect(front(page).get_by_label("Name of column 2")).to_have_value("mass")
    # One who may not change the source sees what the form would do, and may not.
    other = sign_in(open_window(viewport=PHONE), place, "vera")
    go_to(other, "#/data?source=lite&schema=main&table=gifts&view=structure")
    front(other).get_by_role("button", name="Change by a form").focus()
    other.keyboard.press("Enter")
    fill(other, "Name of column 2", "heft")
    expect(front(other).locator(".form-plan")).to_contain_text("You may not run this here")
    expect(front(other).locator(".form-plan button.primary")).to_be_disabled()
    assert violations(other) == []
