"""The text of a query tab: colours, keys, suggestions, and that it is kept."""

from __future__ import annotations

import re
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from products.console.support import console_cards as canned
from products.console.support.chromium import Window
from products.console.support.console_site import Site
from products.console.support.query_page import editor, judged, open_query, shown
from support.eventually import wait_until

TWO = "SELECT id FROM orders;\nUPDATE orders SET status = 'open' WHERE id = 3"


def suggestions(page: Page) -> Any:
    return page.locator(".suggestions li")


def chosen(page: Page) -> Any:
    return page.locator('.suggestions [aria-selected="true"]')


def test_the_text_has_the_colours_of_the_server_and_its_own_until_they_come(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, TWO)
    expect(page.locator(".h-keyword")).to_have_text(["SELECT", "FROM", "UPDATE", "SET", "WHERE"])
    expect(page.locator(".h-string")).to_have_text("'open'")
    assert shown(page) == TWO
    # The server colours `limit` as a name: it knows better than the page.
    site.refusals["data/judge"] = (503, {"error": "busy", "message": "No.", "hint": ""})
    window.expected = ["503"]
    page.keyboard.press("Control+End")
    page.keyboard.type(" LIMIT")
    expect(page.locator(".code-line").nth(1).locator(".h-keyword").last).to_have_text("LIMIT")
    expect(judged(page)).to_have_text("No.")
    del site.refusals["data/judge"]
    page.keyboard.type(" 5")
    expect(page.locator(".code-line").nth(1).locator(".h-keyword").last).to_have_text("WHERE")
    expect(page.locator(".h-number")).to_have_text(["3", "5"])
    assert shown(page) == f"{TWO} LIMIT 5"


def test_a_comment_or_string_that_is_open_colours_the_lines_after_it(
    window: Window, site: Site, url: str
) -> None:
    site.refusals["data/judge"] = (503, {"error": "busy", "message": "No.", "hint": ""})
    window.expected = ["503"]
    page = open_query(window, site, url, "SELECT 1\nFROM a\nWHERE b = 2")
    expect(page.locator(".h-keyword")).to_have_count(3)
    page.keyboard.type("/* ")
    expect(page.locator(".h-comment")).to_have_count(3)
    expect(page.locator(".h-keyword")).to_have_count(0)
    page.keyboard.press("End")
    page.keyboard.type(" */")
    expect(page.locator(".h-comment")).to_have_text("/* SELECT 1 */")
    expect(page.locator(".h-keyword")).to_have_text(["FROM", "WHERE"])
    page.keyboard.press("Control+End")
    page.keyboard.type(" AND c = $tag$ it's\n'open' $tag$ AND d = 4")
    expect(page.locator(".h-string")).to_have_text(["$tag$ it's", "'open' $tag$"])
    expect(page.locator(".h-number")).to_have_text(["2", "4"])


def test_the_line_below_says_what_the_statement_at_the_caret_would_do(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, f"{TWO}; DROP TABLE orders")
    expect(judged(page)).to_contain_text("1 of 3: reads orders")
    expect(judged(page)).to_contain_text("allowed")
    expect(page.locator(".numbers .runs")).to_have_text(["1"])
    page.keyboard.press("ArrowDown")
    expect(judged(page)).to_contain_text("2 of 3: changes orders")
    expect(judged(page)).to_contain_text("asks a person")
    page.keyboard.press("Control+End")
    expect(judged(page)).to_contain_text("destroys data or structure of orders")
    expect(judged(page)).to_contain_text("refused: the source refuses it")
    page.keyboard.type("; SELEC 1")
    expect(judged(page)).to_have_text("4 of 4: Line 2, column 68: SELEC is no statement.")
    expect(page.locator(".m-error")).to_have_text("SELEC")
    expect(editor(page)).to_have_attribute("aria-invalid", "true")
    assert editor(page).get_attribute("aria-describedby") == judged(page).get_attribute("id")


def test_an_old_answer_does_not_colour_or_judge_a_newer_text(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    expect(judged(page)).to_contain_text("reads no table")
    old = "SELECT 1 FROM orders"
    held = site.statements.held[old] = Event()
    page.keyboard.press("Control+End")
    page.keyboard.type(" FROM orders")
    wait_until(
        lambda: any(each["statement"] == old for each in site.posted("data/judge")), "its judgement"
    )
    page.keyboard.type(" WHERE a = 1")
    expect(page.locator(".h-number")).to_have_text(["1", "1"])
    held.set()
    expect(judged(page)).not_to_have_class(re.compile("stale"))
    expect(judged(page)).to_contain_text("reads orders")
    expect(page.locator(".h-number")).to_have_text(["1", "1"])
    assert shown(page) == f"{old} WHERE a = 1"


def test_keys_indent_comment_and_break_lines_and_each_can_be_undone(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1,\n2")
    text = editor(page)
    page.keyboard.press("Control+End")
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    expect(text).to_have_value("SELECT 1,\n  2")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.type(", 3")
    expect(text).to_have_value("SELECT 1,\n  2\n  , 3")
    page.keyboard.press("Control+a")
    page.keyboard.press("Tab")
    expect(text).to_have_value("  SELECT 1,\n    2\n    , 3")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+/")
    expect(text).to_have_value("-- SELECT 1,\n--   2\n--   , 3")
    assert shown(page) == "-- SELECT 1,\n--   2\n--   , 3"
    page.keyboard.press("Control+/")
    expect(text).to_have_value("SELECT 1,\n  2\n  , 3")
    for _ in range(20):
        page.keyboard.press("Control+z")
    expect(text).to_have_value("SELECT 1,\n2")
    assert shown(page) == "SELECT 1,\n2"


def test_escape_then_tab_leaves_the_text_and_tab_alone_does_not(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    page.keyboard.press("Tab")
    expect(editor(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".judged-end")).to_contain_text("Tab leaves the editor")
    page.keyboard.press("Tab")
    expect(editor(page)).not_to_be_focused()
    expect(page.get_by_role("separator", name="Height of the text")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(editor(page)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.type("x")
    page.keyboard.press("Tab")
    expect(editor(page)).to_be_focused()


def test_brackets_beside_the_caret_are_marked_with_their_partners(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT (1 + ')' + (2))\n-- (")
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".m-bracket")).to_have_count(2)
    # Both at one moment: the page may move while it is made.
    places = page.locator(".m-bracket").evaluate_all(
        """all => {
            const line = document.querySelector('.code-line').getBoundingClientRect();
            return all.map(each => (each.getBoundingClientRect().left - line.left) / line.width);
        }"""
    )
    assert [round(place * len("SELECT (1 + ')' + (2))")) for place in places] == [7, 21]
    page.keyboard.press("Control+End")
    expect(page.locator(".m-bracket")).to_have_count(0)


def test_the_layer_shows_exactly_what_stands_in_the_text_where_it_stands(
    window: Window, site: Site, url: str
) -> None:
    text = f"SELECT '{canned.RTL}', '{canned.FAMILY}',\t'漢字' -- e\u0301 {canned.RTL} x\n" * 80
    page = open_query(window, site, url, text)
    expect(judged(page)).not_to_be_empty()
    expect(judged(page)).not_to_have_class(re.compile("stale"))
    width = page.evaluate(
        """() => {
          const area = document.querySelector('textarea.code');
          const copy = area.cloneNode();
          copy.value = area.value.split('\\n')[0];
          area.after(copy);
          Object.assign(copy.style, {fieldSizing: 'content', width: 'auto', height: 'auto'});
          copy.style.inset = 'auto';
          const width = copy.getBoundingClientRect().width - 16;
          copy.remove();
          return width;
        }"""
    )
    drawn = page.locator(".code-line").first.evaluate(
        """line => { const range = document.createRange(); range.selectNodeContents(line);
        return range.getBoundingClientRect().width; }"""
    )
    assert drawn == pytest.approx(width, abs=1)
    assert page.locator(".code-line").first.text_content() == text.split("\n")[0]
    # As far as it scrolls, the first line in sight is the same in both.
    editor(page).evaluate("area => { area.scrollTop = 813; }")
    expect(page.locator(".numbers div").first).to_have_text("41")
    top = page.evaluate(
        """document.querySelector('.code-line').getBoundingClientRect().top
        - document.querySelector('textarea.code').getBoundingClientRect().top"""
    )
    assert top == pytest.approx(8 + 40 * 20 - 813, abs=0.6)


def test_characters_that_hide_or_reorder_text_are_marked_and_counted(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, f"SELECT '{canned.BIDI}' -- {canned.FAMILY}")
    expect(page.locator(".m-hidden")).to_have_count(2)
    expect(judged(page)).to_contain_text("2 characters that are not visible or reorder text")


def test_control_space_suggests_and_keys_choose(window: Window, site: Site, url: str) -> None:
    page = open_query(window, site, url, "SELECT  FROM orders")
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Control+Space")
    expect(suggestions(page)).to_have_count(len(site.statements.items))
    text = editor(page)
    assert text.get_attribute("aria-controls") == page.locator(".suggestions").get_attribute("id")
    active = text.get_attribute("aria-activedescendant")
    assert chosen(page).get_attribute("id") == active
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(chosen(page)).to_contain_text("orders")
    page.keyboard.press("Enter")
    expect(text).to_have_value("SELECT orders FROM orders")
    expect(suggestions(page)).to_have_count(0)
    assert text.get_attribute("aria-activedescendant") is None
    page.keyboard.press("Control+z")
    expect(text).to_have_value("SELECT  FROM orders")


def test_typing_a_word_suggests_narrows_and_tab_takes_it(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url)
    page.keyboard.type("select cu")
    expect(suggestions(page)).to_have_count(2)
    page.keyboard.type("stomers")
    # The word is whole: nothing is left to suggest.
    expect(suggestions(page)).to_have_count(0)
    page.keyboard.press("Enter")
    expect(editor(page)).to_have_value("select customers\n")
    page.keyboard.type("sta")
    expect(chosen(page)).to_contain_text("status")
    page.keyboard.press("Tab")
    expect(editor(page)).to_have_value("select customers\nstatus")
    page.keyboard.type(", tot")
    expect(chosen(page)).to_contain_text("total")
    page.keyboard.press("Escape")
    expect(suggestions(page)).to_have_count(0)
    expect(editor(page)).to_be_focused()
    page.keyboard.type("al")
    chosen_now = page.locator(".suggestions li")
    expect(chosen_now).to_have_count(0)


def test_nothing_is_suggested_in_strings_and_comments_unless_asked(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url)
    # Each in one piece: a pause in the middle of a word is a question.
    page.keyboard.insert_text("SELECT 'cu")
    page.keyboard.insert_text("' -- or")
    expect(judged(page)).to_contain_text("allowed")
    assert site.posted("data/complete") == []
    page.keyboard.press("Control+Space")
    expect(suggestions(page)).to_have_count(1)


def test_a_late_suggestion_for_another_text_is_dropped(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url)
    held = site.statements.held["o"] = Event()
    page.keyboard.type("o")
    wait_until(lambda: site.posted("data/complete"), "the question for suggestions")
    page.keyboard.type(" ")
    held.set()
    page.keyboard.type("= 1")
    expect(judged(page)).to_contain_text("unknown")
    expect(suggestions(page)).to_have_count(0)
    expect(editor(page)).to_have_value("o = 1")


def test_the_mouse_chooses_a_suggestion_without_taking_the_focus(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url)
    page.keyboard.type("or")
    suggestions(page).first.click()
    expect(editor(page)).to_have_value("orders")
    expect(editor(page)).to_be_focused()


def test_only_the_statement_around_the_caret_is_sent_for_suggestions(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1;\nSELECT ';' ; \n")
    page.keyboard.press("Control+End")
    page.keyboard.type("sel")
    expect(suggestions(page)).to_have_count(1)
    asked = site.posted("data/complete")[-1]
    assert (asked["statement"], asked["at"]) == (" \nsel", 5)
    page.keyboard.press("Enter")
    expect(editor(page)).to_have_value("SELECT 1;\nSELECT ';' ; \nSELECT")


def test_what_is_typed_is_kept_on_the_server_and_nowhere_in_the_browser(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    page.keyboard.press("Control+End")
    page.keyboard.type(", 'secret'")
    expect(page.locator(".judged-end")).to_contain_text("Saved")
    tab = next(iter(site.data.tabs.values()))
    assert tab["text"] == "SELECT 1, 'secret'"
    assert "secret" not in page.url
    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "secret" not in stored
    assert "SELECT" not in stored
    page.reload()
    expect(editor(page)).to_have_value("SELECT 1, 'secret'")


def test_text_that_could_not_be_sent_is_sent_later_and_stays_meanwhile(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    window.expected = ["503"]
    site.refusals["data/tabs/tab-1"] = (503, {"error": "x", "message": "Full.", "hint": ""})
    page.keyboard.press("Control+End")
    page.keyboard.type("2")
    expect(page.locator(".judged-end")).to_contain_text("Not saved: Full.")
    page.get_by_role("link", name="Inbox").click()
    expect(page.locator(".empty, .card").first).to_be_visible()
    page.get_by_role("link", name="Data").click()
    expect(editor(page)).to_have_value("SELECT 12")
    del site.refusals["data/tabs/tab-1"]
    editor(page).click()
    page.keyboard.press("Control+End")
    page.keyboard.type("3")
    expect(page.locator(".judged-end")).to_contain_text("Saved")
    assert site.data.tabs["tab-1"]["text"] == "SELECT 123"


def test_two_pages_that_wrote_one_text_show_both_and_the_person_chooses(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    window.expected = ["409"]
    # Another page's text, of which this page has not heard.
    site.data.tabs["tab-1"] |= {"text": "SELECT 'theirs'", "version": 7}
    page.keyboard.press("Control+End")
    page.keyboard.type(" -- mine")
    both = page.locator(".conflict")
    expect(both).to_contain_text("SELECT 1 -- mine")
    expect(both).to_contain_text("SELECT 'theirs'")
    assert site.data.tabs["tab-1"]["text"] == "SELECT 'theirs'"
    page.get_by_role("button", name="Keep my text").click()
    expect(both).to_have_count(0)
    expect(page.locator(".judged-end")).to_contain_text("Saved")
    assert site.data.tabs["tab-1"]["text"] == "SELECT 1 -- mine"
    site.data.tabs["tab-1"] |= {"text": "SELECT 'again'", "version": 20}
    editor(page).click()
    page.keyboard.type("x")
    page.get_by_role("button", name="Take the other text").click()
    expect(editor(page)).to_have_value("SELECT 'again'")
    assert site.data.tabs["tab-1"]["text"] == "SELECT 'again'"


def test_another_pages_text_is_taken_over_where_nothing_was_typed(
    window: Window, site: Site, url: str
) -> None:
    page = open_query(window, site, url, "SELECT 1")
    other = window.tab(page.url)
    expect(editor(other)).to_have_value("SELECT 1")
    editor(other).click()
    other.keyboard.press("Control+End")
    other.keyboard.type("\n+ 2")
    expect(editor(page)).to_have_value("SELECT 1\n+ 2")
    expect(page.locator(".conflict")).to_have_count(0)


def test_a_datalog_query_has_its_own_colours_and_no_suggestions_of_sql(
    window: Window, site: Site, url: str
) -> None:
    site.data.sources[0]["language"] = "datalog"
    site.refusals["data/judge"] = (503, {"error": "busy", "message": "No.", "hint": ""})
    window.expected = ["503"]
    text = '[:find ?name ; who\n :where [?e :person/name ?name] [(> ?age 30)] "a\nb"]'
    page = open_query(window, site, url, text)
    expect(page.locator(".h-keyword")).to_have_text([":find", ":where", ":person/name"])
    expect(page.locator(".h-comment")).to_have_text("; who")
    expect(page.locator(".h-string")).to_have_text(['"a', 'b"'])
    page.keyboard.press("Control+/")
    expect(editor(page)).to_have_value(re.compile(r"^;; \[:find"))
    page.keyboard.press("Control+End")
    page.keyboard.type(" or")
    page.keyboard.press("Control+Space")
    expect(page.locator(".parameters")).to_have_count(0)
    expect(page.locator(".suggestions li")).to_have_count(0)
    assert site.posted("data/complete") == []


def test_a_text_of_100_kilobytes_is_typed_into_and_few_lines_are_nodes(
    window: Window, site: Site, url: str
) -> None:
    text = "SELECT id, customer, status FROM orders WHERE id = 12345;\n" * 1_800
    assert len(text) > 100_000
    page = open_query(window, site, url, text)
    expect(judged(page)).to_have_text("Of many: reads orders · , allowed")
    page.keyboard.press("Control+End")
    expect(page.locator(".numbers .at")).to_have_text("1801")
    page.keyboard.type("SELECT 'the end'")
    expect(page.locator(".code-line").last).to_have_text("SELECT 'the end'")
    expect(editor(page)).to_have_value(f"{text}SELECT 'the end'")
    assert page.locator(".code-line").count() < 40
    page.keyboard.press("Control+Home")
    page.keyboard.type("/* ")
    expect(page.locator(".code-line .h-comment").nth(5)).to_be_visible()
