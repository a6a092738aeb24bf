"""The page of an MCP App in the official AppBridge, in Chromium under its default policy.

The results are those of a real server, whose tools the page calls through the bridge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FrameLocator, Page, Route, expect

from external.install import node_modules
from products.console.support.chromium import Window, violations
from support.data_desk import Desk, desk
from tidegate.protocol.apps import SHOWING
from wire.wires import MODERN, HttpPeer

HOST = "http://host.test"
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)
"""What a host puts on a page that asks for nothing (specification 2026-01-26)."""
FILE = Path(__file__).parents[1] / "support" / "app_host.html"
KINDS = {".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript"}
MANY = (
    "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s LIMIT 230)"
    " SELECT n, CASE n % 3 WHEN 0 THEN NULL WHEN 1 THEN '<b>tea</b>' ELSE 'rice' END AS kind FROM s"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    flags = {"lite": ["--approval-for", "writes"]}
    with desk(tmp_path_factory.mktemp("apps"), ["lite"], flags, operators=False) as found:
        yield found


@pytest.fixture(scope="module")
def peer(place: Desk) -> HttpPeer:
    words = ["token", "create", "bot", "--scope", "readWrite", "--owner", "ada"]
    ended = place.run(*words, "--passphrase-file", str(place.directory / "consent"))
    assert ended.status == 0, ended.err
    port = int(place.address.rpartition(":")[2])
    found = HttpPeer(port, MODERN, capabilities=SHOWING, path="/mcp/core")
    found.token = ended.out.strip()
    return found


@pytest.fixture
def page(window: Window, peer: HttpPeer) -> Page:
    """The host, before it shows anything."""
    view = peer.request("resources/read", {"uri": "ui://tidegate/result"}).result["contents"][0]

    def serve(route: Route) -> None:
        path = route.request.url.removeprefix(HOST)
        if path == "/view":
            headers = {"content-type": "text/html", "content-security-policy": POLICY}
            route.fulfill(body=view["text"], headers=headers)
            return
        file = FILE if path == "/" else node_modules() / path.removeprefix("/modules/")
        route.fulfill(path=file, content_type=KINDS[file.suffix])

    window.context.route(f"{HOST}/**", serve)
    # axe asks the frame by the address of the page, which is not the frame's.
    window.expected.append("The target origin provided ('http://host.test') does not match")
    found = window.tab()
    found.expose_function("callTool", lambda text: json.dumps(call(peer, **json.loads(text))))
    found.goto(f"{HOST}/")
    found.wait_for_function("window.ready")
    return found


def call(peer: HttpPeer, name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A tool's result as hosts pass it on: its texts alone."""
    result = peer.call(name, arguments).result
    return {"content": result["content"], "isError": result.get("isError", False)}


def show(page: Page, peer: HttpPeer, tool: str, arguments: dict[str, Any], **more: Any) -> Any:
    """Shows what the tool answers; the page in its frame."""
    result = call(peer, tool, arguments)
    page.evaluate("window.show", {"tool": tool, "input": arguments, "result": result, **more})
    return page.frame_locator("#view")


def test_rows_are_shown_and_more_of_them_come_from_the_tool(page: Page, peer: HttpPeer) -> None:
    view: FrameLocator = show(page, peer, "query", {"sql": MANY, "max_rows": 120})
    expect(view.locator("tbody tr")).to_have_count(100)
    expect(view.locator("tbody tr").first.locator("td")).to_have_text(["1", "<b>tea</b>"])
    expect(view.locator("tbody tr").nth(2).locator(".null")).to_have_text("NULL")
    more = view.get_by_role("button", name="Show more")
    more.press("Enter")
    expect(view.locator("tbody tr")).to_have_count(120)
    more.press("Enter")
    expect(view.locator("tbody tr")).to_have_count(220)
    more.press("Enter")
    expect(view.locator("tbody tr")).to_have_count(230)
    expect(more).to_be_hidden()
    names = [each["name"] for each in page.evaluate("window.seen.calls")]
    assert names == ["more", "more"]
    assert page.evaluate("window.seen.sizes.length") > 0
    assert violations(page) == []


def test_a_chart_is_drawn_in_the_hosts_theme_and_read_by_keys(page: Page, peer: HttpPeer) -> None:
    chart = {
        "mark": "bar",
        "encoding": {
            "x": {"field": "kind", "type": "nominal", "sort": "-y"},
            "y": {"aggregate": "count"},
        },
    }
    page.set_viewport_size({"width": 390, "height": 800})
    arguments = {"sql": MANY, "chart": chart}
    view = show(page, peer, "query", arguments, theme="dark")
    slider = view.get_by_role("slider", name="Chart: choose a mark")
    slider.press("Home")
    expect(view.locator(".chart-readout")).to_have_text("kind: <b>tea</b>, Count: 77")
    expect(view.locator(".chart-drawing text").first).to_have_attribute("fill", "#9ca8b8")
    view.get_by_text("As a table").press("Enter")
    expect(view.locator("tbody tr")).to_have_count(3)
    expect(view.get_by_role("button", name="Save the chart as PNG")).to_have_count(0)
    assert violations(page) == []


def test_a_plan_and_a_refusal_are_shown_as_text(page: Page, peer: HttpPeer) -> None:
    view = show(page, peer, "explain", {"sql": "SELECT * FROM orders WHERE id = 1"})
    expect(view.locator("pre")).to_contain_text("orders")
    page.reload()
    page.wait_for_function("window.ready")
    view = show(page, peer, "query", {"sql": "SELECT nothing_such FROM orders"})
    expect(view.get_by_role("alert")).to_contain_text("nothing_such")


@pytest.mark.parametrize("opens", [True, False])
def test_a_question_leads_to_the_inbox_and_cannot_be_answered_here(
    page: Page, peer: HttpPeer, place: Desk, opens: bool
) -> None:
    sql = "UPDATE orders SET total = 1 WHERE id = 1"
    view = show(page, peer, "query", {"sql": sql}, opens=opens)
    expect(view.get_by_role("heading")).to_have_text("A person must answer first")
    expect(view.locator("pre")).to_have_text(sql)
    expect(view.get_by_role("button")).to_have_count(1)
    view.get_by_role("button", name="Open the Inbox").press("Enter")
    if not opens:
        expect(view.get_by_role("status")).to_contain_text("did not open it")
    expect(view.locator("code")).to_contain_text(f"{place.address}/console#/inbox")
    page.wait_for_function("window.seen.links.length")  # the page asks its host by a message
    assert page.evaluate("window.seen.links") == [f"{place.address}/console#/inbox"]
    assert page.evaluate("window.seen.calls") == []
    assert violations(page) == []


def test_a_host_that_says_nothing_leaves_a_sentence(page: Page) -> None:
    page.clock.install()
    page.evaluate("document.getElementById('view').src = '/view'")
    view = page.frame_locator("#view")
    expect(view.locator("main")).to_contain_text("Waiting for the answer")
    page.clock.fast_forward(7_000)
    expect(view.locator("main")).to_contain_text("The answer is in the conversation, as text")
