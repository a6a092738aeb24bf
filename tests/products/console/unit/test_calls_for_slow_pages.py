"""Calls under way on the live stream: sent when they have changed, and to no page that lags."""

from __future__ import annotations

from typing import Any

from tidegate.products.console.live import MOST_WAITING, _Reader


class Page:
    """A page that reads as much as the test says."""

    def __init__(self) -> None:
        self.backlog = 0
        self.got: list[bytes] = []

    def push(self, data: bytes) -> None:
        self.got.append(data)

    def abort(self) -> None:
        raise AssertionError("a page is not cut off because of calls under way")


def test_a_list_is_sent_once_until_it_changes() -> None:
    page: Any = Page()
    reader = _Reader(page, None)  # type: ignore[arg-type] - who looks does not matter here
    for body in (b"[1]", b"[1]", b"[2]", b"[1]"):
        reader.send_calls(body, 7)
    assert [b"[1]" in each for each in page.got] == [True, False, True]
    assert page.got[0] == b"id: 7\nevent: now\ndata: [1]\n\n"


def test_a_page_that_lags_gets_the_last_list_when_it_has_caught_up() -> None:
    page: Any = Page()
    reader = _Reader(page, None)  # type: ignore[arg-type]
    reader.send_calls(b"[1]", 1)
    page.backlog = MOST_WAITING + 1
    for number in range(2, 1_000):
        reader.send_calls(b"[%d]" % number, 1)
    assert len(page.got) == 1
    page.backlog = 0
    reader.send_calls(b"[999]", 1)
    assert len(page.got) == 2 and b"[999]" in page.got[-1]
