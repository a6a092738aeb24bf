"""Lists of public APIs' styles of paging are whole, or say that they are not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from products.cloud.contract.conftest import Ask
from support.cloud_api import Farm, Reply
from support.paging_api import ALL_STYLES, answer, write_styles
from support.paging_styles import ROWS, SIZE
from tidegate.engines.registry import engine_of
from tidegate.model.sources import Source


@pytest.fixture(scope="module")
def api() -> Iterator[Farm]:
    farm = Farm(answer)
    yield farm
    farm.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"cloud://{write_styles(tmp_path_factory.mktemp('styles'))}"


@pytest.fixture
def ask_style(api: Farm, url: str) -> Ask:
    api.reset()
    return Ask(Source("c", "c", url, *engine_of(url), access="write", options=api.options))


@pytest.mark.parametrize("style", ALL_STYLES)
async def test_seven_pages_of_each_public_style_are_one_list(
    ask_style: Ask, api: Farm, style: str
) -> None:
    rows = await ask_style(f"SELECT id FROM styles.all.{style}")
    assert rows == [(number,) for number in range(ROWS)]
    assert ask_style.cursor.truncations == ()
    # Some cannot say that a page is the last, nor whether they count from 0 or 1.
    assert len(api.asked) in (7, 8, 9)


# Of a `nextPageToken` that nothing takes Google's parameter is sent.
@pytest.mark.parametrize("style", sorted(ALL_STYLES.keys() - {"jira_token"}))
async def test_a_list_whose_next_page_no_parameter_asks_for_says_that_there_is_more(
    ask_style: Ask, style: str
) -> None:
    rows = await ask_style(f"SELECT id FROM styles.all.bare_{style}")
    if ALL_STYLES[style].is_linked:
        assert len(rows) == ROWS
        assert ask_style.cursor.truncations == ()
        return
    assert len(rows) == SIZE
    (cut,) = ask_style.cursor.truncations
    assert (cut.kind, cut.limit, cut.returned) == ("pages", 1, 1)


@pytest.mark.parametrize(
    "body",
    [
        {"data": [{"id": 1}], "total": 1},
        {"data": [{"id": 1}], "total": 500},  # of something else: nothing speaks of pages
        {"data": [{"id": 1}], "next": None, "count": 9},
        {"data": [{"id": 1}], "has_more": False, "total_count": 9, "links": {"next": "/x"}},
        {"data": [{"id": 1}], "page": 1, "pages": 1, "total": 1},
        {"data": [], "totalResults": 9, "startIndex": 1},
        {"data": [{"id": 1}], "next_step": "/deploy", "last": "x"},
        {"data": [{"id": 1}], "nextSyncToken": "s1", "done": True},
        {"data": [{"id": 1}], "after": "2026-01-01", "hasMoreInfo": True},
        {"data": [{"id": 1}], "next_cursor": "0", "found": 7},
        {"data": [{"id": 1}], "paging": {"cursors": {"before": "c0", "after": "c3"}}},
    ],
)
async def test_a_list_that_is_whole_is_not_said_to_go_on(
    ask_style: Ask, api: Farm, body: dict[str, object]
) -> None:
    api.special["/bare_linode"] = lambda count: Reply(200, body)
    await ask_style("SELECT id FROM styles.all.bare_linode")
    assert ask_style.cursor.truncations == ()
    assert len(api.asked) == 1


@pytest.mark.parametrize("address", ["https://evil.example/x", "//evil.example/x"])
async def test_a_next_page_elsewhere_is_an_error_in_every_style(
    ask_style: Ask, api: Farm, address: str
) -> None:
    for body in ({"next": address}, {"links": {"next": address}}, {"paging": {"next": address}}):
        api.special["/bare_linode"] = lambda count, body=body: Reply(
            200, {"data": [{"id": 1}], **body}
        )
        error = await ask_style.refusal("SELECT id FROM styles.all.bare_linode")
        assert "on another host" in error.message
    assert {path for _, path, _ in api.asked} == {"/bare_linode"}
