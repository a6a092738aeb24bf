"""The card of a question in Chromium, and its button that allows."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


def allow_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Allow once")


def ready(page: Page) -> None:
    expect(allow_button(page)).to_have_attribute("aria-disabled", "false")


def click_allow(page: Page) -> None:
    """Click it as a person would who has read the card: the pointer is there before the click."""
    button = allow_button(page)
    button.hover()
    ready(page)
    button.click()
    if button.evaluate_all("all => all.some((each) => each.ariaDisabled === 'true')"):
        # The page had scrolled to the button, and sees that at the click: it is dead for a moment.
        ready(page)
        button.click()
