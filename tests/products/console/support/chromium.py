"""Debian's Chromium, driven by Playwright; and axe-core, which looks for what keeps people out.

The headless shell is the same engine without the windows of the browser: half the CPU of
`chromium --headless`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from external.install import node_modules

ARGUMENTS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WAIT_MS = 15_000
NARROW = {"width": 360, "height": 740}
WIDE = {"width": 1280, "height": 800}
LOOKS = [
    pytest.param("light", WIDE, id="light"),
    pytest.param("dark", NARROW, id="narrow-dark"),
]
"""Colour schemes and sizes of the window, for `("scheme", "size")`: no colour depends on the size,
and no place on the scheme."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own, which is thrown away with it."""
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        pytest.skip("needs Chromium (Debian's package chromium-headless-shell), which is not here")
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Window:
    """Tabs of one browser profile, and what went wrong in them."""

    def __init__(self, browser: Browser, **options: Any) -> None:
        self.context: BrowserContext = browser.new_context(**{"viewport": WIDE, **options})
        self.context.set_default_timeout(WAIT_MS)
        self.errors: list[str] = []
        self.expected: list[str] = []
        """Parts of errors that the test brings about."""

    def tab(self, url: str | None = None) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(f"error: {error}"))
        page.on("console", lambda entry: self._note(entry.type, entry.text))
        page.bring_to_front()
        if url is not None:
            page.goto(url)
        return page

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.errors.append(f"{kind}: {text}")

    def close(self) -> None:
        found = [*self.errors]  # what comes while the page is measured is of its end
        for page in self.context.pages:
            found += scrolled(page)
        self.context.close()
        left = [each for each in found if not any(part in each for part in self.expected)]
        assert not left, "\n".join(left)


def scrolled(page: Page) -> list[str]:
    """That the document is larger than the window, or that a part which scrolls down is wider than
    its place. A bar for it does not show here, so it is measured."""
    sizes = page.evaluate(
        "(({ scrollWidth, scrollHeight }) => [scrollWidth, innerWidth, scrollHeight, innerHeight])"
        "(document.documentElement)"
    )
    width, window_width, height, window_height = sizes
    fits = width <= window_width and height <= window_height
    wide: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("main, .pane, .list, .card-scroll, .panel, .access")]
            .filter((part) => part.scrollWidth > part.clientWidth)
            .map((part) => `${part.className || part.tagName} scrolls sideways`)"""
    )
    return wide if fits else [f"{page.url} is {width}x{height} in {window_width}x{window_height}"]


def broken_words(page: Page) -> list[str]:
    """Words of an ordinary length in cells of tables that do not stand in one line."""
    found: list[str] = page.evaluate(
        r"""() => [...document.querySelectorAll("td, th")].flatMap((cell) => {
            const found = [];
            const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
            while (texts.nextNode()) {
                const node = texts.currentNode;
                for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}_]{2,24}/gu)) {
                    const range = document.createRange();
                    range.setStart(node, index);
                    range.setEnd(node, index + word.length);
                    const tops = [...range.getClientRects()].map(({ top }) => Math.round(top));
                    if (new Set(tops).size > 1) found.push(word);
                }
            }
            return found;
        })"""
    )
    return found


@cache
def _axe() -> str:
    return (node_modules() / "axe-core" / "axe.min.js").read_text()


def violations(page: Page) -> list[str]:
    """What axe finds wrong with the page as it is, by the rules of WCAG 2.2 AA and its own."""
    page.evaluate(_axe())
    found: list[dict[str, Any]] = page.evaluate(
        """async () => (await axe.run(document, {
            runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
            resultTypes: ["violations"],
        })).violations"""
    )
    return [
        f"{each['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]
