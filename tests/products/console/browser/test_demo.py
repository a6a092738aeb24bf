"""The demo as a newcomer has it: its agent asks, a person reads, allows, and puts the rows back."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from playwright.sync_api import expect

from products.console.support.chromium import Window
from support.command_line import Serving, serving


def until(server: Serving, pattern: str) -> re.Match[str]:
    """The first match in what the demo shows."""
    while line := server.line():
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"the demo never showed {pattern}")


def prices(database: Path) -> list[int]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT price_cents FROM products WHERE id <= 3 ORDER BY id")
        return [price for (price,) in rows]


def test_a_newcomer_answers_the_agent_of_the_demo_and_puts_the_rows_back(
    tmp_path: Path, window: Window
) -> None:
    state = tmp_path / "demo"
    with serving(["demo", "--port", "0", "--state", str(state)], state) as server:
        link = until(server, r"http://\S+#sign-in=\S+")[0]
        passphrase = until(server, r"tide-[0-9a-f]{6}")[0]
        until(server, "query UPDATE products")
        before = prices(state / "shop.db")

        page = window.tab(link)
        expect(page.locator("#card-title")).to_contain_text(
            "tidegate-demo wants to change 3 rows of products on desk"
        )
        expect(page.get_by_text("on sale this week")).to_be_visible()
        expect(page.locator(".fact.good")).to_contain_text("Can be taken back")
        expect(page.locator("td.change").first).to_contain_text(f"{before[0]} → ")
        allow = page.get_by_role("button", name="Allow once")
        allow.hover()
        expect(allow).to_have_attribute("aria-disabled", "false")
        allow.click()
        page.get_by_label("Your passphrase").fill(passphrase)
        page.keyboard.press("Enter")
        expect(page.locator(".steps")).to_contain_text("Done: 3 rows")
        until(server, "it ran after your yes")
        assert prices(state / "shop.db") == [price * 9 // 10 for price in before]

        page.get_by_role("link", name="Activity").click()
        page.get_by_role("button", name="Calls", exact=True).click()
        page.get_by_label("Search").fill("price_cents")
        page.keyboard.press("Enter")
        page.locator(".line", has_text="UPDATE products").first.click()
        panel = page.locator(".panel")
        expect(panel.locator(".proof-line")).not_to_be_empty()
        panel.get_by_role("button", name="Put these rows back").click()
        expect(page.get_by_role("dialog").locator("td.change").first).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.locator("#said")).to_have_text("3 rows put back.")
        assert prices(state / "shop.db") == before
        page.close()  # before the server ends, which the page would report
