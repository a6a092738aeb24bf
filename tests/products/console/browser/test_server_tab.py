"""The server of a source in Chromium: who waits for whom, and a session that is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import support.postgres_server as postgres_server
from products.console.browser.test_real_data import sign_in
from products.console.support.chromium import Window, violations
from support.data_desk import PASSPHRASE, Desk, answer, desk
from support.eventually import wait_until

SLEEP = "SELECT pg_sleep(120) AS slept_in_the_tab"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Desk]:
    flags = {"pg": ["--changes", "allow"]}
    with desk(tmp_path, ("lite", "pg"), flags, masks=False) as found:
        yield found


def open_server(window: Window, place: Desk) -> Page:
    page = sign_in(window, place)
    expect(page.locator(".tree-row").first).to_be_visible()
    page.get_by_role("button", name="New tab of another kind").press("Enter")
    page.get_by_label("Kind", exact=True).select_option("serverDashboard")
    page.get_by_label("Source", exact=True).select_option("pg")
    page.get_by_role("button", name="Open").press("Enter")
    return page


def begin_sleep() -> threading.Thread:
    def sleep() -> None:
        with suppress(Exception):  # it is cancelled
            postgres_server.shared().ask(SLEEP)

    thread = threading.Thread(target=sleep, daemon=True)
    thread.start()
    return thread


def allow(place: Desk) -> None:
    """Another operator says yes."""
    visitor = place.visitor("pru")
    (card,) = answer(visitor.get("inbox"))["pending"]
    body = {"digest": card["digest"], "passphrase": PASSPHRASE}
    answer(visitor.post(f"inbox/{card['id']}/allow", body))


def test_what_a_session_runs_is_seen_and_cancelled_by_keyboard(place: Desk, window: Window) -> None:
    sleeper = begin_sleep()
    page = open_server(window, place)
    sessions = page.locator(
        "section.part", has=page.get_by_role("heading", name="Sessions", exact=True)
    )
    row = sessions.locator("tr", has_text="slept_in_the_tab").filter(has_text="PgSleep")

    def seen() -> bool:
        page.get_by_role("button", name="Read again").press("Enter")
        return row.locator("button").count() == 1

    expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    wait_until(seen, "the session")
    expect(page.get_by_role("heading", name="Sizes")).to_be_visible()
    assert violations(page) == []
    row.get_by_role("button").press("Enter")
    page.get_by_label("What for").fill("it blocks the night's work")
    assert violations(page) == []
    page.get_by_role("button", name="Ask for it").press("Enter")
    now = page.get_by_role("button", name="Cancel now")
    expect(now).to_be_visible()
    allow(place)
    assert sleeper.is_alive()
    now.press("Enter")
    expect(page.locator(".server .notice")).to_contain_text("The statement was cancelled")
    sleeper.join(timeout=30)
    assert not sleeper.is_alive()
    page.set_viewport_size({"width": 390, "height": 800})
    assert violations(page) == []
