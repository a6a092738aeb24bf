"""A browser for the tests of one file, and a canned site and a window for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from products.console.support.chromium import Window, chromium
from products.console.support.console_site import Site, console_site

Open = Callable[..., Window]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def served() -> Iterator[tuple[Site, str]]:
    with console_site() as found:
        yield found


@pytest.fixture
def site(served: tuple[Site, str]) -> Site:
    return served[0]


@pytest.fixture
def url(served: tuple[Site, str]) -> str:
    return served[1]


@pytest.fixture
def open_window(browser: Browser, served: tuple[Site, str]) -> Iterator[Open]:
    """Makes windows; each is closed at the end, before the site is, and fails the test if anything
    went wrong in it."""
    windows: list[Window] = []

    def open_one(**options: Any) -> Window:
        windows.append(Window(browser, **options))
        return windows[-1]

    yield open_one
    for each in windows:
        each.close()


@pytest.fixture
def window(open_window: Open) -> Window:
    return open_window()
