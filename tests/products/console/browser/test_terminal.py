"""A terminal in Chromium, by keyboard alone: statements, words with a backslash, a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from products.console.browser.test_real_data import sign_in
from products.console.support.chromium import Window, violations
from support.data_desk import Desk, desk

INSERT = "INSERT INTO keyless (a, b) VALUES (7, 'typed');"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path, ("lite",), {"lite": ["--changes", "allow"]}) as found:
        yield found


def open_terminal(window: Window, place: Desk) -> Page:
    page = sign_in(window, place)
    window.expected += ["400"]
    expect(page.locator(".tree-row").first).to_be_visible()
    page.get_by_role("button", name="New tab of another kind").press("Enter")
    page.get_by_label("Kind", exact=True).select_option("terminal")
    page.get_by_role("button", name="Open").press("Enter")
    expect(page.get_by_label("lite=>")).to_be_visible()
    page.get_by_label("lite=>").focus()
    return page


def send(page: Page, text: str) -> None:
    """Type a line, once the one before is done."""
    expect(page.get_by_role("status").filter(has_text="Ready")).to_be_visible()
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def last(page: Page, text: str) -> None:
    expect(page.locator(".terminal .entry").last).to_contain_text(text)


def test_a_person_works_in_a_transcript(place: Desk, window: Window) -> None:
    page = open_terminal(window, place)
    send(page, "SELECT id, name, email")
    page.keyboard.type("FROM customers")
    page.keyboard.press("Enter")
    page.keyboard.type("ORDER BY id;")
    page.keyboard.press("Enter")
    last(page, "customers.email is masked")
    expect(page.locator(".terminal .entry.note", has_text="(3 rows)")).to_have_count(1)
    table = page.locator(".terminal .entry.out").last
    expect(table).to_contain_text(" id | name    | email")
    expect(table).not_to_contain_text("example.org")
    assert violations(page) == []

    send(page, r"\d orders")
    last(page, "(customer_id) refers to customers (id)")
    send(page, r"\dt cust")
    last(page, "(1 table)")
    send(page, r"\x")
    send(page, r"\timing on")
    send(page, "SELECT 1 AS one; SELECT 2 AS two;")
    expect(page.locator(".terminal .entry.out").last).to_contain_text("-[ record 1 ]")
    expect(page.locator(".terminal .entry.out").last).to_contain_text("two | 2")
    last(page, "Time: ")
    send(page, r"\! ls")
    expect(page.locator(".terminal .entry.bad").last).to_contain_text("There is no shell")

    send(page, "BEGIN;")
    expect(page.get_by_label("lite*>")).to_be_visible()
    expect(page.locator(".terminal-block")).to_contain_text("rolled back if idle for")
    send(page, INSERT)
    # On the way to the Inbox and back it stays open, and what was being written is there.
    expect(page.get_by_role("status").filter(has_text="Ready")).to_be_visible()
    page.keyboard.type("ROLL")
    page.evaluate("location.hash = '#/inbox'")
    expect(page.locator(".terminal")).to_have_count(0)
    page.go_back()
    expect(page.get_by_label("lite*>")).to_have_value("ROLL")
    expect(page.locator(".terminal .entry.asked", has_text="BEGIN")).to_have_count(1)
    page.get_by_label("lite*>").focus()
    page.keyboard.type("BACK;")
    page.keyboard.press("Enter")
    expect(page.get_by_label("lite=>")).to_be_visible()
    send(page, "SELECT count(*) AS n FROM keyless WHERE b = 'typed';")
    expect(page.locator(".terminal .entry.out").last).to_contain_text("n | 0")
    expect(page.get_by_role("status").filter(has_text="Ready")).to_be_visible()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("lite=>")).to_have_value("ROLLBACK;")
    page.keyboard.press("Control+c")
    send(page, "SELECT nothing FROM nowhere;")
    expect(page.locator(".terminal .entry.bad").last).to_contain_text("nowhere")
    page.set_viewport_size({"width": 390, "height": 800})
    assert violations(page) == []
    page.keyboard.press("Control+l")
    expect(page.locator(".terminal .entry.out")).to_have_count(0)
