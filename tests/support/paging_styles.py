"""How public APIs say what comes after a page of a list, as their references describe it, and the
provider documents for them, which say nothing of pages.

Each style serves the same 19 rows, three on a page: seven pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

ROWS = 19
SIZE = 3
HOST = "https://api.farm.example"
Query = dict[str, str]


class Style(NamedTuple):
    """`answer` gives the body and the headers of a page; `key` is where its rows are; `parameters`
    are those of pages, with their types. `is_linked`: the reply has the address of the next page,
    so no parameter is needed."""

    answer: Callable[[Query], tuple[Any, dict[str, str]]]
    key: str
    parameters: dict[str, str]
    is_linked: bool = False


def rows_from(start: int) -> list[dict[str, int]]:
    return [{"id": number} for number in range(start, min(start + SIZE, ROWS))]


def numbered_page(query: Query, name: str = "page", first: int = 1) -> tuple[int, list[Any], bool]:
    """The number of the page from 0 on, its rows, and whether it is the last."""
    number = int(query.get(name, first)) - first
    return number, rows_from(number * SIZE), (number + 1) * SIZE >= ROWS


def cursor_page(query: Query, name: str) -> tuple[int, list[Any], bool]:
    """Where the page starts, by a cursor such as `c6`."""
    start = int(query.get(name, "c0").removeprefix("c"))
    return start, rows_from(start), start + SIZE >= ROWS


def _link_header(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    link = f'<{HOST}/github?page={number + 2}>; rel="next", <{HOST}/github?page=7>; rel="last"'
    return rows, {} if is_last else {"Link": link}


def _gitlab(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    after = "" if is_last else str(number + 2)
    return rows, {"X-Next-Page": after, "X-Page": str(number + 1), "X-Total-Pages": "7"}


def _wordpress(query: Query) -> tuple[Any, dict[str, str]]:
    return numbered_page(query)[1], {"X-WP-Total": str(ROWS), "X-WP-TotalPages": "7"}


def _json_server(query: Query) -> tuple[Any, dict[str, str]]:
    return numbered_page(query, "_page")[1], {"X-Total-Count": str(ROWS)}


def _content_range(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("offset", 0))
    rows = rows_from(start)
    return rows, {"Content-Range": f"items {start}-{start + len(rows) - 1}/{ROWS}"}


def _stripe(query: Query) -> tuple[Any, dict[str, str]]:
    rows = rows_from(int(query.get("starting_after", -1)) + 1)
    return {"object": "list", "data": rows, "has_more": rows[-1]["id"] < ROWS - 1}, {}


def _jira(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("startAt", 0))
    is_last = start + SIZE >= ROWS
    return {"startAt": start, "maxResults": SIZE, "total": ROWS, "isLast": is_last,
            "values": rows_from(start)}, {}  # fmt: skip


def _jira_search(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("startAt", 0))
    return {"startAt": start, "maxResults": SIZE, "total": ROWS, "issues": rows_from(start)}, {}


def _start_and_last(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("startAt", 0))
    return {"startAt": start, "isLast": start + SIZE >= ROWS, "values": rows_from(start)}, {}


def _django(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    after = None if is_last else f"{HOST}/django?page={number + 2}"
    return {"count": ROWS, "next": after, "previous": None, "results": rows}, {}


def _netbox(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("offset", 0))
    return {"total": ROWS, "offset": start, "limit": SIZE, "items": rows_from(start)}, {}


def _hubspot(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    paging = {} if is_last else {"paging": {"next": {"after": f"c{start + SIZE}"}}}
    return {"results": rows, **paging}, {}


def _google(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "pageToken")
    return {"items": rows, **({} if is_last else {"nextPageToken": f"c{start + SIZE}"})}, {}


def _azure(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "$skiptoken")
    link = {} if is_last else {"nextLink": f"{HOST}/azure?%24skiptoken=c{start + SIZE}"}
    return {"value": rows, **link}, {}


def _slack(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "cursor")
    after = "" if is_last else f"c{start + SIZE}"
    return {"ok": True, "members": rows, "response_metadata": {"next_cursor": after}}, {}


def _okta(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    link = f'<{HOST}/okta?limit=3>; rel="self"'
    if not is_last:
        link += f', <{HOST}/okta?after=c{start + SIZE}>; rel="next"'
    return rows, {"Link": link}


def _digitalocean(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    pages = {"first": f"{HOST}/digitalocean?page=1"}
    if not is_last:
        pages |= {"next": f"{HOST}/digitalocean?page={number + 2}",
                  "last": f"{HOST}/digitalocean?page=7"}  # fmt: skip
    return {"droplets": rows, "links": {"pages": pages}, "meta": {"total": ROWS}}, {}


def _elasticsearch(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("from", 0))
    total = {"value": ROWS, "relation": "eq"}
    return {"timed_out": False, "hits": {"total": total, "hits": rows_from(start)}}, {}


def _linode(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _ = numbered_page(query)
    return {"data": rows, "page": number + 1, "pages": 7, "results": ROWS}, {}


def _salesforce(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "locator")
    link = {} if is_last else {"nextRecordsUrl": f"/salesforce?locator=c{start + SIZE}"}
    return {"totalSize": ROWS, "done": is_last, "records": rows, **link}, {}


def _zendesk(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "page[after]")
    # The last page has an address for the next one as well.
    link = f"{HOST}/zendesk?page%5Bafter%5D=c{start + SIZE}"
    return {"users": rows, "meta": {"has_more": not is_last}, "links": {"next": link}}, {}


def _cloudflare(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _ = numbered_page(query)
    info = {"page": number + 1, "per_page": SIZE, "count": len(rows), "total_count": ROWS,
            "total_pages": 7}  # fmt: skip
    return {"success": True, "errors": [], "messages": [], "result": rows, "result_info": info}, {}


def _aws(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "NextToken")
    return {"Keys": rows, **({} if is_last else {"NextToken": f"c{start + SIZE}"})}, {}


def _aws_marker(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "Marker")
    marker = {} if is_last else {"Marker": f"c{start + SIZE}"}
    return {"Users": rows, "IsTruncated": not is_last, **marker}, {}


def _scim(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("startIndex", 1))
    rows = rows_from(start - 1)
    return {"totalResults": ROWS, "startIndex": start, "itemsPerPage": len(rows),
            "Resources": rows}, {}  # fmt: skip


def _spring(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query, first=0)
    return {"content": rows, "number": number, "size": SIZE, "totalPages": 7,
            "totalElements": ROWS, "first": number == 0, "last": is_last}, {}  # fmt: skip


def _json_api(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query, "page[number]")
    link = None if is_last else f"{HOST}/json_api?page%5Bnumber%5D={number + 2}"
    return {"data": rows, "links": {"next": link}, "meta": {"page": {"total": 7}}}, {}


def _hal(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    links: dict[str, Any] = {"self": {"href": f"{HOST}/hal"}}
    if not is_last:
        links["next"] = {"href": f"/hal?page={number + 2}"}
    return {"entries": rows, "_links": links}, {}


def _fhir(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    links = [{"relation": "self", "url": f"{HOST}/fhir"}]
    if not is_last:
        links.append({"relation": "next", "url": f"{HOST}/fhir?page={number + 2}"})
    return {"resourceType": "Bundle", "total": ROWS, "link": links, "entry": rows}, {}


def _laravel(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    after = None if is_last else f"{HOST}/laravel?page={number + 2}"
    return {"current_page": number + 1, "last_page": 7, "per_page": SIZE, "total": ROWS,
            "data": rows, "next_page_url": after}, {}  # fmt: skip


def _twitter(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "pagination_token")
    after = {} if is_last else {"next_token": f"c{start + SIZE}"}
    return {"data": rows, "meta": {"result_count": len(rows), **after}}, {}


def _relay(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    info = {"has_next_page": not is_last, "end_cursor": f"c{start + SIZE}"}
    return {"nodes": rows, "page_info": info}, {}


def _facebook(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    paging: dict[str, Any] = {"cursors": {"before": f"c{start}", "after": f"c{start + SIZE}"}}
    if not is_last:
        paging["next"] = f"{HOST}/facebook?after=c{start + SIZE}"
    return {"data": rows, "paging": paging}, {}


STYLES: dict[str, Style] = {
    "github": Style(_link_header, "", {"page": "integer"}, True),
    "gitlab": Style(_gitlab, "", {"page": "integer", "per_page": "integer"}),
    "wordpress": Style(_wordpress, "", {"page": "integer", "per_page": "integer"}),
    "json_server": Style(_json_server, "", {"_page": "integer", "_limit": "integer"}),
    "content_range": Style(_content_range, "", {"offset": "integer", "limit": "integer"}),
    "stripe": Style(_stripe, "data", {"starting_after": "string", "limit": "integer"}),
    "jira": Style(_jira, "values", {"startAt": "integer", "maxResults": "integer"}),
    "jira_search": Style(_jira_search, "issues", {"startAt": "integer", "maxResults": "integer"}),
    "start_and_last": Style(_start_and_last, "values", {"startAt": "integer"}),
    "django": Style(_django, "results", {"page": "integer"}, True),
    "offset_and_total": Style(_netbox, "items", {"offset": "integer", "limit": "integer"}),
    "hubspot": Style(_hubspot, "results", {"after": "string", "limit": "integer"}),
    "google": Style(_google, "items", {"pageToken": "string"}, True),
    "azure": Style(_azure, "value", {"$skiptoken": "string"}, True),
    "slack": Style(_slack, "members", {"cursor": "string", "limit": "integer"}),
    "okta": Style(_okta, "", {"after": "string", "limit": "integer"}, True),
    "digitalocean": Style(_digitalocean, "droplets", {"page": "integer"}, True),
    "elasticsearch": Style(_elasticsearch, "hits.hits", {"from": "integer", "size": "integer"}),
    "linode": Style(_linode, "data", {"page": "integer", "page_size": "integer"}),
    "salesforce": Style(_salesforce, "records", {}, True),
    "zendesk": Style(_zendesk, "users", {"page[after]": "string"}, True),
    "cloudflare": Style(_cloudflare, "result", {"page": "integer", "per_page": "integer"}),
    "aws": Style(_aws, "Keys", {"NextToken": "string"}),
    "aws_marker": Style(_aws_marker, "Users", {"Marker": "string"}),
    "scim": Style(_scim, "Resources", {"startIndex": "integer", "count": "integer"}),
    "spring": Style(_spring, "content", {"page": "integer", "size": "integer"}),
    "json_api": Style(_json_api, "data", {"page[number]": "integer"}, True),
    "hal": Style(_hal, "entries", {"page": "integer"}, True),
    "fhir": Style(_fhir, "entry", {"page": "integer"}, True),
    "laravel": Style(_laravel, "data", {"page": "integer"}, True),
    "twitter": Style(_twitter, "data", {"pagination_token": "string"}),
    "relay": Style(_relay, "nodes", {"after": "string", "first": "integer"}),
    "facebook": Style(_facebook, "data", {"after": "string"}, True),
}
