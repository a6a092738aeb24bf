"""Names, values and errors that hold markup, on a real server: every page shows them as text."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from playwright.sync_api import Page, expect

from products.console.support.chromium import Window
from products.console.support.console_place import PASSPHRASE, Place, query

EVIL = "<img src=x onerror=\"document.title='owned'\">"
TABLE = EVIL.replace('"', "'")
YES = {"passphrase": PASSPHRASE}


def hostile(place: Place) -> None:
    """Fill the database, the record and the rights with markup."""
    quoted = TABLE.replace('"', '""')
    with closing(sqlite3.connect(place.directory / "towns.db")) as database, database:
        database.execute(f'CREATE TABLE "{quoted}" (id INTEGER PRIMARY KEY, "{quoted}" TEXT)')
        database.execute(f'CREATE INDEX "i{quoted}" ON "{quoted}" ("{quoted}")')
        database.execute(f'INSERT INTO "{quoted}" VALUES (1, ?)', (EVIL,))
    ada = place.visitor()
    rights = {"scope": "readWrite", "sources": ["towns"], "tags": None, "tables": None}
    made = ada.post("access/tokens", {**rights, "name": TABLE, **YES}).json()
    agent = place.agent(made["secret"])
    query(agent, f"SELECT '{EVIL.replace(chr(39), chr(39) * 2)}' AS \"{quoted}\"")
    query(agent, f'SELECT * FROM "no {quoted}"')
    arguments = {"sql": f'UPDATE "{quoted}" SET id = 2', "source": "towns", "reason": EVIL}
    agent.call("query", arguments)
    agent.call("query", {"sql": "SELECT 1", "source": EVIL})


def is_text(page: Page) -> None:
    """Nothing of it is an element or has run."""
    assert page.locator("img[src='x']").count() == 0
    assert page.title() != "owned"


def test_markup_in_names_values_and_errors_is_text_on_every_page(
    place: Place, window: Window
) -> None:
    hostile(place)
    window.expected = ["401", "400", "403"]
    page = window.tab(f"{place.address}/console#/inbox")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Passphrase").fill(PASSPHRASE)
    page.keyboard.press("Enter")
    expect(page.locator(".live.on")).to_be_visible()
    for path in ("#/inbox", "#/access", "#/now", "#/activity?view=calls"):
        page.evaluate(f"location.hash = {path!r}")
        shows = page.get_by_text("<img src=x").filter(visible=True).first
        expect(page.locator("main") if path == "#/now" else shows).to_be_visible()
        is_text(page)
    page.evaluate(
        "table => location.hash = '#/data?source=towns&schema=main&table='"
        " + encodeURIComponent(table)",
        TABLE,
    )
    panel = page.locator(".tab-panel:not([hidden])")
    expect(panel.locator("[role=gridcell]", has_text="<img src=x").first).to_be_visible()
    is_text(page)
    expect(page.locator(".tree-row").first).to_be_visible()
    is_text(page)
