"""Rows edited on a real server in Chromium, on SQLite: by keys alone, to what is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from products.console.support.chromium import Window, violations
from products.console.support.query_page import editor, run_line
from support.console_visitor import Visitor
from support.data_desk import PASSPHRASE, Desk, answer, desk
from support.eventually import wait_until

MADE = (
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers (id),"
    " title VARCHAR(20) NOT NULL DEFAULT 'untitled', body TEXT, loose, stamp TEXT)",
    "CREATE TRIGGER stamp_notes AFTER UPDATE OF title, body ON notes BEGIN"
    " UPDATE notes SET stamp = 'seen' WHERE id = NEW.id; END",
    "INSERT INTO notes (id, customer_id, title, body, loose) VALUES (1, 1, 'one', NULL, 5),"
    " (2, 2, 'two', '', '5'), (3, 1, 'three', 'text', x'00ff'), (4, 1, 'four', NULL, NULL)",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    directory = tmp_path_factory.mktemp("edits")
    flags = {"lite": ["--approval-for", "writes", "--undo", "keep"]}
    with desk(directory, ["lite"], flags, operators=False) as found:
        with closing(sqlite3.connect(directory / "lite.db")) as database, database:
            for each in MADE:
                database.execute(each)
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
    return sign_in(window.tab(f"{place.address}/console#/data"))


def sign_in(page: Page) -> Page:
    page.get_by_role("textbox", name="Name").fill("ada")
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.locator(".live.on")).to_be_visible()
    return page


def stored(place: Desk) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(place.directory / "lite.db")) as database:
        return database.execute(
            "SELECT id, customer_id, title, body, loose, typeof(loose), stamp FROM notes ORDER BY 1"
        ).fetchall()


def change(place: Desk, text: str) -> None:
    """What another does at the same time."""
    with closing(sqlite3.connect(place.directory / "lite.db")) as database, database:
        database.execute(text)


def grid(page: Page) -> Locator:
    return page.locator(".grid-box:visible")


def cell(page: Page, row: int, column: int) -> Locator:
    rows = grid(page).locator(f".grid-row[aria-rowindex='{row + 1}']")
    return rows.locator(f"[aria-colindex='{column + 1}']")


def bar(page: Page) -> Locator:
    return page.locator(".edit-bar:visible")


def open_table(page: Page, name: str) -> None:
    # Enter opens what was typed, however long the search takes.
    page.get_by_role("searchbox").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
    expect(cell(page, 1, 1)).to_be_visible()
    grid(page).focus()


def submit(page: Page) -> None:
    page.keyboard.press("Control+s")
    page.get_by_role("button", name="Submit", exact=True).press("Enter")


def allow(page: Page) -> None:
    """Submit, and say yes in place."""
    submit(page)
    once = page.locator(".edit-part .question").get_by_role("button", name="Allow once")
    expect(once).not_to_have_attribute("aria-disabled", "true")
    once.press("Enter")


def test_rows_are_edited_asked_for_written_and_put_back_by_keys(
    place: Desk, window: Window, page: Page
) -> None:
    first = stored(place)
    open_table(page, "notes")
    expect(bar(page)).to_contain_text("F2")
    # Down to the body of row 1, which is NULL: typed over, then row 2's is opened and left.
    for key in ("Control+Home", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.keyboard.type("hello")
    page.keyboard.press("Enter")
    expect(cell(page, 1, 4)).to_have_text("hello")
    page.keyboard.press("F2")
    page.keyboard.press("Enter")
    expect(bar(page)).to_contain_text("1 changed")
    # The storage class stays: the number 5 becomes the number 6, the text '5' the text '6'.
    page.keyboard.press("Control+Home")
    for key in ("ArrowRight",) * 4:
        page.keyboard.press(key)
    for _ in range(2):
        page.keyboard.press("F2")
        field = page.locator(".cell-editor textarea")
        expect(field).to_have_value("5")
        page.keyboard.type("6")
        page.keyboard.press("Enter")
    expect(bar(page)).to_contain_text("2 changed")
    # A new row with a key of the database, one doubled, one deleted.
    page.keyboard.press("Insert")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.type("new")
    page.keyboard.press("Enter")
    expect(cell(page, 1, 3)).to_have_text("new")
    expect(bar(page)).to_contain_text("1 new, 2 changed")
    page.keyboard.press("Control+Home")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+Delete")
    expect(bar(page)).to_contain_text("1 new, 2 changed, 1 deleted")
    expect(bar(page)).not_to_contain_text("Keeping")
    other = window.tab(page.url)
    expect(bar(other)).to_contain_text("1 new, 2 changed, 1 deleted")
    other.close()
    # Nothing was written yet; it is all there after loading, signing out and in.
    assert stored(place) == first
    page.reload()
    expect(bar(page)).to_contain_text("1 new, 2 changed, 1 deleted")
    page.get_by_role("button", name="ada").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    sign_in(page)
    page.goto(f"{place.address}/console#/data")
    expect(bar(page)).to_contain_text("1 new, 2 changed, 1 deleted")
    assert violations(page) == []
    grid(page).focus()
    allow(page)
    expect(page.locator(".edit-part .done")).to_contain_text("Written: 1 new, 2 changed, 1 deleted")
    after = stored(place)
    assert [row[0] for row in after] == [1, 2, 4, 5]
    assert after[0] == (1, 1, "one", "hello", 6, "integer", "seen")
    assert after[1] == (2, 2, "two", "", "6", "text", None)
    assert after[3][2:4] == ("new", None)
    # What the trigger wrote is shown, and all of it is taken back.
    expect(cell(page, 2, 6)).to_have_text("seen")
    page.get_by_role("button", name="Put these rows back").press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Put these rows back").press("Enter")
    wait_until(lambda: [row[0] for row in stored(place)] == [1, 2, 3, 4], "the rows to be back")
    assert stored(place) == first


def test_what_is_copied_or_filled_down_keeps_its_class_and_true_is_no_text(
    place: Desk, page: Page
) -> None:
    change(
        place,
        "CREATE TABLE IF NOT EXISTS kinds (id INTEGER PRIMARY KEY, f BOOLEAN, loose, other)",
    )
    change(
        place,
        "INSERT INTO kinds VALUES (1, 1, '5', 6), (2, 0, 7, 'x'), (3, 1, 8, x'00ff'),"
        " (4, 0, 9, 'y')",
    )
    open_table(page, "kinds")
    # The text '5' goes over two numbers, by Ctrl D and by a copy.
    cell(page, 1, 3).click()
    cell(page, 2, 3).click(modifiers=["Shift"])
    page.keyboard.press("Control+d")
    expect(cell(page, 2, 3)).to_have_text("5")
    cell(page, 1, 3).click()
    page.keyboard.press("Control+c")
    cell(page, 3, 3).click()
    page.keyboard.press("Control+v")
    expect(cell(page, 3, 3)).to_have_text("5")
    cell(page, 3, 4).click()
    page.keyboard.press("Control+c")
    cell(page, 1, 4).click()
    page.keyboard.press("Control+v")
    expect(bar(page)).to_contain_text("3 changed")
    # A row that is opened while an edit of it is on its way keeps that edit.
    held: list[Route] = []
    page.route("**/edits", lambda route: held.append(route), times=1)
    cell(page, 4, 4).click()
    page.keyboard.type("late")
    page.keyboard.press("Enter")
    wait_until(lambda: page.evaluate("1") and held, "the edit to be sent")
    cell(page, 4, 3).click()
    page.keyboard.press("F2")
    page.keyboard.press("Escape")
    held[0].continue_()
    # A condition of SQLite is 1 or 0: it is chosen in words, and is no word.
    cell(page, 2, 2).click()
    page.keyboard.press("F2")
    choice = page.locator(".cell-editor select")
    expect(choice).to_have_value("=false")
    choice.select_option("=true")
    page.keyboard.press("Enter")
    expect(bar(page)).not_to_contain_text("Keeping")
    grid(page).focus()
    allow(page)
    expect(page.locator(".edit-part .done")).to_contain_text("Written: 4 changed")
    with closing(sqlite3.connect(place.directory / "lite.db")) as database:
        found = database.execute("SELECT f, loose, other FROM kinds ORDER BY id").fetchall()
    bytes_ = b"\x00\xff"
    assert found == [(1, "5", bytes_), (1, "5", "x"), (1, "5", bytes_), (0, 9, "late")]


def test_a_row_that_another_has_changed_is_shown_three_ways_and_resolved(
    place: Desk, page: Page
) -> None:
    open_table(page, "notes")
    cell(page, 3, 4).click()
    page.keyboard.type("mine")
    page.keyboard.press("Enter")
    expect(bar(page)).to_contain_text("1 changed")
    expect(bar(page)).not_to_contain_text("Keeping")
    change(place, "UPDATE notes SET body = 'theirs' WHERE id = 3")
    grid(page).focus()
    submit(page)
    conflict = page.locator(".one-conflict")
    expect(conflict.locator("tbody tr", has_text="body")).to_have_text("bodytexttheirsmine")
    assert violations(page) == []
    assert stored(place)[2][3] == "theirs"
    conflict.get_by_role("button", name="Keep mine").press("Enter")
    expect(page.locator(".conflicts")).to_contain_text("All are decided")
    expect(bar(page)).not_to_contain_text("Keeping")
    grid(page).focus()
    allow(page)
    expect(page.locator(".edit-part .done")).to_contain_text("Written: 1 changed")
    assert stored(place)[2][3] == "mine"


def test_a_result_over_one_table_is_edited_and_others_say_why_not(place: Desk, page: Page) -> None:
    page.get_by_role("button", name="New query").click()
    page.locator("#new-query").get_by_role("button", name="lite", exact=True).click()
    editor(page).fill("SELECT title, id FROM notes WHERE id = 4")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("1 row")
    expect(bar(page)).to_contain_text("F2")
    cell(page, 1, 1).click()
    page.keyboard.press("F2")
    page.keyboard.type("by a query")
    page.keyboard.press("Enter")
    expect(bar(page)).to_contain_text("1 changed")
    grid(page).focus()
    allow(page)
    expect(page.locator(".edit-part .done")).to_contain_text("Written: 1 changed")
    assert stored(place)[3][2] == "by a query"
    editor(page).fill("SELECT count(*) FROM notes")
    page.keyboard.press("Control+Enter")
    expect(bar(page)).to_contain_text("Read-only:")
    open_table(page, "big_orders")
    expect(bar(page)).to_contain_text("Read-only:")
    cell(page, 1, 1).click()
    page.keyboard.press("F2")
    expect(page.locator(".cell-editor")).to_have_count(0)


def test_the_key_of_another_table_is_chosen_among_its_rows(place: Desk, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Tables").press("Enter")
    open_table(page, "notes")
    page.keyboard.press("Shift+F2")
    form = page.get_by_role("complementary", name="Row 1")
    field = form.locator(".form-field", has_text="customer_id")
    field.get_by_role("button", name="Choose").press("Enter")
    page.get_by_role("combobox", name="Search customers").press_sequentially("Omar")
    expect(page.get_by_role("dialog").get_by_role("option")).to_have_count(1)
    assert violations(page) == []
    page.keyboard.press("Enter")
    expect(form.get_by_label("customer_id", exact=True)).to_have_value("3")
    page.keyboard.press("Control+Enter")
    expect(bar(page)).to_contain_text("1 changed")
    assert violations(page) == []
    bar(page).get_by_role("button", name="Discard").press("Enter")
    expect(bar(page)).not_to_contain_text("changed")
