"""The page Now, with canned answers: what is live, Cancel, the plots by keyboard, all looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from products.console.support import console_cards as canned
from products.console.support.chromium import LOOKS, NARROW, Window, violations
from products.console.support.console_site import Site

H = canned.HOSTILE


def opened(window: Window, url: str) -> Page:
    page = window.tab(f"{url}#/now")
    expect(page.locator(".live.on")).to_be_visible()
    expect(page.locator(".plot path.line").first).to_be_attached()
    return page


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_axe_finds_nothing_wrong_in_any_look(
    open_window: Any, site: Site, url: str, tmp_path: Path, scheme: str, size: dict[str, int]
) -> None:
    site.now["record"]["problems"] = {"audit": "the audit log cannot be written"}
    site.now["webhook"] = canned.webhook(
        state="failing", message="it answered with HTTP status 500", since=1e9, waiting=3
    )
    window: Window = open_window(color_scheme=scheme, viewport=size, reduced_motion="reduce")
    page = opened(window, url)
    for name in ("now", "now-tables"):
        page.screenshot(path=tmp_path / f"{name}.png")
        page.locator(".now").evaluate("each => (each.scrollTop = 420)")
        page.screenshot(path=tmp_path / f"{name}-below.png")
        page.locator(".now").evaluate("each => (each.scrollTop = each.scrollHeight)")
        page.screenshot(path=tmp_path / f"{name}-end.png")
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        if name == "now":
            page.locator(".now").evaluate("each => (each.scrollTop = 0)")
            page.locator("summary").first.click()
            expect(page.locator(".plot details table").first).to_be_visible()


def test_the_rail_the_palette_and_the_address_lead_to_it(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(url)
    expect(page.locator(".live.on")).to_be_visible()
    page.get_by_role("link", name="Now", exact=True).click()
    expect(page.get_by_role("heading", name="Calls under way")).to_be_visible()
    page.goto(f"{url}#/inbox")
    page.keyboard.press("Control+k")
    page.keyboard.type("now")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Calls under way")).to_be_visible()


def test_gates_that_do_not_answer_are_named(window: Window, site: Site, url: str) -> None:
    page = opened(window, url)
    table = page.get_by_label("Gates on this state")
    expect(table.locator("tbody tr")).to_have_count(3)
    expect(table.locator("tbody tr").nth(1)).to_contain_text("two.example:/state")
    expect(table.locator("tbody tr").nth(1)).to_contain_text("does not answer")
    expect(table.locator(".bad")).to_have_count(2)


def test_calls_come_and_go_and_keep_their_place_and_focus(
    window: Window, site: Site, url: str
) -> None:
    page = opened(window, url)
    calls = page.locator(".running-call")
    expect(calls).to_have_count(3)
    page.get_by_role("button", name="Cancel the call of analyst").nth(2).focus()
    later = [canned.running_call(3, rows=1_024), canned.running_call(4, state="queued")]
    site.publish("now", {"calls": later, "more": 7})
    expect(calls).to_have_count(2)
    expect(calls.first).to_contain_text("1,024 rows")
    expect(calls.last).to_contain_text("queued")
    expect(page.get_by_text("and 7 calls more")).to_be_visible()
    assert page.evaluate("document.activeElement.closest('[data-call]').dataset.call") == "run-3"
    site.publish("now", {"calls": [], "more": 0})
    expect(page.get_by_text("No call is under way.")).to_be_visible()


def test_cancel_asks_and_then_ends_exactly_that_call(window: Window, site: Site, url: str) -> None:
    page = opened(window, url)
    page.get_by_role("button", name="Cancel the call of analyst").nth(1).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("interrupted in the database")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert not [path for path, _ in site.posts if path.startswith("now/")]
    page.get_by_role("button", name="Cancel the call of analyst").nth(1).click()
    dialog.get_by_role("button", name="Cancel the call").click()
    expect(page.locator("#said")).to_have_text("The call is cancelled.")
    assert site.posted("now/calls/run-2/cancel") == [{}]


def test_who_may_not_end_a_call_has_no_button_and_reads_no_hidden_statement(
    window: Window, site: Site, url: str
) -> None:
    call = canned.running_call(1, may_cancel=False, withheld=True, statement="")
    site.now["calls"] = [call, canned.running_call(2, state="cancelling")]
    page = opened(window, url)
    expect(page.locator(".running-call")).to_have_count(2)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    expect(page.locator(".running-call").first).to_contain_text("for approvers alone")


def test_the_arrow_keys_move_over_the_points_of_a_plot(
    window: Window, site: Site, url: str
) -> None:
    page = opened(window, url)
    plot = page.locator(".plot-calls")
    slider = plot.get_by_role("slider")
    slider.focus()
    readout = plot.locator(".readout")
    last = readout.inner_text()
    page.keyboard.press("ArrowLeft")
    expect(readout).not_to_have_text(last)
    expect(plot.locator(".cursor")).to_have_count(1)
    expect(slider).to_have_attribute("aria-valuenow", "58")
    value = slider.get_attribute("aria-valuetext") or ""
    assert value == readout.inner_text() and "answered" in value and "denied" in value
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("PageUp")
    expect(slider).to_have_attribute("aria-valuenow", "10")
    page.keyboard.press("End")
    expect(readout).to_have_text(last)
    page.keyboard.press("Escape")
    expect(plot.locator(".cursor")).to_have_count(0)


def test_the_table_has_what_the_plot_shows(window: Window, site: Site, url: str) -> None:
    page = opened(window, url)
    plot = page.locator(".plot-times")
    plot.locator("summary").click()
    rows = plot.locator("tbody tr")
    expect(rows).to_have_count(60)
    times = canned.now_page()["figures"]["p50"]
    expect(rows.last.locator("td").first).to_have_text(f"{times[0]:g} ms")
    gap = times.index(None)
    expect(rows.nth(59 - gap).locator("td").first).to_have_text("–")


def test_the_day_has_its_own_steps(window: Window, site: Site, url: str) -> None:
    page = opened(window, url)
    page.get_by_role("button", name="Last day").click()
    slider = page.locator(".plot-calls").get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuemax", "143")
    expect(page.get_by_role("button", name="Last day")).to_have_attribute("aria-pressed", "true")


def test_no_text_of_others_becomes_markup_or_turns_the_page_around(
    open_window: Any, site: Site, url: str, tmp_path: Path
) -> None:
    texts = [H, canned.RTL, canned.BIDI, canned.FAMILY, "x" * 3_000]
    site.now["calls"] = [
        canned.running_call(
            at, actor_name=text, client=text, tool=text, statement=text, surface=text,
            source={"name": text, "color": 1}, state="running",
        )
        for at, text in enumerate(texts)
    ]  # fmt: skip
    site.now["sources"] = [
        {**site.now["sources"][0], "name": text, "error": text} for text in texts
    ]
    site.now["record"]["problems"] = {H: canned.BIDI}
    site.now["webhook"] = canned.webhook(state="failing", message=H + canned.BIDI)
    window: Window = open_window(viewport=NARROW)
    page = opened(window, url)
    expect(page.locator(".running-call")).to_have_count(len(texts))
    page.screenshot(path=tmp_path / "hostile.png")
    assert page.evaluate("window.hacked") is None
    assert page.locator(".now img, .now script").count() == 0
    assert page.locator(".now .mark").count() > 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []


def test_the_inbox_says_that_messages_do_not_arrive(window: Window, site: Site, url: str) -> None:
    site.webhook = canned.webhook(
        state="failing", message="it answered with HTTP status 500", since=1e9, waiting=2
    )
    page = window.tab(url)
    note = page.locator(".webhook-note")
    expect(note).to_contain_text("The webhook fails since")
    expect(note).to_contain_text("HTTP status 500. 2 messages wait.")
    assert violations(page) == []


def test_figures_come_as_soon_as_the_record_was_read(window: Window, site: Site, url: str) -> None:
    site.complete = False
    page = opened(window, url)
    note = page.get_by_text("Reading the record of the last day")
    expect(note).to_be_visible()
    site.complete = True
    expect(note).to_have_count(0, timeout=5_000)


def test_a_refused_request_is_said_and_the_page_stays(window: Window, site: Site, url: str) -> None:
    window.expected = ["403"]
    page = opened(window, url)
    site.refusals["now/calls/run-1/cancel"] = (
        403,
        {"error": "policy.denied", "message": "You may look.", "hint": "Ask an admin."},
    )
    page.get_by_role("button", name="Cancel the call of analyst").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the call").click()
    expect(page.get_by_role("alert")).to_have_text("You may look. Ask an admin.")
    expect(page.locator(".running-call")).to_have_count(3)
