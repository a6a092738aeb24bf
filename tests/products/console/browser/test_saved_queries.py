"""Saved queries and links of a real server in Chromium, by the keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from products.console.browser.test_real_data import front, rows, shows, sign_in
from products.console.support.chromium import Window, violations
from support.data_desk import Desk, desk

PHONE = {"width": 390, "height": 844}
GRANTED = ["clipboard-read", "clipboard-write"]
TEXT = "SELECT id, total FROM orders\nWHERE total >= :least\nORDER BY id"
CHANGED = "SELECT id, total FROM orders\nWHERE total > :least\nORDER BY id"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("saved"), ("lite",)) as found:
        yield found


def copied(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def go_to(page: Page, hash: str) -> None:
    page.evaluate("(hash) => { location.hash = hash; }", hash)


def said(page: Page, text: str) -> None:
    expect(page.locator("#said")).to_have_text(text)


def key_to(page: Page, name: str, key: str = "Tab") -> None:
    """Go on by Tab to the control of that name."""
    for _ in range(60):
        found = page.evaluate(
            "() => (document.activeElement?.getAttribute('aria-label') ??"
            " document.activeElement?.labels?.[0]?.textContent ??"
            " document.activeElement?.textContent ?? '').trim()"
        )
        if found == name:
            return
        page.keyboard.press(key)
    raise AssertionError(f"no Tab leads to {name!r}")


def shows_ids(page: Page, *ids: str) -> None:
    """The first column of the result has these values, once its rows are drawn."""
    rows = front(page).locator(".run .grid-row")
    expect(rows).to_have_count(len(ids))
    for place, value in enumerate(ids):
        expect(rows.nth(place).locator("[role=gridcell]").first).to_have_text(value)


def test_a_query_is_saved_shared_changed_by_another_compared_and_restored(
    place: Desk, open_window: Any
) -> None:
    window: Window = open_window(viewport=PHONE, permissions=GRANTED)
    page = sign_in(window, place, "vera")
    window.expected += ["409", "404"]  # a write that is refused, and what was removed
    other = place.visitor("ada")
    go_to(page, "#/data?source=lite&schema=main&table=orders")
    shows(page, "orders", "3 rows, all")
    page.get_by_role("button", name="New query").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(front(page).locator("textarea.code")).to_be_focused()
    page.keyboard.insert_text(TEXT)
    page.keyboard.press("Alt+l")
    said(page, "Save the query first: a link names it, and never holds its text.")
    # Saved, with the type of its parameter, and read by no one else.
    page.keyboard.press("Control+s")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("Big orders")
    key_to(page, "Type of :least")
    page.keyboard.type("decimal")
    key_to(page, "First value of :least")
    page.keyboard.type("80")
    expect(page.locator("#saved-shared-note")).to_have_text("No one else learns that it exists.")
    assert violations(page) == []
    page.keyboard.press("Enter")
    line = front(page).locator(".saved-line")
    expect(line).to_contain_text("Big orders")
    expect(line).to_contain_text("version 1")
    # The first value of the parameter is there; it runs as a number.
    expect(front(page).locator(".parameter input")).to_have_value("80")
    front(page).locator("textarea.code").focus()
    page.keyboard.press("Control+Enter")
    shows_ids(page, "1", "2")
    # Shared: what that shows is said before.
    front(page).get_by_role("button", name="Details").focus()
    page.keyboard.press("Enter")
    # The form has the focus: before, a Tab would go on to the text and indent it.
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    key_to(page, "Who may read its text")
    page.keyboard.press("End")
    expect(page.locator("#saved-shared-note")).to_contain_text(
        "Everyone who may view it, on lite will read this text and all its versions."
    )
    key_to(page, "Save")
    page.keyboard.press("Enter")
    expect(line).to_contain_text("version 2")
    (query,) = other.get("queries").json()["queries"]
    # Another person changes it while this one writes on.
    front(page).locator("textarea.code").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(" DESC")
    expect(line).to_contain_text("edited")
    body = {"version": 2, "text": CHANGED}
    assert other.post(f"queries/{query['id']}", body).status_code == 200
    expect(line).to_contain_text("Changed by ada since you ran it.")
    page.keyboard.press("Control+s")
    expect(page.locator("dialog h2")).to_have_text("ada has changed this query")
    expect(page.locator("dialog .difference del")).to_have_count(2)
    expect(page.locator("dialog .difference ins")).to_have_count(2)
    assert violations(page) == []
    page.keyboard.press("Escape")
    assert other.get(f"queries/{query['id']}").json()["content"]["text"] == CHANGED
    expect(front(page).locator("textarea.code")).to_be_focused()
    page.keyboard.press("Escape")  # so that Tab leaves the text
    key_to(page, "Difference …", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("dialog h2")).to_have_text("What ada has changed")
    key_to(page, "Take the new text")
    page.keyboard.press("Enter")
    expect(front(page).locator("textarea.code")).to_have_value(CHANGED)
    front(page).locator("textarea.code").focus()
    page.keyboard.press("Control+Enter")
    expect(line).not_to_contain_text("Changed by")
    # An earlier version is restored.
    front(page).get_by_role("button", name="Versions").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Version 3")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("dialog h3")).to_contain_text("From version 2")
    assert violations(page) == []
    key_to(page, "Restore this version")
    page.keyboard.press("Enter")
    expect(front(page).locator("textarea.code")).to_have_value(TEXT)
    expect(line).to_contain_text("version 4")
    expect(page.get_by_role("dialog")).to_have_count(0)
    # Its link opens it, and runs nothing.
    page.keyboard.press("Alt+l")
    said(page, "The link is copied.")
    link = copied(page)
    assert link == f"{place.address}/console#/data?query={query['id']}"
    guest = sign_in(open_window(viewport=PHONE), place, "lee", link.partition("/console")[2])
    expect(front(guest).locator("textarea.code")).to_have_value(TEXT)
    expect(front(guest).locator(".run")).to_have_count(0)
    expect(front(guest).get_by_role("button", name="Details")).to_have_count(0)
    # It is found in the list, and removed there.
    page.keyboard.press("Alt+o")
    expect(page.get_by_label("Search saved queries")).to_be_focused()
    page.keyboard.type("big")
    expect(page.locator("#saved-list [role=option]")).to_contain_text("Big orders")
    assert violations(page) == []
    key_to(page, "Delete …")
    page.keyboard.press("Enter")
    key_to(page, "Delete")
    page.keyboard.press("Enter")
    expect(page.locator("dialog.saved .note").last).to_contain_text("Nothing")
    page.keyboard.press("Escape")
    expect(line).to_have_count(0)


def link_of(table: str, **fields: Any) -> str:
    texts = [
        f"{name}={quote(value if isinstance(value, str) else json.dumps(value), safe='')}"
        for name, value in fields.items()
    ]
    return f"#/data?source=lite&schema=main&table={table}&{'&'.join(texts)}"


HOSTILE = (
    "#/data?source=lite&table=orders&where=" + "x" * 20_000,
    "#/data?source=lite&schema=main&table=orders&where=%5B%5B%22id%22",
    "#/data?source=lite&schema=main&table=orders&where=%22id%22",
    "#/data?source=lite&schema=main&table=orders&where=%5B%5B%22id%22%2C%22%3B%20DROP%22%2C%221%22%5D%5D",
    "#/data?source=lite&schema=main&table=orders&sort=%5B%5B%22id%22%2C%22asc%3B%22%5D%5D",
    "#/data?source=lite&schema=main&table=orders&view=javascript:alert(1)",
    "#/data?source=lite&schema=main&table=",
    "#/data?query=../../sign-out",
    "#/data?query=%3Cscript%3Ealert(1)%3C/script%3E",
    "#/data?query=a&table=orders&source=lite",
    "#/data?%E0%A4%A=%&where=%ZZ&source=%",
)
ELSEWHERE = (
    "#https://evil.example/",
    "#/javascript:alert(1)",
    "#/%3Cimg%3E",
)


def test_a_link_shows_what_it_names_and_never_more(place: Desk, open_window: Any) -> None:
    window: Window = open_window(viewport=PHONE, permissions=GRANTED)
    page = sign_in(window, place, "vera", "#/data?source=lite&schema=main&table=ties")
    shows(page, "ties", "60 rows, all")
    # Conditions and order are chosen, and the link is copied.
    front(page).get_by_role("button", name="Filter").focus()
    page.keyboard.press("Enter")
    front(page).get_by_label("Operator of condition 1").focus()
    page.keyboard.type("<")
    front(page).get_by_label("Value of condition 1", exact=True).focus()
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    shows(page, "ties", "4 rows, all")
    page.keyboard.press("Alt+l")
    said(page, "The link is copied.")
    address, _, fragment = copied(page).partition("#")
    assert address == f"{place.address}/console"
    found = rows(page)
    # Another person opens it.
    guest = sign_in(open_window(viewport=PHONE), place, "lee", f"#{fragment}")
    shows(guest, "ties", "4 rows, all")
    assert rows(guest) == found
    assert violations(guest) == []
    # With an order, and another view.
    go_to(page, link_of("ties", where=[["id", "<=", "2"]], sort=[["id", "desc"]]))
    shows(page, "ties", "2 rows, all")
    assert [each[0] for each in rows(page)] == ["2", "1"]
    go_to(page, link_of("ties", view="structure"))
    expect(front(page).locator(".structure")).to_be_visible()
    # A column that is hidden and one that is not there look the same, and show no row.
    window.expected += ["400", "403", "404"]
    texts = []
    for column in ("email", "no_such_column"):
        go_to(page, link_of("customers", where=[[column, "=", "x"]]))
        expect(front(page).locator(".rows-error")).to_contain_text("No rows are shown")
        expect(front(page).locator("[role=gridcell]")).to_have_count(0)
        texts.append(front(page).locator(".rows-error").inner_text())
        go_to(page, link_of("customers", sort=[[column, "asc"]]))
        expect(front(page).locator(".rows-error")).to_contain_text("No rows are shown")
        expect(front(page).locator("[role=gridcell]")).to_have_count(0)
        expect(front(page).get_by_role("button", name="Filter")).to_be_visible()
    assert len(set(texts)) == 1
    assert violations(page) == []
    # A table that is not there, and a source of which the reader knows nothing.
    for hash in (
        "#/data?source=lite&schema=main&table=nothing",
        "#/data?source=none&table=orders",
    ):
        go_to(page, hash)
        expect(page.locator(".data-main > .error")).to_be_visible()
        go_to(page, "#/data")
    # What no link holds does nothing.
    before = page.get_by_role("tab").count()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for hash in HOSTILE:
        go_to(page, hash)
        expect(page.locator(".data-main > .error")).to_contain_text("broken")
        go_to(page, "#/data")
    for hash in ELSEWHERE:
        go_to(page, hash)
        expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    assert [each for each in asked if "data/tabs" in each and each.endswith("/tabs")] == []
    assert all(each.startswith(place.address) for each in asked), asked
    go_to(page, "#/data")
    expect(page.get_by_role("tab")).to_have_count(before)
