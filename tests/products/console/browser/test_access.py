"""Access in Chromium: tokens made and shown once, requests answered by no Enter, operators invited,
the matrix by keys; against canned answers, and against a real server."""

from __future__ import annotations

import json

import httpx
from playwright.sync_api import Page, expect

from products.console.support import console_access as of_access
from products.console.support import console_cards as canned
from products.console.support.chromium import Window, violations
from products.console.support.console_place import PASSPHRASE, Place
from products.console.support.console_site import Site
from support.audit_records import records
from tidegate.identity.pairing import challenge_of, make_verifier

H = canned.HOSTILE


def press_tab_until(page: Page, name: str) -> None:
    """Go on by the Tab key to a control of that name."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").startswith(name):
            return
    raise AssertionError(f"Tab does not reach {name!r}")


def test_a_token_is_made_by_keys_shown_once_and_copied(
    window: Window, site: Site, url: str
) -> None:
    window.expected = ["403"]
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = window.tab(f"{url}#/access")
    page.get_by_role("button", name="Make a token").focus()
    page.keyboard.press("Space")
    dialog = page.get_by_role("dialog", name="Make a token")
    page.keyboard.type("claude")
    page.keyboard.press("Enter")  # sends nothing
    dialog.get_by_label("A name for: Sources").focus()
    page.keyboard.type("shop")
    page.keyboard.press("Enter")
    expect(dialog.locator(".chosen")).to_contain_text("shop")
    dialog.get_by_label("Only these tables").fill("orders, public.items")
    dialog.get_by_label("Rows a change may be about").fill("5")
    dialog.get_by_label("Your passphrase").fill("wrong")
    page.keyboard.press("Enter")
    press_tab_until(page, "Make the token")
    page.keyboard.press("Enter")
    assert site.posted("access/tokens") == []
    page.keyboard.press("Space")
    expect(dialog.get_by_role("alert")).to_contain_text("not your passphrase")
    dialog.get_by_label("Your passphrase").fill(site.passphrase)
    assert violations(page) == []
    dialog.get_by_role("button", name="Make the token").click()
    shown = page.get_by_role("dialog", name="The token")
    secret = "tg_" + "s" * 43
    expect(shown.get_by_label("Shown once")).to_have_value(secret)
    assert violations(page) == []
    page.keyboard.press("Escape")  # would lose it
    page.keyboard.press("Enter")  # on Copy
    expect(shown.get_by_role("status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == secret
    shown.get_by_role("button", name="Done").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert secret not in page.content() and secret not in page.url
    assert site.posted("access/tokens")[-1] == {
        "name": "claude",
        "scope": "readOnly",
        "sources": ["shop"],
        "tags": None,
        "tables": ["orders", "public.items"],
        "max_rows_changed": 5,
        "expires": "90d",
        "owner": "ann",
        "passphrase": site.passphrase,
    }


def test_a_request_is_shown_at_once_narrowed_and_granted_by_no_enter(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/inbox")
    expect(page.locator(".live.on")).to_be_visible()
    asked = of_access.pairing()
    site.access["pairings"] = [asked]
    site.publish("pairing", {"pairings": [asked]})
    expect(page.get_by_role("link", name="Access waiting: 1")).to_be_visible()
    expect(page.locator("#said")).to_have_text("laptop asks for a token.")
    page.get_by_role("link", name="Access").click()
    request = page.locator(".request")
    expect(request).to_contain_text("7F3K-92QM")
    first = request.locator(".fact", has_text="Answer within").inner_text()
    expect(request.locator(".fact", has_text="Answer within")).not_to_have_text(first)
    request.get_by_role("button", name="Approve").click()
    dialog = page.get_by_role("dialog")
    options = dialog.get_by_label("May at most").locator("option")
    assert options.count() == 2  # no wider scope than it asks for
    dialog.get_by_label("May at most").select_option("readOnly")
    dialog.get_by_label("Your passphrase").fill(site.passphrase)
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Approve").focus()
    page.keyboard.press("Enter")
    assert site.posted("access/pairings/7F3K-92QM/approve") == []
    page.keyboard.press("Space")
    expect(page.locator("#said")).to_contain_text("Approved.")
    (body,) = site.posted("access/pairings/7F3K-92QM/approve")
    assert (body["scope"], body["sources"], body["owner"]) == ("readOnly", ["shop"], "ann")
    site.access["pairings"] = []
    site.publish("pairing", {"pairings": []})
    expect(request).to_have_count(0)
    expect(page.get_by_role("link", name="waiting")).to_have_count(0)


def test_what_a_person_may_not_do_has_no_button_but_a_reason(
    window: Window, site: Site, url: str
) -> None:
    no = {"end": False, "revoke": False, "make": False, "of": [], "operators": False}
    site.access |= {"may": {**no, "why_not": "Only an admin may make tokens."}, "tokens": []}
    for each in site.access["operators"]:
        each["may"] = {"roles": False, "remove": False, "link": False, "why_not": ""}
    site.budgets |= {"budgets": [], "may": {"set": False, "whole": False}}
    page = window.tab(f"{url}#/access")
    expect(page.locator(".rights > .note").first).to_have_text("Only an admin may make tokens.")
    for name in ("Make a token", "Set a budget", "Invite", "Roles", "Remove", "New link"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("button", name="End the session of bob")).to_have_count(0)
    expect(page.get_by_role("button", name="End the session of ann")).to_have_count(1)


def test_the_matrix_is_read_by_keys_and_by_pages(window: Window, site: Site, url: str) -> None:
    site.sources = 1_000
    page = window.tab(f"{url}#/access/may")
    expect(page.locator(".pages")).to_contain_text("1 to 50 of 1,000")
    assert page.evaluate("document.querySelectorAll('*').length") < 2_000
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".pages")).to_contain_text("51 to 100 of 1,000")
    page.get_by_label("Filter by name").fill("0999")
    expect(page.locator(".pages")).to_contain_text("1 to 1 of 1")
    page.get_by_label("Filter by name").fill("")
    expect(page.locator(".pages")).to_contain_text("of 1,000")
    page.locator('.access-matrix button[tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(":focus")).to_contain_text("source-0001, Read")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .finding")).to_contain_text("refused")
    assert "hacked" not in page.evaluate("Object.keys(window)")
    page.get_by_label("A statement").fill("DROP TABLE t")
    page.get_by_role("button", name="Would it run?").click()
    expect(page.locator(".answer .finding")).to_have_text("It would be refused.")
    page.get_by_role("button", name="Read as this token").click()
    expect(page.locator(".answer")).to_contain_text("without what is hidden from you")
    expect(page.locator(".answer th").nth(1)).to_have_text("email masked")
    expect(page.locator(".answer tbody tr")).to_have_count(2)
    sent = site.posted("access/preview")[0]
    assert sent["caller"].startswith("token:") and sent["statement"] == "DROP TABLE t"
    assert violations(page) == []
    page.get_by_label("A statement").fill("DROP TABLE u")
    expect(page.locator(".answer")).to_have_count(0)  # it was about another statement
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)
    page.get_by_label("Look at").select_option("source")
    expect(page.locator(".access-matrix th[scope=row]").first).to_contain_text("analyst")


def test_on_a_real_server_a_client_gets_a_token_and_a_person_an_account(
    place: Place, window: Window
) -> None:
    window.expected = ["401", "403"]
    page = window.tab(f"{place.address}/console#sign-in={place.link('ada')}")
    expect(page.locator(".live.on")).to_be_visible()
    verifier = make_verifier()
    asked = httpx.post(
        f"{place.address}/v1/integrations/pair",
        json={"client": "laptop", "code_challenge": challenge_of(verifier), "sources": ["towns"]},
    ).json()
    page.get_by_role("link", name="Access waiting: 1").click()
    page.get_by_role("link", name="What it would be able to do").click()
    row = page.locator(".access-matrix tr", has_text="towns")
    expect(row.locator(".v-allow").first).to_be_visible()
    row.get_by_role("button", name="towns, Change rows").click()
    expect(page.locator(".panel")).to_contain_text("waits for a yes")
    page.get_by_role("link", name="Rights").click()
    page.get_by_role("button", name="Approve … laptop").click()
    page.get_by_label("Your passphrase").fill(PASSPHRASE)
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.locator(".request")).to_have_count(0)
    body = {"code": asked["code"], "code_verifier": verifier}
    answer = httpx.post(f"{place.address}/v1/integrations/exchange", json=body)
    assert answer.status_code == 200
    assert answer.json()["token"] not in json.dumps(records(place.state))

    page.get_by_role("button", name="Set a budget").click()
    page.get_by_label("How much").fill("20k")
    page.get_by_label("Of", exact=True).select_option("rows")
    page.get_by_label("In each").select_option("hour")
    page.get_by_label("For the token").select_option("laptop")
    page.get_by_role("button", name="Set the budget").click()
    budget = page.locator(".records tr", has_text="20,000 rows an hour")
    expect(budget).to_contain_text("the token laptop")
    assert violations(page) == []
    budget.get_by_role("button", name="Change").click()
    page.get_by_label("How many rows").fill("30k")
    page.get_by_role("button", name="Change the budget").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("passphrase")
    page.get_by_label("Your passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Change the budget").click()
    budget = page.locator(".records tr", has_text="30,000 rows an hour")
    budget.get_by_role("button", name="Remove").click()
    page.get_by_label("Your passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Remove the budget").click()
    expect(budget).to_have_count(0)

    page.get_by_role("button", name="Invite an operator").click()
    page.get_by_label("Name", exact=True).fill("ivy")
    page.get_by_label("Your passphrase").fill(PASSPHRASE)
    page.get_by_role("button", name="Make a link").click()
    link = page.get_by_label("Shown once").input_value()
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".records", has_text="invited")).to_be_visible()
    window.context.clear_cookies()
    ivy = window.tab(link)
    ivy.get_by_role("link", name="Choose one").click()
    ivy.get_by_role("button", name="Choose a passphrase").click()
    ivy.get_by_label("A new passphrase").fill("a long passphrase")
    ivy.get_by_label("The same again").fill("a long passphrase")
    ivy.get_by_role("button", name="Keep it").click()
    expect(ivy.locator("#said")).to_have_text("The passphrase is set.")
    assert violations(ivy) == []
    signed_in = place.stranger().sign_in(name="ivy", passphrase="a long passphrase")
    assert not signed_in["invited"]
