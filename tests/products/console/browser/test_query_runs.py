"""Running statements in a query tab: results, errors, cancelling, questions, plans, history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from products.console.support import console_cards as canned
from products.console.support.chromium import LOOKS, Window, violations
from products.console.support.console_site import Site
from products.console.support.console_statements import node
from products.console.support.query_page import editor, judged, open_query, run_line
from products.console.support.question_card import click_allow
from support.eventually import wait_until

H = canned.HOSTILE
THREE = "SELECT 1;\nSELECT 2;\n\nSELECT 3"


def sent(site: Site) -> list[str]:
    return [each["statement"] for each in site.posted("data/runs")]


def cells(page: Page) -> Any:
    return page.locator(".run-panel .grid-cell")


def first_run(site: Site) -> str:
    """The run that the page says is running may be on its way yet."""
    return wait_until(lambda: next(iter(site.statements.runs), ""), "the run")


def test_control_enter_runs_the_statement_at_the_caret(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, THREE)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("3 rows")
    expect(cells(page).first).to_have_text("1")
    assert sent(site) == ["SELECT 2"]
    expect(editor(page)).to_be_focused()
    body = site.posted("data/runs")[0]
    assert (body["source"], body["tab"], body["params"]) == ("shop", "tab-1", None)
    assert "SELECT" not in page.url


def test_a_caret_that_has_just_moved_counts_where_it_is(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, THREE)
    for keys, statement in (("Control+End", "SELECT 3"), ("Control+Home", "SELECT 1")):
        page.keyboard.press(keys)
        page.keyboard.press("Control+Enter")
        wait_until(lambda at=statement: sent(site)[-1:] == [at], statement)


def test_the_selection_alone_is_run(window: Window, site: Site, url: str) -> None:
    page = open_query(window, site, url, "SELECT 1 + 2 + 3")
    page.keyboard.press("End")
    for _ in range(4):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+Home")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("3 rows")
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+Enter")
    wait_until(lambda: len(sent(site)) == 2, "the second run")
    assert sent(site) == ["SELECT 1 + 2 + 3", "SELECT 1 + 2 + 3"]


def test_all_run_in_order_each_with_a_result_of_its_own_and_stop_at_the_first_failure(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1; SELECT nmae; SELECT 3; SELECT 4")
    page.keyboard.press("Control+Shift+Enter")
    tabs = page.get_by_role("tablist", name="Results").get_by_role("tab")
    expect(tabs).to_have_count(2)
    expect(page.locator(".left")).to_have_text("2 statements after it were not run.")
    assert sent(site) == ["SELECT 1", "SELECT nmae"]
    expect(page.locator(".failure")).to_contain_text('Did you mean "name"?')
    tabs.nth(1).focus()
    page.keyboard.press("ArrowLeft")
    expect(tabs.nth(0)).to_be_focused()
    expect(cells(page).first).to_be_visible()


def test_statements_past_those_that_the_server_judges_at_once_are_judged_and_run_as_well(
    window: Window, site: Site, url: str
) -> None:
    site.statements.most = 3
    texts = [f"SELECT {n}" for n in range(10)]
    page = open_query(window, site, url, ";\n".join(texts) + "; -- the end")
    expect(judged(page)).to_contain_text("Of many: reads no table")
    for _ in range(7):
        page.keyboard.press("ArrowDown")
    expect(page.locator(".numbers .runs")).to_have_text(["8"])
    page.keyboard.press("Control+Enter")
    wait_until(lambda: sent(site) == ["SELECT 7"], "the run")
    page.keyboard.press("Control+Shift+Enter")
    expect(page.locator(".run-tab")).to_have_count(10)
    expect(page.locator(".run-state.s-done")).to_have_count(10)
    assert sent(site)[1:] == texts


def test_an_error_is_marked_where_it_is_and_the_mark_goes_when_the_text_changes(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, f"SELECT '{canned.FAMILY}';\nSELECT id, nmae FROM x")
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".failure")).to_contain_text('There is no column "nmae".')
    expect(page.locator(".m-error")).to_have_text("nmae")
    expect(page.locator(".numbers .wrong")).to_have_text("2")
    page.get_by_role("button", name="Go to the place").click()
    expect(editor(page)).to_be_focused()
    expect(page.locator(".caret-place")).to_have_text("2:12")
    page.keyboard.type("a")
    expect(page.locator(".m-error")).to_have_count(0)
    expect(page.get_by_role("button", name="Go to the place")).to_have_count(0)


def test_a_slow_run_shows_progress_and_escape_cancels_it_saying_what_is_known(
    window: Window, site: Site, url: str
) -> None:
    site.statements.progress = {"done": 30, "total": 120, "text": ""}
    page = open_query(window, site, url, "SELECT slow")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("Running")
    expect(run_line(page)).to_contain_text("30 of 120")
    key = first_run(site)
    columns = site.statements.columns
    site.statements.goes_on(key, columns=columns, row_count=2)
    expect(run_line(page)).to_contain_text("2 rows so far")
    expect(cells(page).nth(3)).to_have_text("customer 2")
    page.keyboard.press("Escape")
    expect(run_line(page)).to_contain_text("Cancelled")
    expect(run_line(page)).to_contain_text("The database has ended it.")
    expect(run_line(page)).to_contain_text("2 rows came before")
    assert site.statements.runs[key]["state"] == "cancelled"


def test_cancelling_stops_the_statements_after_it_too(window: Window, site: Site, url: str) -> None:
    page = open_query(window, site, url, "SELECT slow; UPDATE a SET b = 1")
    page.keyboard.press("Control+Shift+Enter")
    page.get_by_role("button", name="Cancel").click()
    expect(run_line(page)).to_contain_text("Cancelled")
    expect(page.locator(".left")).to_have_text("1 statement after it was not run.")
    expect(page.locator(".question")).to_have_count(0)
    assert sent(site) == ["SELECT slow"]


def test_what_is_not_known_is_said_and_a_run_that_is_over_stays_over(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT slow")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("Running")
    key = first_run(site)
    site.statements.end(key, state="unknown", message="The connection broke.")
    expect(run_line(page)).to_contain_text("Unknown whether it ran")
    expect(page.locator(".failure")).to_contain_text("The connection broke.")
    site.publish("run", {**site.statements.runs[key], "state": "running"})
    site.put(canned.card(9))
    expect(page.locator(".rail .count")).to_be_visible()
    expect(run_line(page)).to_contain_text("Unknown whether it ran")


def test_a_refusal_before_it_runs_says_so(window: Window, site: Site, url: str) -> None:
    site.refusals["data/runs"] = (
        403,
        {"error": "policy.read_only", "message": "It is read-only.", "hint": "Ask an admin."},
    )
    window.expected = ["403"]
    page = open_query(window, site, url, "SELECT 1")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_have_text("Not run")
    expect(page.locator(".failure")).to_contain_text("It is read-only. Ask an admin.")


def test_a_result_at_its_limit_says_that_there_are_more(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT slow")
    page.get_by_role("button", name="More").click()
    page.get_by_label("Rows at most").select_option("100")
    page.keyboard.press("Escape")
    editor(page).click()
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("Running")
    assert site.posted("data/runs")[0]["max_rows"] == 100
    key = first_run(site)
    warning = "The table has no index for this."
    site.statements.end(
        key, columns=site.statements.columns, row_count=100, truncated=True, warnings=[warning]
    )
    expect(run_line(page)).to_contain_text("100 rows")
    expect(run_line(page)).to_contain_text("there are more")
    expect(page.locator(".run .warnings")).to_have_text(warning)


def test_a_question_is_answered_in_place_under_the_rules_of_the_inbox_and_the_rows_put_back(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "UPDATE orders SET status = 'shipped'")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("Waits for a person's answer")
    question = page.locator(".question")
    expect(question.locator("#card-title")).to_contain_text("wants to change 3 rows")
    # The focus stays in the text, where a and d are letters and Enter is a line.
    expect(editor(page)).to_be_focused()
    page.keyboard.type("ad")
    page.keyboard.press("Enter")
    assert site.cards["ask-1"]["state"] == "pending"
    assert violations(page) == []
    click_allow(page)
    expect(run_line(page)).to_contain_text("3 rows changed")
    assert site.posted("inbox/ask-1/allow") == [{"digest": "digest-1"}]
    expect(question).to_have_count(0)
    page.get_by_role("button", name="Put these rows back").click()
    expect(page.get_by_role("dialog").locator("td.change").first).to_have_text("shipped → open")
    page.keyboard.press("Enter")
    expect(run_line(page)).to_contain_text("The rows were put back")


def test_the_card_in_place_asks_for_the_passphrase_and_has_its_keys_where_the_focus_is(
    window: Window, site: Site, url: str
) -> None:
    site.session = canned.session(confirmed=False)
    page = open_query(window, site, url, "UPDATE orders SET status = 'shipped'")
    add = site.statements._ask
    site.statements._ask = lambda card: add({**card, "may": canned.may(passphrase=True)})
    page.keyboard.press("Control+Enter")
    page.locator(".question .card-scroll").focus()
    expect(page.get_by_role("button", name="Allow once")).to_have_attribute(
        "aria-disabled", "false"
    )
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    page.get_by_label("Your passphrase").fill(site.passphrase)
    page.keyboard.press("Enter")
    expect(run_line(page)).to_contain_text("3 rows changed")


def test_a_change_that_asked_no_one_can_be_put_back_as_well(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT slow")
    page.keyboard.press("Control+Enter")
    expect(run_line(page)).to_contain_text("Running")
    site.statements.end(first_run(site), affected=3, change_id="change-1")
    expect(run_line(page)).to_contain_text("3 rows changed")
    page.get_by_role("button", name="Put these rows back").click()
    expect(page.get_by_role("dialog")).to_contain_text("all of them, or none")
    page.keyboard.press("Enter")
    expect(run_line(page)).to_contain_text("The rows were put back")


def test_a_no_ends_the_run_and_the_statements_after_it(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "UPDATE orders SET a = 1; SELECT 2")
    page.keyboard.press("Control+Shift+Enter")
    page.locator(".question .card-scroll").focus()
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    expect(page.locator(".failure")).to_contain_text("A person said no.")
    expect(page.locator(".left")).to_have_text("1 statement after it was not run.")
    assert sent(site) == ["UPDATE orders SET a = 1"]
    expect(editor(page)).to_be_focused()


def test_a_question_can_be_withdrawn(window: Window, site: Site, url: str) -> None:
    page = open_query(window, site, url, "UPDATE orders SET a = 1")
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Withdraw").click()
    expect(run_line(page)).to_contain_text("Cancelled")
    expect(page.locator(".question")).to_have_count(0)


def test_results_stay_by_the_tab_and_are_found_again_after_a_reload(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    page.keyboard.press("Control+Enter")
    expect(cells(page).first).to_be_visible()
    other = site.data.open({"source": "crm", "kind": "query", "text": "SELECT 2"})
    page.get_by_role("tablist", name="Open tabs").get_by_role("tab").nth(1).click()
    expect(editor(page)).to_have_value("SELECT 2")
    expect(page.locator(".tab-panel:not([hidden]) .nothing-run")).to_be_visible()
    page.get_by_role("link", name="Inbox").click()
    page.get_by_role("link", name="Data").click()
    expect(editor(page)).to_have_value("SELECT 2")
    page.get_by_role("tablist", name="Open tabs").get_by_role("tab").nth(0).click()
    expect(cells(page).first).to_have_text("1")
    page.reload()
    expect(cells(page).first).to_have_text("1")
    assert sent(site) == ["SELECT 1"]
    site.statements.gone.add(first_run(site))
    window.expected = ["410"]
    page.reload()
    page.locator(".run-gone").get_by_role("button", name="Run again").click()
    wait_until(lambda: sent(site) == ["SELECT 1", "SELECT 1"], "the second run")
    assert other["id"] == "tab-2"


def test_a_result_that_the_server_dropped_says_so_and_runs_again(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    site.statements.count = 5_000
    window.expected = ["410"]
    page.keyboard.press("Control+Enter")
    expect(cells(page).first).to_have_text("1")
    site.statements.gone.add(first_run(site))
    page.locator(".run-panel [role=grid]").focus()
    page.keyboard.press("Control+End")
    expect(page.locator(".run-gone")).to_contain_text("no longer holds these rows")
    page.locator(".run-gone").get_by_role("button", name="Run again").click()
    expect(cells(page).first).to_have_text("1")
    assert sent(site) == ["SELECT 1", "SELECT 1"]


def test_parameters_have_fields_and_their_values_are_sent(
    window: Window, site: Site, url: str
) -> None:
    text = "SELECT ':no' FROM orders WHERE a = :first AND b = :second AND c = x::text -- :not"
    page = open_query(window, site, url, text)
    form = page.get_by_role("form", name="Parameters")
    form.get_by_label(":first", exact=True).fill("שלום")
    form.get_by_label("What :second is").select_option("null")
    form.get_by_label(":first", exact=True).press("Enter")
    expect(run_line(page)).to_contain_text("3 rows")
    assert site.posted("data/runs")[-1]["params"] == {"first": "שלום", "second": None}
    page.reload()
    key = next(iter(site.statements.runs))
    window.expected = ["410"]
    site.statements.gone.add(key)
    page.reload()
    page.locator(".run-gone").get_by_role("button", name="Run again").click()
    wait_until(lambda: len(sent(site)) == 2, "the run after the page was loaded again")
    assert site.posted("data/runs")[-1]["params"] == {"first": "שלום", "second": None}
    form.get_by_label(":first", exact=True).fill("שלום")
    form.get_by_label("What :second is").select_option("none")
    page.get_by_role("button", name="Run", exact=True).click()
    wait_until(lambda: len(sent(site)) == 3, "the second run")
    assert site.posted("data/runs")[-1]["params"] == {"first": "שלום"}
    editor(page).fill("SELECT ? + ?")
    form.get_by_label("? 1", exact=True).fill("1")
    form.get_by_label("? 2", exact=True).fill("2")
    page.keyboard.press("Control+Enter")
    wait_until(lambda: len(sent(site)) == 4, "the third run")
    assert site.posted("data/runs")[-1]["params"] == ["1", "2"]
    assert violations(page) == []


def test_question_marks_of_postgresql_are_operators_and_its_numbers_parameters(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT a ? 'b', $2 FROM x", source="crm")
    form = page.get_by_role("form", name="Parameters")
    expect(form.locator("label")).to_have_text(["$1", "$2"])


def test_the_plan_is_a_tree_with_the_costliest_step_marked_and_keys(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    page.keyboard.press("Control+Shift+E")
    items = page.get_by_role("tree", name="Plan").get_by_role("treeitem")
    expect(items).to_have_count(5)
    expect(page.locator(".step.most")).to_contain_text("Seq Scan")
    expect(page.locator(".step.most .percent")).to_have_text("74%")
    expect(page.locator(".plan-text")).to_contain_text("Seq Scan on orders")
    assert site.posted("data/explain")[0]["analyze"] is False
    items.first.focus()
    page.keyboard.press("ArrowRight")
    expect(items.nth(1)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".plan-tree [role=treeitem]:visible")).to_have_count(2)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    expect(items.nth(4)).to_be_focused()
    assert violations(page) == []
    page.get_by_role("button", name="Close the plan").click()
    expect(page.locator(".plan")).to_have_count(0)
    # SQLite gives steps alone: no figure is shown for what is not known.
    bare = {"rows": None, "actual_rows": None, "cost": None, "ms": None}
    steps = [{"label": "SCAN c", "detail": "", "children": [], **bare}]
    site.statements.plan["tree"] = {"label": "PLAN", "detail": "", "children": steps, **bare}
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(items).to_have_count(2)
    expect(page.locator(".percent, .plan-tree .figure")).to_have_count(0)
    assert sent(site) == []


def test_measured_times_need_consent_as_the_statement_is_executed(
    window: Window, site: Site, url: str
) -> None:
    scan = node("Scan", None, ms=9.0, actual_rows=7)
    site.statements.plan = {
        "text": "measured",
        "reason": "",
        "tree": node("All", None, scan, ms=10.0, actual_rows=7),
    }
    page = open_query(window, site, url, "DELETE FROM orders")
    menu = page.get_by_role("button", name="More")
    menu.click()
    page.get_by_role("button", name="Explain with measured times").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("the database executes the statement")
    expect(dialog).to_contain_text("DELETE FROM orders")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert site.posted("data/explain") == []
    menu.click()
    page.get_by_role("button", name="Explain with measured times").click()
    dialog.get_by_role("button", name="Execute and measure").click()
    expect(page.locator(".step.most")).to_contain_text("Scan")
    assert site.posted("data/explain")[0]["analyze"] is True


def test_the_history_is_searched_and_put_into_the_text(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    page.keyboard.press("Control+Shift+H")
    dialog = page.get_by_role("dialog", name="Your statements")
    expect(dialog.get_by_role("option")).to_have_count(20)
    page.keyboard.type("= 5")
    expect(dialog.get_by_role("option")).to_have_count(6)
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(editor(page)).to_have_value("SELECT 1\n\nSELECT * FROM orders WHERE id = 51")
    page.keyboard.press("Control+Enter")
    wait_until(lambda: sent(site) == ["SELECT * FROM orders WHERE id = 51"], "the run")
    page.keyboard.press("Control+z")
    expect(editor(page)).to_have_value("SELECT 1")


def test_a_result_is_saved_through_a_ticket(window: Window, site: Site, url: str) -> None:
    page = open_query(window, site, url, "SELECT 1")
    page.keyboard.press("Control+Enter")
    with page.expect_download():
        page.get_by_role("button", name="Save the rows as CSV").click()
    run = first_run(site)
    assert site.posted("data/export-ticket") == [{"run": run, "format": "csv"}]


def test_texts_of_others_are_shown_and_do_nothing(window: Window, site: Site, url: str) -> None:
    statements = site.statements
    statements.columns = [{"name": H, "type": H, "kind": "text", "masked": False}]
    statements.rows = lambda n: [H if n else canned.BIDI]
    statements.items = [{"label": f"o{H}", "insert": H, "kind": H, "detail": H}]
    statements.failure = {"code": H, "message": H, "hint": H}
    statements.plan = {"text": H, "tree": node(H, 1, detail=H), "reason": H}
    statements.history = [{**statements.history[0], "statement": H, "source": "shop"}]
    page = open_query(window, site, url, f"SELECT '{H}';\nSELECT nmae; {H}")

    def is_harmless() -> None:
        assert page.evaluate("window.hacked") is None
        assert page.locator("img, iframe, main script").count() == 0

    page.keyboard.press("Control+Shift+Enter")
    expect(page.locator(".failure")).to_contain_text(H)
    is_harmless()
    page.locator(".run-tab").first.click()
    expect(page.locator(".grid-cell").nth(1)).to_contain_text("onerror")
    expect(page.locator(".grid-cell").first).to_contain_text("U+202E")
    is_harmless()
    editor(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" o")
    expect(page.locator(".suggestions li")).to_contain_text(H)
    is_harmless()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+E")
    expect(page.locator(".plan-tree")).to_contain_text(H)
    page.keyboard.press("Control+Shift+H")
    expect(page.get_by_role("option").first).to_contain_text("onerror")
    is_harmless()


def test_signing_out_leaves_nothing_of_the_text_or_the_rows(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 'a salary'")
    window.expected = ["401"]
    page.keyboard.press("Control+Enter")
    expect(cells(page).nth(1)).to_have_text("customer 1")
    page.get_by_role("button", name="ann").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_label("Passphrase")).to_be_visible()
    assert "salary" not in page.content()
    assert "customer 1" not in page.content()


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_axe_finds_nothing_wrong_with_a_query_in_any_state(
    open_window: Callable[..., Window],
    site: Site,
    url: str,
    tmp_path: Any,
    scheme: str,
    size: dict[str, int],
) -> None:
    window = open_window(color_scheme=scheme, viewport=size, reduced_motion="reduce")
    text = f"SELECT 1 + :n; -- '{canned.RTL}'\nUPDATE orders SET a = 1;\nSELECT nmae"
    page = open_query(window, site, url, text)
    expect(judged(page)).to_contain_text("1 of 3")

    def looks_right(name: str) -> None:
        page.screenshot(path=tmp_path / f"{name}.png")
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name

    looks_right("text")
    page.keyboard.press("Control+Space")
    expect(page.locator(".suggestions li").first).to_be_visible()
    looks_right("suggestions")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+Enter")
    expect(page.locator("#said")).to_contain_text(":n has no value yet")
    looks_right("asked for a value")
    page.keyboard.press("Control+Shift+Enter")
    expect(page.get_by_role("button", name="Allow once")).to_have_attribute(
        "aria-disabled", "false"
    )
    looks_right("question")
    click_allow(page)
    expect(page.locator(".failure")).to_be_visible()
    looks_right("failure")
    page.locator(".run-tab").first.click()
    expect(cells(page).first).to_be_visible()
    looks_right("rows")
    page.locator(".run-tab").nth(1).click()
    expect(page.get_by_role("button", name="Put these rows back")).to_be_visible()
    looks_right("change")
    page.keyboard.press("Control+Shift+E")
    expect(page.locator(".plan-tree")).to_be_visible()
    looks_right("plan")
    page.get_by_role("button", name="More").click()
    looks_right("more")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+H")
    expect(page.get_by_role("dialog").get_by_role("option").first).to_be_visible()
    looks_right("history")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    window.expected = ["409"]
    site.data.tabs["tab-1"] |= {"text": "SELECT 'theirs'", "version": 70}
    page.keyboard.type("x")
    expect(page.locator(".conflict")).to_be_visible()
    looks_right("conflict")
