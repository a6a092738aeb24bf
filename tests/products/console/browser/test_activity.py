"""Activity and Access in Chromium."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from products.console.support import console_cards as canned
from products.console.support.chromium import Window, violations
from products.console.support.console_site import Site

MANY = 5_000
MOST_NODES = 2_000


def test_sessions_are_folded_and_unfold_to_their_calls(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/activity")
    expect(page.locator(".fold")).to_have_count(3)
    expect(page.locator(".count-line")).to_contain_text("400 lines in 3 sessions")
    expect(page.locator(".proof")).to_contain_text("verified to line 400")
    page.locator(".fold").first.press("Enter")
    expect(page.locator(".fold").first).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".inner .line").first).to_contain_text("WHERE id = 399")
    page.locator(".fold").first.press("Enter")
    expect(page.locator(".inner")).to_have_count(0)
    page.get_by_role("link", name="Open the session of analyst alone").first.click()
    expect(page).to_have_url(re.compile("session=call-3"))


def test_a_session_is_one_story_with_the_rule_and_the_proof_of_each_call(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/activity?session=call-3")
    expect(page.locator(".story-head")).to_contain_text("analyst with claude-code")
    first = page.locator(".story-line").first
    expect(first).to_contain_text("SELECT * FROM orders WHERE id = 3")
    expect(first).to_contain_text("Rule source.access: allow. verified")
    expect(page.locator(".story-line")).to_have_count(100)
    assert violations(page) == []
    page.get_by_role("button", name="Later calls").click()
    expect(page.locator(".story-line")).to_have_count(133)
    page.keyboard.press("j")
    expect(page.locator(".panel")).to_contain_text("before checkpoint 12")
    expect(page).to_have_url(re.compile("line=call-3"))
    page.reload()
    expect(page.locator(".panel")).to_contain_text("before checkpoint 12")
    page.get_by_role("link", name="All sessions").click()
    expect(page.locator(".fold")).to_have_count(3)
    page.goto(f"{url}#/activity?view=calls&line=call-7")
    page.get_by_role("link", name="Open its session").click()
    expect(page.locator(".story-head")).to_contain_text("analyst with claude-code")
    expect(page.locator(".panel")).to_contain_text("policy.read_only")


def test_lines_say_which_gate_has_them_and_gates_that_are_missing_are_named(
    window: Window, site: Site, url: str
) -> None:
    names = {"a1": "gate-a", "b2": "gate-b"}
    site.lines = [{**canned.line(n), "gate": ("a1", "b2")[n % 2]} for n in range(1, 9)]
    lost = [{"gate": "c3", "name": "gate-c", "why": "silent"}]
    site.gates = {"gates": names, "missing": lost}
    page = window.tab(f"{url}#/activity?view=calls")
    expect(page.locator(".line .gate")).to_have_text(["gate-a", "gate-b"] * 4)
    expect(page.locator(".missing-gates")).to_have_text(
        "Calls at other gates are missing here: gate-c (does not answer)."
    )
    page.locator(".line").nth(1).click()
    expect(page).to_have_url(re.compile("line=call-7%40b2"))
    expect(page.locator(".panel")).to_contain_text("id = 7")
    assert violations(page) == []
    link = page.get_by_role("link", name="Open its session")
    expect(link).to_have_attribute("href", re.compile("session=call-7%40b2"))


def test_each_gate_says_what_is_proved_of_its_record(window: Window, site: Site, url: str) -> None:
    site.proof |= {"gate": "a1", "name": "gate-a"}
    changed = {"gate": "b2", "name": "gate-b", "state": "mismatch", "text": "1 fault found"}
    site.proof["others"] = [{**site.proof, **changed}]
    site.proof["missing"] = [{"gate": "c3", "name": "gate-c", "why": "silent"}]
    page = window.tab(f"{url}#/activity?view=calls")
    said = page.locator(".proof p")
    expect(said.nth(0)).to_contain_text("gate-a: ")
    expect(said.nth(1)).to_contain_text("gate-b: 1 fault found")
    expect(said.nth(1).locator(".p-mismatch")).to_be_visible()
    expect(said.nth(2)).to_have_text("Not checked: gate-c (does not answer).")
    assert violations(page) == []


SCROLLED_TO = """last => {
  const box = document.querySelector(".virtual-box");
  box.scrollTop = box.scrollHeight;
  return [...document.querySelectorAll(".line")].some((line) =>
    Number(/WHERE id = ([0-9]+)/.exec(line.textContent)?.[1]) <= last);
}"""
"""Scrolls to the end, where more is loaded, until a line has that number or a lower one."""


def test_many_lines_are_few_nodes_and_more_are_loaded_at_the_end(
    window: Window, site: Site, url: str
) -> None:
    site.lines = [canned.line(n) for n in range(1, MANY + 1)]
    page = window.tab(f"{url}#/activity?view=calls")
    expect(page.locator(".line").first).to_contain_text(f"WHERE id = {MANY}")
    for last in (4_901, 4_801, 4_701):
        page.wait_for_function(SCROLLED_TO, arg=last)
    assert page.evaluate("document.querySelectorAll('*').length") < MOST_NODES
    tops = page.locator(".vrow").evaluate_all("rows => rows.map(row => row.offsetTop)")
    assert tops == sorted(tops)


def test_the_search_finds_while_one_types_and_leaves_the_caret_where_it_is(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/activity?view=calls&outcome=ok")
    expect(page.locator(".line").first).to_be_visible()
    search = page.get_by_label("Search")
    search.focus()
    page.keyboard.type("id = 398")
    expect(page.locator(".line")).to_have_count(1)
    page.keyboard.press("Backspace")
    expect(page.locator(".count-line")).to_contain_text("9 lines")
    page.keyboard.type("6")
    expect(page.locator(".line")).to_have_count(1)
    expect(page.locator(".line")).to_contain_text("id = 396")
    expect(search).to_be_focused()
    expect(search).to_have_value("id = 396")
    expect(page).to_have_url(re.compile("outcome=ok.*q=id"))
    # What was typed in one go is one step.
    page.go_back()
    expect(search).to_have_value("")
    expect(page.locator(".count-line")).to_contain_text("343 lines")


def test_an_answer_to_less_than_was_typed_is_shown_no_more(
    window: Window, site: Site, url: str
) -> None:
    window.expected = ["ERR_FAILED", "Failed to load"]
    page = window.tab(f"{url}#/activity?view=calls")
    expect(page.locator(".line").first).to_be_visible()
    ended: list[str] = []
    page.on("requestfailed", lambda request: ended.append(request.url))
    held: list[Any] = []
    page.route(re.compile(r"activity\?q=id"), lambda route: held.append(route), times=1)
    page.get_by_label("Search").focus()
    with page.expect_request(re.compile("q=id")):
        page.keyboard.type("id = 39")
    page.keyboard.type("9")
    expect(page.locator(".line")).to_have_count(1)
    assert [each for each in ended if "q=id" in each], "the request before is given up"


def test_the_pages_own_reads_are_left_out_and_shown_by_one_click(
    window: Window, site: Site, url: str
) -> None:
    own = {"surface": "console", "tool": "browse", "statement": "the names of shop"}
    site.lines += [canned.line(n, **own) for n in range(401, 431)]
    page = window.tab(f"{url}#/activity?view=calls")
    expect(page.locator(".line").first).to_contain_text("id = 400")
    expect(page.locator(".count-line")).to_contain_text("400 lines")
    expect(page.locator(".own-reads")).to_contain_text("30 reads of the console's own left out")
    page.get_by_role("button", name="Show the console's own reads").click()
    expect(page.locator(".line").first).to_contain_text("the names of shop")
    expect(page.locator(".count-line")).to_contain_text("430 lines")
    expect(page).to_have_url(re.compile("own=shown"))
    page.reload()
    expect(page.locator(".line").first).to_contain_text("the names of shop")
    page.get_by_role("button", name="Take away the filter own: shown").click()
    expect(page.locator(".count-line")).to_contain_text("400 lines")


def test_new_lines_are_offered_and_never_shift_the_list(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/activity?view=calls&own=shown")
    expect(page.locator(".line").first).to_contain_text("id = 400")
    expect(page.locator(".live.on")).to_be_visible()
    before = page.locator(".line").nth(3).bounding_box()
    site.lines += [canned.line(n) for n in range(401, 413)]
    site.publish("line", {"n": 412})
    expect(page.get_by_role("button", name="12 new")).to_be_visible()
    expect(page.locator(".line").first).to_contain_text("id = 400")
    assert page.locator(".line").nth(3).bounding_box() == before
    page.get_by_role("button", name="12 new").click()
    expect(page.locator(".line").first).to_contain_text("id = 412")
    expect(page.get_by_role("button", name="12 new")).to_have_count(0)


def test_new_lines_are_counted_at_all_gates_and_a_silent_gate_is_named(
    window: Window, site: Site, url: str
) -> None:
    site.lines = [{**canned.line(n), "gate": ("a1", "b2")[n % 2]} for n in range(1, 9)]
    site.gates = {"gates": {"a1": "gate-a", "b2": "gate-b"}, "missing": []}
    page = window.tab(f"{url}#/activity?view=calls&own=shown")
    expect(page.locator(".line").first).to_contain_text("id = 8")
    expect(page.locator(".live.on")).to_be_visible()
    site.publish("line", {"n": 10, "gate": "b2"})
    expect(page.get_by_role("button", name="3 new")).to_be_visible()
    site.publish("line", {"n": 9, "gate": "a1"})
    expect(page.get_by_role("button", name="4 new")).to_be_visible()
    expect(page.locator(".silent-gates")).to_have_count(0)
    site.publish("gates", {"silent": [{"gate": "b2", "name": "gate-b"}]})
    expect(page.locator(".silent-gates")).to_have_text(
        "New lines are not announced of gate-b, which does not answer."
    )
    site.publish("line", {"n": 1, "gate": "c3"})  # all of its lines are missing here
    expect(page.get_by_role("button", name="New lines")).to_be_visible()
    site.publish("gates", {"silent": []})
    expect(page.locator(".silent-gates")).to_have_count(0)
    assert violations(page) == []


def test_a_record_that_is_still_read_says_how_far_and_is_shown_at_the_end(
    window: Window, site: Site, url: str
) -> None:
    lines, site.lines, site.read = site.lines, site.lines[:100], 0.347
    page = window.tab(f"{url}#/activity?view=calls")
    expect(page.locator(".reading")).to_contain_text("34 %")
    expect(page.locator(".line").first).to_contain_text("id = 100")
    site.lines, site.read = lines, 1.0
    expect(page.locator(".line").first).to_contain_text("id = 400")
    expect(page.locator(".reading")).to_have_count(0)


def test_filters_are_part_of_the_address_and_can_be_taken_away(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/activity?view=calls")
    expect(page.locator(".line").first).to_be_visible()
    page.get_by_label("Outcome").select_option("denied")
    expect(page.locator(".count-line")).to_contain_text("57 lines")
    page.get_by_label("Search").fill("id = 399")
    page.keyboard.press("Enter")
    expect(page.locator(".line")).to_have_count(1)
    expect(page).to_have_url(re.compile("outcome=denied.*q=id"))
    page.reload()
    expect(page.locator(".line")).to_have_count(1)
    page.get_by_role("button", name="Take away the filter q: id = 399").click()
    expect(page.locator(".count-line")).to_contain_text("57 lines")
    page.go_back()
    expect(page.locator(".line")).to_have_count(1)


def test_keys_go_through_the_lines_and_the_panel_shows_all_of_one(
    window: Window, site: Site, url: str
) -> None:
    asked = canned.card(1, state="used", decided_at=1e9, decided_by="ann", run=canned.run())
    site.add(asked)
    site.lines[399] = canned.line(400, outcome="ok", effect="write", approval="ask-1")
    change = {"id": "change-1", "state": "done", "rows": 3, "may_undo": True}
    site.lines_on_record[400] = {"approval": asked, "change": change}
    page = window.tab(f"{url}#/activity?view=calls")
    expect(page.locator(".line").first).to_be_visible()
    page.keyboard.press("j")
    panel = page.locator(".panel")
    expect(panel).to_contain_text("it is before checkpoint 12")
    expect(panel).to_contain_text("3 rows would be changed")
    expect(panel).to_contain_text("5f" * 32)
    expect(page).to_have_url(re.compile("line=call-400"))
    expect(panel.get_by_role("button", name="Put these rows back")).to_be_visible()
    page.keyboard.press("u")
    page.get_by_role("dialog").get_by_role("button", name="Put these rows back").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    site.await_post("changes/change-1/undo")
    assert site.posted("changes/change-1/undo") == [{}]
    page.keyboard.press("j")
    expect(panel).to_contain_text("policy.read_only")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_an_export_is_saved_by_a_ticket_with_the_filters(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/activity?outcome=denied")
    expect(page.locator(".fold").first).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export as CSV").click()
    assert saved.value.suggested_filename == "activity.jsonl"
    asked = {"format": "csv", "filters": {"outcome": "denied"}}
    assert site.posted("activity/export-ticket") == [asked]
    assert site.posted("export") == [{"ticket": "ticket-csv"}]


def test_a_refusal_of_the_server_is_shown_with_its_hint(
    window: Window, site: Site, url: str
) -> None:
    window.expected = ["403"]
    refusal = {"error": "x", "message": "Not for viewers.", "hint": "Ask an admin."}
    site.refusals |= {"activity": (403, refusal), "access": (403, refusal)}
    page = window.tab(f"{url}#/activity")
    expect(page.get_by_role("alert")).to_have_text("Not for viewers. Ask an admin.")
    page.get_by_role("link", name="Access").click()
    expect(page.get_by_role("alert")).to_have_text("Not for viewers. Ask an admin.")


def test_sessions_and_tokens_are_ended_after_a_question(
    window: Window, site: Site, url: str
) -> None:
    page = window.tab(f"{url}#/access")
    page.get_by_role("button", name="End the session of bob").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Revoke the token analyst").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke the token").click()
    expect(page.locator("#said")).to_have_text("The token is revoked.")
    assert [path for path, _ in site.posts] == ["session", "access/tokens/t1/revoke"]


def test_a_grant_is_ended_from_the_list_of_grants(window: Window, site: Site, url: str) -> None:
    site.add(*site.access["grants"])
    page = window.tab(f"{url}#/access")
    page.get_by_role("button", name="End the grant").click()
    expect(page.locator("#said")).to_have_text("The grant has ended.")
    site.await_post("inbox/ask-9/revoke")
    assert site.posted("inbox/ask-9/revoke") == [{}]
