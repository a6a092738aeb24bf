"""Further styles of public APIs, found by trying what the first ones do not say: tokens that are
called as their parameter, pages counted from 0, headers of a vendor's own, links to an empty page.

Each serves the rows of `paging_styles`, as the references of the API that it is called after say.
"""

from __future__ import annotations

from typing import Any

from support.paging_styles import (
    HOST,
    ROWS,
    SIZE,
    Query,
    Style,
    cursor_page,
    numbered_page,
    rows_from,
)


def _notion(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "start_cursor")
    return {
        "object": "list",
        "results": rows,
        "next_cursor": None if is_last else f"c{start + SIZE}",
        "has_more": not is_last,
    }, {}


def _asana(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "offset")
    return {
        "data": rows,
        "next_page": None
        if is_last
        else {
            "offset": f"c{start + SIZE}",
            "path": f"/asana?offset=c{start + SIZE}",
            "uri": f"{HOST}/asana?offset=c{start + SIZE}",
        },
    }, {}


def _auth0(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _ = numbered_page(query, first=0)
    return {
        "start": number * SIZE,
        "limit": SIZE,
        "length": len(rows),
        "total": ROWS,
        "users": rows,
    }, {}


def _datadog(query: Query) -> tuple[Any, dict[str, str]]:
    rows = numbered_page(query, "page[number]", first=0)[1]
    return {"data": rows, "meta": {"page": {"total_count": ROWS, "total_filtered_count": ROWS}}}, {}


def _datadog_cursor(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "page[cursor]")
    return {"data": rows, "meta": {"page": {} if is_last else {"after": f"c{start + SIZE}"}}}, {}


def _mailgun(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("p", 0))
    rows = rows_from(start)
    after = start + len(rows)
    return {
        "items": rows,
        "paging": {"first": f"{HOST}/mailgun", "next": f"{HOST}/mailgun?p={after}"},
    }, {}


def _kube(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "continue")
    meta = {"resourceVersion": "12"}
    if not is_last:
        meta |= {"continue": f"c{start + SIZE}", "remainingItemCount": ROWS - start - SIZE}
    return {"kind": "PodList", "metadata": meta, "items": rows}, {}


def _nomad(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "next_token")
    return rows, ({} if is_last else {"X-Nomad-NextToken": f"c{start + SIZE}"})


def _algolia(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _ = numbered_page(query, first=0)
    return {"hits": rows, "page": number, "nbPages": 7, "nbHits": ROWS, "hitsPerPage": SIZE}, {}


def _jira_token(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "nextPageToken")
    return {
        "issues": rows,
        "isLast": is_last,
        **({} if is_last else {"nextPageToken": f"c{start + SIZE}"}),
    }, {}


def _square(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "cursor")
    return {"objects": rows, **({} if is_last else {"cursor": f"c{start + SIZE}"})}, {}


def _cf_cursor(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "cursor")
    return {
        "success": True,
        "result": rows,
        "result_info": {"count": len(rows), "cursor": "" if is_last else f"c{start + SIZE}"},
    }, {}


def _airtable(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "offset")
    return {"records": rows, **({} if is_last else {"offset": f"c{start + SIZE}"})}, {}


def _sentry(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "cursor")
    before = f'<{HOST}/sentry?cursor=c{max(0, start - SIZE)}>; rel="previous"; results="false"'
    results = "false" if is_last else "true"
    after = f'<{HOST}/sentry?cursor=c{start + SIZE}>; rel="next"; results="{results}"'
    return rows, {"Link": f"{before}, {after}"}


def _oci(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "page")
    return rows, ({} if is_last else {"opc-next-page": f"c{start + SIZE}"})


def _info_next(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, is_last = numbered_page(query)
    return {
        "info": {
            "count": ROWS,
            "pages": 7,
            "next": None if is_last else f"{HOST}/info_next?page={number + 2}",
            "prev": None,
        },
        "results": rows,
    }, {}


def _intercom(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "starting_after")
    number = start // SIZE
    following = (
        {} if is_last else {"next": {"page": number + 2, "starting_after": f"c{start + SIZE}"}}
    )
    return {
        "type": "list",
        "data": rows,
        "pages": {
            "type": "pages",
            "page": number + 1,
            "per_page": SIZE,
            "total_pages": 7,
            **following,
        },
    }, {}


def _bitbucket_server(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("start", 0))
    rows = rows_from(start)
    is_last = start + SIZE >= ROWS
    return {
        "size": len(rows),
        "limit": SIZE,
        "isLastPage": is_last,
        "values": rows,
        "start": start,
        "nextPageStart": None if is_last else start + SIZE,
    }, {}


def _pagerduty(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("offset", 0))
    return {
        "limit": SIZE,
        "offset": start,
        "total": None,
        "more": start + SIZE < ROWS,
        "incidents": rows_from(start),
    }, {}


def _tencent(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("Offset", 0))
    return {"Response": {"TotalCount": ROWS, "InstanceSet": rows_from(start), "RequestId": "x"}}, {}


def _alibaba(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _ = numbered_page(query, "PageNumber")
    return {
        "PageNumber": number + 1,
        "PageSize": SIZE,
        "TotalCount": ROWS,
        "Regions": {"Region": rows},
    }, {}


def _ibm(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "start")
    return {
        "limit": SIZE,
        "first": {"href": f"{HOST}/ibm"},
        "total_count": ROWS,
        **({} if is_last else {"next": {"href": f"{HOST}/ibm?start=c{start + SIZE}"}}),
        "vpcs": rows,
    }, {}


def _segment(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "pagination.cursor")
    return {
        "data": {
            "sources": rows,
            "pagination": {
                "current": f"c{start}",
                "totalEntries": ROWS,
                **({} if is_last else {"next": f"c{start + SIZE}"}),
            },
        }
    }, {}


def _databricks(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "page_token")
    return {
        "jobs": rows,
        "has_more": not is_last,
        "next_page_token": "" if is_last else f"c{start + SIZE}",
    }, {}


def _page_index(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _ = numbered_page(query, "p")
    return {"items": rows, "paging": {"pageIndex": number + 1, "pageSize": SIZE, "total": ROWS}}, {}


def _skip(query: Query) -> tuple[Any, dict[str, str]]:
    start = int(query.get("skip", 0))
    return {"results": rows_from(start), "total": ROWS, "skip": start, "limit": SIZE}, {}


def _after_id(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    return {
        "data": rows,
        "pagination": {"after": None if is_last else f"c{start + SIZE}", "limit": SIZE},
    }, {}


def _page_info(query: Query) -> tuple[Any, dict[str, str]]:
    start, rows, is_last = cursor_page(query, "after")
    return {
        "data": rows,
        "pageInfo": {"hasNextPage": not is_last, "endCursor": f"c{start + SIZE}"},
    }, {}


def _from_to(query: Query) -> tuple[Any, dict[str, str]]:
    number, rows, _ = numbered_page(query)
    return {
        "data": rows,
        "meta": {
            "current_page": number + 1,
            "from": number * SIZE + 1,
            "to": number * SIZE + len(rows),
            "total": ROWS,
            "per_page": SIZE,
        },
    }, {}


MORE_STYLES: dict[str, Style] = {
    "notion": Style(_notion, "results", {"start_cursor": "string", "page_size": "integer"}),
    "asana": Style(_asana, "data", {"offset": "string", "limit": "integer"}, True),
    "auth0": Style(_auth0, "users", {"page": "integer", "per_page": "integer"}),
    "datadog": Style(_datadog, "data", {"page[number]": "integer", "page[size]": "integer"}),
    "datadog_cursor": Style(
        _datadog_cursor, "data", {"page[cursor]": "string", "page[limit]": "integer"}
    ),
    "mailgun": Style(_mailgun, "items", {"p": "string"}, True),
    "kube": Style(_kube, "items", {"continue": "string", "limit": "integer"}),
    "nomad": Style(_nomad, "", {"next_token": "string", "per_page": "integer"}),
    "algolia": Style(_algolia, "hits", {"page": "integer", "hitsPerPage": "integer"}),
    "jira_token": Style(
        _jira_token, "issues", {"nextPageToken": "string", "maxResults": "integer"}
    ),
    "square": Style(_square, "objects", {"cursor": "string", "limit": "integer"}),
    "cf_cursor": Style(_cf_cursor, "result", {"cursor": "string", "limit": "integer"}),
    "airtable": Style(_airtable, "records", {"offset": "string", "pageSize": "integer"}),
    "sentry": Style(_sentry, "", {"cursor": "string"}, True),
    "oci": Style(_oci, "", {"page": "string", "limit": "integer"}),
    "info_next": Style(_info_next, "results", {"page": "integer"}, True),
    "intercom": Style(_intercom, "data", {"starting_after": "string", "per_page": "integer"}),
    "bitbucket_server": Style(
        _bitbucket_server, "values", {"start": "integer", "limit": "integer"}
    ),
    "pagerduty": Style(_pagerduty, "incidents", {"offset": "integer", "limit": "integer"}),
    "tencent": Style(_tencent, "Response.InstanceSet", {"Offset": "integer", "Limit": "integer"}),
    "alibaba": Style(_alibaba, "Regions.Region", {"PageNumber": "integer", "PageSize": "integer"}),
    "ibm": Style(_ibm, "vpcs", {"start": "string", "limit": "integer"}, True),
    "segment": Style(
        _segment, "data.sources", {"pagination.cursor": "string", "pagination.count": "integer"}
    ),
    "databricks": Style(_databricks, "jobs", {"page_token": "string", "limit": "integer"}),
    "page_index": Style(_page_index, "items", {"p": "integer", "ps": "integer"}),
    "skip": Style(_skip, "results", {"skip": "integer", "limit": "integer"}),
    "after_id": Style(_after_id, "data", {"after": "string"}),
    "page_info": Style(_page_info, "data", {"after": "string", "first": "integer"}),
    "from_to": Style(_from_to, "data", {"page": "integer", "per_page": "integer"}),
}
