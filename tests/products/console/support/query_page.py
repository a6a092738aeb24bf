"""A query tab in the browser: opened with a text, and what its parts are."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from products.console.support.chromium import Window
from products.console.support.console_site import Site


def open_query(window: Window, site: Site, url: str, text: str = "", source: str = "shop") -> Page:
    """The page with a query tab in front, and the focus in its text."""
    tab = site.data.open({"source": source, "kind": "query", "text": text, "title": "Open orders"})
    page = window.tab(f"{url}#/data?tab={tab['id']}")
    expect(page.locator(".live.on")).to_be_visible()
    editor(page).click()
    page.keyboard.press("Control+Home")
    return page


def editor(page: Page) -> Locator:
    return page.locator(".tab-panel:not([hidden]) textarea.code")


def shown(page: Page) -> str:
    """The text as the coloured layer shows it."""
    return "\n".join(page.locator(".tab-panel:not([hidden]) .code-line").all_text_contents())


def judged(page: Page) -> Locator:
    return page.locator(".judged-text")


def run_line(page: Page) -> Locator:
    return page.locator(".runs-place .run-line")
