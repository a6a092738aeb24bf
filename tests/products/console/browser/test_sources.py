"""Sources in Chromium, by the keyboard alone on a narrow screen, against a real server: added,
tried, looked at before and after, changed, seen in its color, renamed and removed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import httpx
from playwright.sync_api import Page, expect

from products.console.support.chromium import Window, scrolled, violations
from products.console.support.console_place import PASSPHRASE, Place
from support.audit_records import records

PHONE = {"width": 390, "height": 844}


def tab_to(page: Page, name: str) -> None:
    """Go on by the Tab key to a control that begins with the name, or has it as its label."""
    for _ in range(90):
        page.keyboard.press("Tab")
        words = """() => {
            const here = document.activeElement;
            return [here.textContent, ...[...(here.labels ?? [])].map((each) => each.textContent)];
        }"""
        if any(each.strip().startswith(name) for each in page.evaluate(words)):
            return
    raise AssertionError(f"Tab does not reach {name!r}")


def press(page: Page, name: str) -> None:
    tab_to(page, name)
    page.keyboard.press("Space")


def write(page: Page, name: str, text: str) -> None:
    tab_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def test_a_source_is_added_changed_renamed_and_removed_by_keys_on_a_narrow_screen(
    place: Place, window: Window
) -> None:
    window.expected = ["401", "403", "400"]
    database = place.directory / "sites.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE sites (id INTEGER PRIMARY KEY, owner TEXT)")
    consent = ("--passphrase-file", str(place.directory / "consent"))
    assert place.run("token", "create", "claude", "--scope", "readWrite", *consent).status == 0
    page = window.tab(f"{place.address}/console#sign-in={place.link('ada')}")
    page.set_viewport_size(PHONE)
    expect(page.locator(".live.on")).to_be_visible()
    page.goto(f"{place.address}/console#/access/sources")
    expect(page.get_by_role("button", name="Change … towns")).to_be_visible()
    assert violations(page) == [] and scrolled(page) == []

    # No file may be opened until the settings list its folder.
    press(page, "Add a source")
    write(page, "Name", "sites")
    write(page, "URL", f"sqlite:///{database}")
    press(page, "Look at what changes")
    expect(page.get_by_role("alert")).to_contain_text("console.source_folders")
    place.settings(f'console.source_folders = ["{place.directory}"]\n')
    press(page, "Try it")
    page.keyboard.type(PASSPHRASE)
    press(page, "Open it")
    expect(page.locator(".tried")).to_contain_text("It opens: 1 table")
    assert violations(page) == []
    page.locator("summary", has_text="What callers may do").focus()
    page.keyboard.press("Enter")
    tab_to(page, "Access")
    page.keyboard.type("write")
    expect(page.locator(".tried")).to_have_count(0)  # that was said of what was typed before
    page.locator("summary", has_text="How people see it").focus()
    page.keyboard.press("Enter")
    tab_to(page, "Color")
    page.keyboard.type("red")
    write(page, "Group", "live")
    page.get_by_role("button", name="Look at what changes").focus()
    page.keyboard.press("Space")
    review = page.get_by_role("dialog", name="Add sites")
    expect(review).to_contain_text("tidegate source add sites")
    expect(review.locator("tr", has_text="claude").locator(".change").first).to_contain_text("no")
    assert violations(page) == []
    review.get_by_label("Your passphrase").focus()
    page.keyboard.type(PASSPHRASE)
    press(page, "Add it")
    expect(page.get_by_role("dialog")).to_have_count(0)
    row = page.locator(".records tr", has_text="sites")
    expect(row.locator(".chip.chosen-color")).to_contain_text("live / sites")
    assert violations(page) == [] and scrolled(page) == []

    # Somebody changes it meanwhile: nothing is saved, and what was typed is still there.
    page.get_by_role("button", name="Change … sites").focus()
    page.keyboard.press("Enter")
    page.locator("summary", has_text="What callers do not see").focus()
    page.keyboard.press("Enter")
    write(page, "Masks", "sites.owner=hash")
    assert place.run("source", "update", "sites", "--tag", "eu", *consent).status == 0
    window.expected.append("409")
    page.get_by_role("button", name="Look at what changes").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("alert")).to_contain_text("meanwhile")
    expect(page.get_by_label("Masks")).to_have_value("sites.owner=hash")
    # One Escape drops nothing that was typed.
    page.keyboard.press("Escape")
    expect(page.locator("#said")).to_have_text("Escape once more drops what was typed.")
    expect(page.get_by_label("Masks")).to_have_value("sites.owner=hash")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.reload()
    page.get_by_role("button", name="Change … sites").focus()
    page.keyboard.press("Enter")
    page.locator("summary", has_text="What callers do not see").focus()
    page.keyboard.press("Enter")
    write(page, "Masks", "sites.owner=hash")
    page.get_by_role("button", name="Look at what changes").focus()
    page.keyboard.press("Space")
    review = page.get_by_role("dialog", name="Change sites").last
    expect(review.locator("ins", has_text="owner shows hash").first).to_be_visible()
    expect(review.get_by_label("Your passphrase")).to_have_count(0)  # it only takes away
    press(page, "Change it")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(row).to_contain_text("1 mask")

    # Its color is seen before one types.
    page.goto(f"{place.address}/console#/data")
    page.get_by_role("button", name="Tables", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".tree-row.is-group", has_text="live")).to_be_visible()
    expect(page.locator(".tree-row.chosen-color")).to_contain_text("sites")
    page.keyboard.press("Escape")
    page.goto(f"{place.address}/console#/access/sources")
    page.get_by_role("button", name="Rename … sites").focus()
    page.keyboard.press("Enter")
    write(page, "New name", "places")
    press(page, "Look at what changes")
    page.get_by_role("dialog", name="Rename sites to places").get_by_label(
        "Your passphrase"
    ).focus()
    page.keyboard.type(PASSPHRASE)
    press(page, "Rename it")
    page.get_by_role("button", name="Remove … places").focus()
    page.keyboard.press("Enter")
    press(page, "Remove")
    expect(page.get_by_role("button", name="Remove … places")).to_have_count(0)
    assert violations(page) == []
    assert place.run("source", "show", "places").status != 0
    assert PASSPHRASE not in json.dumps(records(place.state))
    assert PASSPHRASE not in page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    httpx.get(f"{place.address}/health").raise_for_status()
