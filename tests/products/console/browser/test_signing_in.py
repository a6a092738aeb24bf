"""Signing in and out, and what becomes of the page when the session or the server goes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from products.console.support import console_cards as canned
from products.console.support.chromium import Window
from products.console.support.console_site import Site
from support.eventually import wait_until

EIGHT = 8


def is_signed_in(page: Page) -> None:
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()


def test_a_link_signs_in_and_its_secret_leaves_the_address_at_once(
    window: Window, site: Site, url: str
) -> None:
    site.session = None
    page = window.tab(f"{url}#sign-in={site.link}")
    is_signed_in(page)
    assert page.url == f"{url}#/inbox"
    assert site.posts[0] == ("sign-in", {"link": site.link})
    page.go_back()
    assert site.link not in page.url


def test_a_used_link_leads_to_the_form_with_the_reason(
    window: Window, site: Site, url: str
) -> None:
    site.session = None
    window.expected = ["403"]
    refusal = {
        "error": "auth.invalid",
        "message": "It was used.",
        "hint": "Run `tidegate console`.",
    }
    site.refusals["sign-in"] = (403, refusal)
    page = window.tab(f"{url}#sign-in=used")
    notice = page.get_by_role("status").first
    expect(notice).to_have_text("It was used. Run tidegate console.")
    expect(notice.locator("code")).to_have_text("tidegate console")
    assert "used" not in page.url


def test_name_and_passphrase_sign_in_by_keys_alone(window: Window, site: Site, url: str) -> None:
    site.session = None
    window.expected = ["401", "403"]
    page = window.tab(f"{url}#/access")
    expect(page.get_by_label("Name")).to_be_focused()
    page.keyboard.type("ann")
    page.keyboard.press("Tab")
    page.keyboard.type("a guess")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Name or passphrase is wrong.")
    expect(page.get_by_label("Passphrase")).to_be_focused()
    page.keyboard.type(site.passphrase)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Access", exact=True)).to_be_visible()


def test_nothing_of_a_source_is_kept_in_the_browser(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    expect(page.locator("#card-title")).to_be_visible()
    page.get_by_role("button", name="ann").click()
    page.get_by_label("Look").select_option("dark")
    kept = page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    assert kept == '{"tidegate.theme":"dark"}'
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_signing_out_takes_the_data_off_the_page(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    expect(page.locator("#card-title")).to_be_visible()
    page.get_by_role("button", name="ann").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("status").first).to_have_text("You are signed out.")
    assert "orders" not in page.content()
    assert site.posted("sign-out") == [{"everywhere": False}]


def test_the_end_of_a_session_leads_to_signing_in_with_the_reason(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1))
    window.expected = ["401"]
    page = window.tab(url)
    expect(page.locator(".live.on")).to_be_visible()
    site.session = None
    site.publish("end", {"reason": "You were signed out by bob."})
    expect(page.get_by_role("status").first).to_have_text("You were signed out by bob.")
    assert "orders" not in page.content()


def test_a_change_of_roles_is_shown_at_once(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1))
    page = window.tab(url)
    allow = page.get_by_role("button", name="Allow once")
    expect(allow).to_have_attribute("aria-disabled", "false")
    roles = [{"role": "viewer", "sources": ["shop"]}]
    site.session = canned.session(operator={"name": "ann", "roles": roles})
    site.add(canned.card(1, may=canned.may(allow=False, deny=False, why_not="You may look.")))
    site.publish("reload", {})
    expect(page.get_by_text("You may look.")).to_be_visible()
    expect(allow).to_have_count(0)
    page.get_by_role("button", name="ann").click()
    expect(page.locator("#me")).to_contain_text("viewer of shop")


def test_allow_waits_while_the_page_is_not_live(window: Window, site: Site, url: str) -> None:
    site.add(canned.card(1))
    window.expected = ["503"]
    page = window.tab(url)
    allow = page.get_by_role("button", name="Allow once")
    expect(allow).to_have_attribute("aria-disabled", "false")
    site.cut_streams()
    expect(page.locator(".bars")).to_contain_text("Not live since")
    expect(allow).to_have_attribute("aria-disabled", "true")
    allow.click(force=True)
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    site.serves_events = True
    expect(allow).to_have_attribute("aria-disabled", "false")
    expect(page.locator(".bars")).to_be_empty()
    assert not site.posted("inbox/ask-1/allow")


def test_an_offline_page_says_so_and_goes_on_when_it_is_back(
    window: Window, site: Site, url: str
) -> None:
    site.add(canned.card(1))
    window.expected = ["ERR_INTERNET_DISCONNECTED", "503"]
    page = window.tab(url)
    allow = page.get_by_role("button", name="Allow once")
    expect(allow).to_have_attribute("aria-disabled", "false")
    window.context.set_offline(True)
    site.cut_streams()
    expect(page.locator(".bars")).to_contain_text("Not live since")
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    site.serves_events = True
    window.context.set_offline(False)
    expect(allow).to_have_attribute("aria-disabled", "false")
    assert site.cards["ask-1"]["state"] == "pending"


def test_another_build_offers_to_load_the_new_page(window: Window, site: Site, url: str) -> None:
    window.expected = ["503"]
    page = window.tab(url)
    expect(page.locator(".live.on")).to_be_visible()
    site.build = "build-2"
    site.publish("hello", {"seq": site.seq, "build": site.build, "now": 1e9})
    page.get_by_role("button", name="Load the new page").click()
    is_signed_in(page)
    expect(page.locator(".live.on")).to_be_visible()
    expect(page.locator(".bars")).to_be_empty()


def test_a_page_of_an_earlier_build_gets_no_file_of_the_new_one(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(url)
    expect(page.locator(".rail")).to_be_visible()
    site.build = "build-2"
    window.expected += ["404"]
    page.get_by_role("link", name="Activity").click()
    expect(page.locator(".bar")).to_contain_text("Tidegate has been updated")
    page.get_by_role("button", name="Load the new page").click()
    expect(page.locator("h1")).to_have_text("Activity")
    loaded = page.evaluate(
        "performance.getEntriesByType('resource').map((each) => each.name)"
        ".filter((name) => name.includes('/assets/'))"
    )
    assert loaded and all("/assets/build-2/" in each for each in loaded)


def test_a_page_whose_files_are_gone_says_what_to_do(window: Window, site: Site, url: str) -> None:
    window.expected += ["404"]
    page = window.tab()
    page.route("**/app.js", lambda route: route.fulfill(status=404, body=""))
    page.goto(url)
    expect(page.get_by_role("link", name="load it again")).to_be_visible()


def test_after_a_gap_everything_is_loaded_again(window: Window, site: Site, url: str) -> None:
    page = window.tab(url)
    expect(page.locator(".live.on")).to_be_visible()
    site.add(canned.card(1))
    site.publish("reload", {})
    expect(page.locator("#card-title")).to_be_visible()


def test_eight_tabs_share_one_stream_and_another_goes_on_when_its_tab_closes(
    window: Window, site: Site, url: str
) -> None:
    tabs = [window.tab(url) for _ in range(EIGHT)]
    for each in tabs:
        expect(each.locator(".live.on")).to_be_visible()
    site.put(canned.card(1))
    for each in tabs:
        expect(each.locator(".row.pending")).to_have_count(1)
    assert site.most_streams == 1
    for each in tabs[:2]:
        each.close()
    site.put(canned.card(2))
    for each in tabs[2:]:
        expect(each.locator(".row.pending")).to_have_count(2)
    # The server notices that a tab has closed when it next writes to it.
    wait_until(lambda: len(site.streams) == 1, "one stream is left")


@pytest.mark.parametrize("path", ["#/nowhere", "#/inbox/%E0%A4%A", "#/activity?line=x&view=%"])
def test_an_address_that_leads_nowhere_is_no_error_of_the_page(
    window: Window, site: Site, url: str, path: str
) -> None:
    window.expected = ["404"]
    page = window.tab(url + path)
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    expect(page.get_by_role("main")).not_to_be_empty()
