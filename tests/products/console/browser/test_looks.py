"""Every page dark and light, wide and narrow: what axe says, what texts of others do, pictures.

The pictures are in the folder of the test run, to be looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from products.console.support import console_access as of_access
from products.console.support import console_cards as canned
from products.console.support.chromium import (
    LOOKS,
    Window,
    broken_words,
    scrolled,
    violations,
)
from products.console.support.console_site import Site

H = canned.HOSTILE
PAGES = {
    "question": ("#/inbox/ask-1", ".card"),
    "irreversible": ("#/inbox/ask-2", ".card"),
    "done": ("#/inbox/ask-3", ".steps"),
    "list": ("#/inbox", ".list"),
    "sessions": ("#/activity", ".fold"),
    "line": ("#/activity?view=calls&line=399", ".panel h2"),
    "access": ("#/access", ".request"),
    "matrix": ("#/access/may", ".access-matrix"),
    "cell": (
        "#/access/may?caller=token%3At1&cell=%5B%22token%3At1%22%2C%22shop%22%2C%22read%22%5D",
        ".panel .finding",
    ),
    "rows": ("#/data?source=shop&schema=main&table=customers", ".grid-cell.is-masked"),
    "references": ("#/data?source=shop&schema=main&table=orders", ".grid-cell.follows"),
}


def wide_dry_run() -> canned.Json:
    """Rows with more columns than a window has room for."""
    columns = [
        "id",
        "price",
        "sku",
        "name",
        "description",
        "category",
        "attributes",
        "discontinued",
    ]
    row = ["1", "4719", "TEA-00001", "Cork teapot", "Teapot of cork, series Øresund."]
    row += ["household", '{"color": "natural", "material": "cork", "fragile": true}', "2023-03-11"]
    now = [*row[:1], "4247", *row[2:]]
    return canned.dry_run(affected=1, columns=columns, before=[row], after=[now])


def fill(site: Site) -> None:
    site.add(
        canned.card(1, may=canned.may(minutes=30), dry_run=wide_dry_run()),
        canned.card(
            2,
            irreversible=True,
            effect="destructive",
            unqualified=True,
            dry_run=canned.dry_run(affected=None, before=[], after=[]),
            undo={"possible": False, "reason": "No rows.", "triggers": []},
            statement=[["keyword", "DROP"], ["mark", "U+202E"], ["comment", "-- all"]],
        ),
        canned.card(3, state="used", decided_at=1e9, decided_by="ann", run=canned.run()),
        canned.card(4, state="denied", decided_at=1e9, decided_by="ann", decision_reason="No."),
    )


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
def test_axe_finds_nothing_wrong_on_any_page(
    open_window: Any, site: Site, url: str, tmp_path: Path, scheme: str, size: dict[str, int]
) -> None:
    fill(site)
    site.access["pairings"] = [of_access.pairing()]
    window: Window = open_window(color_scheme=scheme, viewport=size, reduced_motion="reduce")
    page = window.tab(url)
    expect(page.locator(".live.on")).to_be_visible()
    for name, (path, sign) in PAGES.items():
        page.evaluate(f"location.hash = {path!r}")
        expect(page.locator(sign).first).to_be_visible()
        if name == "question":
            ready = page.get_by_role("button", name="Allow once")
            expect(ready).to_have_attribute("aria-disabled", "false")
        page.screenshot(path=tmp_path / f"{name}.png")
        assert violations(page) == [], name
        assert (scrolled(page), broken_words(page)) == ([], []), name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_dialogs_and_signing_in(
    open_window: Any, site: Site, url: str, tmp_path: Path, scheme: str
) -> None:
    fill(site)
    window: Window = open_window(color_scheme=scheme, reduced_motion="reduce")
    window.expected = ["401"]
    page = window.tab(f"{url}#/inbox/ask-3")
    for name, key in {"undo": "u", "keys": "?", "palette": "Control+k"}.items():
        expect(page.locator(".steps")).to_be_visible()
        page.keyboard.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        page.screenshot(path=tmp_path / f"{name}.png")
        assert violations(page) == [], name
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="ann").click()
    page.screenshot(path=tmp_path / "menu.png")
    assert violations(page) == []
    site.session = None
    page.reload()
    expect(page.get_by_label("Name")).to_be_visible()
    page.screenshot(path=tmp_path / "sign-in.png")
    assert (violations(page), scrolled(page)) == ([], [])


def hostile(number: int) -> canned.Json:
    row = [H, canned.RTL, canned.FAMILY, canned.BIDI]
    run = canned.dry_run(
        columns=[H, "b" + canned.BIDI, canned.RTL, "d"],
        before=[row],
        after=[[*row[:3], H]],
        reason=H,
        withheld=[H],
        state={"columns": [H], "rows": [[H]], "reason": H},
    )
    return canned.card(
        number,
        sentence=H,
        agent_reason=H,
        why=H,
        reason=H,
        effect=H,
        surface=H,
        tool=H,
        database=H,
        schema=H,
        params=H,
        tables=[H],
        dry_run=run,
        caller={"name": H, "id": H, "client": H, "in_console": False},
        source={"name": H, "color": 3},
        statement=[[H, H], ["string", H], ["mark", "U+202E"]],
        undo={"possible": True, "reason": H, "triggers": [H]},
        may=canned.may(why_not=H),
    )


def is_harmless(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    assert page.locator("img, iframe, main script").count() == 0


def test_texts_of_others_are_shown_and_do_nothing(window: Window, site: Site, url: str) -> None:
    done = {**hostile(2), "state": "denied", "decided_by": H, "decision_reason": H}
    done |= {"decided_at": 1e9, "run": canned.run("failed", message=H)}
    site.add(hostile(1), done)
    text = {name: H for name in canned.line(1) if isinstance(canned.line(1)[name], str)}
    site.lines = [{**canned.line(n), **text, "session": H} for n in (1, 2)]
    site.agents = [{"name": H, "client": H, "last_at": 1e9}]
    site.calls = site.lines
    proof = {"state": H, "text": H, "segment": H, "seq": 1, "hash": H}
    site.lines_on_record[2] = {"fields": {H: H}, "proof": proof, "approval": done}
    site.proof = {"state": H, "text": H, "running": False}
    window.expected = ["409"]
    page = window.tab(url)
    expect(page.locator("#card-title")).to_have_text(H)
    expect(page.locator("td.change")).to_contain_text(H)
    is_harmless(page)
    error = {"error": H, "message": H, "hint": H}
    site.refusals["inbox/ask-1/deny"] = (400, error)
    window.expected += ["400"]
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text(f"{H} {H}")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("option").first).to_contain_text(H)
    page.keyboard.press("Escape")
    for path, sign in (
        ("#/inbox/ask-2", ".word"),
        ("#/inbox/none", ".calls"),
        ("#/activity", ".fold"),
        ("#/activity?view=calls&line=2", ".panel h2"),
        ("#/access", ".records"),
    ):
        window.expected += ["404"]
        page.evaluate(f"location.hash = {path!r}")
        expect(page.locator(sign).first).to_contain_text("onerror" if sign != ".records" else "ann")
        is_harmless(page)


def test_what_hides_or_reorders_text_is_shown_as_marks_and_emoji_are_whole(
    window: Window, site: Site, url: str
) -> None:
    row = [canned.BIDI, canned.RTL, canned.FAMILY, "a\u200bb\u00a0c\u2800 ❤️ 1️⃣ \U000e0041"]
    run = canned.dry_run(
        affected=1, columns=["a", "b", "c", canned.BIDI], before=[row], after=[[*row[:3], "x"]]
    )
    site.add(canned.card(1, dry_run=run, sentence=f"{canned.BIDI} wants to change 1 row"))
    page = window.tab(url)
    expect(page.locator("#card-title")).to_have_text(
        "adminU+202Egnp.exeU+2066 wants to change 1 row"
    )
    cells = page.locator("tbody td")
    expect(cells.nth(0)).to_have_text("adminU+202Egnp.exeU+2066")
    expect(cells.nth(1)).to_have_text(canned.RTL)
    assert cells.nth(2).inner_text() == canned.FAMILY
    expect(cells.nth(3)).to_have_text("aU+200BbU+00A0cU+2800 ❤️ 1️⃣ U+E0041 → x")
    expect(page.locator("thead .mark")).to_have_count(2)
    # A right-to-left value turns nothing around it.
    directions = cells.evaluate_all("all => all.map(each => getComputedStyle(each).direction)")
    assert set(directions) == {"ltr"}


TOO_SMALL = """(least) => [...document.querySelectorAll(
    "a[href], button, select, textarea, summary, input, [role=tab], [role=option], [role=treeitem]"
)].filter((node) => node.checkVisibility({ visibilityProperty: true }) &&
    !node.closest(".sr, .skip"))
  .map((node) => [node, (node.closest("label") ?? node).getBoundingClientRect()])
  .filter(([node, { width, height }]) => width && Math.min(width, height) < least)
  .map(([node, { width, height }]) =>
    `${node.tagName}.${node.className} ${node.textContent.slice(0, 30)} ${width}x${height}`)"""
"""Targets with less than so many pixels of width or height."""


@pytest.mark.parametrize(("touch", "least"), [(True, 43.9), (False, 23.9)])
def test_a_finger_and_a_pointer_have_room_on_every_target_of_every_page(
    open_window: Any, site: Site, url: str, *, touch: bool, least: float
) -> None:
    fill(site)
    site.access["pairings"] = [of_access.pairing()]
    size = {"width": 390, "height": 844} if touch else {"width": 1280, "height": 800}
    window: Window = open_window(viewport=size, has_touch=touch, is_mobile=touch)
    page = window.tab(url)
    expect(page.locator(".live.on")).to_be_visible()
    small: dict[str, Any] = {}
    others = {
        "story": ("#/activity?session=call-3", ".story-line"),
        "now": ("#/now", ".now a"),
        "tree": ("#/data", ".tree-row"),
    }
    for name, (path, sign) in {**PAGES, **others}.items():
        page.evaluate(f"location.hash = {path!r}")
        if name == "tree":
            page.locator(".tree-row").first.wait_for(state="attached")
        else:
            expect(page.locator(sign).first).to_be_visible()
        found = page.evaluate(TOO_SMALL, least)
        if not touch:  # a link in a text is as high as its line
            found = [each for each in found if not each.startswith(("A.", "INPUT."))]
        if found:
            small[name] = found
    assert small == {}
